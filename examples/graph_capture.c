/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_capture.c - a step of work captured once and run many times, on two streams; then what a
 * graph does with memory that was freed. Ends with 0 when all is as it says.
 *
 *     belay run -- BUILD/examples/graph_capture
 */
#include <stdint.h>
#include <string.h>
#include "acl_check.h"

#define N     1024
#define BYTES (N * sizeof(uint32_t))
#define STEPS 5

static aclrtStream main_stream, side_stream;
static uint32_t *input, *kept, *sum; /* on the card */
static uint32_t *host;               /* pinned */

/* main: input from the host ─ kept := input ─┬───────────────── join ─ sum to the host
 * side:                                      └─ sum += kept ──────┘                     */
static aclmdlRI capture_step(void)
{
    aclmdlRI graph;
    aclrtEvent fork, join;
    CHECK_ACL(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
    CHECK_ACL(aclmdlRICaptureBegin(main_stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK_ACL(aclrtMemcpyAsync(input, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, main_stream));
    CHECK_ACL(
        aclrtMemcpyAsync(kept, BYTES, input, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, main_stream));
    CHECK_ACL(aclrtRecordEvent(fork, main_stream));
    CHECK_ACL(aclrtStreamWaitEvent(side_stream, fork)); /* takes side_stream in */
    CHECK_ACL(aclrtReduceAsync(sum, kept, BYTES, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32,
                               side_stream, NULL));
    CHECK_ACL(aclrtRecordEvent(join, side_stream));
    CHECK_ACL(aclrtStreamWaitEvent(main_stream, join)); /* and brings it back */
    CHECK_ACL(
        aclrtMemcpyAsync(host + N, BYTES, sum, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, main_stream));
    CHECK_ACL(aclmdlRICaptureEnd(main_stream, &graph));
    CHECK_ACL(aclrtDestroyEvent(fork));
    CHECK_ACL(aclrtDestroyEvent(join));
    return graph;
}

static int run_steps(aclmdlRI graph)
{
    uint32_t want = 0;
    for (uint32_t step = 1; step <= STEPS; step++) {
        for (uint32_t i = 0; i < N; i++)
            host[i] = step;
        CHECK_ACL(aclmdlRIExecuteAsync(graph, main_stream));
        CHECK_ACL(aclrtSynchronizeStream(main_stream));
        want += step;
        if (host[N] != want || host[2 * N - 1] != want) {
            printf("step %u: the sum is %u, not %u\n", step, host[N], want);
            return 1;
        }
    }
    printf("%d runs of one graph: the sum is %u\n", STEPS, want);
    return 0;
}

/* The graph names the block; it does not keep it alive. */
static int run_on_freed_memory(aclmdlRI graph)
{
    void *other;
    CHECK_ACL(aclrtFree(kept));
    CHECK_ACL(
        aclrtMalloc(&other, BYTES, ACL_MEM_MALLOC_HUGE_FIRST)); /* perhaps at the same address */
    CHECK_ACL(aclmdlRIExecuteAsync(graph, main_stream));
    if (aclrtSynchronizeStream(main_stream) == ACL_SUCCESS) {
        printf("a graph ran on memory that was freed\n");
        return 1;
    }
    printf("a run on freed memory fails: %s\n", aclGetRecentErrMsg());
    CHECK_ACL(aclrtFree(other));
    return 0;
}

int main(void)
{
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtCreateStream(&main_stream));
    CHECK_ACL(aclrtCreateStream(&side_stream));
    CHECK_ACL(aclrtMalloc((void **)&input, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMalloc((void **)&kept, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMalloc((void **)&sum, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMallocHost((void **)&host, 2 * BYTES));
    CHECK_ACL(aclrtMemset(sum, BYTES, 0, BYTES));
    memset(host, 0, 2 * BYTES);

    aclmdlRI graph = capture_step();
    int failed = run_steps(graph);
    if (failed == 0)
        failed = run_on_freed_memory(graph);

    CHECK_ACL(aclmdlRIDestroy(graph));
    CHECK_ACL(aclrtFree(input));
    CHECK_ACL(aclrtFree(sum));
    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtDestroyStream(main_stream));
    CHECK_ACL(aclrtDestroyStream(side_stream));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return failed;
}
