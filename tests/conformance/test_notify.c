/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies, words of memory as signals, reductions, batches of copies, limits. */
#include "acl_test.h"

static aclrtStream first, second;
static uint64_t *word;

static void open_all(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtMalloc((void **)&word, 64 * KIB, HUGE_FIRST));
    OK(aclrtMemset(word, 64 * KIB, 0, 64 * KIB));
}

static uint64_t read_word(void)
{
    uint64_t got;
    OK(aclrtMemcpy(&got, sizeof(got), word, sizeof(got), ACL_MEMCPY_DEVICE_TO_HOST));
    return got;
}

static bool is_quiet(aclrtStream stream)
{
    aclrtStreamStatus status;
    OK(aclrtStreamQuery(stream, &status));
    return status == ACL_STREAM_STATUS_COMPLETE;
}

TEST(a_notify_orders_streams)
{
    aclrtNotify notify;
    uint32_t id;
    open_all();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtGetNotifyId(notify, &id));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    OK(aclrtMemsetAsync(word, 8, 1, 8, second));
    let_engine_look();
    CHECK(!is_quiet(second));
    CHECK_EQ(read_word(), 0);
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(read_word(), 0x0101010101010101);
    /* It was reset: the next wait waits; two records count once. */
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    let_engine_look();
    CHECK(!is_quiet(second));
    OK(aclrtRecordNotify(notify, NULL));
    OK(aclrtSynchronizeStream(second));
    /* Destroying does not wait, and stale handles are known. */
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtDestroyNotify(notify));
    CHECK_ACL(aclrtRecordNotify(notify, first), 107017);
    CHECK_ACL(aclrtDestroyNotify(notify), 107017);
    CHECK_ACL(aclrtDestroyNotify(NULL), 100000);
    CHECK_ACL(aclrtCreateNotify(&notify, 4), 107000);
}

TEST(a_batch_of_notifies_is_reset)
{
    aclrtNotify notifies[2];
    open_all();
    for (int i = 0; i < 2; i++) {
        OK(aclrtCreateNotify(&notifies[i], 0));
        OK(aclrtRecordNotify(notifies[i], first));
    }
    OK(aclrtSynchronizeStream(first));
    OK(aclrtNotifyBatchReset(notifies, 2));
    OK(aclrtWaitAndResetNotify(notifies[1], second, 1));
    CHECK_ACL(aclrtSynchronizeStream(second), 107023);
    CHECK_MESSAGE("for notify");
    CHECK_ACL(aclrtNotifyBatchReset(NULL, 2), 100000);
    CHECK_ACL(aclrtNotifyBatchReset(notifies, 0), 100000);
}

TEST(notifies_are_limited)
{
    open_all();
    static aclrtNotify notifies[8193];
    for (int i = 0; i < 8192; i++)
        OK(aclrtCreateNotify(&notifies[i], 0));
    CHECK_ACL(aclrtCreateNotify(&notifies[8192], 0), 207009);
    OK(aclrtDestroyNotify(notifies[5]));
    OK(aclrtCreateNotify(&notifies[5], 0));
    OK(aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtDestroyNotify(notifies[5]), 107017);
    OK(aclrtCreateNotify(&notifies[5], 0));
}

static void record(aclrtCntNotify notify, aclrtCntNotifyRecordMode mode, uint32_t value)
{
    aclrtCntNotifyRecordInfo info = {mode, value};
    OK(aclrtCntNotifyRecord(notify, first, &info));
    OK(aclrtSynchronizeStream(first));
}

static void wait_for(aclrtCntNotify notify, aclrtCntNotifyWaitMode mode, uint32_t value, bool clear)
{
    aclrtCntNotifyWaitInfo info = {.mode = mode, .value = value, .isClear = clear};
    OK(aclrtCntNotifyWaitWithTimeout(notify, second, &info));
}

TEST(a_counting_notify_counts)
{
    aclrtCntNotify notify;
    uint32_t id;
    open_all();
    OK(aclrtCntNotifyCreate(&notify, 0));
    OK(aclrtCntNotifyGetId(notify, &id));
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 3, false);
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1);
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1);
    let_engine_look();
    CHECK(!is_quiet(second));
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1);
    OK(aclrtSynchronizeStream(second));
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 3, true);
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 1, false);
    OK(aclrtSynchronizeStream(second));
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0xf0);
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE, 0x0f);
    record(notify, ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE, 0x3c);
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE, 0x14, false);
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 0x3b, false);
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0x3c, false);
    OK(aclrtSynchronizeStream(second));
    OK(aclrtCntNotifyReset(notify, first));
    wait_for(notify, ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0, false);
    OK(aclrtSynchronizeStream(second));
    aclrtCntNotifyRecordInfo bad = {3, 1};
    CHECK_ACL(aclrtCntNotifyRecord(notify, first, &bad), 107000);
    CHECK_ACL(aclrtCntNotifyCreate(&notify, 1), 107000);
    CHECK_ACL(aclrtDestroyNotify(notify), 107017); /* of the other kind */
    OK(aclrtCntNotifyDestroy(notify));
}

TEST(words_are_written_and_waited_for)
{
    open_all();
    OK(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_GEQ, second));
    OK(aclrtValueWrite(word + 1, 77, 0, second));
    OK(aclrtValueWrite(word, 4, 0, first));
    OK(aclrtSynchronizeStream(first));
    let_engine_look();
    CHECK(!is_quiet(second));
    OK(aclrtValueWrite(word, 6, 0, first));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(read_word(), 6);
    OK(aclrtValueWait(word + 1, 77, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(aclrtValueWait(word + 1, 1, ACL_STREAM_WAIT_VALUE_AND, first));
    OK(aclrtValueWait(word + 1, 2, ACL_STREAM_WAIT_VALUE_NOR, first));
    OK(aclrtSynchronizeStream(first));
    uint64_t nine = 9;
    CHECK_ACL(aclrtValueWrite((char *)word + 4, 1, 0, first), 107000);
    CHECK_ACL(aclrtValueWrite(word, 1, 1, first), 107000);
    CHECK_ACL(aclrtValueWrite(&nine, 1, 0, first), 107000);
    CHECK_ACL(aclrtValueWait(word, 1, 4, first), 107000);
    CHECK_ACL(aclrtValueWait(NULL, 1, 0, first), 100000);
    /* One that nobody will ever write ends with its stream. */
    OK(aclrtValueWait(word + 3, 1, ACL_STREAM_WAIT_VALUE_EQ, second));
    OK(aclrtStreamAbort(second));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtValueWait(word + 3, 1, ACL_STREAM_WAIT_VALUE_EQ, second));
    OK(aclrtResetDevice(0));
}

static void reduce(const void *a, const void *b, size_t size, aclrtReduceKind kind,
                   aclDataType type, void *result)
{
    char *dst = (char *)word, *src = dst + 4096;
    OK(aclrtMemcpy(dst, size, a, size, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(src, size, b, size, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtReduceAsync(dst, src, size, kind, type, first, NULL));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtMemcpy(result, size, dst, size, ACL_MEMCPY_DEVICE_TO_HOST));
}

TEST(reductions)
{
    open_all();
    const int32_t a[] = {1, -5, INT32_MAX}, b[] = {10, -7, 1};
    int32_t c[3];
    reduce(a, b, sizeof(a), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, c);
    CHECK(c[0] == 11 && c[1] == -12 && c[2] == INT32_MIN);
    reduce(a, b, sizeof(a), ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_INT32, c);
    CHECK(c[0] == 10 && c[1] == -5 && c[2] == INT32_MAX);
    reduce(a, b, sizeof(a), ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, ACL_INT32, c);
    CHECK(c[0] == 1 && c[1] == -7 && c[2] == 1);
    const float x[] = {1.5f, -2.0f}, y[] = {0.25f, 3.0f};
    float z[2];
    reduce(x, y, sizeof(x), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, z);
    CHECK(z[0] == 1.75f && z[1] == 1.0f);
    const int8_t p[] = {100, -1}, q[] = {100, -2};
    int8_t r[2];
    reduce(p, q, sizeof(p), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8, r);
    CHECK(r[0] == (int8_t)200 && r[1] == -3);
    /* 1 + 2^-11 is halfway between two halves: to even, which is 1; subnormals add up. */
    const uint16_t h[] = {0x3c00, 0x0001, 0x7bff, 0xfc00}, g[] = {0x1000, 0x0003, 0x7bff, 0x7c00};
    uint16_t k[4];
    reduce(h, g, sizeof(h), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT16, k);
    CHECK_EQ(k[0], 0x3c00);
    CHECK_EQ(k[1], 0x0004);
    CHECK_EQ(k[2], 0x7c00);
    CHECK((k[3] & 0x7c00) == 0x7c00 && (k[3] & 0x3ff) != 0);
    const uint16_t m[] = {0x3f80, 0xbf80}, n[] = {0x3f80, 0x4000};
    reduce(m, n, sizeof(m), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_BF16, k);
    CHECK(k[0] == 0x4000 && k[1] == 0x3f80);
    CHECK_ACL(aclrtReduceAsync(word, word, 6, 10, ACL_INT32, first, NULL), 107000);
    CHECK_ACL(aclrtReduceAsync(word, word, 8, 9, ACL_INT32, first, NULL), 107000);
    CHECK_ACL(aclrtReduceAsync(word, word, 8, 10, ACL_DOUBLE, first, NULL), 107000);
    CHECK_ACL(aclrtReduceAsync(word, word, 0, 10, ACL_INT32, first, NULL), 107000);
    CHECK_ACL(aclrtReduceAsync(word, &k, 8, 10, ACL_INT32, first, NULL), 107000);
    CHECK_ACL(aclrtReduceAsync(word, word, 8, 10, ACL_INT32, first, word), 100000);
}

TEST(batches_of_copies)
{
    open_all();
    char from[3][100], to[3][100];
    memset(from, 7, sizeof(from));
    void *cards[3], *sources[3], *backs[3];
    size_t sizes[] = {100, 0, 60}, max[] = {100, 100, 100}, zero[3] = {0}, start = 0, fail = 9;
    aclrtMemcpyBatchAttr down = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE},
                                 .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    aclrtMemcpyBatchAttr up = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_HOST},
                               .srcLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    for (int i = 0; i < 3; i++) {
        cards[i] = word + 100 * i;
        sources[i] = from[i];
        backs[i] = to[i];
    }
    memset(to, 0, sizeof(to));
    OK(aclrtMemcpyBatch(cards, max, sources, sizes, 3, &down, &start, 1, &fail));
    CHECK(fail == SIZE_MAX);
    OK(aclrtMemcpyBatchAsyncV2(backs, max, cards, sizes, 3, &up, &start, 1, first));
    OK(aclrtSynchronizeStream(first));
    CHECK(to[0][99] == 7 && to[1][0] == 0 && to[2][59] == 7 && to[2][60] == 0);
    OK(aclrtMemcpyBatch(NULL == cards[0] ? NULL : cards, max, sources, zero, 3, &down, &start, 1,
                        &fail));
    CHECK(fail == SIZE_MAX);
    /* The direction must be that of the addresses, and one. */
    CHECK_ACL(aclrtMemcpyBatch(cards, max, sources, sizes, 3, &up, &start, 1, &fail), 107000);
    CHECK_EQ(fail, 0);
    void *mixed[] = {cards[0], cards[1], backs[0]};
    CHECK_ACL(aclrtMemcpyBatchAsync(mixed, max, sources, sizes, 3, &down, &start, 1, &fail, first),
              107000);
    CHECK_EQ(fail, 2);
    sizes[1] = 101;
    CHECK_ACL(aclrtMemcpyBatchV2(cards, max, sources, sizes, 3, &down, &start, 1), 100000);
    sizes[1] = 1;
    CHECK_ACL(aclrtMemcpyBatchV2(cards, max, sources, sizes, 0, &down, &start, 1), 100000);
    CHECK_ACL(aclrtMemcpyBatchV2(cards, max, sources, sizes, 3, &down, &start, 4), 100000);
    start = 1;
    CHECK_ACL(aclrtMemcpyBatchV2(cards, max, sources, sizes, 3, &down, &start, 1), 100000);
    start = 0;
    down.rsv[3] = 1;
    CHECK_ACL(aclrtMemcpyBatchV2(cards, max, sources, sizes, 3, &down, &start, 1), 100000);
}

TEST(core_limits)
{
    uint32_t all, n;
    open_all();
    OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &all));
    CHECK(all > 4);
    OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 4));
    OK(aclrtSetStreamResLimit(first, ACL_RT_DEV_RES_CUBE_CORE, 2));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &n));
    CHECK_EQ(n, 4);
    OK(aclrtUseStreamResInCurrentThread(first));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &n));
    CHECK_EQ(n, 2);
    OK(aclrtUnuseStreamResInCurrentThread(first));
    OK(aclrtGetStreamResLimit(second, ACL_RT_DEV_RES_CUBE_CORE, &n));
    CHECK_EQ(n, 4);
    OK(aclrtResetStreamResLimit(first));
    OK(aclrtResetDeviceResLimit(0));
    OK(aclrtGetStreamResLimit(first, ACL_RT_DEV_RES_CUBE_CORE, &n));
    CHECK_EQ(n, all);
    CHECK_ACL(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, all + 1), 107000);
    CHECK_ACL(aclrtSetDeviceResLimit(0, 2, 1), 100000);
    CHECK_ACL(aclrtSetDeviceResLimit(9, 0, 1), 107000);
}

TEST(sizes_and_times)
{
    size_t size;
    uint64_t us;
    uint32_t ms;
    OK(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 64 * KIB));
    OK(aclrtDeviceGetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, &size));
    CHECK_EQ(size, 64 * KIB);
    CHECK_ACL(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 1000), 107000);
    CHECK_ACL(aclrtDeviceSetLimit(ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE, 64 * KIB), 207000);
    OK(aclrtSetOpExecuteTimeOutV2(1500, &us));
    CHECK_EQ(us, 2000);
    OK(aclrtGetOpExecuteTimeout(&ms));
    CHECK_EQ(ms, 2);
    OK(aclrtSetOpExecuteTimeOut(0));
    OK(aclrtGetOpTimeOutInterval(&us));
    CHECK_EQ(us, 1000);
}

TEST(health_and_modes)
{
    aclrtFloatOverflowMode mode;
    aclrtMemUceInfo faults[2] = {{0}};
    aclrtErrorInfo info;
    size_t n = 9;
    uint32_t task;
    open_all();
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    OK(aclrtGetDeviceSatMode(&mode));
    CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
    CHECK_ACL(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), 107000);
    OK(aclrtGetMemUceInfo(0, faults, 2, &n));
    CHECK_EQ(n, 0);
    OK(aclrtMemUceRepair(0, faults, 0));
    CHECK_ACL(aclrtMemUceRepair(0, faults, 129), 100000);
    faults[1].reserved[13] = 1;
    CHECK_ACL(aclrtMemUceRepair(0, faults, 2), 100000);
    OK(aclrtGetErrorVerbose(0, &info));
    CHECK_EQ(info.errorType, ACL_RT_NO_ERROR);
    OK(aclrtRepairError(0, &info));
    CHECK_ACL(aclrtGetErrorVerbose(5, &info), 107001);
    OK(aclrtCmoAsync(word, 64, ACL_RT_CMO_TYPE_PREFETCH, first));
    CHECK_ACL(aclrtCmoAsync(word, 64, ACL_RT_CMO_TYPE_FLUSH, first), 207000);
    CHECK_ACL(aclrtCmoAsync(word, 0, ACL_RT_CMO_TYPE_PREFETCH, first), 100000);
    OK(aclrtDeviceL2CacheFlush(NULL));
    OK(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
    CHECK_ACL(aclrtSetTsDevice(2), 100000);
    OK(aclrtMemset(word, 64, 1, 64));
    OK(aclrtGetOverflowStatus(word, 64, first));
    OK(aclrtResetOverflowStatus(first));
    OK(aclrtGetThreadLastTaskId(&task));
    CHECK(task != 0);
    OK(aclrtSynchronizeStream(first));
    CHECK_EQ(read_word(), 0);
}

static int states;
static void note_state(int32_t device, aclrtDeviceState state, void *args)
{
    CHECK(device == 0 && args == &states);
    states = states * 10 + (int)state + 1;
}

TEST(devices_are_told)
{
    OK(aclrtRegDeviceStateCallback("mine", note_state, &states));
    CHECK_ACL(aclrtRegDeviceStateCallback("mine", note_state, &states), 107000);
    CHECK_ACL(aclrtRegDeviceStateCallback(NULL, note_state, &states), 100000);
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    CHECK_EQ(states, 1234);
    OK(aclrtRegDeviceStateCallback("mine", NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_notify_orders_streams),
        cmocka_unit_test(a_batch_of_notifies_is_reset),
        cmocka_unit_test(notifies_are_limited),
        cmocka_unit_test(a_counting_notify_counts),
        cmocka_unit_test(words_are_written_and_waited_for),
        cmocka_unit_test(reductions),
        cmocka_unit_test(batches_of_copies),
        cmocka_unit_test(core_limits),
        cmocka_unit_test(sizes_and_times),
        cmocka_unit_test(health_and_modes),
        cmocka_unit_test(devices_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
