/* SPDX-License-Identifier: Apache-2.0
 *
 * correct_kinds.c - right programs with kinds of work, signals and memory that the other lists do
 * not have.
 */
#include "check_case.h"

/* ── Counting notifies ────────────────────────────────────────────────────────────────────── */

static aclrtCntNotify count_notify(void)
{
    aclrtCntNotify notify;
    OK(aclrtCntNotifyCreate(&notify, 0));
    return notify;
}

static void count_up(aclrtCntNotify notify, aclrtStream stream)
{
    aclrtCntNotifyRecordInfo info = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
    OK(aclrtCntNotifyRecord(notify, stream, &info));
}

static void wait_count(aclrtCntNotify notify, uint32_t value, aclrtStream stream)
{
    aclrtCntNotifyWaitInfo info = {
        .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, .value = value, .timeout = 60, .isClear = true};
    OK(aclrtCntNotifyWaitWithTimeout(notify, stream, &info));
}

static void counted(void)
{
    aclrtCntNotify notify = count_notify();
    set(w.x, SIZE, w.a);
    count_up(notify, w.a);
    wait_count(notify, 1, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    wait_done(w.b);
    OK(aclrtCntNotifyDestroy(notify));
}

static void counted_two(void)
{
    static struct gate gate;
    aclrtCntNotify notify = count_notify();
    wait_count(notify, 2, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    get(w.pinned, w.y, SIZE, w.b);
    set(w.x, SIZE, w.a);
    count_up(notify, w.a);
    hold(&gate, w.c);
    set(w.y, SIZE, w.c);
    count_up(notify, w.c);
    let_go(&gate);
    wait_done(w.b);
    OK(aclrtCntNotifyDestroy(notify));
}

/* ── Kinds of copies ──────────────────────────────────────────────────────────────────────── */

enum { PART = 4096, N_PARTS = 3 };

static void batch(char *card, char *host, bool down, aclrtStream stream)
{
    aclrtMemLocation on_card = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                     on_host = {0, ACL_MEM_LOCATION_TYPE_HOST};
    aclrtMemcpyBatchAttr attr = {.dstLoc = down ? on_card : on_host,
                                 .srcLoc = down ? on_host : on_card};
    void *cards[N_PARTS], *hosts[N_PARTS];
    size_t sizes[N_PARTS], first = 0;
    for (size_t i = 0; i < N_PARTS; i++) {
        cards[i] = card + 2 * i * PART;
        hosts[i] = host + i * PART;
        sizes[i] = PART;
    }
    OK(aclrtMemcpyBatchAsyncV2(down ? cards : hosts, sizes, down ? hosts : cards, sizes, N_PARTS,
                               &attr, &first, 1, stream));
}

static void batches(void)
{
    char *fresh = card_block(SIZE);
    batch(fresh, w.pinned, true, w.a);
    for (size_t i = 0; i < N_PARTS; i++) /* between those of the batch */
        set(fresh + (2 * i + 1) * PART, PART, w.b);
    record(w.event, w.a);
    wait_for(w.event, w.c);
    batch(fresh, w.pinned + SIZE / 2, false, w.c);
    OK(aclrtSynchronizeDevice());
    OK(aclrtFree(fresh));
}

static void descriptors(void)
{
    char *desc = card_block(256), *fresh = card_block(SIZE);
    OK(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, w.x, fresh, SIZE, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, w.a));
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, fresh, SIZE, w.b);
    wait_done(w.b);
    OK(aclrtFree(fresh));
    OK(aclrtFree(desc));
}

static void columns_to_the_host(void)
{
    OK(aclrtMemcpy2dAsync(w.pinned, 64, w.x, 64, 32, 1024, D2H, w.a));
    OK(aclrtMemcpy2dAsync(w.pinned + 32, 64, w.x + 32, 64, 32, 1024, D2H, w.b));
    OK(aclrtSynchronizeDevice());
}

static void words_of_fresh(void)
{
    char *fresh = card_block(4096);
    OK(aclrtMemsetD32Async(fresh, 4096, 7, 1024, w.a));
    get(w.pinned, fresh, 4096, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static aclrtRandomParaInfo number(uint64_t value, uint8_t size)
{
    aclrtRandomParaInfo param = {.isAddr = 0, .size = size};
    memcpy(param.valueOrAddr, &value, sizeof(value));
    return param;
}

static void random_numbers(void)
{
    char *fresh = card_block(4096), *counter = card_block(64);
    OK(aclrtMemset(counter, 64, 0, 64));
    aclrtRandomNumTaskInfo info = {.dataType = ACL_INT32,
                                   .randomResultAddr = fresh,
                                   .randomCounterAddr = counter,
                                   .randomSeed = number(7, 8),
                                   .randomNum = number(1024, 8)};
    info.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = number(1, 4);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = number(100, 4);
    OK(aclrtRandomNumAsync(&info, w.a, NULL));
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, fresh, 4096, w.b);
    wait_done(w.b);
    OK(aclrtFree(counter));
    OK(aclrtFree(fresh));
}

/* ── Frees that wait ──────────────────────────────────────────────────────────────────────── */

static void free_that_waits(void)
{
    char *block = card_block(SIZE);
    void *host;
    OK(aclrtMallocHost(&host, SIZE));
    memset(host, 1, SIZE);
    char *long_work = busy(w.a);
    put(block, host, SIZE, w.a);
    set(block, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, block, SIZE, w.b);
    OK(aclrtFreeWithDevSync(block));
    put(w.x, host, SIZE, w.c);
    OK(aclrtFreeHostWithDevSync(host));
    OK(aclrtFree(long_work));
}

static void timeout_then_done(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    if (aclrtSynchronizeStreamWithTimeout(w.a, 1) == ACL_SUCCESS)
        exit(98);
    let_go(&gate);
    OK(aclrtSynchronizeStreamWithTimeout(w.a, -1));
    OK(aclrtFree(w.x));
    w.x = NULL;
}

static void destroyed_by_force(void)
{
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    char *block = card_block(SIZE);
    for (int i = 0; i < 100; i++)
        set(block, SIZE, stream);
    OK(aclrtDestroyStreamForce(stream));
    OK(aclrtFree(block));
}

/* ── Contexts and cards ───────────────────────────────────────────────────────────────────── */

static void two_contexts(void)
{
    aclrtContext own, other;
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtCreateContext(&other, 0));
    set(w.x, SIZE, NULL);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtSetCurrentContext(own));
    get(w.pinned, w.x, SIZE, w.b);
    set(w.y, SIZE, NULL);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtSynchronizeStream(w.b));
    OK(aclrtSetCurrentContext(other));
    OK(aclrtSetCurrentContext(own));
    OK(aclrtDestroyContext(other));
}

/* Both cards work on a block of the first one; events go from card to card. */
static void cards_take_turns(void)
{
    aclrtStream far;
    aclrtEvent here, there;
    OK(aclrtSetDevice(1));
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtCreateStream(&far));
    OK(aclrtCreateEventExWithFlag(&there, ACL_EVENT_SYNC));
    char *block = card_block(SIZE);
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtCreateEventExWithFlag(&here, ACL_EVENT_SYNC));
    for (int i = 0; i < 5; i++) {
        set(w.x, SIZE, w.a);
        record(here, w.a);
        OK(aclrtSetDevice(1));
        wait_for(here, far);
        OK(aclrtMemcpyAsync(block, SIZE, w.x, SIZE, D2D, far));
        record(there, far);
        OK(aclrtSetDevice(0));
        wait_for(there, w.a);
    }
    wait_done(w.a);
    OK(aclrtSetDevice(1));
    OK(aclrtFree(block));
    OK(aclrtDestroyEvent(there));
    OK(aclrtDestroyStream(far));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
    OK(aclrtDestroyEvent(here));
}

static void registered_by_its_other_address(void)
{
    void *host, *device;
    if (posix_memalign(&host, 4096, 8192) != 0)
        exit(98);
    memset(host, 1, 8192);
    OK(aclrtHostRegister(host, 8192, ACL_HOST_REGISTER_MAPPED, &device));
    put(w.x, host, 8192, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    touch(device, 8192, BLY_WRITE, w.b);
    wait_done(w.b);
    OK(aclrtHostUnregister(host));
    free(host);
}

/* ── Sources that the host fills late, in order ───────────────────────────────────────────── */

static void fill(void *at)
{
    memset(at, 9, SIZE);
}

/* The host function of the same stream fills what the copy behind it reads. */
static void filled_by_the_stream(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    OK(aclrtLaunchHostFunc(w.a, fill, w.pinned));
    put(w.x, w.pinned, SIZE, w.a);
    let_go(&gate);
    wait_done(w.a);
}

struct order {
    char *at;
    size_t size;
};

static void fill_as_told(void *arg)
{
    const struct order *order = *(struct order *const *)arg;
    memset(order->at, 9, order->size);
}

static void filled_by_another_stream(void)
{
    static struct gate gate;
    static struct order order, *told = &order;
    order = (struct order){w.pinned, SIZE};
    hold(&gate, w.b);
    OK(aclrtLaunchHostFunc(w.b, fill_as_told, &told));
    record(w.event, w.b);
    wait_for(w.event, w.a);
    put(w.x, w.pinned, SIZE, w.a);
    let_go(&gate);
    wait_done(w.a);
}

/* The copy waits for a word that the host writes when it has filled the source. */
static void filled_before_a_word(void)
{
    uint64_t one = 1;
    char *word = card_block(64);
    OK(aclrtMemset(word, 64, 0, 64));
    OK(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, w.a));
    put(w.x, w.pinned, SIZE, w.a);
    fill(w.pinned);
    OK(aclrtMemcpy(word, 8, &one, 8, H2D));
    wait_done(w.a);
    OK(aclrtFree(word));
}

static void filled_before_a_notify(void)
{
    aclrtNotify notify;
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtWaitAndResetNotify(notify, w.a, 0));
    put(w.x, w.pinned, SIZE, w.a);
    fill(w.pinned);
    OK(aclrtRecordNotify(notify, w.b));
    wait_done(w.a);
    OK(aclrtDestroyNotify(notify));
}

static void filled_before_a_legacy_event(void)
{
    aclrtEvent event = legacy_event();
    wait_for(event, w.a);
    put(w.x, w.pinned, SIZE, w.a);
    fill(w.pinned);
    record(event, w.b);
    wait_done(w.a);
    OK(aclrtDestroyEvent(event));
}

/* Two halves of a pinned block in turns, each filled when its last copy is done. */
static void double_buffer(void)
{
    aclrtEvent done[2];
    for (int i = 0; i < 2; i++)
        OK(aclrtCreateEventExWithFlag(&done[i], ACL_EVENT_SYNC));
    for (int i = 0; i < 20; i++) {
        char *half = w.pinned + (size_t)(i % 2) * SIZE / 2;
        if (i >= 2)
            OK(aclrtSynchronizeEvent(done[i % 2]));
        memset(half, i, SIZE / 2);
        put(w.x + (size_t)(i % 2) * SIZE / 2, half, SIZE / 2, w.a);
        record(done[i % 2], w.a);
    }
    wait_done(w.a);
    for (int i = 0; i < 2; i++)
        OK(aclrtDestroyEvent(done[i]));
}

/* ── Memory ───────────────────────────────────────────────────────────────────────────────── */

static aclrtDrvMemHandle physical(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    return handle;
}

/* One address, one memory after the other. */
static void mapped_in_turns(void)
{
    void *at;
    aclrtDrvMemHandle handles[2] = {physical(), physical()};
    OK(aclrtReserveMemAddress(&at, 2 * MIB, 0, NULL, 0));
    for (int i = 0; i < 6; i++) {
        OK(aclrtMapMem(at, 2 * MIB, 0, handles[i % 2], 0));
        set(at, 2 * MIB, i % 3 ? w.a : w.b);
        get(w.pinned, at, 4096, i % 3 ? w.a : w.b);
        OK(aclrtSynchronizeDevice());
        OK(aclrtUnmapMem(at));
    }
    OK(aclrtReleaseMemAddress(at));
    for (int i = 0; i < 2; i++)
        OK(aclrtFreePhysical(handles[i]));
}

struct crew {
    pthread_mutex_t lock;
    int turn;
};

static void *works(void *arg)
{
    struct crew *crew = arg;
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&crew->lock);
        char *block = card_block(4096);
        set(block, 4096, w.a);
        record(w.event, w.a);
        wait_for(w.event, w.b);
        get(w.pinned + 4096 * (size_t)(crew->turn++ % 8), block, 4096, w.b);
        pthread_mutex_unlock(&crew->lock);
        OK(aclrtSynchronizeStream(w.b));
        OK(aclrtFree(block));
    }
    return NULL;
}

static void crew_with_a_lock(void)
{
    struct crew crew = {PTHREAD_MUTEX_INITIALIZER, 0};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, works, &crew) != 0)
            exit(98);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void reduced_in_order(void)
{
    for (int i = 0; i < 4; i++)
        OK(aclrtReduceAsync(w.x, w.y, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, w.a,
                            NULL));
    record(w.event, w.a);
    wait_for(w.event, w.b);
    OK(aclrtReduceAsync(w.y, w.x, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, w.b, NULL));
    wait_done(w.b);
}

/* Memory of the host behind a reserved address, which a kernel works on. */
static void host_memory_behind_an_address(void)
{
    void *at;
    aclrtDrvMemHandle handle;
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_DDR_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST}};
    aclrtMemAccessDesc access = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&at, 2 * MIB, 0, NULL, 0));
    OK(aclrtMapMem(at, 2 * MIB, 0, handle, 0));
    OK(aclrtMemSetAccess(at, 2 * MIB, &access, 1));
    touch(at, 4096, BLY_WRITE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    touch(at, 4096, BLY_READ | BLY_WRITE, w.b);
    wait_done(w.b);
    OK(aclrtUnmapMem(at));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtFreePhysical(handle));
}

static void consume(void *arg)
{
    const struct order *order = arg;
    volatile char last = order->at[order->size - 1];
    (void)last;
}

static void produce(void *arg)
{
    const struct order *order = arg;
    memset(order->at, 5, order->size);
}

/* Host functions fill and read two halves in turns; streams go from one to the other by events. */
static void pipeline_of_host_functions(void)
{
    static struct order in[2], out[2];
    aclrtEvent there, back;
    OK(aclrtCreateEventExWithFlag(&there, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&back, ACL_EVENT_SYNC));
    for (int i = 0; i < 2; i++) {
        in[i] = (struct order){w.pinned + i * 4096, 4096};
        out[i] = (struct order){w.pinned + SIZE / 2 + i * 4096, 4096};
    }
    for (int i = 0; i < 12; i++) {
        OK(aclrtLaunchHostFunc(w.a, produce, &in[i % 2]));
        put(w.x, in[i % 2].at, 4096, w.a);
        record(there, w.a);
        wait_for(there, w.b);
        get(out[i % 2].at, w.x, 4096, w.b);
        OK(aclrtLaunchHostFunc(w.b, consume, &out[i % 2]));
        record(back, w.b);
        wait_for(back, w.a);
    }
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(there));
    OK(aclrtDestroyEvent(back));
}

/* The host reads what copies read, and writes beside it. */
static void host_beside_a_source(void)
{
    static struct gate gate;
    volatile char byte;
    stall(&gate, w.a);
    put(w.x, w.pinned + 4096, 4096, w.a);
    byte = w.pinned[4096 + 100];
    w.pinned[4095] = byte;
    w.pinned[8192] = byte;
    OK(aclrtMemcpy(w.y, 4096, w.pinned + 4096, 4096, H2D));
    let_go(&gate);
    wait_done(w.a);
}

/* The same bytes again are no change. */
static void filled_with_the_same(void)
{
    static struct gate gate;
    stall(&gate, w.a);
    put(w.x, w.pinned, 4096, w.a);
    memset(w.pinned, 1, 4096);
    let_go(&gate);
    wait_done(w.a);
}

static void with_condition(void)
{
    OK(aclrtMemcpyAsyncWithCondition(w.x, SIZE, w.pinned, SIZE, H2D, w.a));
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    wait_done(w.b);
}

static void device_aborted(void)
{
    for (int i = 0; i < 50; i++) {
        set(w.x, SIZE, w.a);
        set(w.y, SIZE, w.b);
    }
    OK(aclrtDeviceTaskAbort(0, 10000));
    OK(aclrtFree(w.x));
    w.x = NULL;
}

const struct check_case correct_kinds[] = {
    {"counted", counted, "", NULL, NULL},
    {"counted-two", counted_two, "", NULL, NULL},
    {"batches", batches, "", NULL, NULL},
    {"descriptors", descriptors, "", NULL, NULL},
    {"columns-to-the-host", columns_to_the_host, "", NULL, NULL},
    {"words-of-fresh", words_of_fresh, "", NULL, NULL},
    {"random-numbers", random_numbers, "", NULL, NULL},
    {"free-that-waits", free_that_waits, "", NULL, NULL},
    {"timeout-then-done", timeout_then_done, "", NULL, NULL},
    {"destroyed-by-force", destroyed_by_force, "", NULL, NULL},
    {"two-contexts", two_contexts, "", NULL, NULL},
    {"cards-take-turns", cards_take_turns, "", NULL, NULL},
    {"registered-by-its-other-address", registered_by_its_other_address, "", NULL, NULL},
    {"filled-by-the-stream", filled_by_the_stream, "", NULL, NULL},
    {"filled-by-another-stream", filled_by_another_stream, "", NULL, NULL},
    {"filled-before-a-word", filled_before_a_word, "", NULL, NULL},
    {"filled-before-a-notify", filled_before_a_notify, "", NULL, NULL},
    {"filled-before-a-legacy-event", filled_before_a_legacy_event, "", NULL, NULL},
    {"double-buffer", double_buffer, "", NULL, NULL},
    {"mapped-in-turns", mapped_in_turns, "", NULL, NULL},
    {"crew-with-a-lock", crew_with_a_lock, "", NULL, NULL},
    {"reduced-in-order", reduced_in_order, "", NULL, NULL},
    {"host-memory-behind-an-address", host_memory_behind_an_address, "", NULL, NULL},
    {"pipeline-of-host-functions", pipeline_of_host_functions, "", NULL, NULL},
    {"host-beside-a-source", host_beside_a_source, "", NULL, NULL},
    {"filled-with-the-same", filled_with_the_same, "", NULL, NULL},
    {"with-condition", with_condition, "", NULL, NULL},
    {"device-aborted", device_aborted, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
