/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_inside.h - the inside of a graph, for the files graph*.c and those who divert and run its
 * tasks.
 *
 *     graph ── line 0 (where the capture began) ── node, node, node ...
 *           ├─ line 1                            ── node, node ...
 *           └─ ...          each line has a stream that executes it
 *
 * Locks. GRAPH (blyi_graphs_lock): captures, what is in graphs, where streams divert to.
 * GRAPH_RUN (graph_run.c): who runs a graph and who waits for it. While a graph runs, what its
 * nodes hold changes only under the former, and only for nodes of a group.
 *
 * References to a graph: its handle, each handle of a task and group, each queued run and update,
 * each event whose last record was captured in it, and the graph that it is a body of. Streams,
 * memory, events and kernels that it holds go with its destruction (state GONE); the structures
 * with the last reference.
 */
#ifndef BLYI_GRAPH_INSIDE_H
#define BLYI_GRAPH_INSIDE_H

#include "base/fail.h"
#include "base/list.h"
#include "base/lock.h"
#include "npu/graph.h"
#include "npu/owned.h"
#include "npu/queue.h"

struct blyi_context_here;
struct blyi_event;
struct blyi_report;

extern struct blyi_lock blyi_graphs_lock; /* rank GRAPH */
extern struct blyi_list blyi_graphs;      /* that are not GONE */
extern struct blyi_lock blyi_runs_lock;   /* rank GRAPH_RUN */

/* ── Where submissions go ─────────────────────────────────────────────────────────────────── */

enum blyi_divert_mode {
    BLYI_DIVERT_CAPTURE, /* into a line, until the capture ends */
    BLYI_DIVERT_BUILD,   /* into a line of a graph that is being built */
    BLYI_DIVERT_BUILT,   /* nowhere: the stream executes a built graph */
    BLYI_DIVERT_UPDATE,  /* kernels replace those of a group */
    BLYI_DIVERT_OWN,     /* nowhere: the stream is a graph's own */
};

/* First member of a line or an update; looked at under the lock of graphs. */
struct blyi_divert {
    enum blyi_divert_mode mode;
};

static inline struct blyi_divert *blyi_queue_divert(const struct blyi_stream *stream)
{
    return __atomic_load_n(&stream->divert, __ATOMIC_ACQUIRE);
}

/* Whether a task of this kind may be submitted to a diverted stream, and makes room for it.
 * E_CAPTURE_INVALID, E_GROUP_BROKEN, E_TASK_KIND, E_GRAPH_STREAM, E_CAPTURING, E_HOST_MEMORY. */
bly_status blyi_divert_check(struct blyi_stream *stream, enum blyi_task_kind kind);
/* Takes a task, with what it refers to, into the graph; false: the stream is not diverted (any
 * more). Behind blyi_divert_check(). */
bool blyi_graph_divert(struct blyi_stream *stream, const struct blyi_task *task);
/* The same for a kernel; *taken: the graph has the launch now. */
bly_status blyi_graph_divert_kernel(struct blyi_stream *stream, struct blyi_kept *kept,
                                    uint32_t site, bool *taken);
/* E_CAPTURING: `what` ("waited for") is not for a stream that is captured. */
bly_status blyi_capture_refuse(const struct blyi_stream *stream, const char *what);
/* The same for destruction, which streams of graphs refuse too. */
bly_status blyi_divert_refuse_end(const struct blyi_stream *stream);
/* Pageable memory in a queued copy. E_INVALID: the stream is captured; E_CAPTURE_MODE. */
bly_status blyi_capture_pageable(const struct blyi_stream *stream);

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

/* The stream is diverted or the event captured: *taken tells whether the call is done. */
bly_status blyi_capture_record(struct blyi_event *event, struct blyi_stream *stream, uint32_t site,
                               bool *taken);
bly_status blyi_capture_wait(struct blyi_event *event, struct blyi_stream *stream,
                             uint64_t timeout_ns, uint32_t site, bool *taken);
bly_status blyi_capture_reset(struct blyi_event *event, struct blyi_stream *stream, uint32_t site,
                              bool *taken);
/* A record or wait for those outside of the graph. E_UNSUPPORTED: the stream is not captured. */
bly_status blyi_capture_external(struct blyi_event *event, struct blyi_stream *stream, bool wait,
                                 uint32_t site);
bool blyi_event_is_capturing(struct blyi_event *event);
/* The event's last record is a common one again, or it ends. */
void blyi_event_forget_capture(struct blyi_event *event);

/* ── Structures ───────────────────────────────────────────────────────────────────────────── */

#define BLYI_NODE_BLOCK 64u   /* nodes allocated at once */
#define BLYI_FEED_NODES 1024u /* nodes put into a ring at once */
#define BLYI_NODE_OWNED 4u

/* Changes that wait for blyi_graph_update(). */
struct blyi_change {
    bool disable;
    struct blyi_kept *kept;
    struct blyi_task task; /* of a word; kind NOP: none */
};

struct blyi_node {
    struct blyi_task task; /* as it stands in a ring when it runs, but for references */
    struct blyi_line *line;
    uint32_t index;  /* in the line */
    uint32_t number; /* in the graph */
    void *handle;    /* made when somebody asks */
    bool disabled;
    struct blyi_group *group;
    struct blyi_kept *kept;           /* KERNEL */
    const struct blyi_line *after;    /* WAIT inside the graph: for whose ... */
    uint32_t after_index;             /* ... record */
    uint32_t external;                /* WAIT or MARK of an event outside: which one */
    struct blyi_condition *condition; /* BODY */
    struct blyi_label_list *labels;   /* JUMP */
    struct blyi_line *target;         /* SWITCH, ACTIVATE */
    struct blyi_change *change;
    struct blyi_owned owned[BLYI_NODE_OWNED];
    uint32_t n_owned;
    uint64_t checked; /* blyi_owned_check() */
};

struct blyi_line {
    struct blyi_divert divert;
    struct blyi_list link; /* of its graph */
    struct blyi_graph *graph;
    struct blyi_stream *stream;   /* executes it; referenced */
    struct blyi_stream *captured; /* the program's, while it diverts; referenced */
    struct blyi_group *group;     /* open */
    struct blyi_node **blocks;
    uint32_t n_blocks, n_nodes;
    uint32_t number;
    bool own;  /* the stream was made for it */
    bool head; /* starts with each run */
    /* Of a run. */
    uint64_t base; /* position of the first FEED */
    uint32_t next; /* node */
    uint32_t n_drops;
    bool active;
};

static inline struct blyi_node *blyi_node_at(const struct blyi_line *line, uint32_t index)
{
    return &line->blocks[index / BLYI_NODE_BLOCK][index % BLYI_NODE_BLOCK];
}

struct blyi_group {
    struct blyi_list link;
    struct blyi_graph *graph; /* referenced */
    void *handle;
    struct blyi_node **nodes;
    uint32_t n, room;
    bool in_update;
};

struct blyi_condition {
    struct blyi_list link;
    struct blyi_graph *graph;
    void *handle;
    uint64_t *word; /* the program can free it */
    struct blyi_owned owned[BLYI_OWNED_RANGE];
    uint32_t n_owned;
    uint64_t checked; /* blyi_owned_check() */
    uint64_t value;
    bool assign;
    enum blyi_condition_kind kind;
    uint32_t n_bodies;
    struct blyi_graph **bodies; /* NULL: not added yet; each referenced */
};

enum blyi_graph_state {
    BLYI_GRAPH_BODY, /* waits to be captured */
    BLYI_GRAPH_CAPTURING,
    BLYI_GRAPH_BUILDING,
    BLYI_GRAPH_READY,
    BLYI_GRAPH_GONE,
};

struct blyi_graph {
    void *handle;
    uint32_t refs;
    uint32_t id;
    uint32_t site;
    struct blyi_context *context; /* compared with `generation` */
    uint64_t generation;
    struct blyi_card *card;
    struct blyi_list link; /* all graphs, under the lock */
    uint32_t state;        /* atomic: enum blyi_graph_state */
    bool built;            /* not captured */
    bool has_end;
    struct blyi_graph *parent; /* of a body */
    char name[BLYI_GRAPH_NAME + 1];

    struct blyi_list lines, groups, conditions, callbacks;
    uint32_t n_lines, n_unbound, n_nodes;
    struct blyi_line *origin; /* where the capture began */
    struct blyi_node **external_waits, **external_records;
    uint32_t n_waits, n_records;

    /* While captured. */
    enum blyi_capture_mode mode;
    uint32_t thread;
    uint32_t n_open; /* groups */
    bool invalid;
    bly_status broken;       /* of the open group */
    char why[BLYI_FAIL_MAX]; /* it is invalid */

    /* Runs; graph_run.c. */
    uint32_t n_queued;         /* atomic, futex: runs that are queued or go on */
    struct blyi_crossing *run; /* the one that goes on */
    struct blyi_stream *runner;
    struct blyi_stream *first, *last; /* who waits for his turn, by `next` */
    uint32_t n_active;                /* lines, and whoever starts them */
    bool ended;                       /* an END task has run */
    bool dropped;
    bool aborted;              /* by blyi_graph_abort() */
    struct blyi_stream *alone; /* of blyi_graph_execute_now() */
};

/* A run: what crosses the graph's border, as it was when the run was queued. */
struct blyi_crossing {
    struct blyi_outcome *outcome; /* referenced; NULL: nobody waits for this run alone */
    struct blyi_run_source *sources;
    bool keeps_sources;
    uint32_t n_waits, n_records;
    struct blyi_passage {
        struct blyi_stream *stream; /* referenced; NULL: nothing to wait for */
        uint64_t position;
        bool passed; /* of a record */
    } places[];      /* waits, then records */
};

/* How a run ended, for the call that waits for it. */
struct blyi_outcome {
    uint32_t refs;
    bly_status status;
    char text[BLYI_FAIL_MAX];
};

static inline enum blyi_graph_state blyi_graph_state(const struct blyi_graph *graph)
{
    return (enum blyi_graph_state)__atomic_load_n(&graph->state, __ATOMIC_ACQUIRE);
}

/* ── graph.c ──────────────────────────────────────────────────────────────────────────────── */

bly_status blyi_graph_make(const struct blyi_context_here *here, uint32_t site,
                           struct blyi_graph **out);
void blyi_graph_ref(struct blyi_graph *graph);
void blyi_graph_unref(struct blyi_graph *graph);
bly_status blyi_graph_pin(void *handle, struct blyi_graph **out);
/* The same; it belongs to the current context. E_GRAPH_CONTEXT. */
bly_status blyi_graph_pin_here(void *handle, struct blyi_graph **out);
void blyi_graph_unpin(struct blyi_graph *graph);
/* Its handle goes, and all that it holds. No run is queued. Without the lock. by_reset: it was not
 * the program that destroyed it. */
void blyi_graph_end(struct blyi_graph *graph, bool by_reset);
/* Adds a line with a stream of its own; under the lock. E_NO_STREAM, E_HOST_MEMORY. */
bly_status blyi_line_make_locked(struct blyi_graph *graph, const struct blyi_context_here *here,
                                 uint32_t site, struct blyi_line **out);
bly_status blyi_line_add_locked(struct blyi_graph *graph, struct blyi_stream *stream, bool own,
                                struct blyi_line **out);
bly_status blyi_stream_make_inside(const struct blyi_context_here *here, uint32_t site,
                                   struct blyi_stream **out);
void blyi_stream_end_inside(struct blyi_stream *stream);
/* graph_name.c: calls and forgets the callbacks of its end. */
void blyi_graph_call_back(struct blyi_graph *graph);

/* ── graph_node.c ─────────────────────────────────────────────────────────────────────────── */

bly_status blyi_node_room_locked(struct blyi_line *line);
/* Behind blyi_node_room_locked(). */
struct blyi_node *blyi_node_add_locked(struct blyi_line *line, const struct blyi_task *task);
/* Appends to one of the graph's arrays of nodes. */
bly_status blyi_node_list(struct blyi_node ***list, uint32_t *n, struct blyi_node *node);
/* Lets go of what the node refers to. */
void blyi_node_release(struct blyi_node *node);
/* Owner only: the record becomes the node's task. Not BLY_OK: it becomes nothing. */
bly_status blyi_node_become(const struct blyi_stream *stream, struct blyi_task *task);
uint64_t blyi_node_position(const struct blyi_line *line, uint32_t index);

/* ── graph_capture.c ──────────────────────────────────────────────────────────────────────── */

/* graph_mode.c */
void blyi_capture_enter_locked(struct blyi_graph *graph, enum blyi_capture_mode mode);
void blyi_capture_leave_locked(struct blyi_graph *graph);
/* No stream goes into the graph any more; it is READY. */
void blyi_capture_finish_locked(struct blyi_graph *graph, enum blyi_graph_state state);
void blyi_capture_invalidate_locked(struct blyi_graph *graph, const char *why);
/* Of a stream that is captured; else NULL. */
struct blyi_line *blyi_capture_line_locked(const struct blyi_stream *stream);
struct blyi_line *blyi_build_line_locked(const struct blyi_stream *stream);
/* Submissions go into the line from now on. */
void blyi_line_divert_locked(struct blyi_line *line, struct blyi_stream *stream);
bly_status blyi_capture_valid_locked(const struct blyi_graph *graph);

/* ── graph_group.c, graph_label.c, graph_condition.c ──────────────────────────────────────── */

bly_status blyi_group_add_locked(struct blyi_group *group, struct blyi_node *node);
void blyi_group_free(struct blyi_group *group);
bly_status blyi_update_kernel(struct blyi_stream *stream, struct blyi_kept *kept, uint32_t site,
                              bool *taken);
void blyi_update_run(struct blyi_task *task);
void blyi_update_discard(struct blyi_task *task);
void blyi_update_cancel_locked(struct blyi_stream *stream);
void blyi_label_list_unref(struct blyi_label_list *list);
/* The node to go on with; E_STATE: the label is not set in that graph. */
bly_status blyi_label_choose(struct blyi_node *node, struct blyi_node **target);
void blyi_condition_free(struct blyi_condition *condition);
/* Under the lock: each body has been captured, bodies in bodies too. */
bool blyi_condition_all_ready_locked(const struct blyi_graph *graph);
/* Words that a run's begin sets, those of bodies too. */
bly_status blyi_condition_assign(struct blyi_graph *graph);
/* The body that the word chooses now; NULL: none. */
bly_status blyi_condition_choose(struct blyi_condition *condition, struct blyi_graph **body);
/* E_FAULT: the program freed the word, whoever has its address now. */
bly_status blyi_condition_check(struct blyi_condition *condition);

/* ── graph_source.c ───────────────────────────────────────────────────────────────────────── */

struct blyi_run_source; /* of one copy */
/* Somebody listens, and some copy of the graph has a pinned source. */
bool blyi_graph_has_sources(const struct blyi_graph *graph);
/* Submitter, of a run that was told and is not yet published. */
void blyi_graph_keep_sources(const struct blyi_task *task);
/* Owner only: what the run kept of the copy; the caller's. NULL: nothing. */
void *blyi_graph_take_source(const struct blyi_node *node);
void blyi_graph_drop_sources(struct blyi_crossing *run);

/* ── graph_run.c ──────────────────────────────────────────────────────────────────────────── */

/* Owner only, for the kinds that are a graph's alone. False: the stream belongs to the run that it
 * began, or waits for; the run hands it to an engine again. */
bool blyi_graph_run(struct blyi_stream *stream, struct blyi_task *task, bly_status *status);
void blyi_graph_discard(struct blyi_task *task);
/* The task is dropped: the failure of what had run for it. */
bly_status blyi_graph_dropped(struct blyi_task *task);
/* The stream's tasks are dropped: the run that it waits for ends so too. [any] */
void blyi_graph_drop_run(struct blyi_stream *stream);
/* Stops kernels of the run that the stream waits for. True: one was running. */
bool blyi_graph_stop_kernels(struct blyi_stream *stream);
/* The caller runs user code of a task in the run that `stream` waits for; `line` executes it. */
bool blyi_graph_is_inside(const struct blyi_stream *line, const struct blyi_stream *stream);
/* The caller runs user code of a task in a run of the graph. */
bool blyi_graph_is_own_run(const struct blyi_graph *graph);
/* The nth stream whose work ends the run that `stream` waits for, referenced: lines of its own run,
 * or whoever runs the graph before it. NULL: there are no more, or it waits for no run. */
struct blyi_stream *blyi_graph_waits_for(const struct blyi_stream *stream, uint32_t n);
/* The stream waits for a run that nothing queued will ever end. */
bool blyi_graph_is_stuck(struct blyi_stream *stream);

/* graph_execute.c: a run that was counted has ended, or will not be. */
void blyi_graph_run_over(struct blyi_graph *graph);

/* ── graph_line.c: what the tasks of a line do that are no tasks as any ───────────────────── */

/* Puts the line's next nodes, or its end, into its ring. */
void blyi_line_feed(struct blyi_line *line);
bly_status blyi_line_jump(struct blyi_task *task, struct blyi_line *line);
bly_status blyi_line_switch(struct blyi_task *task, struct blyi_line *line);
/* graph_run.c: another line of the same graph starts at a node. E_STATE: it is active. */
bly_status blyi_line_start(struct blyi_line *line, uint32_t node, const struct blyi_stream *by);
/* The line goes on at its end. */
void blyi_line_stop(struct blyi_line *line);

/* ── graph_task.c ─────────────────────────────────────────────────────────────────────────── */

/* The task of a handle, with the lock taken until it is given back. */
bly_status blyi_node_take(void *handle, struct blyi_node **node);
void blyi_node_give(void *handle);
enum blyi_graph_task blyi_node_kind(const struct blyi_node *node);

/* ── graph_event.c, graph_border.c
 * ────────────────────────────────────────────────────────────────────────── */

/* Behind blyi_node_room_locked(); the node has a reference to the event. */
struct blyi_node *blyi_node_add_event_locked(struct blyi_line *line, struct blyi_event *event,
                                             enum blyi_task_kind kind, uint32_t site);
/* A place for each record, and what the waits are for. stream: that runs it. outcome: NULL or who
 * hears of the run. *out is NULL where there is nothing of it. E_HOST_MEMORY. */
bly_status blyi_crossing_make(struct blyi_graph *graph, const struct blyi_stream *stream,
                              struct blyi_outcome *outcome, struct blyi_crossing **out);
void blyi_crossing_free(struct blyi_crossing *run);
/* A run is queued: external records of the graph are the events' last ones. */
void blyi_crossing_issue(struct blyi_graph *graph, const struct blyi_crossing *run);
/* Those that wait for the record of this node, in the run that goes on, may go on. */
void blyi_node_pass(const struct blyi_node *node);
/* A run has ended, or will not begin: those whose records it did not come to. */
void blyi_crossing_pass_all(struct blyi_crossing *run);
/* With the sentence of this thread. */
void blyi_crossing_tell(struct blyi_crossing *run, bly_status status);

/* NULL, with a sentence: E_HOST_MEMORY. */
struct blyi_outcome *blyi_outcome_make(const struct blyi_graph *graph);
void blyi_outcome_ref(struct blyi_outcome *outcome);
void blyi_outcome_unref(struct blyi_outcome *outcome);

#endif
