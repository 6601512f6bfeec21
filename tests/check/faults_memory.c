/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_memory.c - work on memory that is not there, not large enough or not written; and what is
 * never given back.
 */
#include "check_case.h"

/* The card refuses the work as well; what it says is not the matter here. */
static void may_fail(aclError code)
{
    (void)code;
}

static void set_after_free(void)
{
    char *old = w.x;
    OK(aclrtFree(w.x));
    w.x = NULL;
    set(old, SIZE, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void copy_after_free(void)
{
    char *old = w.x;
    OK(aclrtFree(w.x));
    w.x = NULL;
    get(w.pinned, old + 100, 64, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void host_copy_after_free(void)
{
    char host[64], *old = w.x;
    OK(aclrtFree(w.x));
    w.x = NULL;
    may_fail(aclrtMemcpy(host, sizeof(host), old, sizeof(host), D2H));
}

static void kernel_after_free(void)
{
    char *old = w.x;
    OK(aclrtFree(w.x));
    w.x = NULL;
    touch(old, 4096, BLY_WRITE, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
}

static void pinned_after_free(void)
{
    char *old = w.pinned;
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
    may_fail(aclrtMemcpyAsync(w.x, 64, old, 64, H2D, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
}

static void after_unmap(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    void *at;
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&at, 2 * MIB, 0, NULL, 0));
    OK(aclrtMapMem(at, 2 * MIB, 0, handle, 0));
    OK(aclrtUnmapMem(at));
    may_fail(aclrtMemsetAsync(at, 64, 1, 64, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtReleaseMemAddress(at));
    OK(aclrtFreePhysical(handle));
}

static void set_beyond(void)
{
    char *small = card_block(1000);
    may_fail(aclrtMemsetAsync(small, 1016, 1, 1016, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtFree(small));
}

static void copy_beyond(void)
{
    may_fail(aclrtMemcpyAsync(w.x + SIZE - 32, 64, w.pinned, 64, H2D, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
}

static void read_beyond(void)
{
    char *small = card_block(1000);
    OK(aclrtMemset(small, 1000, 1, 1000));
    may_fail(aclrtMemcpyAsync(w.pinned, 1024, small, 1024, D2H, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtFree(small));
}

static void host_beyond(void)
{
    char *small = card_block(1000), host[1004] = {0};
    may_fail(aclrtMemcpy(small, sizeof(host), host, sizeof(host), H2D));
    OK(aclrtFree(small));
}

static void kernel_beyond(void)
{
    char *small = card_block(1024);
    touch(small, 1025, BLY_WRITE, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtFree(small));
}

static void rows_beyond_the_end(void)
{
    char *small = card_block(4000);
    may_fail(aclrtMemcpy2dAsync(small, 512, w.pinned, 500, 500, 8, H2D, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtFree(small));
}

static void pinned_beyond(void)
{
    void *small;
    OK(aclrtMallocHost(&small, 1000));
    memset(small, 1, 1000);
    may_fail(aclrtMemcpyAsync(w.x, 1010, small, 1010, H2D, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    OK(aclrtFreeHost(small));
}

static void unwritten(void)
{
    char *fresh = card_block(SIZE), host[64];
    OK(aclrtMemcpy(host, sizeof(host), fresh, sizeof(host), D2H));
    OK(aclrtFree(fresh));
}

static void unwritten_queued(void)
{
    char *fresh = card_block(SIZE);
    get(w.pinned, fresh + 256, 128, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void unwritten_part(void)
{
    char *fresh = card_block(SIZE);
    OK(aclrtMemset(fresh, 1000, 0, 1000));
    get(w.pinned, fresh, 1024, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void unwritten_handed_on(void)
{
    char *fresh = card_block(4096), *copy = card_block(4096);
    OK(aclrtMemset(fresh, 2048, 0, 2048));
    OK(aclrtMemcpyAsync(copy, 4096, fresh, 4096, D2D, w.a));
    get(w.pinned, copy, 4096, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
    OK(aclrtFree(copy));
}

static void unwritten_kernel(void)
{
    char *fresh = card_block(4096);
    touch(fresh, 4096, BLY_READ, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void unwritten_reduce(void)
{
    char *fresh = card_block(4096);
    OK(aclrtReduceAsync(fresh, w.x, 4096, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, w.a, NULL));
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static void read_before_write(void)
{
    char *fresh = card_block(4096);
    get(w.pinned, fresh, 4096, w.a);
    set(fresh, 4096, w.a);
    wait_done(w.a);
    OK(aclrtFree(fresh));
}

static char *far_block(void)
{
    OK(aclrtSetDevice(1));
    char *far = card_block(2 * MIB);
    OK(aclrtMemset(far, 4096, 1, 4096));
    OK(aclrtSetDevice(0));
    return far;
}

static void free_far(char *far)
{
    OK(aclrtSetDevice(1));
    OK(aclrtFree(far));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
}

static void other_card(void)
{
    char *far = far_block();
    OK(aclrtMemcpyAsync(w.x, 4096, far, 4096, D2D, w.a));
    may_fail(aclrtSynchronizeStream(w.a));
    free_far(far);
}

static void other_card_by_host(void)
{
    char *far = far_block();
    may_fail(aclrtMemcpy(w.x, 4096, far, 4096, D2D));
    free_far(far);
}

static void leak(void)
{
    card_block(4096);
}

static void leak_pinned(void)
{
    void *lost;
    OK(aclrtMallocHost(&lost, 4096));
}

static void leak_stream(void)
{
    aclrtStream lost;
    OK(aclrtCreateStream(&lost));
}

static void leak_event(void)
{
    aclrtEvent lost;
    OK(aclrtCreateEvent(&lost));
}

static void leak_handle(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
}

static void leak_notify(void)
{
    aclrtNotify lost;
    OK(aclrtCreateNotify(&lost, 0));
}

static void leak_graph(void)
{
    aclmdlRI lost;
    OK(aclmdlRICaptureBegin(w.a, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    set(w.x, SIZE, w.a);
    OK(aclmdlRICaptureEnd(w.a, &lost));
}

static void leak_context(void)
{
    aclrtContext lost, own;
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtCreateContext(&lost, 0));
    OK(aclrtSetCurrentContext(own));
}

static void leak_queue(void)
{
    uint32_t id;
    OK(acltdtCreateQueue(NULL, &id));
}

static void leak_channel(void)
{
    if (acltdtCreateChannelWithCapacity(0, "lost", 8) == NULL)
        exit(98);
}

const struct check_case faults_memory[] = {
    {"set-after-free", set_after_free, "use-after-free", "0 bytes into a block", NULL},
    {"copy-after-free", copy_after_free, "use-after-free", "100 bytes into a block", NULL},
    {"host-copy-after-free", host_copy_after_free, "use-after-free", NULL, NULL},
    {"kernel-after-free", kernel_after_free, "use-after-free", "kernel writes", NULL},
    {"pinned-after-free", pinned_after_free, "use-after-free", "pinned block", NULL},
    {"after-unmap", after_unmap, "use-after-free", "unmapped before", NULL},
    {"set-beyond", set_beyond, "out-of-bounds", "16 of them beyond the end", NULL},
    {"copy-beyond", copy_beyond, "out-of-bounds", "32 of them beyond the end", NULL},
    {"read-beyond", read_beyond, "out-of-bounds", "24 of them beyond the end", NULL},
    {"host-beyond", host_beyond, "out-of-bounds", "4 of them beyond the end", NULL},
    {"kernel-beyond", kernel_beyond, "out-of-bounds", "1 of them beyond the end", NULL},
    {"rows-beyond-the-end", rows_beyond_the_end, "out-of-bounds", "84 of them beyond the end",
     NULL},
    {"pinned-beyond", pinned_beyond, "out-of-bounds", "10 of them beyond the end", NULL},
    {"unwritten", unwritten, "uninitialised-read", "64 bytes", NULL},
    {"unwritten-queued", unwritten_queued, "uninitialised-read", "128 bytes", NULL},
    {"unwritten-part", unwritten_part, "uninitialised-read", "24 bytes", NULL},
    {"unwritten-handed-on", unwritten_handed_on, "uninitialised-read", "2048 bytes", NULL},
    {"unwritten-kernel", unwritten_kernel, "uninitialised-read", "4096 bytes", NULL},
    {"unwritten-reduce", unwritten_reduce, "uninitialised-read", "4096 bytes", NULL},
    {"read-before-write", read_before_write, "uninitialised-read", "4096 bytes", NULL},
    {"other-card", other_card, "wrong-device", "no access to card 1", NULL},
    {"other-card-by-host", other_card_by_host, "wrong-device", "no access to card 1", NULL},
    {"leak", leak, "leak", "4096 B", NULL},
    {"leak-pinned", leak_pinned, "leak", "pinned host memory", NULL},
    {"leak-stream", leak_stream, "leaked-stream", "1 stream", NULL},
    {"leak-event", leak_event, "leaked-event", "1 event", NULL},
    {"leak-handle", leak_handle, "leaked-handle", "1 physical handle", NULL},
    {"leak-notify", leak_notify, "leaked-notify", "1 notify", NULL},
    {"leak-graph", leak_graph, "leaked-graph", "1 graph", NULL},
    {"leak-context", leak_context, "leaked-context", "1 context", NULL},
    {"leak-queue", leak_queue, "leaked-queue", "1 queue", NULL},
    {"leak-channel", leak_channel, "leaked-queue", "1 queue", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
