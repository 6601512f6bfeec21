/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the layer below AscendCL, used as memfabric does: name, admit, open, close by
 * address, destroy. */
#include "peer.h"

#define NO_SUPER_POD_SDID 0xffc40001u /* card 1, in no super pod */
#define OTHER_SERVER      0x00440001u /* server 1 */
#define D2D               3

static struct peer a, b;

static int begin(void **state)
{
    (void)state;
    peers_begin();
    peer_start(&a);
    peer_start(&b);
    DO(&a, INIT);
    return 0;
}

static int end(void **state)
{
    (void)state;
    peer_leave(&a);
    peer_leave(&b);
    peers_end();
    return 0;
}

static void expect(struct peer *peer, uint64_t address, uint64_t size, int byte)
{
    assert_int_equal(DO(peer, EXPECT, .a = address, .b = size, .c = (uint64_t)byte)->a, size);
}

static void named_admitted_opened_closed(void **state)
{
    (void)state;
    char key[65];
    DO(&b, INIT);
    uint64_t f0 = peer_free(&a), p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, FILL, .a = p, .b = 4 * MIB, .c = 9);
    snprintf(key, sizeof key, "%s", DO(&a, RT_NAME, .a = p, .b = 4 * MIB)->key);
    assert_int_equal(strlen(key), 64);
    WANT_KEY(207006, &b, RT_OPEN, key);
    uint64_t pid = DO(&b, PID)->a;
    WANT_KEY(207000, &a, RT_ADMIT, key, .a = pid, .b = OTHER_SERVER);
    SAYS(&a, "is a device of server 1");
    WANT_KEY(207006, &b, RT_OPEN, key);
    DO_KEY(&a, RT_ADMIT, key, .a = pid, .b = NO_SUPER_POD_SDID);
    uint64_t q = DO_KEY(&b, RT_OPEN, key)->a, again = DO_KEY(&b, RT_OPEN, key)->a;
    expect(&b, q, 4 * MIB, 9);
    DO(&b, FILL, .a = again, .b = MIB, .c = 10);
    expect(&a, p, MIB, 10);

    WANT(107000, &b, RT_CLOSE, .a = q + 2 * MIB); /* where it begins, and once */
    SAYS(&b, "no import begins there");
    DO(&b, RT_CLOSE, .a = q);
    WANT(107000, &b, RT_CLOSE, .a = q);
    expect(&b, again, MIB, 10);
    WANT(107000, &a, RT_CLOSE, .a = p); /* a block of its own is no import */
    WANT_KEY(107000, &b, RT_DESTROY, key);
    DO_KEY(&a, RT_DESTROY, key);
    WANT_KEY(107000, &a, RT_DESTROY, key);
    WANT_KEY(107000, &b, RT_OPEN, key);
    expect(&b, again, MIB, 10); /* what is open stays */
    DO(&b, RT_CLOSE, .a = again);
    DO(&a, FREE, .a = p);
    assert_int_equal(peer_free(&a), f0);
    assert_int_equal(DO(&a, LIST)->a, 0);
    assert_int_equal(DO(&a, AUDIT)->a, 1);
    assert_int_equal(DO(&b, AUDIT)->a, 1);
}

/* Another card's memory: peer access for the card that copies, then a copy in stream order. */
static void across_cards(void **state)
{
    (void)state;
    char key[65];
    DO(&b, INIT, .a = 1);
    uint64_t p = DO(&a, MALLOC, .a = 2 * MIB)->a, mine = DO(&b, MALLOC, .a = 2 * MIB)->a;
    DO(&a, FILL, .a = p, .b = 2 * MIB, .c = 5);
    snprintf(key, sizeof key, "%s", DO(&a, RT_NAME, .a = p, .b = 2 * MIB)->key);
    DO_KEY(&a, RT_ADMIT, key, .a = DO(&b, PID)->a, .b = 0xffffffffu);
    DO(&b, RT_P2P, .a = 1, .b = 0, .c = 1);
    uint64_t q = DO_KEY(&b, RT_OPEN, key)->a;
    DO(&b, RT_COPY, .a = mine, .b = q, .c = 2 * MIB, .d = D2D);
    expect(&b, mine, 2 * MIB, 5);
    DO(&b, FILL, .a = mine, .b = 2 * MIB, .c = 6);
    DO(&b, RT_COPY, .a = q, .b = mine, .c = 2 * MIB, .d = D2D);
    expect(&a, p, 2 * MIB, 6);
    DO(&b, RT_CLOSE, .a = q);
    DO(&b, RT_P2P, .a = 1, .b = 0, .c = 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(named_admitted_opened_closed, begin, end),
        cmocka_unit_test_setup_teardown(across_cards, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
