/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of pools shared between real processes: by keys and by handles, without a copy, and what
 * becomes of their memory when the maker frees them first. */
#include "peer.h"

#define ANY 1

static struct peer a, b;

static int begin(void **state)
{
    (void)state;
    unsetenv("BELAY_ALLOC");
    unsetenv("BELAY_POOL_ALIGN");
    peers_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    struct peer *both[] = {&a, &b};
    for (size_t i = 0; i < 2; i++)
        if (both[i]->pid != 0)
            peer_leave(both[i]);
    peers_end();
    return 0;
}

static void start_both(void)
{
    peer_start(&a);
    peer_start(&b);
    DO(&a, INIT);
    DO(&b, INIT);
}

static void sound(struct peer *peer)
{
    assert_int_equal(DO(peer, AUDIT)->a, 1);
}

static void expect(struct peer *peer, uint64_t address, uint64_t size, int byte)
{
    assert_int_equal(DO(peer, EXPECT, .a = address, .b = size, .c = (uint64_t)byte)->a, size);
}

/* What A's pool holds, and what of it is in use. */
static void held(uint64_t pool, uint64_t all, uint64_t used)
{
    const struct answer *answer = DO(&a, HELD, .a = pool);
    assert_int_equal(answer->a, all);
    assert_int_equal(answer->b, used);
}

/* O-06, and O-23 of a block of a pool. */
static void a_block_by_key(void **state)
{
    (void)state;
    char key[65], text[64];
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a, f0 = peer_free(&a);
    uint64_t a1 = DO(&a, TAKE, .a = MIB, .b = pool)->a;
    uint64_t a2 = DO(&a, TAKE, .a = 2 * MIB + 512, .b = pool)->a;
    uint64_t a3 = DO(&a, TAKE, .a = 64 * MIB, .b = pool)->a;
    held(pool, (2 + 4 + 64) * MIB, (2 + 4 + 64) * MIB);
    DO(&a, FILL, .a = a3, .b = 64 * MIB, .c = 7);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = a3, .b = 64 * MIB, .c = ANY)->key);
    uint64_t q = DO_KEY(&b, IMPORT, key)->a;
    expect(&b, q, 64 * MIB, 7);
    DO(&b, FILL, .a = q + 5 * MIB, .b = MIB, .c = 42); /* the same bytes: no copy */
    expect(&a, a3 + 5 * MIB, MIB, 42);
    assert_int_equal(peer_free(&b), f0 - 70 * MIB);
    assert_int_equal(DO(&b, IMPORTED)->a, 64 * MIB);

    DO(&a, GIVE, .a = a3); /* deferred: the pool has it no more, the card has */
    held(pool, 6 * MIB, 6 * MIB);
    assert_int_equal(peer_free(&a), f0 - 70 * MIB);
    assert_int_equal(DO(&a, LIST)->a, 1);
    snprintf(text, sizeof text, "%llu freed by %d: %d;", (unsigned long long)(64 * MIB), (int)a.pid,
             (int)b.pid);
    SAYS(&a, text);
    expect(&b, q, 5 * MIB, 7);
    uint64_t a4 = DO(&a, TAKE, .a = 64 * MIB, .b = pool)->a; /* other memory */
    DO(&a, FILL, .a = a4, .b = 64 * MIB, .c = 9);
    expect(&b, q, 5 * MIB, 7);
    expect(&b, q + 5 * MIB, MIB, 42);
    WANT_KEY(107000, &a, IMPORT, key);
    DO_KEY(&b, CLOSE, key);
    assert_int_equal(peer_free(&a), f0 - 70 * MIB);
    sound(&a);
    sound(&b);
    DO(&a, GIVE, .a = a1);
    DO(&a, GIVE, .a = a2);
    DO(&a, GIVE, .a = a4);
    DO(&a, TRIM, .a = pool);
    held(pool, 0, 0);
    assert_int_equal(peer_free(&a), f0);
}

static void freed_before_it_was_opened(void **state)
{
    (void)state;
    char key[65];
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a, f0 = peer_free(&a);
    uint64_t p = DO(&a, TAKE, .a = 64 * MIB, .b = pool)->a;
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY)->key);
    DO(&a, GIVE, .a = p);
    held(pool, 0, 0);
    assert_int_equal(peer_free(&a), f0);
    WANT_KEY(107000, &b, IMPORT, key);
    SAYS(&b, "freed this key");
    sound(&a);
}

/* A part of a block, in whole pages; two keys of one block. */
static void parts_and_keys(void **state)
{
    (void)state;
    char first[65], second[65];
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a;
    uint64_t p = DO(&a, TAKE, .a = 8 * MIB, .b = pool)->a;
    DO(&a, FILL, .a = p, .b = 4 * MIB, .c = 1);
    DO(&a, FILL, .a = p + 4 * MIB, .b = 4 * MIB, .c = 2);
    snprintf(first, sizeof first, "%s",
             DO(&a, EXPORT, .a = p + 4 * MIB, .b = 2 * MIB, .c = ANY)->key);
    snprintf(second, sizeof second, "%s", DO(&a, EXPORT, .a = p, .b = 8 * MIB, .c = ANY)->key);
    uint64_t part = DO_KEY(&b, IMPORT, first)->a, all = DO_KEY(&b, IMPORT, second)->a;
    expect(&b, part, 2 * MIB, 2);
    expect(&b, all, 4 * MIB, 1);
    DO(&b, FILL, .a = part, .b = MIB, .c = 3);
    expect(&b, all + 4 * MIB, MIB, 3);
    WANT(107000, &a, EXPORT, .a = p, .b = 10 * MIB, .c = ANY);
    SAYS(&a, "has 8388608 B (8 MiB) of memory");
    WANT(107000, &a, EXPORT, .a = p + 512, .b = MIB, .c = ANY);
    SAYS(&a, "512 B behind one; 2096640 B more would reach the next");
    DO_KEY(&a, CLOSE, first); /* the maker ends a key; the other stays */
    WANT_KEY(107000, &b, IMPORT, first);
    DO_KEY(&b, IMPORT, second);
    sound(&a);
    sound(&b);
}

static void killed_while_open(void **state)
{
    (void)state;
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a, f0 = peer_free(&a), overhead = 16 * MIB;
    uint64_t p = DO(&a, TAKE, .a = 64 * MIB, .b = pool)->a;
    DO_KEY(&b, IMPORT, DO(&a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY)->key);
    DO(&a, GIVE, .a = p);
    assert_int_equal(peer_free(&a), f0 - 64 * MIB);
    peer_kill(&b);
    assert_true(DO(&a, REAP)->a <= 1); /* its service thread may have been quicker */
    assert_int_equal(peer_free(&a), f0 + overhead);
    sound(&a);
}

/* The maker dies: who has it open keeps it. */
static void the_maker_dies(void **state)
{
    (void)state;
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a;
    uint64_t p = DO(&a, TAKE, .a = 8 * MIB, .b = pool)->a;
    DO(&a, FILL, .a = p, .b = 8 * MIB, .c = 5);
    uint64_t q = DO_KEY(&b, IMPORT, DO(&a, EXPORT, .a = p, .b = 8 * MIB, .c = ANY)->key)->a;
    uint64_t before = peer_free(&b), overhead = 16 * MIB;
    peer_kill(&a);
    DO(&b, REAP);
    expect(&b, q, 8 * MIB, 5);
    assert_int_equal(peer_free(&b), before + overhead);
    sound(&b);
}

static void a_block_by_handle(void **state)
{
    (void)state;
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a, f0 = peer_free(&a), size = 6 * MIB;
    uint64_t p = DO(&a, TAKE, .a = size, .b = pool)->a;
    DO(&a, FILL, .a = p, .b = size, .c = 11);
    uint64_t handle = DO(&a, RETAIN, .a = p)->a;
    uint64_t at = DO(&a, RESERVE, .a = size)->a;
    WANT(107000, &a, MAP, .a = at, .b = size, .c = handle);
    SAYS(&a, "memory of a pool is mapped by its pool alone");
    uint64_t shared = DO(&a, SHARE, .a = handle, .c = ANY)->a;
    DO(&a, RELEASE, .a = handle);
    WANT(107000, &a, RELEASE, .a = handle); /* the pool's reference stays */
    SAYS(&a, "which the program has not retained");
    uint64_t imported = DO(&b, ADOPT, .a = shared)->a, theirs = DO(&b, RESERVE, .a = size)->a;
    DO(&b, MAP, .a = theirs, .b = size, .c = imported);
    expect(&b, theirs, size, 11);
    DO(&b, FILL, .a = theirs, .b = MIB, .c = 12);
    expect(&a, p, MIB, 12);

    DO(&a, GIVE, .a = p);
    held(pool, 0, 0);
    assert_int_equal(peer_free(&a), f0 - size);
    expect(&b, theirs, MIB, 12);
    DO(&b, UNMAP, .a = theirs);
    DO(&b, RELEASE, .a = imported);
    assert_int_equal(peer_free(&a), f0);
    sound(&a);
    sound(&b);
}

/* A handle that the program kept outlives the block, and is the program's own then. */
static void a_handle_that_is_kept(void **state)
{
    (void)state;
    start_both();
    uint64_t pool = DO(&a, POOL, .a = 1)->a, f0 = peer_free(&a), size = 4 * MIB;
    uint64_t p = DO(&a, TAKE, .a = size, .b = pool)->a;
    DO(&a, FILL, .a = p, .b = size, .c = 21);
    uint64_t handle = DO(&a, RETAIN, .a = p)->a;
    DO(&a, GIVE, .a = p);
    held(pool, 0, 0);
    assert_int_equal(peer_free(&a), f0 - size);
    uint64_t at = DO(&a, RESERVE, .a = size)->a;
    DO(&a, MAP, .a = at, .b = size, .c = handle);
    expect(&a, at, size, 21);
    DO(&a, UNMAP, .a = at);
    DO(&a, RELEASE, .a = handle);
    assert_int_equal(peer_free(&a), f0);
    sound(&a);
}

static void what_is_not_ready_is_refused(void **state)
{
    (void)state;
    start_both();
    uint64_t pool = DO(&a, POOL)->a;
    uint64_t p = DO(&a, TAKE, .a = 64 * MIB, .b = pool)->a;
    WANT(107000, &a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY);
    SAYS(&a, "ACL_MEM_HANDLE_TYPE_POSIX of aclrtMemPoolCreate");
    WANT(107000, &a, RETAIN, .a = p);
    WANT(107000, &a, EXPORT, .a = p + 1049088, .b = MIB, .c = ANY);
    SAYS(&a, "1049088 B behind the begin of one and 1048064 B before the next");
    DO(&a, GIVE, .a = p);
    WANT(107000, &a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY);
    SAYS(&a, "freed already");
    held(pool, 64 * MIB, 0); /* nothing of it left */
}

/* BELAY_ALLOC=pool with its option of alignment, as it is and with it. */
static void of_aclrt_malloc(void **state)
{
    (void)state;
    setenv("BELAY_ALLOC", "pool", 1);
    peer_start(&a);
    DO(&a, INIT);
    uint64_t p = DO(&a, MALLOC, .a = 64 * MIB)->a;
    WANT(107000, &a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY);
    SAYS(&a, "BELAY_POOL_ALIGN=2MiB for blocks of aclrtMalloc above 524288 B");
    peer_leave(&a);
    setenv("BELAY_POOL_ALIGN", "2MiB", 1);
    start_both();
    uint64_t f0 = peer_free(&a);
    uint64_t a1 = DO(&a, MALLOC, .a = MIB)->a, a2 = DO(&a, MALLOC, .a = 2 * MIB + 512)->a;
    uint64_t a3 = DO(&a, MALLOC, .a = 64 * MIB)->a; /* and 32 B more */
    assert_int_equal(a1 % (2 * MIB), 0);
    assert_int_equal(a2 % (2 * MIB), 0);
    assert_int_equal(a3 % (2 * MIB), 0);
    assert_int_equal(peer_free(&a), f0 - (2 + 4 + 66) * MIB);
    DO(&a, FILL, .a = a3, .b = 64 * MIB, .c = 3);
    uint64_t q = DO_KEY(&b, IMPORT, DO(&a, EXPORT, .a = a3, .b = 64 * MIB, .c = ANY)->key)->a;
    expect(&b, q, 64 * MIB, 3);
    uint64_t small = DO(&a, MALLOC, .a = 1024)->a;
    WANT(107000, &a, EXPORT, .a = small, .b = 1024, .c = ANY);
    SAYS(&a, "it lies in memory that serves many blocks, whose handles are 2097152 B");
    DO(&a, FREE, .a = a3);
    assert_int_equal(peer_free(&a), f0 - (2 + 4 + 66 + 2) * MIB); /* open in B */
    expect(&b, q, 64 * MIB, 3);
    sound(&a);
    peer_leave(&b);
    DO(&a, REAP);
    assert_int_equal(DO(&a, LIST)->a, 0);
    assert_int_equal(peer_free(&a), f0 - (2 + 4 + 2) * MIB + 16 * MIB);
    sound(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_by_key, begin, end),
        cmocka_unit_test_setup_teardown(freed_before_it_was_opened, begin, end),
        cmocka_unit_test_setup_teardown(parts_and_keys, begin, end),
        cmocka_unit_test_setup_teardown(killed_while_open, begin, end),
        cmocka_unit_test_setup_teardown(the_maker_dies, begin, end),
        cmocka_unit_test_setup_teardown(a_block_by_handle, begin, end),
        cmocka_unit_test_setup_teardown(a_handle_that_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_ready_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(of_aclrt_malloc, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
