/* SPDX-License-Identifier: Apache-2.0 */
/* Keys to ranges of pages: where they may begin, what of a frame is mapped, pages that outlive
 * their block. */
#include "peer.h"

#define ANY 1

static struct peer a, b;

static int begin(void **state)
{
    (void)state;
    peers_begin();
    peer_start(&a);
    peer_start(&b);
    return 0;
}

static int end(void **state)
{
    (void)state;
    struct peer *all[] = {&a, &b};
    for (size_t i = 0; i < 2; i++)
        if (all[i]->pid != 0)
            peer_leave(all[i]);
    peers_end();
    return 0;
}

static void sound(struct peer *peer)
{
    assert_int_equal(DO(peer, AUDIT)->a, 1);
}

static void expect(struct peer *peer, uint64_t address, uint64_t size, int byte)
{
    assert_int_equal(DO(peer, EXPECT, .a = address, .b = size, .c = (uint64_t)byte)->a, size);
}

static void start_two(void)
{
    DO(&a, INIT);
    DO(&b, INIT);
}

/* O-06, steps 2 and 3: what is not at a page is refused when it is exported. */
static void not_at_a_page(void **state)
{
    (void)state;
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 128 * MIB, .b = HUGE_FIRST)->a;
    assert_int_equal(p % (2 * MIB), 0);
    WANT(107000, &a, EXPORT, .a = p + 2 * MIB + 1049088, .b = 64 * MIB, .c = ANY);
    SAYS(&a, "the page size 2097152 B (2 MiB)");
    SAYS(&a, "1049088 B behind one");
    SAYS(&a, "1048064 B more would reach the next");
    WANT(107000, &a, EXPORT, .a = p, .b = 200 * MIB, .c = ANY);
    SAYS(&a, "ends 136314880 B (130 MiB) behind that");
    DO(&a, EXPORT, .a = p + 2 * MIB, .b = 64 * MIB + 1, .c = ANY);
    uint64_t q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    DO(&a, FILL, .a = p + 2 * MIB, .b = 66 * MIB, .c = 9);
    expect(&b, q, 66 * MIB, 9); /* rounded up to pages */
    WANT(107000, &b, EXPECT, .a = q + 66 * MIB, .b = 1);

    uint64_t small = DO(&a, MALLOC, .a = 1024)->a;
    uint64_t secret = DO(&a, MALLOC, .a = 1024)->a;
    DO(&a, FILL, .a = small, .b = 1024, .c = 1);
    DO(&a, FILL, .a = secret, .b = 1024, .c = 2);
    WANT(107000, &a, EXPORT, .a = small + 512, .b = 512, .c = ANY);
    SAYS(&a, "the page size 4096 B");
    assert_int_equal(secret, small + 4096);
    DO(&a, EXPORT, .a = secret, .b = 1024, .c = ANY);
    q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    expect(&b, q, 1024, 2);
    WANT(107000, &b, EXPECT, .a = q + 4096, .b = 1); /* a page of its own, and no other */
    SAYS(&b, "imported from pid");
    WANT(107000, &b, EXPECT, .a = q - 1, .b = 1);
    SAYS(&b, "begins 1 B behind it");
    WANT(107000, &b, FREE, .a = q);
    SAYS(&b, "aclrtIpcMemClose ends the import");
    WANT(107000, &b, EXPORT, .a = q, .b = 1024, .c = ANY);
    SAYS(&b, "only that process can export it");
    sound(&a);
    sound(&b);
}

/* Blocks of normal pages: whole frames and a tail among others' pages. */
static void tails_among_other_blocks(void **state)
{
    (void)state;
    char key[65];
    start_two();
    uint64_t f0 = peer_free(&a);
    uint64_t size = 4 * MIB + 12 * KIB - 32, whole = 4 * MIB + 12 * KIB;
    uint64_t p = DO(&a, MALLOC, .a = size, .b = NORMAL_ONLY)->a;
    uint64_t other = DO(&a, MALLOC, .a = 8 * KIB - 32, .b = NORMAL_ONLY)->a;
    assert_int_equal(other, p + whole); /* in the same frame */
    DO(&a, FILL, .a = p, .b = size, .c = 3);
    DO(&a, FILL, .a = other, .b = 8 * KIB - 32, .c = 4);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = size, .c = ANY)->key);
    uint64_t q = DO_KEY(&b, IMPORT, key)->a;
    expect(&b, q, size, 3);
    WANT(107000, &b, EXPECT, .a = q + whole, .b = 1);
    DO(&b, FILL, .a = q + size - 1000, .b = 1000, .c = 5);
    expect(&a, p + size - 1000, 1000, 5);

    DO(&a, FREE, .a = p); /* its pages stay out of use */
    assert_int_equal(peer_free(&a), f0 - whole - 8 * KIB);
    for (int i = 0; i < 100; i++) { /* nobody is given them */
        uint64_t page = DO(&a, MALLOC, .a = 4 * KIB - 32, .b = NORMAL_ONLY)->a;
        DO(&a, FILL, .a = page, .b = 4 * KIB - 32, .c = 6);
    }
    expect(&b, q + size - 1000, 1000, 5);
    expect(&a, other, 8 * KIB - 32, 4);
    sound(&a);
    DO_KEY(&b, CLOSE, key);
    assert_int_equal(peer_free(&a), f0 - 8 * KIB - 400 * KIB);
    sound(&a);
    DO(&a, RESET, .a = 0);
    DO(&a, DEVICE, .a = 0);
    assert_int_equal(peer_free(&a), f0);
    sound(&a);
}

/* All other pages of the frame are freed: it goes to the importer, and then back to the card. */
static void a_tail_outlives_its_frame(void **state)
{
    (void)state;
    char key[65], second[65];
    start_two();
    uint64_t f0 = peer_free(&a);
    uint64_t p = DO(&a, MALLOC, .a = 8 * KIB - 32, .b = NORMAL_ONLY)->a;
    uint64_t r = DO(&a, MALLOC, .a = 4 * KIB - 32, .b = NORMAL_ONLY)->a;
    uint64_t other = DO(&a, MALLOC, .a = 4 * KIB - 32, .b = NORMAL_ONLY)->a;
    DO(&a, FILL, .a = p, .b = 8000, .c = 8);
    DO(&a, FILL, .a = r, .b = 4000, .c = 9);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 8000, .c = ANY)->key);
    snprintf(second, sizeof second, "%s", DO(&a, EXPORT, .a = r, .b = 4000, .c = ANY)->key);
    uint64_t q = DO_KEY(&b, IMPORT, key)->a, s = DO_KEY(&b, IMPORT, second)->a;
    DO(&a, FREE, .a = p);
    DO(&a, FREE, .a = r);
    DO(&a, FREE, .a = other);
    assert_int_equal(peer_free(&a), f0 - 2 * MIB);
    sound(&a);
    expect(&b, q, 8000, 8);
    DO_KEY(&b, CLOSE, key); /* the frame passes to the other share */
    assert_int_equal(peer_free(&a), f0 - 2 * MIB);
    expect(&b, s, 4000, 9);
    DO_KEY(&b, CLOSE, second);
    assert_int_equal(peer_free(&a), f0);
    assert_int_equal(DO(&a, LIST)->a, 0);
    sound(&a);
    sound(&b);
}

static void ranges_of_normal_pages(void **state)
{
    (void)state;
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 6 * MIB - 32, .b = NORMAL_ONLY)->a;
    for (uint64_t i = 0; i < 12; i++)
        DO(&a, FILL, .a = p + i * 512 * KIB, .b = 512 * KIB, .c = i + 1);
    DO(&a, EXPORT, .a = p + 512 * KIB, .b = 4 * MIB + 512 * KIB, .c = ANY);
    uint64_t q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    for (uint64_t i = 1; i < 10; i++)
        expect(&b, q + (i - 1) * 512 * KIB, 512 * KIB, (int)i + 1);
    DO(&b, RANGE, .a = q + 3 * MIB + 1);
    assert_int_equal(b.answer.a, q);
    assert_int_equal(b.answer.b, 4 * MIB + 512 * KIB);
    WANT(107000, &b, RANGE, .a = q - 1);
    WANT(107000, &b, RANGE, .a = q + 4 * MIB + 512 * KIB);
    WANT(107000, &b, EXPECT, .a = q - 1, .b = 1);
    WANT(107000, &b, EXPECT, .a = q + 4 * MIB + 512 * KIB, .b = 1);
    DO(&a, EXPORT, .a = p + 4096, .b = 4096, .c = ANY);
    q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    expect(&b, q, 4096, 1);
    WANT(107000, &b, EXPECT, .a = q + 4096, .b = 1);
    sound(&b);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(not_at_a_page),
        T(tails_among_other_blocks),
        T(a_tail_outlives_its_frame),
        T(ranges_of_normal_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
