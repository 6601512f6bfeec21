/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks shared by keys between real processes: who may import, what is mapped, who closes first.
 */
#include "peer.h"

#include <unistd.h>

#define ANY 1

static struct peer a, b, c;

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
    struct peer *all[] = {&a, &b, &c};
    for (size_t i = 0; i < 3; i++)
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

/* O-23, all five steps. */
static void kept_alive_by_the_other_side(void **state)
{
    (void)state;
    char key[65], text[64];
    start_two();
    uint64_t f0 = peer_free(&a), whole = 66 * MIB; /* 64 MiB and 32 B more, in 2 MiB pages */

    uint64_t p = DO(&a, MALLOC, .a = 64 * MIB, .b = HUGE_FIRST)->a;
    DO(&a, FILL, .a = p, .b = 64 * MIB, .c = 7);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY)->key);
    assert_int_equal(strlen(key), 64);
    uint64_t q = DO_KEY(&b, IMPORT, key)->a;
    expect(&b, q, 64 * MIB, 7);
    assert_int_equal(peer_free(&b), f0 - whole);
    assert_int_equal(DO(&b, IMPORTED)->a, whole);
    assert_int_equal(b.answer.b, 1);

    DO(&a, FREE, .a = p); /* 2: deferred */
    assert_int_equal(peer_free(&a), f0 - whole);
    assert_int_equal(peer_free(&b), f0 - whole);
    assert_int_equal(DO(&a, LIST)->a, 1);
    snprintf(text, sizeof text, "%llu freed by %d: %d;", (unsigned long long)whole, (int)a.pid,
             (int)b.pid);
    SAYS(&a, text);
    expect(&b, q, 64 * MIB, 7);
    sound(&a);
    sound(&b);

    DO_KEY(&b, CLOSE, key); /* 3 */
    assert_int_equal(peer_free(&a), f0);
    assert_int_equal(peer_free(&b), f0);
    assert_int_equal(DO(&b, LIST)->a, 0);
    assert_int_equal(DO(&b, IMPORTED)->a, 0);
    assert_int_equal(b.answer.b, 0);

    p = DO(&a, MALLOC, .a = 64 * MIB)->a; /* 4 */
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY)->key);
    DO(&a, FREE, .a = p);
    assert_int_equal(peer_free(&a), f0);
    WANT_KEY(107000, &b, IMPORT, key);
    snprintf(text, sizeof text, "exporter pid %d freed this key", (int)a.pid);
    SAYS(&b, text);
    SAYS(&b, "ms ago at ");
    SAYS(&b, "(ipc_keys)"); /* where in the exporter */

    p = DO(&a, MALLOC, .a = 64 * MIB)->a; /* 5 */
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 64 * MIB, .c = ANY)->key);
    DO_KEY(&b, IMPORT, key);
    DO(&a, FREE, .a = p);
    assert_int_equal(peer_free(&a), f0 - whole);
    peer_kill(&b);
    uint64_t overhead = 16 * MIB;      /* of B's runtime */
    assert_true(DO(&a, REAP)->a <= 1); /* its service thread may have been quicker */
    assert_int_equal(peer_free(&a), f0 + overhead);
    sound(&a);
}

static void nothing_is_copied(void **state)
{
    (void)state;
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 8 * MIB)->a;
    DO(&a, EXPORT, .a = p, .b = 8 * MIB, .c = ANY);
    uint64_t q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    DO(&b, FILL, .a = q + 5 * MIB, .b = MIB, .c = 42); /* the importer touches it first */
    DO(&a, FILL, .a = p, .b = MIB, .c = 43);
    expect(&a, p + 5 * MIB, MIB, 42);
    expect(&b, q, MIB, 43);
    DO(&b, INFO, .a = q + 4096);
    SAYS(&b, "memory of another process, imported of card 0, exporter pid");
    sound(&a);
    sound(&b);
}

static void whitelist(void **state)
{
    (void)state;
    char key[65];
    start_two();
    peer_start(&c);
    DO(&c, INIT);
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = 0)->key);
    WANT_KEY(207006, &b, IMPORT, key);
    SAYS(&b, "not among the 0 processes");
    WANT_KEY(107000, &b, ALLOW, key, .a = DO(&b, PID)->a); /* only the exporter admits */
    uint64_t pid = DO(&b, PID)->a;
    assert_int_equal(pid, b.pid);
    DO_KEY(&a, ALLOW, key, .a = pid);
    DO_KEY(&a, ALLOW, key, .a = pid); /* twice is fine */
    DO_KEY(&b, IMPORT, key);
    WANT_KEY(207006, &c, IMPORT, key);
    SAYS(&c, "not among the 1 processes");
    DO_KEY(&a, ALLOW, key, .a = DO(&c, PID)->a);
    DO_KEY(&c, IMPORT, key);
    for (uint64_t i = 3; i <= 255; i++)
        DO_KEY(&a, ALLOW, key, .a = 1000000 + i);
    WANT_KEY(107000, &a, ALLOW, key, .a = 999);
    SAYS(&a, "255 are the most");
}

static void forged_keys(void **state)
{
    (void)state;
    char key[65], forged[65];
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    WANT_KEY(107000, &b, IMPORT, "");
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY)->key);
    for (int i = 0; i < 64; i++) {
        memcpy(forged, key, sizeof forged);
        forged[i] = forged[i] == 'a' ? 'b' : 'a';
        WANT_KEY(107000, &b, IMPORT, forged);
        SAYS(&b, "no process of this machine and user made such a key");
    }
    memcpy(forged, key, sizeof forged);
    forged[63] = '\0';
    WANT_KEY(107000, &b, IMPORT, forged);
    SAYS(&b, "it has 63 characters, a key has 64");
    forged[62] = 'G';
    WANT_KEY(107000, &b, IMPORT, forged);
    SAYS(&b, "its character 63 of 64 is no hexadecimal digit");
    WANT_KEY(107000, &b, CLOSE, key);
    SAYS(&b, "this process has not imported it");
    WANT_KEY(107000, &a, IMPORT, key);
    SAYS(&a, "this process exported the memory itself");
    DO_KEY(&b, IMPORT, key);
}

static void import_twice_and_close_orders(void **state)
{
    (void)state;
    char key[65], other[65];
    start_two();
    uint64_t f0 = peer_free(&a);
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, FILL, .a = p, .b = 4 * MIB, .c = 1);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY)->key);
    snprintf(other, sizeof other, "%s", DO(&a, EXPORT, .a = p, .b = 2 * MIB, .c = ANY)->key);
    uint64_t q1 = DO_KEY(&b, IMPORT, key)->a, q2 = DO_KEY(&b, IMPORT, key)->a;
    uint64_t q3 = DO_KEY(&b, IMPORT, other)->a;
    assert_true(q1 != q2 && q2 != q3);
    assert_int_equal(DO(&b, IMPORTED)->a, 6 * MIB); /* the block, once */
    assert_int_equal(b.answer.b, 3);
    DO_KEY(&b, CLOSE, key); /* the oldest first */
    WANT(107000, &b, EXPECT, .a = q1, .b = 1);
    SAYS(&b, "freed");
    expect(&b, q2, 4 * MIB, 1);
    expect(&b, q3, 2 * MIB, 1);
    WANT(107000, &b, EXPECT, .a = q3 + 2 * MIB, .b = 1); /* its range ends there */
    DO_KEY(&a, CLOSE, key); /* the exporter's: the key ends, mappings stay */
    WANT_KEY(107000, &b, IMPORT, key);
    SAYS(&b, "closed this key");
    WANT_KEY(107000, &a, CLOSE, key);
    expect(&b, q2, 4 * MIB, 1);
    DO_KEY(&b, CLOSE, key);
    WANT_KEY(107000, &b, CLOSE, key);
    DO_KEY(&b, CLOSE, other);
    DO_KEY(&a, CLOSE, other);
    assert_int_equal(DO(&a, LIST)->a, 0); /* nobody shares it: it is an ordinary block again */
    expect(&a, p, 4 * MIB, 1);
    sound(&a);
    DO(&a, FREE, .a = p);
    WANT_KEY(107000, &a, CLOSE, other);
    assert_int_equal(peer_free(&a), f0);

    p = DO(&a, MALLOC, .a = 4 * MIB)->a; /* freed before the key is closed */
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY)->key);
    DO(&a, FREE, .a = p);
    DO_KEY(&a, CLOSE, key);
    WANT_KEY(107000, &a, CLOSE, key);
    assert_int_equal(peer_free(&a), f0);
    sound(&a);
    sound(&b);
}

static void across_cards(void **state)
{
    (void)state;
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, FILL, .a = p, .b = 4 * MIB, .c = 7);
    char key[65];
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY)->key);
    DO(&b, DEVICE, .a = 1);
    uint64_t f1 = peer_free(&b);
    uint64_t mine = DO(&b, MALLOC, .a = 4 * MIB)->a;
    uint64_t q = DO_KEY(&b, IMPORT, key, .c = 0)->a;
    WANT(507013, &b, ORDER, .a = mine, .b = q, .c = MIB, .d = 3);
    SAYS(&b, "card 1 has no access to the memory of card 0: it was not enabled");
    DO(&b, PEER, .a = 0);
    DO(&b, ORDER, .a = mine, .b = q, .c = MIB, .d = 3);
    expect(&b, mine, MIB, 7);
    DO_KEY(&b, CLOSE, key);
    q = DO_KEY(&b, IMPORT, key, .c = 1)->a;      /* enables access by itself */
    for (uint64_t kind = 1; kind <= 4; kind++) { /* reference 13.4 */
        WANT(207000, &b, COPY, .a = mine, .b = q, .c = MIB, .d = kind);
        SAYS(&b, "memory of another process on another card");
        if (kind != 3)
            WANT(207000, &b, ORDER, .a = q, .b = mine, .c = MIB, .d = kind);
    }
    DO(&b, FILL, .a = mine, .b = MIB, .c = 8);
    DO(&b, ORDER, .a = q, .b = mine, .c = MIB, .d = 3);
    expect(&a, p, MIB, 8);
    DO(&b, RESET, .a = 1); /* the work that it was for is gone, and so is the import */
    assert_int_equal(DO(&b, IMPORTED)->a, 0);
    DO(&b, DEVICE, .a = 1);
    assert_int_equal(peer_free(&b), f1);
    sound(&b);
}

static void cards_that_are_apart(void **state)
{
    (void)state;
    peer_leave(&a);
    peer_leave(&b);
    setenv("BELAY_PEER", "off", 1);
    peer_start(&a);
    peer_start(&b);
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY);
    DO(&b, DEVICE, .a = 1);
    for (uint64_t flags = 0; flags < 2; flags++) {
        WANT_KEY(207000, &b, IMPORT, a.answer.key, .c = flags);
        SAYS(&b, "card 1 cannot reach the memory of card 0");
    }
    DO(&b, DEVICE, .a = 0);
    DO_KEY(&b, IMPORT, a.answer.key);
    setenv("BELAY_PEER", "on", 1);
}

static void a_cap_counts_an_import_once(void **state)
{
    (void)state;
    peer_leave(&b);
    setenv("BELAY_CAP", "48MiB", 1);
    peer_start(&b);
    unsetenv("BELAY_CAP");
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 30 * MIB)->a; /* 32 MiB: with B's overhead, just all of it */
    DO(&a, EXPORT, .a = p, .b = 30 * MIB, .c = ANY);
    DO_KEY(&b, IMPORT, a.answer.key);
    DO_KEY(&b, IMPORT, a.answer.key);
    WANT(207001, &b, MALLOC, .a = 2048);
    SAYS(&b, "cap");
    DO_KEY(&b, CLOSE, a.answer.key);
    WANT(207001, &b, MALLOC, .a = 2048);
    DO_KEY(&b, CLOSE, a.answer.key);
    DO(&b, MALLOC, .a = 2048);
    WANT_KEY(207001, &b, IMPORT, a.answer.key);
    SAYS(&b, "memory of another process");
    assert_int_equal(DO(&b, IMPORTED)->a, 0);
    sound(&b);
}

/* What a group of processes has open and none of them made, once. */
static void a_group_counts_a_share_once(void **state)
{
    (void)state;
    char key[65];
    start_two();
    peer_start(&c);
    DO(&c, INIT);
    uint64_t pa = (uint64_t)a.pid, pb = (uint64_t)b.pid, pc = (uint64_t)c.pid;
    uint64_t p = DO(&a, MALLOC, .a = 6 * MIB - 32)->a;
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 2 * MIB, .c = ANY)->key);
    assert_int_equal(DO(&c, CHARGED, .a = pb, .b = pc)->a, 0);
    DO_KEY(&b, IMPORT, key);
    DO_KEY(&c, IMPORT, key);
    assert_int_equal(DO(&c, CHARGED, .a = pb, .b = pc)->a, 6 * MIB);
    assert_int_equal(DO(&c, CHARGED, .a = pa, .b = pb)->a, 0); /* its maker counts it */
    DO_KEY(&b, CLOSE, key);
    assert_int_equal(DO(&c, CHARGED, .a = pb, .b = pc)->a, 6 * MIB);
    DO(&a, FREE, .a = p);
    assert_int_equal(DO(&c, CHARGED, .a = pa, .b = pc)->a, 6 * MIB);
    DO_KEY(&c, CLOSE, key);
    assert_int_equal(DO(&c, CHARGED, .a = pb, .b = pc)->a, 0);
}

static void exported_memory_stays_in_its_frames(void **state)
{
    (void)state;
    start_two();
    uint64_t low = DO(&a, MALLOC, .a = 30 * MIB)->a;
    uint64_t p = DO(&a, MALLOC, .a = 6 * MIB - 32)->a;
    uint64_t moves = DO(&a, MALLOC, .a = 6 * MIB - 32)->a;
    DO(&a, FILL, .a = p, .b = 6 * MIB - 32, .c = 7);
    DO(&a, FILL, .a = moves, .b = 6 * MIB - 32, .c = 8);
    DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY);
    uint64_t q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    DO(&a, FREE, .a = low);
    assert_int_equal(DO(&a, DEFRAG)->a, 6 * MIB);
    DO(&a, FILL, .a = p, .b = 4 * MIB, .c = 9);
    expect(&b, q, 4 * MIB, 9);
    DO(&b, DEFRAG);
    expect(&b, q, 4 * MIB, 9);
    expect(&a, moves, 6 * MIB - 32, 8);
    sound(&a);
    sound(&b);
}

static void reset_and_finalise_end_imports(void **state)
{
    (void)state;
    start_two();
    uint64_t f0 = peer_free(&a), p = DO(&a, MALLOC, .a = 6 * MIB)->a;
    char key[65];
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 6 * MIB, .c = ANY)->key);
    DO_KEY(&b, IMPORT, key);
    DO(&b, RESET, .a = 0);
    assert_int_equal(DO(&b, IMPORTED)->a, 0);
    DO(&b, DEVICE, .a = 0);
    DO_KEY(&b, IMPORT, key);
    DO(&b, FINALISE);
    assert_int_equal(DO(&b, IMPORTED)->a, 0);
    DO(&a, RESET, .a = 0); /* the exporter's memory goes, too, and its keys */
    DO(&b, INIT);
    WANT_KEY(107000, &b, IMPORT, key);
    SAYS(&b, "a device reset");
    assert_int_equal(peer_free(&b), f0 + 16 * MIB); /* A's runtime is not there */
}

static void a_forgotten_import_is_in_the_report(void **state)
{
    (void)state;
    char path[128], text[8192] = "";
    peer_leave(&b);
    snprintf(path, sizeof path, "%s/report.txt", getenv("BELAY_STATE"));
    setenv("BELAY_REPORT", path, 1);
    peer_start(&b);
    unsetenv("BELAY_REPORT");
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY);
    DO_KEY(&b, IMPORT, a.answer.key);
    DO_KEY(&b, IMPORT, a.answer.key);
    DO_KEY(&b, CLOSE, a.answer.key);
    peer_leave(&b);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    if (strstr(text, "leaked-handle: 4194304 B (4 MiB) in 1 import of memory of other processes on "
                     "card 0 never closed") == NULL)
        fail_msg("not in the report: %s", text);
    assert_non_null(strstr(text, "aclrtIpcMemClose for every import"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(kept_alive_by_the_other_side),
        T(nothing_is_copied),
        T(whitelist),
        T(forged_keys),
        T(import_twice_and_close_orders),
        T(across_cards),
        T(cards_that_are_apart),
        T(a_cap_counts_an_import_once),
        T(a_group_counts_a_share_once),
        T(exported_memory_stays_in_its_frames),
        T(reset_and_finalise_end_imports),
        T(a_forgotten_import_is_in_the_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
