/* SPDX-License-Identifier: Apache-2.0
 *
 * case_graph.c - what cases of graphs share.
 */
#include "case_graph.h"

void capture_begin(aclrtStream stream)
{
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
}

aclmdlRI capture_end(aclrtStream stream)
{
    aclmdlRI graph;
    OK(aclmdlRICaptureEnd(stream, &graph));
    return graph;
}

aclmdlRI graph_of_set(char *at, size_t size)
{
    capture_begin(w.c);
    set(at, size, w.c);
    return capture_end(w.c);
}

void run_on(aclmdlRI graph, aclrtStream stream)
{
    OK(aclmdlRIExecuteAsync(graph, stream));
}

void drop(aclmdlRI graph)
{
    OK(aclmdlRIDestroy(graph));
}

aclrtEvent sync_event(void)
{
    aclrtEvent event;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return event;
}

void fork_to(aclrtEvent event, aclrtStream from, aclrtStream to)
{
    record(event, from);
    wait_for(event, to);
}

static void one_less(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)block, (void)n_blocks;
    --**(uint64_t *const *)args;
}

void count_down(uint64_t *word, aclrtStream stream)
{
    const bly_range range = {word, sizeof(*word), BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.ranges = &range;
    opts.n_ranges = 1;
    if (bly_kernel_launch(one_less, &word, sizeof(word), &opts, stream) != BLY_OK)
        exit(98);
}

aclmdlRI graph_of_loop(uint32_t times, void (*body)(aclrtStream stream))
{
    aclmdlRI graph, inner;
    aclmdlRICondHandle handle;
    uint64_t *left;
    capture_begin(w.c);
    OK(aclmdlRICaptureGetInfo(w.c, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, times, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle));
    OK(aclmdlRICondHandleGetCondPtr(handle, &left));
    aclmdlRICondTaskParams params = {handle, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &inner};
    OK(aclmdlRIAddCondTask(params, w.c, 0));
    OK(aclmdlRICaptureToModelRIBegin(w.b, inner, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    body(w.b);
    count_down(left, w.b);
    OK(aclmdlRICaptureEnd(w.b, NULL));
    return capture_end(w.c);
}

aclmdlRI build(aclrtStream *bound, void (*fill)(aclrtStream stream))
{
    aclmdlRI graph;
    OK(aclmdlRIBuildBegin(&graph, 0));
    OK(aclrtCreateStreamWithConfig(bound, 0, ACL_STREAM_PERSISTENT));
    OK(aclmdlRIBindStream(graph, *bound, ACL_MODEL_STREAM_FLAG_HEAD));
    fill(*bound);
    OK(aclmdlRIEndTask(graph, *bound));
    OK(aclmdlRIBuildEnd(graph, NULL));
    return graph;
}

void unbuild(aclmdlRI graph, aclrtStream bound)
{
    OK(aclmdlRIUnbindStream(graph, bound));
    drop(graph);
    OK(aclrtDestroyStream(bound));
}
