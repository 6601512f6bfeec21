/* SPDX-License-Identifier: Apache-2.0
 *
 * test_accounts.c - several processes see one card: what is free, who has the rest, whose limits.
 */
#include "many_test.h"

/* O-11: a second process thinks that the card is full. */
static void hold_384(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(384 * MIB);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(free_is_of_the_card)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(hold_384);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - 384 * MIB - 2 * OVERHEAD);
    device_alloc(408 * MIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - (384 + 408) * MIB - 2 * OVERHEAD);
    peer_end(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - 408 * MIB - OVERHEAD);
}

/* O-12: the free figure moves, and only the card's. */
static void hold_small(struct peer *me)
{
    void *small[63];
    peer_wait(me);
    bind_card(0);
    device_alloc(64 * MIB);
    for (int i = 0; i < 63; i++)
        OK(aclrtMalloc(&small[i], 4000, NORMAL_ONLY));
    peer_done(me);
    peer_wait(me);
    for (int i = 0; i < 63; i++)
        OK(aclrtFree(small[i]));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(free_moves_with_the_pages_of_others)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(hold_small);
    peer_step(&a);
    bind_card(0);
    size_t before = free_bytes(ACL_HBM_MEM);
    CHECK_EQ(before, GIB - 64 * MIB - 2 * OVERHEAD - 63 * 4096);
    void *mine = device_alloc(32 * MIB);
    OK(aclrtFree(mine));
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM) - before, 258048);
    peer_end(&a);
}

/* What is free for the other process alone is told apart. */
MANY_TEST(unused_pages_of_others_are_told_apart)
{
    void *page = NULL, *more = NULL;
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(hold_small); /* 63 of the 512 pages of a frame */
    peer_step(&a);
    bind_card(0);
    OK(aclrtMalloc(&page, 4000, NORMAL_ONLY));
    CHECK(aclrtMallocAlign32(&more, GIB, HUGE_FIRST) != 0);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL);
    CHECK(strstr(text, "156 MiB) whole frames, 2093056 B (2.0 MiB) unused pages in 1 partial frame "
                       "and 1839104 B (1.8 MiB) unused pages in partial frames of other "
                       "processes") != NULL);
    peer_end(&a);
}

/* O-03: a restore that fails half way. */
static void hold_768(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(768 * MIB);
    peer_done(me);
    peer_wait(me);
}

struct tracked {
    aclrtDrvMemHandle handle;
    void *address;
};

static aclError phys(aclrtDrvMemHandle *handle, size_t size)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    return aclrtMallocPhysical(handle, size, &prop, 0);
}

MANY_TEST(a_restore_that_fails_names_both_processes)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer b = peer_start(hold_768);
    struct tracked blocks[8];
    bind_card(0);
    for (int i = 0; i < 8; i++) {
        OK(phys(&blocks[i].handle, 64 * MIB));
        OK(aclrtReserveMemAddress(&blocks[i].address, 64 * MIB, 0, NULL, 1));
        OK(aclrtMapMem(blocks[i].address, 64 * MIB, 0, blocks[i].handle, 0));
        OK(aclrtUnmapMem(blocks[i].address));
        OK(aclrtFreePhysical(blocks[i].handle));
    }
    peer_step(&b);
    size_t before = free_bytes(ACL_HBM_MEM);
    CHECK_EQ(before, 256 * MIB - 2 * OVERHEAD);
    int n = 0;
    aclError error;
    while ((error = phys(&blocks[n].handle, 64 * MIB)) == 0) {
        OK(aclrtMapMem(blocks[n].address, 64 * MIB, 0, blocks[n].handle, 0));
        n++;
    }
    CHECK_EQ(error, 207001);
    CHECK_EQ(n, 3);
    char text[128];
    const char *message = aclGetRecentErrMsg();
    CHECK(message != NULL);
    CHECK(strstr(message, "67108864 B (64 MiB)") != NULL);
    CHECK(strstr(message, "free 33554432 B (32 MiB)") != NULL);
    CHECK(strstr(message, "201326592 B (192 MiB) in 3 mapped handles at ") != NULL);
    CHECK(strstr(message, " made in the last ") != NULL);
    snprintf(text, sizeof text, "pid %d (", b.pid);
    CHECK(strstr(message, text) != NULL);
    CHECK(strstr(message, "805306368 B (768 MiB) live") != NULL);
    while (n-- > 0) {
        OK(aclrtUnmapMem(blocks[n].address));
        OK(aclrtFreePhysical(blocks[n].handle));
    }
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    peer_end(&b);
}

/* One place in the code, however a loop around it is compiled. */
__attribute__((noinline)) static aclrtStream new_stream(void)
{
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    return stream;
}

/* O-07: streams run out, and the error does not say memory. */
static void hold_20_streams(struct peer *me)
{
    aclrtStream streams[20];
    peer_wait(me);
    bind_card(0);
    for (int i = 0; i < 20; i++)
        streams[i] = new_stream();
    peer_done(me);
    peer_wait(me);
    OK(aclrtDestroyStream(streams[7]));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(streams_are_counted_over_processes)
{
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_STREAMS", "32", 1);
    struct peer a = peer_start(hold_20_streams);
    peer_step(&a);
    bind_card(0);
    aclrtStream stream;
    for (int i = 0; i < 12; i++)
        (void)new_stream();
    CHECK_ACL(aclrtCreateStream(&stream), 207008);
    char text[64];
    const char *message = aclGetRecentErrMsg();
    CHECK(message != NULL);
    CHECK(strstr(message, "32/32 in use; this process has 12, all made at") != NULL);
    snprintf(text, sizeof text, "; pid %d (", a.pid);
    CHECK(strstr(message, text) != NULL);
    CHECK(strstr(message, "has 20, 20 made at new_stream+") != NULL);
    snprintf(text, sizeof text, "card memory free is %zu B", GIB - 2 * OVERHEAD);
    CHECK(strstr(message, text) != NULL);
    CHECK(strstr(message, "this is not a memory shortage") != NULL);
    peer_step(&a);
    OK(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtCreateStream(&stream), 207008);
    peer_end(&a);
    OK(aclrtCreateStream(&stream)); /* what the dead had is there again */
}

/* Frames that one process wrote and freed are reused by another, and nobody's data is touched. */
static void write_and_keep(struct peer *me)
{
    static unsigned char back[4 * MIB];
    peer_wait(me);
    bind_card(0);
    void *first = device_alloc(64 * MIB), *second = device_alloc(64 * MIB);
    OK(aclrtMemset(first, 64 * MIB, 0x5a, 64 * MIB));
    OK(aclrtMemset(second, 64 * MIB, 0xa5, 64 * MIB));
    OK(aclrtFree(first));
    peer_done(me);
    peer_wait(me);
    for (size_t at = 0; at < 64 * MIB; at += sizeof back) {
        OK(aclrtMemcpy(back, sizeof back, (char *)second + at, sizeof back,
                       ACL_MEMCPY_DEVICE_TO_HOST));
        for (size_t i = 0; i < sizeof back; i++)
            CHECK_EQ(back[i], 0xa5);
    }
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(data_of_a_process_stays_its_own)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(write_and_keep);
    peer_step(&a);
    bind_card(0);
    void *all = device_alloc(free_bytes(ACL_HBM_MEM));
    OK(aclrtMemset(all, 160 * MIB, 0x11, 160 * MIB));
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 0);
    OK(aclrtFree(all));
    peer_end(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
}

/* The same when the other is killed. */
MANY_TEST(what_a_killed_process_had_is_free)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(write_and_keep);
    peer_step(&a);
    bind_card(0);
    peer_kill(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    void *all = device_alloc(240 * MIB);
    OK(aclrtMemset(all, 240 * MIB, 1, 240 * MIB));
}

/* The memory of the card outlives the process that made it. */
static void make_card(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    peer_done(me);
    peer_wait(me);
}

static void join_card(struct peer *me)
{
    unsigned char byte = 0;
    peer_wait(me);
    bind_card(0);
    void *block = device_alloc(8 * MIB);
    OK(aclrtMemset(block, 8 * MIB, 0x77, 8 * MIB));
    peer_done(me);
    peer_wait(me);
    OK(aclrtMemcpy(&byte, 1, (char *)block + 5 * MIB, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(byte, 0x77);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(a_card_outlives_its_maker)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer first = peer_start(make_card), second = peer_start(join_card);
    peer_step(&first);
    peer_step(&second);
    peer_kill(&first);
    bind_card(0); /* finds the memory through the second */
    void *rest = device_alloc(256 * MIB - 8 * MIB - 2 * OVERHEAD);
    OK(aclrtMemset(rest, 216 * MIB, 0x22, 216 * MIB));
    peer_step(&second);
    peer_end(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_is_of_the_card),
        cmocka_unit_test(free_moves_with_the_pages_of_others),
        cmocka_unit_test(unused_pages_of_others_are_told_apart),
        cmocka_unit_test(a_restore_that_fails_names_both_processes),
        cmocka_unit_test(streams_are_counted_over_processes),
        cmocka_unit_test(data_of_a_process_stays_its_own),
        cmocka_unit_test(what_a_killed_process_had_is_free),
        cmocka_unit_test(a_card_outlives_its_maker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
