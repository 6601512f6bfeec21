/* SPDX-License-Identifier: Apache-2.0 */
/* bly_pool_* on AscendCL streams: O-06, O-13, O-15, O-22 and the figures by PyTorch's names. */
#include "pool_test.h"

#include <belay/pool.h>

#define YES(call)                                                                                  \
    do {                                                                                           \
        bly_status status_ = (call);                                                               \
        if (status_ != BLY_OK) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, bly_last_error());       \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static bly_pool *native(uint64_t prefill, uint64_t align)
{
    bly_pool *pool = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.device = 0;
    opts.prefill = prefill;
    opts.align = align;
    YES(bly_pool_create(&opts, &pool));
    return pool;
}

static bly_pool_info info_of(bly_pool *pool)
{
    bly_pool_info info = {.struct_size = sizeof info};
    YES(bly_pool_get_info(pool, &info));
    CHECK_EQ(info.live + info.parked + info.idle + info.waiting, info.reserved);
    return info;
}

/* O-06, step 4: aligned blocks begin at granules, and what that costs is in the figures. */
TEST(aligned_blocks)
{
    void *a[3];
    static const uint64_t sizes[] = {MIB, 2 * MIB + 512, 64 * MIB};
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(0, 2 * MIB);
    for (int i = 0; i < 3; i++) {
        YES(bly_pool_alloc(pool, sizes[i], s, &a[i]));
        CHECK_EQ((uintptr_t)a[i] % (2 * MIB), 0);
    }
    bly_pool_info info = info_of(pool);
    CHECK_EQ(info.asked, sizes[0] + sizes[1] + sizes[2]);
    CHECK(info.reserved >= 70 * MIB);
    for (int i = 0; i < 3; i++)
        YES(bly_pool_free(a[i]));
    YES(bly_pool_destroy(pool));
}

/* O-13: 90 % of the card in whole granules, used and idle told apart. */
TEST(a_pool_that_takes_most_at_start)
{
    void *block = NULL;
    start("1GiB");
    size_t f0 = card_free();
    aclrtStream s = make_stream();
    bly_pool *pool = native(920 * MIB, 0);
    YES(bly_pool_alloc(pool, 100 * MIB, s, &block));
    bly_pool_info info = info_of(pool);
    CHECK_EQ(info.reserved, 920 * MIB);
    CHECK_EQ(info.live, 100 * MIB);
    CHECK_EQ(info.releasable, info.idle);
    YES(bly_pool_trim(pool, 0, NULL));
    CHECK_EQ(info_of(pool).reserved, 100 * MIB);
    CHECK_EQ(f0 - card_free(), 100 * MIB);
    YES(bly_pool_free(block));
    YES(bly_pool_destroy(pool));
    CHECK_EQ(card_free(), f0);
}

/* All lines are as wide as those of PyTorch's: 75 columns between two bars. */
static void is_a_table(const char *text)
{
    for (const char *end; *text != '\0'; text = end + 1) {
        end = strchr(text, '\n');
        CHECK(end != NULL && end - text == 77 && text[0] == '|' && end[-1] == '|');
    }
}

TEST(figures_by_the_names_of_pytorch)
{
    void *block = NULL, *more = NULL;
    char text[8192];
    size_t length = 0;
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(0, 0);
    YES(bly_pool_alloc(pool, 10 * MIB, s, &block));
    YES(bly_pool_text(pool, BLY_POOL_STATS, text, sizeof text, &length));
    CHECK_EQ(strlen(text), length);
    CHECK(strstr(text, "\"allocated_bytes.all.current\": 10485760") != NULL);
    CHECK(strstr(text, "\"requested_bytes.all.peak\": 10485760") != NULL);
    CHECK(strstr(text, "\"allocation.all.current\": 1") != NULL);
    CHECK(strstr(text, "\"num_ooms\": 0") != NULL);
    CHECK(bly_pool_alloc(pool, 4096 * MIB, s, &more) == BLY_E_NO_MEMORY);
    YES(bly_pool_text(pool, BLY_POOL_STATS, text, sizeof text, &length));
    CHECK(strstr(text, "\"num_ooms\": 1") != NULL);
    YES(bly_pool_text(pool, BLY_POOL_SUMMARY, text, sizeof text, &length));
    is_a_table(text);
    CHECK(strstr(text, "|            NPU OOMs: 1             |         npuMalloc retries: ") !=
          NULL);
    CHECK(
        strstr(text,
               "| Allocated memory      |     10 MiB |     10 MiB |          - |          - |\n") !=
        NULL);
    CHECK(
        strstr(text,
               "| Allocations           |          1 |          - |          1 |          0 |\n") !=
        NULL);
    YES(bly_pool_text(pool, BLY_POOL_SUMMARY, text, 40, &length));
    CHECK_EQ(strlen(text), 39);
    CHECK(length > 400);
    YES(bly_pool_text(pool, BLY_POOL_SUMMARY, NULL, 0, &length));
    CHECK(bly_pool_text(pool, BLY_POOL_SUMMARY, NULL, 1, &length) == BLY_E_INVALID);
    CHECK(bly_pool_text(pool, (bly_pool_form)7, text, 40, &length) == BLY_E_INVALID);
    YES(bly_pool_free(block));
    YES(bly_pool_destroy(pool));
    CHECK(bly_pool_text(pool, BLY_POOL_STATS, text, 40, &length) == BLY_E_HANDLE);
}

/* O-22, step 4: how often memory was mapped, under both thresholds. */
static uint64_t maps_of_rounds(uint64_t threshold)
{
    void *a[3];
    bly_pool *pool = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.device = 0;
    opts.slack = 0;
    opts.profile = BLY_POOL_TIGHT;
    opts.threshold = threshold;
    YES(bly_pool_create(&opts, &pool));
    aclrtStream s = make_stream();
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 3; i++)
            YES(bly_pool_alloc(pool, 64 * MIB, s, &a[i]));
        YES(bly_pool_free(a[1]));
        YES(bly_pool_free(a[0]));
        YES(bly_pool_free(a[2]));
        sync_stream(s);
    }
    uint64_t maps = info_of(pool).maps;
    YES(bly_pool_destroy(pool));
    OK(aclrtDestroyStream(s));
    return maps;
}

TEST(maps_under_a_threshold)
{
    start("1GiB");
    CHECK_EQ(maps_of_rounds(UINT64_MAX), 3);
    CHECK_EQ(maps_of_rounds(0), 300);
}

/* What a run of the graph makes of it: the set is done, or refused. */
static void run_set(aclmdlRI graph, aclrtStream s, unsigned char *block, bool refused)
{
    unsigned char got = 0;
    OK(aclrtMemset(block, 1, 0, 1));
    OK(aclmdlRIExecuteAsync(graph, s));
    CHECK_ACL(aclrtSynchronizeStream(s), refused ? 507013 : 0);
    if (refused)
        CHECK_MESSAGE("now it is in block");
    OK(aclrtMemcpy(&got, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(got, refused ? 0 : 0x5a);
}

static void graph_and_block(uint64_t size)
{
    aclmdlRI graph = NULL;
    void *block = NULL, *next = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(0, 0);
    YES(bly_pool_alloc(pool, size, s, &block));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtMemsetAsync(block, size, 0x5a, size, s));
    OK(aclmdlRICaptureEnd(s, &graph));
    run_set(graph, s, block, false);
    run_set(graph, s, block, false);
    YES(bly_pool_free(block));
    run_set(graph, s, block, false); /* idle: nobody else has it */
    YES(bly_pool_alloc(pool, size, s, &next));
    CHECK(next == block);
    run_set(graph, s, block, true);
    YES(bly_pool_free(next));
    run_set(graph, s, block, false);
    YES(bly_pool_alloc(pool, size, s, &next)); /* and it is found again without a free of ours */
    CHECK(next == block);
    run_set(graph, s, block, true);
    OK(aclmdlRIDestroy(graph));
    YES(bly_pool_free(next));
    CHECK_EQ(info_of(pool).live, 0);
    YES(bly_pool_audit(pool));
    YES(bly_pool_destroy(pool));
}

TEST(a_graph_and_a_block_of_another)
{
    graph_and_block(4 * MIB);
}

TEST(a_graph_and_a_slot_of_another)
{
    graph_and_block(4000);
}

/* The pool ends, and another one has its addresses. */
TEST(a_graph_and_another_pool)
{
    aclmdlRI graph = NULL;
    void *block = NULL, *next = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(0, 0);
    YES(bly_pool_alloc(pool, 4 * MIB, s, &block));
    OK(aclmdlRICaptureBegin(s, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtMemsetAsync(block, 1, 0x5a, 1, s));
    OK(aclmdlRICaptureEnd(s, &graph));
    run_set(graph, s, block, false);
    YES(bly_pool_destroy(pool));
    pool = native(0, 0);
    YES(bly_pool_alloc(pool, 4 * MIB, s, &next));
    CHECK(next == block);
    run_set(graph, s, block, true);
    OK(aclmdlRIDestroy(graph));
    YES(bly_pool_destroy(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_blocks),
        cmocka_unit_test(a_pool_that_takes_most_at_start),
        cmocka_unit_test(figures_by_the_names_of_pytorch),
        cmocka_unit_test(maps_under_a_threshold),
        cmocka_unit_test(a_graph_and_a_block_of_another),
        cmocka_unit_test(a_graph_and_a_slot_of_another),
        cmocka_unit_test(a_graph_and_another_pool),
    };
    return cmocka_run_group_tests_name("native pools", tests, NULL, NULL);
}
