/* SPDX-License-Identifier: Apache-2.0
 *
 * pools.c - memory in the order of streams: faults, and programs that are right.
 */
#include "check_case.h"

#include <acl/acl_rt_memory_soma.h>

static aclrtMemPool make_pool(void)
{
    aclrtMemPool pool = NULL;
    uint64_t all = UINT64_MAX;
    aclrtMemPoolProps props = {.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    OK(aclrtMemPoolCreate(&pool, &props));
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &all));
    return pool;
}

static char *take(aclrtMemPool pool, aclrtStream stream)
{
    void *block = NULL;
    OK(aclrtMemPoolMallocAsync(&block, 8 * MIB, pool, stream));
    return block;
}

static void give(void *block, aclrtStream stream)
{
    OK(aclrtMemPoolFreeAsync(block, stream));
}

static char *large_pinned(void)
{
    void *pinned = NULL;
    OK(aclrtMallocHost(&pinned, 8 * MIB));
    return pinned;
}

/* O-16: the free on one stream while another one reads. */
static void free_while_read(bool ordered, bool synced)
{
    static struct gate gate;
    aclrtMemPool pool = make_pool();
    char *h = large_pinned(), *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    hold(&gate, w.b);
    get(h, a, 8 * MIB, w.b);
    if (ordered) {
        record(w.event, w.b);
        wait_for(w.event, w.a);
    }
    if (synced) {
        let_go(&gate);
        wait_done(w.b);
    }
    give(a, w.a);
    char *b = take(pool, w.a);
    set(b, 8 * MIB, w.a);
    if (!ordered)
        wait_done(w.a);
    let_go(&gate);
    wait_done(w.b);
    wait_done(w.a);
    give(b, w.a);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
    OK(aclrtFreeHost(h));
}

static void pool_free_while_read(void)
{
    free_while_read(false, false);
}

static void pool_free_behind_event(void)
{
    free_while_read(true, false);
}

static void pool_free_behind_sync(void)
{
    free_while_read(false, true);
}

/* The read has ended before the free, but nothing says so. */
static void pool_free_unordered(void)
{
    aclrtMemPool pool = make_pool();
    char *h = large_pinned(), *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(h, a, 8 * MIB, w.b);
    usleep(30000);
    give(a, w.a);
    wait_done(w.a);
    wait_done(w.b);
    OK(aclrtMemPoolDestroy(pool));
    OK(aclrtFreeHost(h));
}

static void pool_use_after_free(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    give(a, w.a);
    set(a, 8 * MIB, w.a);
    (void)aclrtSynchronizeStream(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

/* Another stream uses the block, and nothing puts that behind the allocation. */
static void pool_use_before_allocation(void)
{
    aclrtMemPool pool = make_pool();
    set(w.x, SIZE, w.a);
    char *a = take(pool, w.a);
    set(a, 8 * MIB, w.b);
    wait_done(w.b);
    wait_done(w.a);
    give(a, w.a);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_double_free(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    give(a, w.a);
    (void)aclrtMemPoolFreeAsync(a, w.a);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_free_now_while_used(void)
{
    static struct gate gate;
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    hold(&gate, w.a);
    set(a, 8 * MIB, w.a);
    OK(aclrtFree(a));
    let_go(&gate);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_leak(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    wait_done(w.a);
}

/* The run must not touch what is another's, and fails. */
static void pool_graph_on_reused(void)
{
    aclmdlRI graph = NULL;
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    OK(aclmdlRICaptureBegin(w.a, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    set(a, 8 * MIB, w.a);
    OK(aclmdlRICaptureEnd(w.a, &graph));
    OK(aclmdlRIExecuteAsync(graph, w.a));
    give(a, w.a);
    wait_done(w.a);
    char *b = take(pool, w.a);
    set(b, 8 * MIB, w.a);
    OK(aclmdlRIExecuteAsync(graph, w.a));
    (void)aclrtSynchronizeStream(w.a);
    give(b, w.a);
    wait_done(w.a);
    OK(aclmdlRIDestroy(graph));
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_graph_on_freed(void)
{
    aclmdlRI graph = NULL;
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    OK(aclmdlRICaptureBegin(w.a, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    set(a, 8 * MIB, w.a);
    OK(aclmdlRICaptureEnd(w.a, &graph));
    give(a, w.a);
    wait_done(w.a);
    OK(aclmdlRIExecuteAsync(graph, w.a));
    (void)aclrtSynchronizeStream(w.a);
    OK(aclmdlRIDestroy(graph));
    OK(aclrtMemPoolDestroy(pool));
}

/* ── Right ────────────────────────────────────────────────────────────────────────────────── */

static void pool_other_stream_behind_event(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    set(a, 8 * MIB, w.b);
    give(a, w.b); /* in the order of its last user */
    char *b = take(pool, w.a);
    set(b, 8 * MIB, w.a);
    give(b, w.a);
    wait_done(w.a);
    wait_done(w.b);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_many_rounds(void)
{
    aclrtMemPool pool = make_pool();
    for (int i = 0; i < 50; i++) {
        char *a = take(pool, w.a), *b = take(pool, w.b);
        set(a, 8 * MIB, w.a);
        set(b, 8 * MIB, w.b);
        give(a, w.a);
        give(b, w.b);
    }
    wait_done(w.a);
    wait_done(w.b);
    OK(aclrtMemPoolDestroy(pool));
}

/* A block of aclrtMalloc, freed behind its last use. */
static void pool_frees_other_memory(void)
{
    set(w.x, SIZE, w.a);
    give(w.x, w.a);
    w.x = NULL;
    wait_done(w.a);
}

static void pool_ends_with_blocks(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_host_behind_sync(void)
{
    aclrtMemPool pool = make_pool();
    char *a = take(pool, w.a);
    OK(aclrtMemcpy(a, SIZE, w.pinned, SIZE, H2D));
    wait_done(w.a);
    give(a, w.a);
    wait_done(w.a);
    OK(aclrtMemPoolDestroy(pool));
}

static void pool_in_a_graph(void)
{
    aclmdlRI graph = NULL;
    aclrtMemPool pool = make_pool();
    OK(aclmdlRICaptureBegin(w.a, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    char *a = take(pool, w.a);
    set(a, 8 * MIB, w.a);
    give(a, w.a);
    OK(aclmdlRICaptureEnd(w.a, &graph));
    for (int i = 0; i < 3; i++)
        OK(aclmdlRIExecuteAsync(graph, w.b));
    wait_done(w.b);
    OK(aclmdlRIDestroy(graph));
    OK(aclrtMemPoolDestroy(pool));
}

const struct check_case faults_pool[] = {
    {"pool-free-while-read", pool_free_while_read, "race", "not ordered after read on stream",
     NULL},
    {"pool-free-unordered", pool_free_unordered, "race", "not ordered after read on stream", NULL},
    {"pool-use-after-free", pool_use_after_free, "use-after-free", NULL, NULL},
    {"pool-use-before-allocation", pool_use_before_allocation, "race",
     "not ordered after the allocation on stream", NULL},
    {"pool-double-free", pool_double_free, "double-free", NULL, NULL},
    {"pool-free-now-while-used", pool_free_now_while_used, "free-in-use", NULL, NULL},
    {"pool-graph-on-reused", pool_graph_on_reused, "use-after-free",
     "0 bytes into a block of 8388608 B (8 MiB)", NULL},
    {"pool-graph-on-freed", pool_graph_on_freed, "use-after-free", NULL, NULL},
    {"pool-leak", pool_leak, "leak", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct check_case correct_pool[] = {
    {"pool-free-behind-event", pool_free_behind_event, "", NULL, NULL},
    {"pool-free-behind-sync", pool_free_behind_sync, "", NULL, NULL},
    {"pool-other-stream-behind-event", pool_other_stream_behind_event, "", NULL, NULL},
    {"pool-many-rounds", pool_many_rounds, "", NULL, NULL},
    {"pool-frees-other-memory", pool_frees_other_memory, "", NULL, NULL},
    {"pool-ends-with-blocks", pool_ends_with_blocks, "", NULL, NULL},
    {"pool-host-behind-sync", pool_host_behind_sync, "", NULL, NULL},
    {"pool-in-a-graph", pool_in_a_graph, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
