/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory shared by handles between real processes. */
#include "peer.h"

#include <acl/acl.h>

#define ANY 1

static struct peer p, c;

static int begin(void **state)
{
    (void)state;
    peers_begin();
    peer_start(&p);
    peer_start(&c);
    DO(&p, INIT);
    DO(&c, INIT);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (p.pid != 0)
        peer_leave(&p);
    if (c.pid != 0)
        peer_leave(&c);
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

/* A handle at an address of its own. */
static uint64_t map(struct peer *peer, uint64_t handle, uint64_t size)
{
    uint64_t at = DO(peer, RESERVE, .a = size)->a;
    DO(peer, MAP, .a = at, .b = size, .c = handle);
    return at;
}

/* Flow F3. */
static void two_processes_with_a_whitelist(void **state)
{
    (void)state;
    uint64_t f0 = peer_free(&p), size = 2 * MIB;
    uint64_t handle = DO(&p, PHYSICAL, .a = size)->a, at = map(&p, handle, size);
    DO(&p, FILL, .a = at, .b = size, .c = 123);
    uint64_t shared = DO(&p, SHARE, .a = handle)->a;
    WANT(207006, &c, ADOPT, .a = shared);
    SAYS(&c, "not among the 0 processes that exporter pid");
    uint64_t pid = DO(&c, PID)->a;
    DO(&p, ADMIT, .a = shared, .b = pid);
    uint64_t imported = DO(&c, ADOPT, .a = shared)->a, theirs = map(&c, imported, size);
    expect(&c, theirs, size, 123);
    DO(&c, FILL, .a = theirs, .b = 4096, .c = 77);
    expect(&p, at, 4096, 77);
    sound(&c);

    DO(&c, UNMAP, .a = theirs); /* theirs ends, the exporter's mapping stays */
    DO(&c, RELEASE, .a = imported);
    expect(&p, at + 4096, size - 4096, 123);
    assert_int_equal(peer_free(&p), f0 - size);
    imported = DO(&c, ADOPT, .a = shared)->a;
    theirs = map(&c, imported, size);

    DO(&p, UNMAP, .a = at); /* memory comes back only when both have let go */
    DO(&p, RELEASE, .a = handle);
    assert_int_equal(peer_free(&p), f0 - size);
    expect(&c, theirs + 4096, size - 4096, 123);
    DO(&c, RELEASE, .a = imported); /* still mapped */
    assert_int_equal(peer_free(&p), f0 - size);
    DO(&c, UNMAP, .a = theirs);
    assert_int_equal(peer_free(&p), f0);
    WANT(107000, &c, ADOPT, .a = shared);
    SAYS(&c, "freed this key with its memory");
    sound(&p);
    sound(&c);
}

static void exported_once_imported_once(void **state)
{
    (void)state;
    uint64_t handle = DO(&p, PHYSICAL, .a = 4 * MIB)->a;
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    WANT(107000, &p, SHARE, .a = handle, .c = ANY);
    SAYS(&p, "was exported before");
    WANT(107000, &p, FABRIC, .a = handle, .c = ANY);
    WANT(107000, &p, ADOPT, .a = shared);
    SAYS(&p, "this process exported the memory itself");
    uint64_t imported = DO(&c, ADOPT, .a = shared)->a;
    WANT(107000, &c, ADOPT, .a = shared);
    SAYS(&c, "imported before");
    WANT(107000, &c, SHARE, .a = imported, .c = ANY);
    SAYS(&c, "was imported at");
    WANT(107000, &c, SHARE, .a = 12345, .c = ANY);
    WANT(107000, &p, SHARE, .a = handle, .c = 2);
    WANT(107000, &c, ADOPT, .a = shared ^ 1);
    SAYS(&c, "no process of this machine and user made such a key");
    WANT(107000, &c, ADOPT, .a = 0);
    WANT(107001, &c, ADOPT, .a = shared, .b = 7);
    DO(&c, RELEASE, .a = imported);
    DO(&c, ADOPT, .a = shared);
    sound(&c);
}

static void fabric_handles(void **state)
{
    (void)state;
    struct call call = {.op = OP_ADOPT_FABRIC};
    uint64_t handle = DO(&p, PHYSICAL, .a = 2 * MIB)->a, at = map(&p, handle, 2 * MIB);
    DO(&p, FILL, .a = at, .b = 2 * MIB, .c = 9);
    memcpy(call.fabric, DO(&p, FABRIC, .a = handle, .c = ANY)->fabric, sizeof call.fabric);
    uint64_t id;
    memcpy(&id, call.fabric, sizeof id);
    WANT(107000, &c, ADOPT, .a = id); /* its first bytes alone open nothing */
    for (size_t i = 0; i < sizeof call.fabric; i++) {
        call.fabric[i] ^= 1;
        peer_want(peer_call(&c, call, __FILE__, __LINE__), 107000, __FILE__, __LINE__);
        call.fabric[i] ^= 1;
    }
    uint64_t imported =
        peer_want(peer_call(&c, call, __FILE__, __LINE__), 0, __FILE__, __LINE__)->a;
    expect(&c, map(&c, imported, 2 * MIB), 2 * MIB, 9);
}

static void one_range_has_one_sort(void **state)
{
    (void)state;
    uint64_t handle = DO(&p, PHYSICAL, .a = 2 * MIB)->a;
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    uint64_t imported = DO(&c, ADOPT, .a = shared)->a, own = DO(&c, PHYSICAL, .a = 2 * MIB)->a;
    uint64_t at = DO(&c, RESERVE, .a = 8 * MIB)->a;
    DO(&c, MAP, .a = at, .b = 2 * MIB, .c = imported);
    WANT(107000, &c, MAP, .a = at + 2 * MIB, .b = 2 * MIB, .c = own);
    SAYS(&c, "has memory that was imported");
    DO(&c, UNMAP, .a = at);
    DO(&c, MAP, .a = at, .b = 2 * MIB, .c = own);
    WANT(107000, &c, MAP, .a = at + 2 * MIB, .b = 2 * MIB, .c = imported);
    SAYS(&c, "has memory that was made here");
    WANT(107000, &c, MAP, .a = at + 2 * MIB, .b = 4 * MIB, .c = imported);
    DO(&c, UNMAP, .a = at);
    DO(&c, MAP, .a = at, .b = 2 * MIB, .c = imported); /* mapped twice, and moved about */
    DO(&c, MAP, .a = at + 4 * MIB, .b = 2 * MIB, .c = imported);
    DO(&c, FILL, .a = at, .b = 2 * MIB, .c = 5);
    expect(&c, at + 4 * MIB, 2 * MIB, 5);
    sound(&c);
}

/* Each touches a frame first that the other touches as well; no page may be lost. */
static void first_touches_from_both_sides(void **state)
{
    (void)state;
    uint64_t size = 64 * MIB, handle = DO(&p, PHYSICAL, .a = size)->a, at = map(&p, handle, size);
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    uint64_t theirs = map(&c, DO(&c, ADOPT, .a = shared)->a, size);
    for (uint64_t i = 0; i < 32; i++) {
        DO(i % 2 ? &p : &c, FILL, .a = (i % 2 ? at : theirs) + i * 2 * MIB, .b = MIB, .c = i + 1);
        DO(i % 2 ? &c : &p, FILL, .a = (i % 2 ? theirs : at) + i * 2 * MIB + MIB, .b = MIB,
           .c = i + 101);
    }
    for (uint64_t i = 0; i < 32; i++) {
        expect(&p, at + i * 2 * MIB, MIB, (int)i + 1);
        expect(&c, theirs + i * 2 * MIB + MIB, MIB, (int)i + 101);
    }
}

static void freed_by_reset(void **state)
{
    (void)state;
    uint64_t f0 = peer_free(&p);
    uint64_t handle = DO(&p, PHYSICAL, .a = 8 * MIB)->a, at = map(&p, handle, 8 * MIB);
    DO(&p, FILL, .a = at, .b = 8 * MIB, .c = 9);
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    uint64_t theirs = map(&c, DO(&c, ADOPT, .a = shared)->a, 8 * MIB);
    DO(&p, RESET, .a = 0);
    expect(&c, theirs, 8 * MIB, 9);
    assert_int_equal(peer_free(&c), f0 - 8 * MIB + 16 * MIB);
    DO(&c, RESET, .a = 0);
    DO(&c, DEVICE, .a = 0);
    assert_int_equal(peer_free(&c), f0 + 16 * MIB);
    assert_int_equal(DO(&c, IMPORTED)->a, 0);
    sound(&c);
    sound(&p);
}

static void across_cards(void **state)
{
    (void)state;
    uint64_t handle = DO(&p, PHYSICAL, .a = 4 * MIB)->a, at = map(&p, handle, 4 * MIB);
    DO(&p, FILL, .a = at, .b = 4 * MIB, .c = 9);
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    DO(&c, DEVICE, .a = 1);
    uint64_t theirs = map(&c, DO(&c, ADOPT, .a = shared, .b = 1)->a, 4 * MIB);
    expect(&c, theirs, 4 * MIB, 9);
    sound(&c);
}

/* The importer sees card 0 alone, the memory is on card 1: it is told to be where it is used. */
static void on_a_card_that_is_not_visible(void **state)
{
    (void)state;
    peer_leave(&c);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "0", 1);
    peer_start(&c);
    unsetenv("ASCEND_RT_VISIBLE_DEVICES");
    DO(&c, INIT);
    DO(&p, DEVICE, .a = 1);
    uint64_t block = DO(&p, MALLOC, .a = 4 * MIB)->a;
    DO(&p, FILL, .a = block, .b = 4 * MIB, .c = 6);
    assert_int_equal(DO(&p, WHERE, .a = block)->a, 1);
    DO(&p, EXPORT, .a = block, .b = 4 * MIB, .c = ANY);
    uint64_t q = DO_KEY(&c, IMPORT, p.answer.key, .c = 1)->a, own = DO(&c, MALLOC, .a = 4 * MIB)->a;
    DO(&c, WHERE, .a = q);
    assert_int_equal(c.answer.a, 0);
    assert_int_equal(c.answer.b, ACL_MEM_LOCATION_TYPE_DEVICE);
    DO(&c, ORDER, .a = own, .b = q, .c = 4 * MIB, .d = ACL_MEMCPY_DEVICE_TO_DEVICE);
    expect(&c, own, 4 * MIB, 6);
    uint64_t handle = DO(&p, PHYSICAL, .a = 2 * MIB)->a;
    uint64_t shared = DO(&p, SHARE, .a = handle, .c = ANY)->a;
    uint64_t at = map(&c, DO(&c, ADOPT, .a = shared)->a, 2 * MIB);
    assert_int_equal(DO(&c, WHERE, .a = at)->a, 0);
    sound(&c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(two_processes_with_a_whitelist),
        T(exported_once_imported_once),
        T(fabric_handles),
        T(one_range_has_one_sort),
        T(first_touches_from_both_sides),
        T(freed_by_reset),
        T(on_a_card_that_is_not_visible),
        T(across_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
