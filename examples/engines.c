/* SPDX-License-Identifier: Apache-2.0 */
/* engines - AI Core, AI CPU and copy engine work on one buffer at the same time. Without an event
 * the readers see data that is old or half written; with one they do not.
 *
 * So that this happens each time and not by luck, the writing kernel stops half way until the
 * host says go; on a card it would take the same pause whenever it pleases. */
#include <belay/kernel.h>
#include <acl/acl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "acl_check.h"

enum { N = 1 << 16, OLD = 1, NEW = 2 };

/* In pinned memory, where kernels and host see it. */
struct shared {
    atomic_int half, go;
    int seen_old, seen_new; /* by the AI CPU */
};

struct job {
    int *data;
    struct shared *shared;
};

static void write_all(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct job *job = args;
    (void)block, (void)n_blocks;
    for (int i = 0; i < N; i++) {
        if (i == N / 2) {
            atomic_store(&job->shared->half, 1);
            while (!atomic_load(&job->shared->go))
                ;
        }
        job->data[i] = NEW;
    }
}

static void count(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct job *job = args;
    struct shared *shared = job->shared;
    (void)block, (void)n_blocks;
    shared->seen_old = shared->seen_new = 0;
    for (int i = 0; i < N; i++) {
        shared->seen_old += job->data[i] == OLD;
        shared->seen_new += job->data[i] == NEW;
    }
}

static void launch(bly_kernel fn, bly_engine engine, const struct job *job, aclrtStream stream)
{
    uint32_t access = fn == count ? BLY_READ : BLY_WRITE;
    const bly_range range = {job->data, N * sizeof(int), access};
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.engine = engine;
    opts.ranges = &range;
    opts.n_ranges = 1;
    if (bly_kernel_launch(fn, job, sizeof(*job), &opts, stream) != BLY_OK) {
        fprintf(stderr, "launch: %s\n", bly_last_error());
        exit(1);
    }
}

static int count_new(const int *values)
{
    int n = 0;
    for (int i = 0; i < N; i++)
        n += values[i] == NEW;
    return n;
}

int main(void)
{
    aclrtStream core, cpu, copier;
    aclrtEvent written;
    struct job job;
    void *data, *shared, *host;
    int old_value[N];

    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtCreateStream(&core));
    CHECK_ACL(aclrtCreateStream(&cpu));
    CHECK_ACL(aclrtCreateStream(&copier));
    CHECK_ACL(aclrtCreateEventExWithFlag(&written, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtMalloc(&data, sizeof(old_value), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMallocHost(&shared, sizeof(struct shared)));
    CHECK_ACL(aclrtMallocHost(&host, sizeof(old_value)));
    memset(shared, 0, sizeof(struct shared));
    job = (struct job){data, shared};
    for (int i = 0; i < N; i++)
        old_value[i] = OLD;
    CHECK_ACL(aclrtMemcpy(data, sizeof(old_value), old_value, sizeof(old_value),
                          ACL_MEMCPY_HOST_TO_DEVICE));

    /* Three streams, no order among them. */
    launch(write_all, BLY_ENGINE_VECTOR, &job, core);
    while (!atomic_load(&job.shared->half))
        ;
    launch(count, BLY_ENGINE_AICPU, &job, cpu);
    CHECK_ACL(aclrtMemcpyAsync(host, sizeof(old_value), data, sizeof(old_value),
                               ACL_MEMCPY_DEVICE_TO_HOST, copier));
    CHECK_ACL(aclrtSynchronizeStream(cpu));
    CHECK_ACL(aclrtSynchronizeStream(copier));
    int half_cpu = job.shared->seen_new, half_copy = count_new(host);
    printf("without an event: AI CPU saw %d of %d new, the copy engine %d\n", half_cpu, N,
           half_copy);
    atomic_store(&job.shared->go, 1);
    CHECK_ACL(aclrtSynchronizeStream(core));

    /* The same, but the readers wait for the writer. */
    CHECK_ACL(aclrtMemcpy(data, sizeof(old_value), old_value, sizeof(old_value),
                          ACL_MEMCPY_HOST_TO_DEVICE));
    atomic_store(&job.shared->go, 0);
    launch(write_all, BLY_ENGINE_VECTOR, &job, core);
    CHECK_ACL(aclrtRecordEvent(written, core));
    CHECK_ACL(aclrtStreamWaitEvent(cpu, written));
    CHECK_ACL(aclrtStreamWaitEvent(copier, written));
    launch(count, BLY_ENGINE_AICPU, &job, cpu);
    CHECK_ACL(aclrtMemcpyAsync(host, sizeof(old_value), data, sizeof(old_value),
                               ACL_MEMCPY_DEVICE_TO_HOST, copier));
    atomic_store(&job.shared->go, 1);
    CHECK_ACL(aclrtSynchronizeStream(cpu));
    CHECK_ACL(aclrtSynchronizeStream(copier));
    int all_cpu = job.shared->seen_new, all_copy = count_new(host);
    printf("with an event:    AI CPU saw %d of %d new, the copy engine %d\n", all_cpu, N, all_copy);

    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtFreeHost(shared));
    CHECK_ACL(aclrtFree(data));
    CHECK_ACL(aclrtDestroyEvent(written));
    CHECK_ACL(aclrtDestroyStream(copier));
    CHECK_ACL(aclrtDestroyStream(cpu));
    CHECK_ACL(aclrtDestroyStream(core));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return half_cpu == N / 2 && half_copy == N / 2 && all_cpu == N && all_copy == N ? 0 : 1;
}
