/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_free.c - memory that goes away too early, twice, or was never there.
 */
#include "check_case.h"

static void free_queued(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.a);
}

static void free_queued_many(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    for (int i = 0; i < 5; i++)
        set(w.x, SIZE, w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.a);
}

static void free_queued_two_streams(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, 100, w.a);
    get(w.pinned + 4096, w.x, 100, w.b);
    OK(aclrtFree(w.x));
    w.x = NULL;
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.a);
    (void)aclrtSynchronizeStream(w.b);
}

static void free_unsynchronised(void)
{
    set(w.x, SIZE, w.a);
    seen_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
}

/* The pattern of public tutorials: one stream waits, and the host frees. */
static void free_behind_a_wait(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    seen_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    (void)aclrtSynchronizeStream(w.a);
}

static void free_other_synchronised(void)
{
    get(w.pinned, w.x, SIZE, w.a);
    set(w.y, SIZE, w.b);
    wait_done(w.b);
    seen_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    (void)aclrtSynchronizeStream(w.a);
}

static void free_kernel(void)
{
    touch(w.x, SIZE, BLY_READ, w.a);
    seen_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    (void)aclrtSynchronizeStream(w.a);
}

/* O-16, what of it needs no pool: the other stream still reads. */
static void free_while_other_reads(void)
{
    static struct gate gate;
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    wait_done(w.a);
    hold(&gate, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    OK(aclrtFree(w.x));
    w.x = card_block(SIZE);
    set(w.x, SIZE, w.a);
    wait_done(w.a);
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.b);
}

static void free_too_early_event(void)
{
    record(w.event, w.a);
    set(w.x, SIZE, w.a);
    OK(aclrtSynchronizeEvent(w.event));
    seen_done(w.a);
    OK(aclrtFree(w.x));
    w.x = NULL;
    (void)aclrtSynchronizeStream(w.a);
}

static void pinned_free_queued(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    put(w.x, w.pinned, SIZE, w.a);
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
    let_go(&gate);
    wait_done(w.a);
}

static void pinned_free_unsynchronised(void)
{
    get(w.pinned, w.x, SIZE, w.a);
    seen_done(w.a);
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
}

static void pinned_free_twice_queued(void)
{
    static struct gate gate;
    void *other;
    OK(aclrtMallocHost(&other, 4096));
    memset(other, 1, 4096);
    hold(&gate, w.a);
    put(w.x, other, 4096, w.a);
    OK(aclrtFreeHost(other));
    (void)aclrtFreeHost(other);
    let_go(&gate);
    wait_done(w.a);
}

static char *map(size_t size, aclrtDrvMemHandle *handle)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    void *at;
    OK(aclrtMallocPhysical(handle, size, &prop, 0));
    OK(aclrtReserveMemAddress(&at, size, 0, NULL, 0));
    OK(aclrtMapMem(at, size, 0, *handle, 0));
    return at;
}

/* O-02. */
static void unmap_queued(void)
{
    aclrtDrvMemHandle handle;
    static struct gate gate;
    char *v = map(64 * MIB, &handle);
    hold(&gate, w.a);
    OK(aclrtMemsetAsync(v, 64 * MIB, 0xA5, 64 * MIB, w.a));
    OK(aclrtUnmapMem(v));
    OK(aclrtFreePhysical(handle));
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.a);
    OK(aclrtReleaseMemAddress(v));
}

static void unmap_unsynchronised(void)
{
    aclrtDrvMemHandle handle;
    char *v = map(2 * MIB, &handle);
    set(v, 4096, w.a);
    seen_done(w.a);
    OK(aclrtUnmapMem(v));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(v));
}

static void two_addresses(void)
{
    aclrtDrvMemHandle handle;
    void *other;
    char *v = map(2 * MIB, &handle);
    OK(aclrtReserveMemAddress(&other, 2 * MIB, 0, NULL, 0));
    OK(aclrtMapMem(other, 2 * MIB, 0, handle, 0));
    set(v, 4096, w.a);
    set(other, 4096, w.b);
    OK(aclrtSynchronizeDevice());
    OK(aclrtUnmapMem(v));
    OK(aclrtUnmapMem(other));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(v));
    OK(aclrtReleaseMemAddress(other));
}

static void free_twice(void)
{
    char *old = w.x;
    OK(aclrtFree(w.x));
    w.x = NULL;
    (void)aclrtFree(old);
}

static void pinned_free_twice(void)
{
    char *old = w.pinned;
    OK(aclrtFreeHost(w.pinned));
    w.pinned = NULL;
    (void)aclrtFreeHost(old);
}

static void free_inside(void)
{
    (void)aclrtFree(w.x + 512);
}

static void free_of_stack(void)
{
    char local;
    (void)aclrtFree(&local);
}

static void free_of_pinned(void)
{
    (void)aclrtFree(w.pinned);
}

static void free_host_of_card(void)
{
    (void)aclrtFreeHost(w.x);
}

static void unregister_queued(void)
{
    static struct gate gate;
    void *device, *host = aligned_alloc(4096, 64 * KIB);
    memset(host, 1, 64 * KIB);
    OK(aclrtHostRegister(host, 64 * KIB, ACL_HOST_REGISTER_MAPPED, &device));
    hold(&gate, w.a);
    put(w.x, host, 64 * KIB, w.a);
    OK(aclrtHostUnregister(host));
    let_go(&gate);
    (void)aclrtSynchronizeStream(w.a);
    free(host);
}

static void *free_it(void *arg)
{
    OK(aclrtSetDevice(0));
    OK(aclrtFree(arg));
    return NULL;
}

static void free_by_a_thread(void)
{
    pthread_t thread;
    set(w.x, SIZE, w.a);
    seen_done(w.a);
    pthread_create(&thread, NULL, free_it, w.x);
    pthread_join(thread, NULL);
    w.x = NULL;
}

static void free_block(void *arg)
{
    OK(aclrtFree(arg));
}

static void free_in_a_callback(void)
{
    set(w.x, SIZE, w.a);
    get(w.pinned, w.y, SIZE, w.b);
    seen_done(w.b);
    OK(aclrtLaunchHostFunc(w.a, free_block, w.y));
    w.y = NULL;
    wait_done(w.a);
    (void)aclrtSynchronizeStream(w.b);
}

const struct check_case faults_free[] = {
    {"free-queued", free_queued, "free-in-use", "while 1 task on stream", NULL},
    {"free-queued-many", free_queued_many, "free-in-use", "while 5 tasks on stream", NULL},
    {"free-queued-two-streams", free_queued_two_streams, "free-in-use",
     "while 2 tasks on 2 streams", NULL},
    {"free-unsynchronised", free_unsynchronised, "free-in-use", "is a race", NULL},
    {"free-behind-a-wait", free_behind_a_wait, "free-in-use", "is a race", NULL},
    {"free-other-synchronised", free_other_synchronised, "free-in-use", "is a race", NULL},
    {"free-kernel", free_kernel, "free-in-use", "read by a kernel", NULL},
    {"free-while-other-reads", free_while_other_reads, "free-in-use", "while 1 task on stream",
     NULL},
    {"free-too-early-event", free_too_early_event, "free-in-use", "is a race", NULL},
    {"pinned-free-queued", pinned_free_queued, "free-in-use", "while 1 task on stream", NULL},
    {"pinned-free-unsynchronised", pinned_free_unsynchronised, "free-in-use", "is a race", NULL},
    {"pinned-free-twice-queued", pinned_free_twice_queued, "double-free,free-in-use", NULL, NULL},
    {"unmap-queued", unmap_queued, "unmap-in-use", "(64 MiB) while 1 task on stream", NULL},
    {"unmap-unsynchronised", unmap_unsynchronised, "unmap-in-use", "is a race", NULL},
    {"two-addresses", two_addresses, "race", NULL, NULL},
    {"free-twice", free_twice, "double-free", "freed already", NULL},
    {"pinned-free-twice", pinned_free_twice, "double-free", "pinned block", NULL},
    {"free-inside", free_inside, "invalid-free", "512 bytes into the block", NULL},
    {"free-of-stack", free_of_stack, "invalid-free", "which is no block", NULL},
    {"free-of-pinned", free_of_pinned, "invalid-free", "which is the pinned block", NULL},
    {"free-host-of-card", free_host_of_card, "invalid-free", "which is the block", NULL},
    {"unregister-queued", unregister_queued, "free-in-use", "while 1 task on stream", NULL},
    {"free-by-a-thread", free_by_a_thread, "free-in-use", "is a race", NULL},
    {"free-in-a-callback", free_in_a_callback, "free-in-use", "is a race", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
