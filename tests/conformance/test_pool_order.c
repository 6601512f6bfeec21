/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and order: across streams, frees of other memory, captured streams. */
#include "pool_test.h"

static void set_switch(aclrtMemPool pool, aclrtMemPoolAttr attr)
{
    uint32_t on = 1;
    OK(aclrtMemPoolSetAttr(pool, attr, &on));
}

/* A block of s1, freed there while s1 is held; then as much on s2. */
static char *other_stream(aclrtMemPool pool, aclrtStream s1, aclrtStream s2, char **first)
{
    *first = take(64 * MIB, pool, s1);
    fill(*first, 1, 64 * MIB, s1);
    give(*first, s1);
    return take(64 * MIB, pool, s2);
}

TEST(work_that_goes_on_keeps_memory_from_others)
{
    static struct hold hold;
    char *first;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s1 = make_stream(), s2 = make_stream();
    hold_stream(&hold, s1);
    char *second = other_stream(pool, s1, s2, &first);
    CHECK(second != first);
    CHECK_EQ(held(pool), 128 * MIB);
    fill(second, 2, 64 * MIB, s2);
    sync_stream(s2); /* no order between the two was made */
    let_go(&hold);
    sync_stream(s1);
}

TEST(reuse_behind_an_event)
{
    static struct hold hold;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    set_switch(pool, ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    aclrtStream s1 = make_stream(), s2 = make_stream(), s3 = make_stream();
    hold_stream(&hold, s1);
    char *first = take(64 * MIB, pool, s1);
    fill(first, 1, 64 * MIB, s1);
    order_behind(s3, s1); /* before its last use: that is not enough */
    fill(first, 1, 64 * MIB, s1);
    give(first, s1);
    order_behind(s2, s1);
    char *third = take(64 * MIB, pool, s3);
    CHECK(third != first);
    char *second = take(64 * MIB, pool, s2);
    CHECK(second == first);
    CHECK_EQ(held(pool), 128 * MIB);
    fill(second, 2, 64 * MIB, s2);
    give(second, s2);
    let_go(&hold);
    sync_stream(s2);
    give(third, s3);
    sync_stream(s3);
}

TEST(reuse_with_a_dependency_made_for_it)
{
    static struct hold hold;
    char *first, mark = 0;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    set_switch(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
    aclrtStream s1 = make_stream(), s2 = make_stream();
    hold_stream(&hold, s1);
    char *second = other_stream(pool, s1, s2, &first);
    CHECK(second == first);
    CHECK_EQ(held(pool), 64 * MIB);
    fill(second, 2, 64 * MIB, s2);
    aclrtStreamStatus status;
    OK(aclrtStreamQuery(s2, &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY); /* it waits for s1 */
    let_go(&hold);
    sync_stream(s2);
    OK(aclrtMemcpy(&mark, 1, second, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(mark, 2);
    give(second, s2);
    sync_stream(s2);
}

TEST(work_that_has_ended_frees_for_all)
{
    char *first;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    set_switch(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC);
    aclrtStream s1 = make_stream(), s2 = make_stream();
    first = take(64 * MIB, pool, s1);
    fill(first, 1, 64 * MIB, s1);
    give(first, s1);
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    while (status != ACL_STREAM_STATUS_COMPLETE)
        OK(aclrtStreamQuery(s1, &status));
    char *second = take(64 * MIB, pool, s2);
    CHECK_EQ(held(pool), 64 * MIB);
    give(second, s2);
    sync_stream(s2);
}

/* A free on another stream comes behind what that was given. */
TEST(free_on_another_stream)
{
    static struct hold hold;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s1 = make_stream(), s2 = make_stream();
    char *a = take(64 * MIB, pool, s1);
    order_behind(s2, s1);
    hold_stream(&hold, s2);
    fill(a, 1, 64 * MIB, s2);
    give(a, s2);
    CHECK_EQ(used(pool), 0);
    char *b = take(64 * MIB, pool, s1);
    CHECK(b != a);
    let_go(&hold);
    sync_stream(s2);
    char *c = take(64 * MIB, pool, s1);
    CHECK(c == a);
    CHECK_EQ(held(pool), 128 * MIB);
    give(b, s1);
    give(c, s1);
}

/* Memory of aclrtMalloc is freed when the stream gets there. */
TEST(other_memory_is_freed_in_order)
{
    static struct hold hold;
    void *p = NULL, *pinned = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    size_t before = card_free();
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    hold_stream(&hold, s);
    fill(p, 1, 64 * MIB, s);
    give(p, s);
    CHECK_EQ(card_free(), before - 64 * MIB);
    let_go(&hold);
    sync_stream(s);
    CHECK_EQ(card_free(), before);
    CHECK_ACL(aclrtMemPoolFreeAsync(p, s), 107000);
    CHECK_MESSAGE("freed");
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    CHECK_ACL(aclrtMemPoolFreeAsync((char *)p + 4096, s), 107000);
    OK(aclrtFree(p));
    OK(aclrtMallocHost(&pinned, 4096));
    CHECK_ACL(aclrtMemPoolFreeAsync(pinned, s), 107000);
    OK(aclrtFreeHost(pinned));
}

/* A free that is late does not hit the block that lies at the address by then. */
TEST(a_late_free_is_of_its_own_block)
{
    static struct hold hold;
    void *p = NULL, *again = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    size_t before = card_free();
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    hold_stream(&hold, s);
    give(p, s);
    give(p, s);
    OK(aclrtFree(p));
    OK(aclrtMallocAlign32(&again, 64 * MIB, HUGE_FIRST));
    CHECK(again == p);
    let_go(&hold);
    sync_stream(s);
    CHECK_EQ(card_free(), before - 64 * MIB);
    OK(aclrtMemset(again, 64 * MIB, 1, 64 * MIB));
    OK(aclrtFree(again));
    CHECK_EQ(card_free(), before);
}

/* aclrtFree takes a block out of its pool at once, but not from work that still uses it. */
TEST(aclrtFree_of_a_block)
{
    static struct hold hold;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s = make_stream();
    char *a = take(64 * MIB, pool, s), *b = take(64 * MIB, pool, s);
    CHECK_ACL(aclrtFree(a + 4096), 107000);
    OK(aclrtFree(a));
    CHECK_EQ(used(pool), 64 * MIB);
    CHECK_EQ(held(pool), 64 * MIB);
    CHECK_ACL(aclrtFree(a), 107000);
    hold_stream(&hold, s);
    fill(b, 1, 64 * MIB, s);
    OK(aclrtFree(b));
    CHECK_EQ(used(pool), 0);
    CHECK_EQ(held(pool), 64 * MIB);
    let_go(&hold);
    sync_stream(s); /* the set was no fault */
    b = take(64 * MIB, pool, s);
    fill(b, 1, 64 * MIB, s);
    uint64_t before = held(pool);
    OK(aclrtFreeWithDevSync(b));
    CHECK_EQ(held(pool), before - 64 * MIB);
}

/* ── Captured streams ─────────────────────────────────────────────────────────────────────── */

static aclmdlRI capture_end(aclrtStream s)
{
    aclmdlRI graph = NULL;
    OK(aclmdlRICaptureEnd(s, &graph));
    CHECK(graph != NULL);
    return graph;
}

TEST(blocks_of_a_graph_keep_their_addresses)
{
    unsigned char *h = NULL;
    start("1GiB");
    size_t f0 = card_free();
    aclrtMemPool pool = make_pool(0, 0);
    aclrtStream s = make_stream(), other = make_stream();
    OK(aclrtMallocHost((void **)&h, 8 * MIB));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    char *a = take(8 * MIB, pool, s);
    fill(a, 0x33, 8 * MIB, s);
    give(a, s);
    char *b = take(4 * MIB, pool, s); /* in the order of the capture: the same memory */
    CHECK(b == a);
    fill(b, 0x44, 4 * MIB, s);
    OK(aclrtMemcpyAsync(h, 8 * MIB, a, 8 * MIB, ACL_MEMCPY_DEVICE_TO_HOST, s));
    char *kept = take(2 * MIB, pool, s);
    CHECK(kept != a);
    aclmdlRI graph = capture_end(s);
    CHECK_EQ(used(pool), 10 * MIB);
    char *outside = take(8 * MIB, pool, other);
    CHECK(outside != a);
    fill(outside, 0x55, 8 * MIB, other);
    for (int run = 0; run < 3; run++) {
        memset(h, 0, 8 * MIB);
        OK(aclmdlRIExecuteAsync(graph, other));
        sync_stream(other);
        CHECK_EQ(h[0], 0x44);
        CHECK_EQ(h[8 * MIB - 1], 0x33);
    }
    give(outside, other);
    give(kept, other); /* stays with the graph */
    CHECK_ACL(aclrtMemPoolFreeAsync(kept, other), 107000);
    sync_stream(other);
    CHECK_EQ(used(pool), 10 * MIB);
    CHECK_EQ(held(pool), 10 * MIB);
    OK(aclmdlRIDestroy(graph));
    CHECK_EQ(used(pool), 0);
    sync_stream(other);
    CHECK_EQ(held(pool), 0);
    OK(aclrtMemPoolDestroy(pool));
    OK(aclrtFreeHost(h));
    CHECK_EQ(card_free(), f0);
}

TEST(a_capture_frees_only_what_it_made)
{
    void *p = NULL;
    aclmdlRI graph = NULL;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, 0);
    aclrtStream s = make_stream();
    char *before = take(2 * MIB, pool, s);
    OK(aclrtMallocAlign32(&p, 2 * MIB, HUGE_FIRST));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    CHECK_ACL(aclrtMemPoolFreeAsync(before, s), 107027);
    CHECK_MESSAGE("allocated on a stream of the same capture");
    CHECK_ACL(aclrtMemPoolFreeAsync(p, s), 107027);
    char *inside = take(2 * MIB, pool, s);
    give(inside, s);
    CHECK_ACL(aclrtMemPoolFreeAsync(inside, s), 107000);
    OK(aclmdlRICaptureEnd(s, &graph));
    OK(aclmdlRIDestroy(graph));
    give(before, s);
    OK(aclrtFree(p));
    sync_stream(s);
    CHECK_EQ(held(pool), 0);
}

/* The pool may go first: its memory stays as long as the graph. */
TEST(a_refused_free_in_a_capture_changes_nothing)
{
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, 0);
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    char *a = take(4 * MIB, pool, s);
    give(a, s);
    CHECK_ACL(aclrtMemPoolFreeAsync(a, s), 107000);
    CHECK_ACL(aclrtFree(a), 107000);
    CHECK_MESSAGE("of a graph was freed before");
    CHECK(take(4 * MIB, pool, s) == a);
    aclmdlRI graph = capture_end(s);
    OK(aclrtFree(a));
    CHECK_ACL(aclrtFree(a), 107000);
    OK(aclmdlRIDestroy(graph));
}

TEST(a_graph_outlives_its_pool)
{
    start("1GiB");
    size_t f0 = card_free();
    aclrtMemPool pool = make_pool(0, 0);
    aclrtStream s = make_stream();
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    char *a = take(8 * MIB, pool, s);
    fill(a, 1, 8 * MIB, s);
    aclmdlRI graph = capture_end(s);
    size_t with = card_free();
    OK(aclrtMemPoolDestroy(pool));
    CHECK_ACL(aclrtMemPoolDestroy(pool), 507000);
    OK(aclmdlRIExecuteAsync(graph, s));
    sync_stream(s);
    CHECK_EQ(card_free(), with);
    OK(aclmdlRIDestroy(graph));
    CHECK_EQ(card_free(), f0);
}

/* A capture that fails gives its memory back. */
TEST(a_capture_that_comes_to_nothing)
{
    aclmdlRI graph = NULL;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, 0);
    aclrtStream s = make_stream(), side = make_stream();
    aclrtEvent event = NULL;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    char *a = take(8 * MIB, pool, s);
    fill(a, 1, 8 * MIB, s);
    OK(aclrtRecordEvent(event, s));
    OK(aclrtStreamWaitEvent(side, event));
    char *b = take(8 * MIB, pool, side); /* the same capture */
    fill(b, 1, 8 * MIB, side);
    CHECK(aclmdlRICaptureEnd(s, &graph) != 0); /* `side` was not joined */
    CHECK_EQ(used(pool), 0);
    sync_stream(s);
    CHECK_EQ(held(pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_that_goes_on_keeps_memory_from_others),
        cmocka_unit_test(reuse_behind_an_event),
        cmocka_unit_test(reuse_with_a_dependency_made_for_it),
        cmocka_unit_test(work_that_has_ended_frees_for_all),
        cmocka_unit_test(free_on_another_stream),
        cmocka_unit_test(other_memory_is_freed_in_order),
        cmocka_unit_test(a_late_free_is_of_its_own_block),
        cmocka_unit_test(aclrtFree_of_a_block),
        cmocka_unit_test(blocks_of_a_graph_keep_their_addresses),
        cmocka_unit_test(a_capture_frees_only_what_it_made),
        cmocka_unit_test(a_refused_free_in_a_capture_changes_nothing),
        cmocka_unit_test(a_graph_outlives_its_pool),
        cmocka_unit_test(a_capture_that_comes_to_nothing),
    };
    return cmocka_run_group_tests_name("pool order", tests, NULL, NULL);
}
