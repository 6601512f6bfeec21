/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_kinds.c - faults of kinds of work, signals and memory that the other lists do not have.
 */
#include "check_case.h"

static void may_fail(aclError code)
{
    (void)code;
}

/* ── Order ────────────────────────────────────────────────────────────────────────────────── */

/* Waits for one of two producers, and reads what both write. */
static void counted_too_few(void)
{
    static struct gate gate;
    aclrtCntNotify notify;
    aclrtCntNotifyRecordInfo one = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
    aclrtCntNotifyWaitInfo first = {
        .mode = ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, .value = 1, .timeout = 60};
    OK(aclrtCntNotifyCreate(&notify, 0));
    set(w.x, SIZE, w.a);
    OK(aclrtCntNotifyRecord(notify, w.a, &one));
    stall(&gate, w.c);
    set(w.y, 8192, w.c);
    OK(aclrtCntNotifyRecord(notify, w.c, &one));
    OK(aclrtCntNotifyWaitWithTimeout(notify, w.b, &first));
    get(w.pinned, w.x, SIZE, w.b);
    get(w.pinned, w.y + 4096, SIZE - 4096, w.b);
    wait_done(w.b);
    let_go(&gate);
    wait_done(w.c);
    OK(aclrtCntNotifyDestroy(notify));
}

static void batch_beside_set(void)
{
    aclrtMemcpyBatchAttr attr = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                 .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    void *cards[3], *hosts[3];
    size_t sizes[3] = {100, 200, 300}, first = 0;
    for (int i = 0; i < 3; i++) {
        cards[i] = w.x + 1000 * i;
        hosts[i] = w.pinned + 1000 * i;
    }
    OK(aclrtMemcpyBatchAsyncV2(cards, sizes, hosts, sizes, 3, &attr, &first, 1, w.a));
    set(w.x + 1150, 1000, w.b); /* the last 50 of the second, the first 150 of the third */
    OK(aclrtSynchronizeDevice());
}

static void words_beside_copy(void)
{
    OK(aclrtMemsetD32Async(w.x + 64, 4000, 7, 1000, w.a));
    get(w.pinned, w.x, 72, w.b);
    OK(aclrtSynchronizeDevice());
}

/* Columns that share four bytes of each row. */
static void columns_too_wide(void)
{
    OK(aclrtMemcpy2dAsync(w.x, 64, w.pinned, 64, 36, 16, H2D, w.a));
    OK(aclrtMemcpy2dAsync(w.x + 32, 64, w.pinned + 32, 64, 32, 16, H2D, w.b));
    OK(aclrtSynchronizeDevice());
}

static void default_stream_of_another_context(void)
{
    aclrtContext own, other;
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtCreateContext(&other, 0));
    set(w.x, SIZE, NULL);
    OK(aclrtSetCurrentContext(own));
    get(w.pinned, w.x, 512, NULL);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtDestroyContext(other));
    OK(aclrtSetCurrentContext(own));
}

/* ── Two cards ────────────────────────────────────────────────────────────────────────────── */

static aclrtStream far_stream(void)
{
    aclrtStream far;
    OK(aclrtSetDevice(1));
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtCreateStream(&far));
    return far;
}

static void far_end(aclrtStream far)
{
    OK(aclrtSetDevice(1));
    OK(aclrtDestroyStream(far));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
}

static void two_cards_at_once(void)
{
    aclrtStream far = far_stream();
    char *block = card_block(SIZE);
    OK(aclrtMemcpyAsync(w.x, 2048, block, 2048, D2D, far));
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    set(w.x + 1024, SIZE - 1024, w.a);
    wait_done(w.a);
    OK(aclrtSetDevice(1));
    wait_done(far);
    OK(aclrtFree(block));
    far_end(far);
}

static void freed_while_the_other_card_reads(void)
{
    static struct gate gate;
    aclrtStream far = far_stream();
    char *block = card_block(SIZE);
    hold(&gate, far);
    OK(aclrtMemcpyAsync(block, SIZE, w.x, SIZE, D2D, far));
    OK(aclrtSetDevice(0));
    OK(aclrtSynchronizeDevice());
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    OK(aclrtSetDevice(1));
    may_fail(aclrtSynchronizeStream(far));
    OK(aclrtFree(block));
    far_end(far);
}

/* ── Frees ────────────────────────────────────────────────────────────────────────────────── */

static void freed_behind_a_timeout(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    may_fail(aclrtSynchronizeStreamWithTimeout(w.a, 1));
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void freed_twice_by_two_calls(void)
{
    OK(aclrtFree(w.x));
    may_fail(aclrtFreeWithDevSync(w.x));
    w.x = NULL;
}

static void freed_inside_pinned(void)
{
    may_fail(aclrtFreeHost(w.pinned + 100));
}

static void pinned_freed_under_rows(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    OK(aclrtMemcpy2dAsync(w.x, 64, w.pinned, 64, 32, 16, H2D, w.a));
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void freed_under_a_kernel_in_its_middle(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    touch(w.x + 1000, 24, BLY_READ | BLY_WRITE, w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
}

/* ── Content ──────────────────────────────────────────────────────────────────────────────── */

static void unwritten_rows(void)
{
    char *fresh = card_block(4096);
    OK(aclrtMemset(fresh, 4096, 0, 32)); /* half of the first row */
    OK(aclrtMemcpy2dAsync(w.pinned, 64, fresh, 64, 48, 4, D2H, w.a));
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void reduced_beyond(void)
{
    may_fail(aclrtReduceAsync(w.x + SIZE - 64, w.y, 128, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM,
                              ACL_FLOAT, w.a, NULL));
    may_fail(aclrtSynchronizeStream(w.a));
}

/* Copies of one source share what was kept of it; the last one is of the source as it is then. */
static void changed_under_a_row(void)
{
    static struct gate gate;
    stall(&gate, w.a);
    for (int i = 0; i < 3; i++)
        put(w.x, w.pinned, 4096, w.a);
    memset(w.pinned + 8, 77, 16);
    put(w.y, w.pinned, 4096, w.a);
    put(w.y, w.pinned, 4096, w.a);
    let_go(&gate);
    wait_done(w.a);
}

static void changed_in_a_batch(void)
{
    static struct gate gate;
    aclrtMemcpyBatchAttr attr = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                 .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    void *cards[3], *hosts[3];
    size_t sizes[3] = {100, 200, 300}, first = 0;
    for (int i = 0; i < 3; i++) {
        cards[i] = w.x + 1000 * i;
        hosts[i] = w.pinned + 1000 * i;
    }
    stall(&gate, w.a);
    OK(aclrtMemcpyBatchAsyncV2(cards, sizes, hosts, sizes, 3, &attr, &first, 1, w.a));
    memset(w.pinned + 1190, 77, 100); /* the last 10 of the second, 90 between */
    let_go(&gate);
    wait_done(w.a);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* A host function that was given another block is no excuse. */
static void changed_beside_a_host_function(void)
{
    static struct gate gate;
    stall(&gate, w.a);
    OK(aclrtLaunchHostFunc(w.a, nothing, w.seen));
    put(w.x, w.pinned, 4096, w.a);
    memset(w.pinned + 96, 77, 4000);
    let_go(&gate);
    wait_done(w.a);
}

static void copies_from_x(void *arg)
{
    OK(aclrtMemcpy(arg, 640, w.x + 64, 640, D2H));
}

static void host_function_beside_a_stream(void)
{
    set(w.x, 512, w.b);
    OK(aclrtLaunchHostFunc(w.a, copies_from_x, w.pinned));
    OK(aclrtSynchronizeDevice());
}

/* ── What is never given back ─────────────────────────────────────────────────────────────── */

static void three_lost(void)
{
    card_block(1000);
    card_block(MIB);
    card_block(5);
}

static void lost_pinned_of_two_sites(void)
{
    void *lost;
    OK(aclrtMallocHost(&lost, 100));
    OK(aclrtMallocHost(&lost, 4000));
}

const struct check_case faults_kinds[] = {
    {"counted-too-few", counted_too_few, "race", "4096 B", NULL},
    {"batch-beside-set", batch_beside_set, "race", "50 B", NULL},
    {"words-beside-copy", words_beside_copy, "race", "8 B", NULL},
    {"columns-too-wide", columns_too_wide, "race", "4 B", NULL},
    {"default-stream-of-another-context", default_stream_of_another_context, "race", "512 B", NULL},
    {"two-cards-at-once", two_cards_at_once, "race", "1024 B", NULL},
    {"freed-while-the-other-card-reads", freed_while_the_other_card_reads, "free-in-use",
     "while 1 task on stream", NULL},
    {"freed-behind-a-timeout", freed_behind_a_timeout, "free-in-use", "while 2 tasks on stream",
     NULL},
    {"freed-twice-by-two-calls", freed_twice_by_two_calls, "double-free", "freed already", NULL},
    {"freed-inside-pinned", freed_inside_pinned, "invalid-free", "100 bytes into the pinned block",
     NULL},
    {"pinned-freed-under-rows", pinned_freed_under_rows, "free-in-use", "while 1 task on stream",
     NULL},
    {"freed-under-a-kernel-in-its-middle", freed_under_a_kernel_in_its_middle, "free-in-use",
     "while 1 task on stream", NULL},
    {"unwritten-rows", unwritten_rows, "uninitialised-read", "160 bytes", NULL},
    {"reduced-beyond", reduced_beyond, "out-of-bounds", "64 of them beyond the end", NULL},
    {"changed-under-a-row", changed_under_a_row, "pinned-changed", "16 bytes in [8, 24)", NULL},
    {"changed-in-a-batch", changed_in_a_batch, "pinned-changed", "10 bytes in [190, 200)", NULL},
    {"changed-beside-a-host-function", changed_beside_a_host_function, "pinned-changed",
     "4000 bytes in [96, 4096)", NULL},
    {"host-function-beside-a-stream", host_function_beside_a_stream, "race", "448 B", NULL},
    {"three-lost", three_lost, "leak", "1049581 B (1.0 MiB) in 3 blocks", NULL},
    {"lost-pinned-of-two-sites", lost_pinned_of_two_sites, "leak,leak", "100 B|4000 B", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
