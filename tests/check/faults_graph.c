/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_graph.c - work of graphs in no order with other work, on freed or unwritten memory.
 */
#include "case_graph.h"

/* A run fails that meets freed memory. */
static void may_fail(aclError code)
{
    (void)code;
}

static void beside_stream(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    run_on(graph, w.a);
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

static void reads_beside_write(void)
{
    capture_begin(w.c);
    get(w.pinned, w.x, 4096, w.c);
    aclmdlRI graph = capture_end(w.c);
    set(w.x, SIZE, w.b);
    run_on(graph, w.a);
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

static void kernel_beside_stream(void)
{
    capture_begin(w.c);
    touch(w.x, SIZE, BLY_WRITE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    touch(w.x + 512, 512, BLY_READ, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

/* Both lines write the same bytes. */
static void lines_beside_each_other(void)
{
    aclrtEvent back = sync_event();
    capture_begin(w.c);
    fork_to(w.event, w.c, w.b);
    set(w.x, 4096, w.b);
    set(w.x, 8192, w.c);
    fork_to(back, w.b, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
    OK(aclrtDestroyEvent(back));
}

static void two_graphs(void)
{
    aclmdlRI one = graph_of_set(w.x, SIZE), other = graph_of_set(w.x + 4096, 64);
    run_on(one, w.a);
    run_on(other, w.b);
    OK(aclrtSynchronizeDevice());
    drop(one);
    drop(other);
}

static void set_x(aclrtStream stream)
{
    set(w.x, SIZE, stream);
}

static void body_beside_stream(void)
{
    aclmdlRI graph = graph_of_loop(3, set_x);
    run_on(graph, w.a);
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

static void built_beside_stream(void)
{
    aclrtStream bound;
    aclmdlRI graph = build(&bound, set_x);
    run_on(graph, w.a);
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    unbuild(graph, bound);
}

/* The host waits for nothing: a copy at once is in no order with the run. */
static void host_beside_run(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    run_on(graph, w.a);
    OK(aclrtMemcpy(w.pinned, 4096, w.x, 4096, D2H));
    wait_done(w.a);
    drop(graph);
}

/* Waiting for the stream of the capture is not waiting for the run. */
static void waits_for_the_captured(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    run_on(graph, w.a);
    wait_done(w.c);
    set(w.x, SIZE, w.c);
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

static void run_on_freed(void)
{
    char *block = card_block(SIZE);
    aclmdlRI graph = graph_of_set(block, SIZE);
    OK(aclrtFree(block));
    run_on(graph, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
    drop(graph);
}

/* The address is another block's by then: it must not be touched for that. */
static void run_on_reused(void)
{
    char *block = card_block(SIZE);
    aclmdlRI graph = graph_of_set(block, SIZE);
    OK(aclrtFree(block));
    char *next = card_block(SIZE);
    run_on(graph, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
    drop(graph);
    OK(aclrtFree(next));
}

static void kernel_on_freed(void)
{
    char *block = card_block(SIZE);
    capture_begin(w.c);
    touch(block, SIZE, BLY_WRITE, w.c);
    aclmdlRI graph = capture_end(w.c);
    OK(aclrtFree(block));
    run_on(graph, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
    drop(graph);
}

/* Queued behind work that is held, so the free comes first. */
static void freed_before_its_turn(void)
{
    struct gate gate;
    char *block = card_block(SIZE);
    aclmdlRI graph = graph_of_set(block, SIZE);
    hold(&gate, w.a);
    run_on(graph, w.a);
    OK(aclrtFree(block));
    let_go(&gate);
    may_fail(aclrtSynchronizeStream(w.a));
    drop(graph);
}

static void freed_unwaited(void)
{
    char *block = card_block(4096);
    aclmdlRI graph = graph_of_set(block, 4096);
    run_on(graph, w.a);
    seen_done(w.a);
    OK(aclrtFree(block));
    wait_done(w.a);
    drop(graph);
}

static void reads_unwritten(void)
{
    char *block = card_block(SIZE);
    capture_begin(w.c);
    get(w.pinned, block, 4096, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
    OK(aclrtFree(block));
}

/* In a line beside another one, which writes elsewhere. */
static void line_reads_unwritten(void)
{
    aclrtEvent back = sync_event();
    char *block = card_block(SIZE);
    capture_begin(w.c);
    fork_to(w.event, w.c, w.b);
    get(w.pinned, block, 2048, w.b);
    set(w.x, SIZE, w.c);
    fork_to(back, w.b, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
    OK(aclrtDestroyEvent(back));
    OK(aclrtFree(block));
}

/* Nothing puts the line that writes before the one that reads, and that comes to it first: a race,
 * and that alone. */
static void line_reads_too_early(void)
{
    aclrtEvent back = sync_event();
    char *block = card_block(SIZE);
    capture_begin(w.c);
    fork_to(w.event, w.c, w.b);
    get(w.pinned, block, 4096, w.c);
    set(block, 4096, w.b);
    fork_to(back, w.b, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
    OK(aclrtDestroyEvent(back));
    OK(aclrtFree(block));
}

static void writes_beyond(void)
{
    char *block = card_block(4096);
    aclmdlRI graph = graph_of_set(block, 4096 + 16);
    run_on(graph, w.a);
    may_fail(aclrtSynchronizeStream(w.a));
    drop(graph);
    OK(aclrtFree(block));
}

static aclmdlRI graph_of_put(void)
{
    capture_begin(w.c);
    set(w.y, SIZE, w.c);
    put(w.x, w.pinned + 4096, 8192, w.c);
    return capture_end(w.c);
}

/* The source of a graph's copy is the program's until the run has ended. */
static void source_changed(void)
{
    static struct gate gate;
    aclmdlRI graph = graph_of_put();
    stall(&gate, w.a);
    run_on(graph, w.a);
    memset(w.pinned + 4096 + 100, 77, 50);
    let_go(&gate);
    wait_done(w.a);
    drop(graph);
}

/* Filled for the next run, while the last one has not read it. */
static void source_refilled_too_early(void)
{
    static struct gate gate;
    aclmdlRI graph = graph_of_put();
    run_on(graph, w.a);
    wait_done(w.a);
    memset(w.pinned, 2, SIZE);
    stall(&gate, w.a);
    run_on(graph, w.a);
    memset(w.pinned, 3, SIZE);
    run_on(graph, w.a);
    let_go(&gate);
    wait_done(w.a);
    drop(graph);
}

const struct check_case faults_graph[] = {
    {"source-changed", source_changed, "pinned-changed", "50 bytes in [100, 150)", NULL},
    {"source-refilled-too-early", source_refilled_too_early, "pinned-changed",
     "8192 bytes in [0, 8192)|of graph", NULL},
    {"beside-stream", beside_stream, "race", "1048576 B", NULL},
    {"reads-beside-write", reads_beside_write, "race", "4096 B", NULL},
    {"kernel-beside-stream", kernel_beside_stream, "race", "512 B", NULL},
    {"lines-beside-each-other", lines_beside_each_other, "race", "4096 B", NULL},
    {"two-graphs", two_graphs, "race", "64 B", NULL},
    {"body-beside-stream", body_beside_stream, "race", "of graph", NULL},
    {"built-beside-stream", built_beside_stream, "race", "of graph", NULL},
    {"host-beside-run", host_beside_run, "race", "by the host", NULL},
    {"waits-for-the-captured", waits_for_the_captured, "race", "1048576 B", NULL},
    {"run-on-freed", run_on_freed, "use-after-free", "0 bytes into a block of 1048576 B", NULL},
    {"run-on-reused", run_on_reused, "use-after-free", "0 bytes into a block of 1048576 B", NULL},
    {"kernel-on-freed", kernel_on_freed, "use-after-free", "kernel on stream", NULL},
    {"freed-before-its-turn", freed_before_its_turn, "use-after-free", "freed before a run", NULL},
    {"freed-unwaited", freed_unwaited, "free-in-use", "which nobody waited for", NULL},
    {"reads-unwritten", reads_unwritten, "uninitialised-read", "4096 bytes that nobody wrote",
     NULL},
    {"line-reads-unwritten", line_reads_unwritten, "uninitialised-read",
     "2048 bytes that nobody wrote", NULL},
    {"line-reads-too-early", line_reads_too_early, "race", "4096 B", NULL},
    {"writes-beyond", writes_beyond, "out-of-bounds", "16 of them beyond the end", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
