/* SPDX-License-Identifier: Apache-2.0
 *
 * correct_graph.c - graphs in good order with all else.
 */
#include "case_graph.h"

static void in_stream_order(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    set(w.x, SIZE, w.a);
    for (int i = 0; i < 5; i++) {
        run_on(graph, w.a);
        get(w.pinned, w.x, SIZE, w.a);
    }
    wait_done(w.a);
    drop(graph);
}

static void event_behind_run(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    run_on(graph, w.a);
    fork_to(w.event, w.a, w.b);
    set(w.x, SIZE, w.b);
    wait_done(w.b);
    drop(graph);
}

static void event_before_run(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    set(w.x, SIZE, w.b);
    fork_to(w.event, w.b, w.a);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
}

static void fork_and_join(void)
{
    aclrtEvent back = sync_event();
    capture_begin(w.c);
    set(w.x, SIZE, w.c);
    fork_to(w.event, w.c, w.b);
    OK(aclrtMemcpyAsync(w.y, SIZE / 2, w.x, SIZE / 2, D2D, w.b));
    OK(aclrtMemcpyAsync(w.y + SIZE / 2, SIZE / 2, w.x, SIZE / 2, D2D, w.c));
    fork_to(back, w.b, w.c);
    set(w.x, SIZE, w.c);
    get(w.pinned, w.y, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    OK(aclrtDestroyEvent(back));
    for (int i = 0; i < 10; i++)
        run_on(graph, i % 2 == 0 ? w.a : w.b); /* one run after the other, by the graph alone */
    OK(aclrtSynchronizeDevice());
    drop(graph);
}

static void run_now(void)
{
    aclmdlRI graph = graph_of_set(w.x, SIZE);
    set(w.x, SIZE, w.a);
    wait_done(w.a);
    OK(aclmdlRIExecute(graph, -1));
    OK(aclrtMemcpy(w.pinned, SIZE, w.x, SIZE, D2H));
    OK(aclmdlRIExecute(graph, 10000));
    set(w.x, SIZE, w.b);
    wait_done(w.b);
    drop(graph);
}

static void writes_what_it_reads(void)
{
    char *block = card_block(SIZE);
    capture_begin(w.c);
    set(block, SIZE, w.c);
    get(w.pinned, block, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
    OK(aclrtFree(block));
}

static void writes_for_others(void)
{
    char *block = card_block(SIZE);
    aclmdlRI graph = graph_of_set(block, SIZE);
    run_on(graph, w.a);
    fork_to(w.event, w.a, w.b);
    get(w.pinned, block, SIZE, w.b);
    wait_done(w.b);
    drop(graph);
    OK(aclrtFree(block));
}

/* Another stream's graph wrote it, and the event says so. */
static void unwritten_but_for_graphs(void)
{
    struct gate gate;
    char *block = card_block(SIZE);
    aclmdlRI writer = graph_of_set(block, SIZE);
    capture_begin(w.c);
    get(w.pinned, block, SIZE, w.c);
    aclmdlRI reader = capture_end(w.c);
    hold(&gate, w.a);
    run_on(writer, w.a);
    fork_to(w.event, w.a, w.b);
    run_on(reader, w.b);
    let_go(&gate);
    wait_done(w.b);
    drop(writer);
    drop(reader);
    OK(aclrtFree(block));
}

/* One line writes what the other one reads, behind an event. */
static void line_writes_for_line(void)
{
    aclrtEvent back = sync_event(), between = sync_event();
    char *block = card_block(SIZE);
    capture_begin(w.c);
    fork_to(w.event, w.c, w.b);
    set(block, SIZE, w.c);
    fork_to(between, w.c, w.b);
    get(w.pinned, block, SIZE, w.b);
    set(w.x, SIZE, w.c);
    fork_to(back, w.b, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    run_on(graph, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
    OK(aclrtDestroyEvent(back));
    OK(aclrtDestroyEvent(between));
    OK(aclrtFree(block));
}

static void set_x(aclrtStream stream)
{
    set(w.x, SIZE, stream);
}

static void loop(void)
{
    aclmdlRI graph = graph_of_loop(4, set_x);
    set(w.x, SIZE, w.a);
    run_on(graph, w.a);
    set(w.x, SIZE, w.a);
    run_on(graph, w.a);
    wait_done(w.a);
    OK(aclrtMemcpy(w.pinned, SIZE, w.x, SIZE, D2H));
    drop(graph);
}

static void built(void)
{
    aclrtStream bound;
    set(w.x, SIZE, w.a);
    aclmdlRI graph = build(&bound, set_x);
    run_on(graph, w.a);
    run_on(graph, w.b); /* behind the first, and x is touched by the graph alone */
    fork_to(w.event, w.b, w.c);
    get(w.pinned, w.x, SIZE, w.c);
    wait_done(w.c);
    wait_done(w.a);
    unbuild(graph, bound);
}

/* The host writes the source between runs. */
static void refilled_source(void)
{
    capture_begin(w.c);
    put(w.x, w.pinned, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    for (int i = 0; i < 3; i++) {
        memset(w.pinned, i, SIZE);
        run_on(graph, w.a);
        wait_done(w.a);
    }
    drop(graph);
}

static void reads_pinned(void *arg)
{
    volatile char *pinned = arg;
    pinned[0] = (char)(pinned[1] + 1);
}

static void calls_the_host(void)
{
    capture_begin(w.c);
    get(w.pinned, w.x, SIZE, w.c);
    OK(aclrtLaunchHostFunc(w.c, reads_pinned, w.pinned));
    put(w.x, w.pinned, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    run_on(graph, w.a);
    wait_done(w.a);
    drop(graph);
}

static void notifies_outside(void)
{
    aclrtNotify notify;
    OK(aclrtCreateNotify(&notify, 0));
    capture_begin(w.c);
    set(w.x, SIZE, w.c);
    OK(aclrtRecordNotify(notify, w.c));
    set(w.y, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    OK(aclrtWaitAndResetNotify(notify, w.b, 0));
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
    OK(aclrtDestroyNotify(notify));
}

static void waits_for_a_notify(void)
{
    aclrtNotify notify;
    OK(aclrtCreateNotify(&notify, 0));
    capture_begin(w.c);
    OK(aclrtWaitAndResetNotify(notify, w.c, 0));
    set(w.x, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    set(w.x, SIZE, w.b);
    OK(aclrtRecordNotify(notify, w.b));
    OK(aclrtSynchronizeDevice());
    drop(graph);
    OK(aclrtDestroyNotify(notify));
}

static void external_record(void)
{
    aclrtEvent event;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    capture_begin(w.c);
    set(w.x, SIZE, w.c);
    OK(aclrtRecordEventWithFlag(event, w.c, ACL_EVENT_RECORD_EXTERNAL));
    set(w.y, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    wait_for(event, w.b);
    set(w.x, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    drop(graph);
    OK(aclrtDestroyEvent(event));
}

static void external_wait(void)
{
    aclrtEvent event;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    capture_begin(w.c);
    OK(aclrtStreamWaitEventWithFlag(w.c, event, 0, ACL_EVENT_WAIT_EXTERNAL));
    set(w.x, SIZE, w.c);
    aclmdlRI graph = capture_end(w.c);
    for (int i = 0; i < 3; i++) {
        set(w.x, SIZE, w.b);
        record(event, w.b);
        run_on(graph, w.a);
        wait_done(w.a);
    }
    wait_done(w.b);
    drop(graph);
    OK(aclrtDestroyEvent(event));
}

/* Streams and clocks of graphs that are gone are used again. */
static void many_graphs(void)
{
    for (int i = 0; i < 40; i++) {
        aclmdlRI graph = graph_of_set(w.x, SIZE);
        run_on(graph, i % 2 == 0 ? w.a : w.b);
        drop(graph); /* waits for the run */
    }
    OK(aclrtMemcpy(w.pinned, SIZE, w.x, SIZE, D2H));
}

static void destroyed_before_free(void)
{
    char *block = card_block(SIZE);
    aclmdlRI graph = graph_of_set(block, SIZE);
    run_on(graph, w.a);
    drop(graph);
    OK(aclrtFree(block));
}

static void captured_anew(void)
{
    for (int i = 0; i < 5; i++) {
        char *block = card_block(SIZE);
        aclmdlRI graph = graph_of_set(block, SIZE);
        run_on(graph, w.a);
        wait_done(w.a);
        drop(graph);
        OK(aclrtFree(block));
    }
}

/* What a graph's copy reads was written by the graph, or between two of its runs, in order. */
static void source_written_in_order(void)
{
    static struct gate gate;
    capture_begin(w.c);
    put(w.x, w.pinned, 4096, w.c);
    get(w.pinned + 8192, w.y, 4096, w.c);
    put(w.x + 8192, w.pinned + 8192, 4096, w.c);
    aclmdlRI graph = capture_end(w.c);
    stall(&gate, w.a);
    run_on(graph, w.a);
    get(w.pinned, w.y, 4096, w.a);
    run_on(graph, w.a);
    OK(aclrtLaunchHostFunc(w.a, reads_pinned, w.pinned));
    run_on(graph, w.a);
    let_go(&gate);
    wait_done(w.a);
    drop(graph);
}

static void source_filled_before_a_notify(void)
{
    aclrtNotify notify;
    OK(aclrtCreateNotify(&notify, 0));
    capture_begin(w.c);
    OK(aclrtWaitAndResetNotify(notify, w.c, 0));
    put(w.x, w.pinned, 4096, w.c);
    aclmdlRI graph = capture_end(w.c);
    run_on(graph, w.a);
    memset(w.pinned, 9, 4096);
    OK(aclrtRecordNotify(notify, w.b));
    wait_done(w.a);
    drop(graph);
    OK(aclrtDestroyNotify(notify));
}

const struct check_case correct_graph[] = {
    {"source-written-in-order", source_written_in_order, "", NULL, NULL},
    {"source-filled-before-a-notify", source_filled_before_a_notify, "", NULL, NULL},
    {"in-stream-order", in_stream_order, "", NULL, NULL},
    {"event-behind-run", event_behind_run, "", NULL, NULL},
    {"event-before-run", event_before_run, "", NULL, NULL},
    {"fork-and-join", fork_and_join, "", NULL, NULL},
    {"run-now", run_now, "", NULL, NULL},
    {"writes-what-it-reads", writes_what_it_reads, "", NULL, NULL},
    {"writes-for-others", writes_for_others, "", NULL, NULL},
    {"unwritten-but-for-graphs", unwritten_but_for_graphs, "", NULL, NULL},
    {"line-writes-for-line", line_writes_for_line, "", NULL, NULL},
    {"loop", loop, "", NULL, NULL},
    {"built", built, "", NULL, NULL},
    {"refilled-source", refilled_source, "", NULL, NULL},
    {"calls-the-host", calls_the_host, "", NULL, NULL},
    {"notifies-outside", notifies_outside, "", NULL, NULL},
    {"waits-for-a-notify", waits_for_a_notify, "", NULL, NULL},
    {"external-record", external_record, "", NULL, NULL},
    {"external-wait", external_wait, "", NULL, NULL},
    {"many-graphs", many_graphs, "", NULL, NULL},
    {"destroyed-before-free", destroyed_before_free, "", NULL, NULL},
    {"captured-anew", captured_anew, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
