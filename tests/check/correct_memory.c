/* SPDX-License-Identifier: Apache-2.0
 *
 * correct_memory.c - memory that is used, freed and used again as it should be.
 */
#include "check_case.h"

static void free_behind_sync(void)
{
    set(w.x, SIZE, w.a);
    wait_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
}

static void free_behind_event(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    OK(aclrtSynchronizeEvent(w.event));
    OK(aclrtFree(w.x));
    w.x = NULL;
}

/* The host waits for one stream that has waited for the other. */
static void free_behind_a_chain(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    wait_done(w.b);
    OK(aclrtFree(w.x));
    w.x = NULL;
}

static void free_of_unused(void)
{
    OK(aclrtFree(card_block(SIZE)));
}

static void free_beside_work(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    OK(aclrtFree(w.y));
    w.y = NULL;
    let_go(&gate);
}

static void same_address_again(void)
{
    for (int i = 0; i < 30; i++) {
        char *block = card_block(4 * MIB);
        aclrtStream stream = i % 2 == 0 ? w.a : w.b;
        set(block, 4 * MIB, stream);
        get(w.pinned, block + i, 64, stream);
        wait_done(stream);
        OK(aclrtFree(block));
    }
}

static void freed_in_callback(void *arg)
{
    OK(aclrtFree(arg));
}

static void free_in_callback(void)
{
    set(w.x, SIZE, w.a);
    OK(aclrtLaunchHostFunc(w.a, freed_in_callback, w.x));
    w.x = NULL;
}

static void pinned_free_behind(void)
{
    put(w.x, w.pinned, SIZE, w.a);
    wait_done(w.a);
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
}

static void written_by_kernel(void)
{
    char *fresh = card_block(4096);
    touch(fresh, 4096, BLY_WRITE, w.a);
    get(w.pinned, fresh, 4096, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

/* Nobody knows what such a kernel wrote. */
static void written_by_unknown(void)
{
    char *fresh = card_block(4096);
    touch_unknown(w.a);
    get(w.pinned, fresh, 4096, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void written_in_pieces(void)
{
    char *fresh = card_block(SIZE);
    for (size_t at = 0; at < 64 * KIB; at += 1000)
        OK(aclrtMemset(fresh + at, SIZE - at, 1, 1000));
    get(w.pinned, fresh, 64 * KIB, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void written_in_rows(void)
{
    char *fresh = card_block(64 * KIB);
    OK(aclrtMemcpy2d(fresh, 1024, w.pinned, 512, 512, 64, H2D));
    OK(aclrtMemcpy2d(fresh + 512, 1024, w.pinned, 512, 512, 64, H2D));
    get(w.pinned, fresh, 64 * KIB, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void unwritten_between_cards(void)
{
    char *fresh = card_block(4096), *copy = card_block(4096);
    OK(aclrtMemset(fresh, 1024, 1, 1024));
    OK(aclrtMemcpyAsync(copy, 4096, fresh, 4096, D2D, w.a));
    get(w.pinned, copy, 1024, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
    OK(aclrtFree(copy));
}

static void kernel_uses_the_line(void)
{
    void *block;
    OK(aclrtMalloc(&block, 1000, ACL_MEM_MALLOC_HUGE_FIRST));
    touch(block, 1024, BLY_WRITE, w.a); /* whole lines of 32 bytes */
    wait_done(w.a);
    OK(aclrtFree(block));
}

static void unmap_behind(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    void *v;
    OK(aclrtMallocPhysical(&handle, 64 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&v, 64 * MIB, 0, NULL, 0));
    for (int i = 0; i < 3; i++) {
        OK(aclrtMapMem(v, 64 * MIB, 0, handle, 0));
        OK(aclrtMemsetAsync(v, 64 * MIB, 0xA5, 64 * MIB, w.a));
        wait_done(w.a);
        OK(aclrtUnmapMem(v));
    }
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(v));
}

/* How frameworks let a block grow: mappings side by side are one range. */
static void work_over_mappings(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle[3];
    void *reserved;
    OK(aclrtReserveMemAddress(&reserved, 6 * MIB, 0, NULL, 0));
    char *at = reserved;
    for (int i = 0; i < 3; i++) {
        OK(aclrtMallocPhysical(&handle[i], 2 * MIB, &prop, 0));
        OK(aclrtMapMem(at + (size_t)i * 2 * MIB, 2 * MIB, 0, handle[i], 0));
    }
    set(at, 6 * MIB, w.a);
    get(w.pinned, at + 2 * MIB - 512, 1024, w.a);
    OK(aclrtMemcpy2dAsync(at + MIB, 64 * KIB, w.pinned, 1024, 1024, 64, H2D, w.a));
    wait_done(w.a);
    OK(aclrtMemset(at + MIB, 5 * MIB, 1, 4 * MIB));
    for (int i = 0; i < 3; i++) {
        OK(aclrtUnmapMem(at + (size_t)i * 2 * MIB));
        OK(aclrtFreePhysical(handle[i]));
    }
    OK(aclrtReleaseMemAddress(reserved));
}

/* One of two addresses goes away while the other one is in use. */
static void unmap_of_the_other(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    static struct gate gate;
    void *v, *other;
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&v, 2 * MIB, 0, NULL, 0));
    OK(aclrtReserveMemAddress(&other, 2 * MIB, 0, NULL, 0));
    OK(aclrtMapMem(v, 2 * MIB, 0, handle, 0));
    OK(aclrtMapMem(other, 2 * MIB, 0, handle, 0));
    hold(&gate, w.a);
    set(v, 2 * MIB, w.a);
    OK(aclrtUnmapMem(other));
    let_go(&gate);
    wait_done(w.a);
    OK(aclrtUnmapMem(v));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(v));
    OK(aclrtReleaseMemAddress(other));
}

static void register_again(void)
{
    char *host = aligned_alloc(4096, 64 * KIB);
    memset(host, 1, 64 * KIB);
    for (int i = 0; i < 3; i++) {
        void *device;
        OK(aclrtHostRegister(host, 64 * KIB, ACL_HOST_REGISTER_MAPPED, &device));
        put(w.x, host, 64 * KIB, w.a);
        wait_done(w.a);
        OK(aclrtHostUnregister(host));
    }
    OK(aclrtMemcpy(w.x, SIZE, host, 64 * KIB, H2D)); /* pageable again */
    free(host);
}

static void other_card_enabled(void)
{
    OK(aclrtSetDevice(1));
    char *far = card_block(2 * MIB);
    OK(aclrtMemset(far, 4096, 1, 4096));
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtMemcpyAsync(w.x, 4096, far, 4096, D2D, w.a));
    wait_done(w.a);
    OK(aclrtSetDevice(1));
    OK(aclrtFree(far));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
}

static void sets_of_words(void)
{
    OK(aclrtMemsetD32Async(w.x, SIZE, 7, 1000, w.a));
    get(w.pinned, w.x, 4000, w.a);
}

static void many_pieces(void)
{
    char *large = card_block(16 * MIB);
    for (size_t i = 0; i < 20000; i++)
        set(large + i * 800, 100, w.a);
    wait_done(w.a);
    set(large, 16 * MIB, w.b);
    wait_done(w.b);
    OK(aclrtFree(large));
}

static void *work(void *arg)
{
    size_t at = (size_t)(uintptr_t)arg * 4096;
    aclrtStream stream;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 200; i++) {
        char *block = card_block(8192);
        set(block, 8192, stream);
        set(w.x + at, 4096, stream);
        get(w.pinned + at, block, 4096, stream);
        wait_done(stream);
        OK(aclrtFree(block));
    }
    OK(aclrtDestroyStream(stream));
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

const struct check_case correct_memory[] = {
    {"free-behind-sync", free_behind_sync, "", NULL, NULL},
    {"free-behind-event", free_behind_event, "", NULL, NULL},
    {"free-behind-a-chain", free_behind_a_chain, "", NULL, NULL},
    {"free-of-unused", free_of_unused, "", NULL, NULL},
    {"free-beside-work", free_beside_work, "", NULL, NULL},
    {"same-address-again", same_address_again, "", NULL, NULL},
    {"free-in-callback", free_in_callback, "", NULL, NULL},
    {"pinned-free-behind", pinned_free_behind, "", NULL, NULL},
    {"written-by-kernel", written_by_kernel, "", NULL, NULL},
    {"written-by-unknown", written_by_unknown, "", NULL, NULL},
    {"written-in-pieces", written_in_pieces, "", NULL, NULL},
    {"written-in-rows", written_in_rows, "", NULL, NULL},
    {"unwritten-between-cards", unwritten_between_cards, "", NULL, NULL},
    {"kernel-uses-the-line", kernel_uses_the_line, "", NULL, NULL},
    {"unmap-behind", unmap_behind, "", NULL, NULL},
    {"unmap-of-the-other", unmap_of_the_other, "", NULL, NULL},
    {"work-over-mappings", work_over_mappings, "", NULL, NULL},
    {"register-again", register_again, "", NULL, NULL},
    {"other-card-enabled", other_card_enabled, "", NULL, NULL},
    {"sets-of-words", sets_of_words, "", NULL, NULL},
    {"many-pieces", many_pieces, "", NULL, NULL},
    {"threads", threads, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
