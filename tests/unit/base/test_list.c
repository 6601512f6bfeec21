/* SPDX-License-Identifier: Apache-2.0
 * The intrusive list beside an array. */
#include "base_test.h"
#include "base/list.h"

#define N 64

struct item {
    struct blyi_list link;
    int at; /* place in the model, -1: not listed */
};

static struct item items[N];
static struct item *model[N];
static int count;

static void check(struct blyi_list *head)
{
    int i = 0;
    assert_true(blyi_list_audit(head));
    assert_int_equal(blyi_list_empty(head), count == 0);
    BLYI_LIST_FOR(node, head)
    assert_ptr_equal(BLYI_CONTAINER(node, struct item, link), model[i++]);
    assert_int_equal(i, count);
}

static void insert_model(int at, struct item *item)
{
    memmove(&model[at + 1], &model[at], (size_t)(count - at) * sizeof(model[0]));
    model[at] = item;
    count++;
}

static void remove_model(int at)
{
    memmove(&model[at], &model[at + 1], (size_t)(count - at - 1) * sizeof(model[0]));
    count--;
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    struct blyi_list head = BLYI_LIST_INIT(head);
    for (int i = 0; i < N; i++)
        items[i].at = -1;
    for (int step = 0; step < 5000; step++) {
        struct item *item = &items[rng_below(&rng, N)];
        if (item->at >= 0) {
            int at = 0;
            while (model[at] != item)
                at++;
            blyi_list_remove(&item->link);
            remove_model(at);
            item->at = -1;
            blyi_list_remove(&item->link); /* harmless */
        } else {
            uint64_t how = rng_below(&rng, 3);
            int at = how == 0 ? 0 : how == 1 ? count : (int)rng_below(&rng, (uint64_t)count + 1);
            if (how == 0)
                blyi_list_push_front(&head, &item->link);
            else if (at == count)
                blyi_list_push_back(&head, &item->link);
            else
                blyi_list_insert_before(&model[at]->link, &item->link);
            insert_model(at, item);
            item->at = 1;
        }
        if (step % 7 == 0)
            check(&head);
    }
    BLYI_LIST_FOR_SAFE(node, &head)
    blyi_list_remove(node);
    count = 0;
    check(&head);
}

static void audit_sees_damage(void **state)
{
    (void)state;
    struct blyi_list head, a, b;
    blyi_list_init(&head);
    blyi_list_push_back(&head, &a);
    blyi_list_push_back(&head, &b);
    a.next = &a;
    assert_false(blyi_list_audit(&head));
    a.next = NULL;
    assert_false(blyi_list_audit(&head));
    a.next = &b;
    assert_true(blyi_list_audit(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(audit_sees_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
