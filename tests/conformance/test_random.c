/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers in stream order: which, from what, and what is refused. */
#include "acl_test.h"

#define N 1024

static aclrtStream stream;
static char *result, *counter, *spare;

static void start(void)
{
    const uint64_t zeros[2] = {0, 0};
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&result, N * 8, HUGE_FIRST));
    OK(aclrtMalloc((void **)&counter, 16, HUGE_FIRST));
    OK(aclrtMalloc((void **)&spare, 4096, HUGE_FIRST));
    OK(aclrtMemcpy(counter, 16, zeros, 16, ACL_MEMCPY_HOST_TO_DEVICE));
}

static aclrtRandomParaInfo value(uint64_t word, uint8_t size)
{
    aclrtRandomParaInfo param = {.isAddr = 0, .size = size};
    memcpy(param.valueOrAddr, &word, size);
    return param;
}

static aclrtRandomParaInfo address(const void *place)
{
    aclrtRandomParaInfo param = {.isAddr = 1, .size = 8};
    memcpy(param.valueOrAddr, &place, 8);
    return param;
}

static aclrtRandomNumTaskInfo uniform_int32(uint32_t low, uint32_t high)
{
    aclrtRandomNumTaskInfo info = {.dataType = ACL_INT32,
                                   .randomResultAddr = result,
                                   .randomCounterAddr = counter,
                                   .randomSeed = value(7, 8),
                                   .randomNum = value(N, 8)};
    info.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = value(low, 4);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = value(high, 4);
    return info;
}

static void draw(const aclrtRandomNumTaskInfo *info, int32_t *numbers)
{
    OK(aclrtMemset(result, N * 8, 0, N * 8));
    OK(aclrtRandomNumAsync(info, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(numbers, N * 4, result, N * 4, ACL_MEMCPY_DEVICE_TO_HOST));
}

TEST(seed_and_counter_decide)
{
    static int32_t a[N], b[N], c[N], d[N];
    const uint64_t one[2] = {1, 0};
    start();
    aclrtRandomNumTaskInfo info = uniform_int32(1, 100);
    draw(&info, a);
    draw(&info, b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    for (int i = 0; i < N; i++)
        CHECK(a[i] >= 1 && a[i] < 100);
    info.randomSeed = value(8, 8);
    draw(&info, c);
    CHECK(memcmp(a, c, sizeof(a)) != 0);
    info.randomSeed = value(7, 8);
    OK(aclrtMemcpy(counter, 16, one, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    draw(&info, d);
    /* A block has four words, an integer takes two of them: two numbers on. */
    CHECK(memcmp(d, a + 2, (N - 2) * sizeof(a[0])) == 0);
}

TEST(parameters_may_lie_on_the_card)
{
    static int32_t a[N], b[N];
    const uint64_t words[4] = {1, 100, 7, 10};
    start();
    aclrtRandomNumTaskInfo info = uniform_int32(1, 100);
    draw(&info, a);
    OK(aclrtMemcpy(spare, 32, words, 32, ACL_MEMCPY_HOST_TO_DEVICE));
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = address(spare);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = address(spare + 8);
    info.randomSeed = address(spare + 16);
    info.randomNum = address(spare + 24);
    draw(&info, b);
    CHECK(memcmp(a, b, 40) == 0);
    CHECK_EQ(b[10], 0); /* no more than were asked for */

    info = uniform_int32(1, 100);
    info.randomParaAddr = spare + 512; /* the parameters are put there */
    draw(&info, b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    uint64_t seen[2];
    OK(aclrtMemcpy(seen, 16, spare + 512, 16, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(seen[0] == 1 && seen[1] == 100);
}

TEST(every_kind_and_type)
{
    static const struct {
        aclDataType type;
        uint64_t one, two;
        uint8_t size;
        bool real;
    } types[] = {
        {ACL_INT32, 1, 2, 4, false},
        {ACL_INT64, 1, 2, 8, false},
        {ACL_UINT32, 1, 2, 4, false},
        {ACL_UINT64, 1, 2, 8, false},
        {ACL_BF16, 0x3f80, 0x4000, 2, true},
        {ACL_FLOAT16, 0x3c00, 0x4000, 2, true},
        {ACL_FLOAT, 0x3f800000, 0x40000000, 4, true},
    };
    static unsigned char bytes[N * 8];
    start();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int kind = 0; kind < 4; kind++) {
            aclrtRandomNumTaskInfo info = uniform_int32(0, 0);
            info.dataType = types[i].type;
            info.randomNumFuncParaInfo.funcType = (aclrtRandomNumFuncType)kind;
            /* The first parameter is at the same place in all of them. */
            info.randomNumFuncParaInfo.paramInfo.normalDisInfo.mean =
                value(kind == 0 ? 0 : types[i].one, types[i].size);
            info.randomNumFuncParaInfo.paramInfo.normalDisInfo.stddev =
                value(types[i].two, types[i].size);
            OK(aclrtMemset(result, N * 8, 0, N * 8));
            if (kind != ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS && !types[i].real) {
                CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
                continue;
            }
            OK(aclrtRandomNumAsync(&info, stream, NULL));
            OK(aclrtSynchronizeStream(stream));
            OK(aclrtMemcpy(bytes, sizeof(bytes), result, sizeof(bytes), ACL_MEMCPY_DEVICE_TO_HOST));
            size_t used = kind == 0 ? N / 8 : (size_t)N * types[i].size, nonzero = 0;
            for (size_t b = 0; b < sizeof(bytes); b++) {
                nonzero += b < used && bytes[b] != 0;
                CHECK(b < used || bytes[b] == 0);
            }
            CHECK(nonzero > used / 16);
            if (kind == 0) /* nothing is dropped at ratio 0 */
                CHECK(bytes[0] == 0xff && bytes[N / 8 - 1] == 0xff);
        }
    }
}

TEST(what_is_refused)
{
    char host[16];
    start();
    aclrtRandomNumTaskInfo good = uniform_int32(1, 100), info = good;
    CHECK_ACL(aclrtRandomNumAsync(NULL, stream, NULL), 100000);
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, host), 107000);
    info.dataType = ACL_INT8;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 100000);
    info = good;
    info.randomNumFuncParaInfo.funcType = (aclrtRandomNumFuncType)4;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info = good;
    info.randomSeed.isAddr = 2;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    CHECK_MESSAGE("isAddr 2 of randomSeed");
    info = good;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max.size = 5;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info = good;
    info.randomResultAddr = host;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info = good;
    info.randomCounterAddr = NULL;
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info = uniform_int32(2, 1);
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info = good;
    info.randomNum = value(UINT64_MAX, 8);
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 107000);
    info.randomNum = value((uint64_t)1 << 40, 8); /* more than the block has */
    OK(aclrtRandomNumAsync(&info, stream, NULL));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    const uint64_t words[2] = {5, 4};
    OK(aclrtMemcpy(spare, 16, words, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    info = good;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = address(spare);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = address(spare + 8);
    OK(aclrtRandomNumAsync(&info, stream, NULL));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    static int32_t numbers[N];
    draw(&good, numbers); /* the stream goes on */
    CHECK(numbers[0] >= 1);
}

TEST(a_part_without_the_engine)
{
    setenv("BELAY_MODEL", "310P", 1);
    start();
    aclrtRandomNumTaskInfo info = uniform_int32(1, 100);
    CHECK_ACL(aclrtRandomNumAsync(&info, stream, NULL), 207000);
    CHECK_MESSAGE("model 310P");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_and_counter_decide),
        cmocka_unit_test(parameters_may_lie_on_the_card),
        cmocka_unit_test(every_kind_and_type),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(a_part_without_the_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
