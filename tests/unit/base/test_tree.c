/* SPDX-License-Identifier: Apache-2.0
 * The balanced tree beside a sorted array. */
#include "base_test.h"
#include "base/tree.h"

#define N 300

struct pair {
    uint64_t key, sub;
};

static struct blyi_tree_node nodes[N];
static struct blyi_tree_node *sorted[N]; /* the model */
static size_t count;

static bool is_before(const struct blyi_tree_node *node, struct pair at)
{
    return node->key < at.key || (node->key == at.key && node->sub < at.sub);
}

/* Index of the first node not before `at`. */
static size_t place(struct pair at)
{
    size_t i = 0;
    while (i < count && is_before(sorted[i], at))
        i++;
    return i;
}

static struct blyi_tree_node *model_at(size_t i)
{
    return i < count ? sorted[i] : NULL;
}

static void check(const struct blyi_tree *tree)
{
    assert_true(blyi_tree_audit(tree));
    assert_int_equal(tree->count, count);
    assert_ptr_equal(blyi_tree_first(tree), model_at(0));
    assert_ptr_equal(blyi_tree_last(tree), count ? sorted[count - 1] : NULL);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(blyi_tree_next(sorted[i]), model_at(i + 1));
        assert_ptr_equal(blyi_tree_prev(sorted[i]), i ? sorted[i - 1] : NULL);
    }
    int depth_max = 0; /* AVL: below 1.45 log2(n + 2) */
    for (size_t n = count + 2; n > 1; n /= 2)
        depth_max++;
    assert_true(!tree->root || 2 * tree->root->height <= 3 * depth_max + 2);
}

static void check_searches(const struct blyi_tree *tree, struct pair at)
{
    size_t i = place(at);
    bool present = i < count && sorted[i]->key == at.key && sorted[i]->sub == at.sub;
    assert_ptr_equal(blyi_tree_find(tree, at.key, at.sub), present ? sorted[i] : NULL);
    assert_ptr_equal(blyi_tree_ceil(tree, at.key), model_at(place((struct pair){at.key, 0})));
    size_t above = place((struct pair){at.key, UINT64_MAX});
    if (above < count && sorted[above]->key == at.key) /* sub is UINT64_MAX itself */
        above++;
    assert_ptr_equal(blyi_tree_floor(tree, at.key), above ? sorted[above - 1] : NULL);
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    struct blyi_tree tree = {0};
    bool linked[N] = {false};
    static const uint64_t subs[] = {0, 1, 2, UINT64_MAX};
    for (int step = 0; step < 20000; step++) {
        size_t n = rng_below(&rng, N);
        /* The tree swells and shrinks. */
        bool grow = step / 1000 % 2 ? rng_below(&rng, 4) > 0 : rng_below(&rng, 4) == 0;
        struct pair at = {rng_below(&rng, 100), subs[rng_below(&rng, 4)]};
        if (rng_below(&rng, 50) == 0)
            at.key = UINT64_MAX;
        if (!linked[n] && grow) {
            size_t i = place(at);
            bool present = i < count && sorted[i]->key == at.key && sorted[i]->sub == at.sub;
            assert_int_equal(blyi_tree_insert(&tree, &nodes[n], at.key, at.sub), !present);
            if (!present) {
                memmove(&sorted[i + 1], &sorted[i], (count - i) * sizeof(sorted[0]));
                sorted[i] = &nodes[n];
                count++;
                linked[n] = true;
            }
        } else if (linked[n] && !grow) {
            size_t i = place((struct pair){nodes[n].key, nodes[n].sub});
            assert_ptr_equal(sorted[i], &nodes[n]);
            blyi_tree_remove(&tree, &nodes[n]);
            memmove(&sorted[i], &sorted[i + 1], (count - i - 1) * sizeof(sorted[0]));
            count--;
            linked[n] = false;
        }
        check_searches(&tree, at);
        if (step % 50 == 0)
            check(&tree);
    }
}

static void sorted_input_stays_balanced(void **state)
{
    (void)state;
    struct blyi_tree tree = {0};
    for (uint64_t i = 0; i < N; i++) {
        assert_true(blyi_tree_insert(&tree, &nodes[i], i, 0));
        assert_true(blyi_tree_audit(&tree));
    }
    assert_true(tree.root->height <= 12);
    for (uint64_t i = 0; i < N; i++) {
        blyi_tree_remove(&tree, &nodes[i]);
        assert_true(blyi_tree_audit(&tree));
    }
    assert_null(tree.root);
}

static void audit_sees_damage(void **state)
{
    (void)state;
    struct blyi_tree tree = {0};
    for (uint64_t i = 0; i < 10; i++)
        blyi_tree_insert(&tree, &nodes[i], i, 0);
    nodes[4].key = 100;
    assert_false(blyi_tree_audit(&tree));
    nodes[4].key = 4;
    tree.root->height++;
    assert_false(blyi_tree_audit(&tree));
    tree.root->height--;
    tree.count++;
    assert_false(blyi_tree_audit(&tree));
    tree.count--;
    assert_true(blyi_tree_audit(&tree));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(sorted_input_stays_balanced),
        cmocka_unit_test(audit_sees_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
