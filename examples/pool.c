/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - memory that is reused in the order of streams: steps of a job that allocate and free as
 * they go, a second stream that reads a result, scratch memory for each step.
 *
 * Shows: a free waits for nothing and the memory is used again at once; what another stream still
 * reads is not, once the pool has been told; almost no allocation reaches the card.
 */
#include <belay/pool.h>
#include <belay/pool_parts.h>

#include "acl_check.h"

enum { STEPS = 200, LAYERS = 12 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != BLY_OK) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, bly_last_error());                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Activations grow and shrink with the step, as sequences do. */
static size_t activation(int step, int layer)
{
    return (size_t)(1 + (step * 7 + layer * 3) % 16) * 300000;
}

static void run_step(bly_pool *pool, bly_scratch *scratch, aclrtStream stream, int step)
{
    void *layers[LAYERS], *workspace;
    for (int i = 0; i < LAYERS; i++) {
        size_t size = activation(step, i);
        CHECK(bly_pool_alloc(pool, size, stream, &layers[i]));
        CHECK(bly_scratch_alloc(scratch, 100000, 0, &workspace));
        CHECK_ACL(aclrtMemsetAsync(workspace, 100000, i, 100000, stream));
        CHECK_ACL(aclrtMemsetAsync(layers[i], size, step, size, stream));
    }
    for (int i = LAYERS - 1; i >= 0; i--)
        CHECK(bly_pool_free(layers[i])); /* in the order of the stream: nothing waits */
    CHECK(bly_scratch_reset(scratch));
}

int main(void)
{
    aclrtStream compute, copy;
    aclrtEvent ready;
    bly_pool *pool;
    bly_scratch *scratch;
    void *result, *host;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtCreateStream(&compute));
    CHECK_ACL(aclrtCreateStream(&copy));
    CHECK_ACL(aclrtCreateEvent(&ready));
    CHECK_ACL(aclrtMallocHost(&host, 4096));
    CHECK(bly_pool_create(NULL, &pool));
    CHECK(bly_scratch_create(pool, compute, 0, &scratch));

    for (int step = 0; step < STEPS; step++)
        run_step(pool, scratch, compute, step);

    CHECK(bly_pool_alloc(pool, 4096, compute, &result));
    CHECK_ACL(aclrtMemsetAsync(result, 4096, 7, 4096, compute));
    CHECK_ACL(aclrtRecordEvent(ready, compute));
    CHECK_ACL(aclrtStreamWaitEvent(copy, ready));
    CHECK_ACL(aclrtMemcpyAsync(host, 4096, result, 4096, ACL_MEMCPY_DEVICE_TO_HOST, copy));
    CHECK(bly_pool_use(result, copy)); /* a later free waits for the copy as well */
    CHECK(bly_pool_free(result));
    CHECK_ACL(aclrtSynchronizeStream(copy));
    CHECK_ACL(aclrtSynchronizeStream(compute));
    CHECK(bly_pool_poll(pool));

    bly_pool_info info = {.struct_size = sizeof(info)};
    CHECK(bly_pool_get_info(pool, &info));
    printf("%lu allocations, %lu ranges mapped\n", (unsigned long)info.allocs,
           (unsigned long)info.maps);
    printf("peak: %.1f MiB live, %.1f MiB held of the card\n", (double)info.live_peak / (1 << 20),
           (double)info.reserved_peak / (1 << 20));
    int failed = ((unsigned char *)host)[4095] != 7 || info.waiting != 0 || info.maps > 200;
    CHECK(bly_scratch_destroy(scratch));
    CHECK(bly_pool_destroy(pool));
    CHECK_ACL(aclrtDestroyEvent(ready));
    CHECK_ACL(aclrtDestroyStream(copy));
    CHECK_ACL(aclrtDestroyStream(compute));
    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return failed;
}
