/* SPDX-License-Identifier: Apache-2.0 */
/* What is told about shared memory: who has what a full card or cap lacks, and what became of keys
 * and handles. */
#include "peer.h"

#define ANY 1

static struct peer a, b; /* exporter, importer */

static int begin(void **state)
{
    (void)state;
    peers_begin();
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

static void start_two(void)
{
    peer_start(&a);
    DO(&a, INIT);
    peer_start(&b);
    DO(&b, INIT);
}

static void sound(void)
{
    assert_int_equal(DO(&a, AUDIT)->a, 1);
    assert_int_equal(DO(&b, AUDIT)->a, 1);
}

/* O-23: nobody's account has it, so the sentence must name it. */
static void a_full_card_names_what_importers_keep(void **state)
{
    (void)state;
    char keeper[64], key[65];
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 800 * MIB - 32)->a, small = DO(&a, MALLOC, .a = 4 * MIB)->a;
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 800 * MIB - 32, .c = ANY)->key);
    uint64_t q = DO_KEY(&b, IMPORT, key)->a;
    DO(&a, EXPORT, .a = small, .b = 4 * MIB, .c = ANY);
    DO_KEY(&b, IMPORT, a.answer.key);
    WANT(207001, &a, MALLOC, .a = 400 * MIB);
    assert_null(strstr(a.answer.text, "no longer have"));
    DO(&a, FREE, .a = p);
    DO(&a, FREE, .a = small);
    WANT(207001, &a, MALLOC, .a = 400 * MIB);
    snprintf(keeper, sizeof keeper, "of pid %d in pid %d (", (int)a.pid, (int)b.pid);
    SAYS(&a, "; 845152256 B (806 MiB) that exporters no longer have are still open: "
             "838860800 B (800 MiB)");
    SAYS(&a, keeper);
    SAYS(&a, ", and 6291456 B (6 MiB) elsewhere");
    WANT(207001, &b, MALLOC, .a = 400 * MIB);
    SAYS(&b, "in this process");
    SAYS(&b, "in 2 imports (memory of other processes) at");
    assert_int_equal(DO(&b, EXPECT, .a = q, .b = MIB)->a, MIB);
    DO_KEY(&b, CLOSE, key);
    DO(&a, MALLOC, .a = 400 * MIB);
    sound();
}

static void a_full_cap_names_imports(void **state)
{
    (void)state;
    peer_start(&a);
    DO(&a, INIT);
    setenv("BELAY_CAP", "64MiB", 1);
    peer_start(&b);
    DO(&b, INIT);
    unsetenv("BELAY_CAP");
    uint64_t p = DO(&a, MALLOC, .a = 40 * MIB - 32)->a;
    DO(&a, EXPORT, .a = p, .b = 40 * MIB - 32, .c = ANY);
    DO_KEY(&b, IMPORT, a.answer.key);
    WANT(207001, &b, MALLOC, .a = 12 * MIB);
    SAYS(&b, "used 58720256 B (56 MiB) of which 16777216 B (16 MiB) are the runtime's overhead and "
             "41943040 B (40 MiB) are imported memory, left 8388608 B (8 MiB)");
    SAYS(&b, "; held: 41943040 B (40 MiB) in 1 import (memory of another process) at");
    DO_KEY(&b, CLOSE, a.answer.key);
    WANT(207001, &b, MALLOC, .a = 60 * MIB);
    assert_null(strstr(b.answer.text, "import"));
    DO(&b, MALLOC, .a = 12 * MIB);
    sound();
}

/* The maker frees the block, then closes the key: who comes late hears of the free, and when. */
static void a_key_closed_after_its_memory_was_freed(void **state)
{
    (void)state;
    char key[65];
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY)->key);
    DO(&a, RESET, .a = 0);
    DO(&a, DEVICE, .a = 0);
    DO_KEY(&a, CLOSE, key);
    WANT_KEY(107000, &b, IMPORT, key);
    SAYS(&b, "freed this key with its memory");
    SAYS(&b, "at a device reset");
    WANT_KEY(107000, &a, CLOSE, key);
    SAYS(&a, "freed this key with its memory");
    sound();
}

static void a_freed_handle_that_is_still_mapped(void **state)
{
    (void)state;
    start_two();
    uint64_t handle = DO(&a, PHYSICAL, .a = 4 * MIB)->a;
    uint64_t shared = DO(&a, SHARE, .a = handle, .c = ANY)->a;
    uint64_t at = DO(&b, RESERVE, .a = 4 * MIB)->a, theirs = DO(&b, ADOPT, .a = shared)->a;
    DO(&b, MAP, .a = at, .b = 4 * MIB, .c = theirs);
    WANT(107000, &b, ADOPT, .a = shared);
    SAYS(&b, "is not freed yet");
    DO(&b, RELEASE, .a = theirs);
    WANT(107000, &b, ADOPT, .a = shared);
    SAYS(&b, "is still mapped");
    DO(&b, UNMAP, .a = at);
    theirs = DO(&b, ADOPT, .a = shared)->a;
    DO(&b, RELEASE, .a = theirs);
    sound();
}

static void memory_taken_back_by_a_reset(void **state)
{
    (void)state;
    start_two();
    uint64_t p = DO(&a, MALLOC, .a = 4 * MIB)->a;
    DO(&a, EXPORT, .a = p, .b = 4 * MIB, .c = ANY);
    uint64_t q = DO_KEY(&b, IMPORT, a.answer.key)->a;
    DO(&b, RESET, .a = 0);
    DO(&b, DEVICE, .a = 0);
    DO(&b, INFO, .a = q);
    SAYS(&b, "by a device reset");
    sound();
}

/* The maker closes its key first, the importer last: then the block is as before the export. */
static void closed_in_the_wrong_order(void **state)
{
    (void)state;
    char key[65];
    start_two();
    uint64_t low = DO(&a, MALLOC, .a = 30 * MIB)->a, p = DO(&a, MALLOC, .a = 6 * MIB - 32)->a;
    DO(&a, FILL, .a = p, .b = 6 * MIB - 32, .c = 7);
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 6 * MIB - 32, .c = ANY)->key);
    DO_KEY(&b, IMPORT, key);
    DO_KEY(&a, CLOSE, key);
    DO(&a, FREE, .a = low);
    assert_int_equal(DO(&a, DEFRAG)->a, 0); /* open in B */
    assert_int_equal(DO(&a, LIST)->a, 1);
    DO_KEY(&b, CLOSE, key);
    assert_int_equal(DO(&a, DEFRAG)->a, 6 * MIB);
    assert_int_equal(DO(&a, LIST)->a, 0);
    assert_int_equal(DO(&a, EXPECT, .a = p, .b = 6 * MIB - 32, .c = 7)->a, 6 * MIB - 32);
    sound();
    snprintf(key, sizeof key, "%s", DO(&a, EXPORT, .a = p, .b = 6 * MIB - 32, .c = ANY)->key);
    DO_KEY(&b, IMPORT, key);
    DO_KEY(&a, CLOSE, key);
    DO_KEY(&b, CLOSE, key);
    while (DO(&b, LIST)->a !=
           0) /* the exporter's own thread sees to it; a peer has its time limit */
        ;
    sound();
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(a_full_card_names_what_importers_keep),
        T(a_full_cap_names_imports),
        T(a_key_closed_after_its_memory_was_freed),
        T(a_freed_handle_that_is_still_mapped),
        T(memory_taken_back_by_a_reset),
        T(closed_in_the_wrong_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
