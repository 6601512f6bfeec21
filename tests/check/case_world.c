/* SPDX-License-Identifier: Apache-2.0
 *
 * case_world.c - what all cases need.
 */
#include "check_case.h"
#include "base/sanitizer.h"

struct world w;

char *card_block(size_t size)
{
    void *at;
    OK(aclrtMallocAlign32(&at, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return at;
}

void world_begin(void)
{
    void *pinned;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&w.a));
    OK(aclrtCreateStream(&w.b));
    OK(aclrtCreateStream(&w.c));
    OK(aclrtCreateEventExWithFlag(&w.event, ACL_EVENT_SYNC));
    w.x = card_block(SIZE);
    w.y = card_block(SIZE);
    OK(aclrtMallocHost(&pinned, SIZE));
    w.pinned = pinned;
    OK(aclrtMallocHost(&pinned, 4096));
    w.seen = pinned;
    w.mark = card_block(4096);
    memset(w.seen, 0, 4096);
    OK(aclrtMemset(w.mark, 4096, 1, 4096));
    memset(w.pinned, 1, SIZE);
    OK(aclrtMemset(w.x, SIZE, 1, SIZE));
    OK(aclrtMemset(w.y, SIZE, 1, SIZE));
}

void world_end(void)
{
    OK(aclrtSynchronizeDevice());
    if (w.x != NULL)
        OK(aclrtFree(w.x));
    if (w.y != NULL)
        OK(aclrtFree(w.y));
    if (w.pinned != NULL)
        OK(aclrtFreeHost(w.pinned));
    OK(aclrtFreeHost(w.seen));
    OK(aclrtFree(w.mark));
    if (w.event != NULL)
        OK(aclrtDestroyEvent(w.event));
    if (w.c != NULL)
        OK(aclrtDestroyStream(w.c));
    if (w.b != NULL)
        OK(aclrtDestroyStream(w.b));
    OK(aclrtDestroyStream(w.a));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

char *busy(aclrtStream stream)
{
    size_t size = 128 * MIB;
    char *block = card_block(size);
    for (int i = 0; i < 4; i++)
        OK(aclrtMemsetAsync(block, size, i, size, stream));
    return block;
}

static void wait_at(void *arg)
{
    struct gate *gate = arg;
    atomic_store(&gate->reached, true);
    while (!atomic_load(&gate->open))
        usleep(50);
}

void hold(struct gate *gate, aclrtStream stream)
{
    atomic_store(&gate->open, false);
    atomic_store(&gate->reached, false);
    OK(aclrtLaunchHostFunc(stream, wait_at, gate));
    while (!atomic_load(&gate->reached))
        usleep(50);
}

void let_go(struct gate *gate)
{
    atomic_store(&gate->open, true);
}

static void look_at(const void *args, uint32_t block, uint32_t n_blocks)
{
    struct gate *gate = *(struct gate *const *)args;
    (void)block, (void)n_blocks;
    atomic_store(&gate->reached, true);
    while (!atomic_load(&gate->open))
        usleep(50);
}

void stall(struct gate *gate, aclrtStream stream)
{
    const bly_range range = {w.mark, 64, BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.ranges = &range;
    opts.n_ranges = 1;
    atomic_store(&gate->open, false);
    atomic_store(&gate->reached, false);
    if (bly_kernel_launch(look_at, &gate, sizeof(gate), &opts, stream) != BLY_OK)
        exit(98);
    while (!atomic_load(&gate->reached))
        usleep(50);
}

void set(char *at, size_t size, aclrtStream stream)
{
    OK(aclrtMemsetAsync(at, size, 3, size, stream));
}

void get(char *to, const char *at, size_t size, aclrtStream stream)
{
    OK(aclrtMemcpyAsync(to, size, at, size, D2H, stream));
}

void put(char *at, const char *from, size_t size, aclrtStream stream)
{
    OK(aclrtMemcpyAsync(at, size, from, size, H2D, stream));
}

static void nothing(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
}

static void launch(const bly_range *range, uint32_t n, aclrtStream stream)
{
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.ranges = range;
    opts.n_ranges = n;
    if (bly_kernel_launch(nothing, NULL, 0, &opts, stream) != BLY_OK)
        exit(98);
}

void touch(const void *at, size_t size, uint32_t access, aclrtStream stream)
{
    const bly_range range = {at, size, access};
    launch(&range, 1, stream);
}

void touch_unknown(aclrtStream stream)
{
    launch(NULL, 0, stream);
}

void record(aclrtEvent event, aclrtStream stream)
{
    OK(aclrtRecordEvent(event, stream));
}

void wait_for(aclrtEvent event, aclrtStream stream)
{
    OK(aclrtStreamWaitEvent(stream, event));
}

void wait_done(aclrtStream stream)
{
    OK(aclrtSynchronizeStream(stream));
}

/* Looks at what a copy may be writing: that is what these cases do on purpose. */
#if BLYI_WITH_TSAN
#define BESIDE_A_COPY __attribute__((no_sanitize("thread"), noinline))
#else
#define BESIDE_A_COPY
#endif

BESIDE_A_COPY static bool is_there(const volatile char *byte)
{
    return *byte != 0;
}

void seen_done(aclrtStream stream)
{
    char *seen = w.seen + 64 * ++w.n_seen;
    get(seen, w.mark, 64, stream);
    while (!is_there(seen + 63))
        usleep(50);
}

aclrtEvent legacy_event(void)
{
    aclrtEvent event;
    OK(aclrtCreateEvent(&event));
    return event;
}
