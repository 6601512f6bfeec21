/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h - graphs of tasks: captured from streams or built, then run as a whole, many times.
 *
 *   capture begin ── tasks of the stream go into the graph ── capture end ── run, run, run
 *        │                                                        ▲
 *        └─ an event recorded there and waited for on another ────┘ joined back by an event
 *           stream takes that one in
 *
 * A graph has a line of tasks for each stream; a stream of its own executes each line. A graph
 * runs once at a time: a stream that comes while another runs it waits for its turn. The stream
 * that asked for a run waits for all of the graph's lines, and gets the run's first failure.
 *
 * Handles are checked in every call. Design: docs/design/graph.md.
 */
#ifndef BLYI_GRAPH_H
#define BLYI_GRAPH_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/kernel.h"
#include "npu/task.h"

struct blyi_context;

/* ── Capture ──────────────────────────────────────────────────────────────────────────────── */

/* As AscendCL numbers them. What each forbids: graph.md. */
enum blyi_capture_mode {
    BLYI_CAPTURE_GLOBAL,
    BLYI_CAPTURE_THREAD,
    BLYI_CAPTURE_RELAXED,
    BLYI_CAPTURE_MODES,
};

enum blyi_capture_status { BLYI_CAPTURE_NONE, BLYI_CAPTURE_ACTIVE, BLYI_CAPTURE_INVALIDATED };

/* body: a conditional task's graph to capture into; NULL: a new graph. E_UNSUPPORTED: a default or
 * a persistent stream; E_CAPTURING; E_GRAPH_CAPTURING: the body has been captured; E_INVALID: no
 * body; E_GRAPH_STREAM: bound to a graph; E_NO_STREAM: the line needs one. [any] */
bly_status blyi_capture_begin(void *stream, void *body, enum blyi_capture_mode mode, uint32_t site);
/* Ends the capture whatever it returns, but for E_NOT_CAPTURING, E_CAPTURE_ORIGIN,
 * E_CAPTURE_THREAD and E_INVALID (graph NULL, and no body). E_CAPTURE_INVALID, E_UNJOINED,
 * E_GROUP_STATE, E_CAPTURE_OPEN: there is no graph then. */
bly_status blyi_capture_end(void *stream, void **graph);
/* Either may be NULL. *graph is NULL for a stream that is not captured. */
bly_status blyi_capture_info(void *stream, enum blyi_capture_status *status, void **graph);
/* Sets what the calling thread lets captures forbid; returns what was set. E_NO_CONTEXT. */
bly_status blyi_capture_exchange(enum blyi_capture_mode *mode);

/* Whether this thread may copy and set at once. E_CAPTURE_MODE. */
bly_status blyi_capture_allows_now(void);
/* E_CAPTURING: some stream of the context is captured, so it cannot be waited for as a whole. */
bly_status blyi_capture_none(const struct blyi_context *context);
/* Ends the captures of a context that is torn down. */
void blyi_capture_cancel(struct blyi_context *context);

/* ── Graphs ───────────────────────────────────────────────────────────────────────────────── */

/* Queues a run. stream NULL: default. E_GRAPH_CAPTURING; E_GRAPH_CONTEXT; E_INVALID: a body, which
 * runs with its condition. */
bly_status blyi_graph_execute(void *graph, void *stream, uint32_t site);
/* Runs and waits, in the order of no stream. timeout_ns 0: no limit. E_TIMEOUT: it goes on. */
bly_status blyi_graph_execute_now(void *graph, uint64_t timeout_ns, uint32_t site);
/* Waits up to 10 s for queued runs, then E_GRAPH_RUNNING and nothing has changed. Calls the
 * callbacks. E_GRAPH_CAPTURING; E_UNSUPPORTED: a body. */
bly_status blyi_graph_destroy(void *graph);
/* Ends a run that goes on. E_UNSUPPORTED: a captured graph. */
bly_status blyi_graph_abort(void *graph);
bly_status blyi_graph_on_destroy(void *graph, void (*fn)(void *), void *arg);
/* E_INVALID: fn was not registered. */
bly_status blyi_graph_off_destroy(void *graph, void (*fn)(void *));
#define BLYI_GRAPH_NAME 512
bly_status blyi_graph_set_name(void *graph, const char *name); /* cut to BLYI_GRAPH_NAME */
bly_status blyi_graph_name(void *graph, size_t size, char *name);
bly_status blyi_graph_id(void *graph, uint32_t *id);
/* Into the log; into a file as a trace that chrome://tracing shows. verbose: arguments of kernels
 * too. E_IO. */
bly_status blyi_graph_log(void *graph);
bly_status blyi_graph_print(void *graph, const char *path, bool verbose);
/* A pinned buffer of ours that a task just submitted to `stream` (NULL: default) copies from: true
 * when that went into a graph, which frees the buffer at its end. */
bool blyi_graph_keep_buffer(void *stream, void *buffer);
/* Graphs of a context whose streams have ended. */
void blyi_graph_end_all(struct blyi_context *context, bool by_reset);

/* ── Conditions ───────────────────────────────────────────────────────────────────────────── */

enum blyi_condition_kind { BLYI_CONDITION_IF, BLYI_CONDITION_WHILE, BLYI_CONDITION_SWITCH };

/* A word of card memory that belongs to the graph. assign: it is set to `value` when a run of the
 * whole begins. E_INVALID: the graph is not being captured. */
bly_status blyi_condition_create(void *graph, uint32_t value, bool assign, uint32_t site,
                                 void **handle);
bly_status blyi_condition_word(void *handle, uint64_t **word);
/* Adds a task that runs one of `size` new bodies. E_INVALID: size, a used handle, a handle of
 * another graph; E_NOT_CAPTURING. */
bly_status blyi_condition_add(void *handle, enum blyi_condition_kind kind, uint32_t size,
                              void *bodies[], void *stream, uint32_t site);

/* ── Groups of tasks that may be changed ──────────────────────────────────────────────────── */

/* E_NOT_CAPTURING; E_GROUP_STATE. */
bly_status blyi_group_begin(void *stream);
bly_status blyi_group_end(void *stream, void **group);
/* Kernels launched on `stream` (not captured) up to the end replace those of the group, in the
 * order of that stream. */
bly_status blyi_update_begin(void *stream, void *group);
/* E_STATE: fewer kernels than the group has. */
bly_status blyi_update_end(void *stream);

/* ── Tasks ────────────────────────────────────────────────────────────────────────────────── */

/* *n: room in the array; how many there are. array NULL: only that. E_TOO_SHORT. */
bly_status blyi_graph_streams(void *graph, void *streams[], uint32_t *n);
/* E_INVALID: not a graph's stream; E_UNSUPPORTED: a body's. */
bly_status blyi_graph_tasks(void *stream, void *tasks[], uint32_t *n);

/* As AscendCL numbers them. */
enum blyi_graph_task {
    BLYI_GRAPH_OTHER,
    BLYI_GRAPH_KERNEL,
    BLYI_GRAPH_RECORD,
    BLYI_GRAPH_WAIT,
    BLYI_GRAPH_RESET,
    BLYI_GRAPH_WRITE,
    BLYI_GRAPH_VALUE_WAIT,
};

struct blyi_graph_params {
    enum blyi_graph_task kind;
    void *group; /* its handle; NULL: in none */
    union {
        struct {
            void *function, *args;
            size_t args_size;
            uint32_t n_blocks;
            bool args_on_card;
        } kernel;
        struct {
            void *event;
            uint32_t flags; /* of its creation */
            bool external;
        } event;
        struct {
            void *address;
            uint64_t value;
            uint32_t condition;
        } value;
    } u;
};

bly_status blyi_graph_task_kind(void *task, enum blyi_graph_task *kind);
bly_status blyi_graph_task_number(void *task, uint32_t *number);
bly_status blyi_graph_task_params(void *task, struct blyi_graph_params *params);
/* Changes take effect with blyi_graph_update(). E_GRAPH_UPDATE: the graph runs. kernel: for a
 * kernel task; else a word's address, value and condition. E_INVALID: of another kind. */
bly_status blyi_graph_task_set_kernel(void *task, const struct blyi_kernel_call *kernel);
bly_status blyi_graph_task_set_value(void *task, bool wait, void *address, uint64_t value,
                                     uint32_t condition);
bly_status blyi_graph_task_disable(void *task);
bly_status blyi_graph_update(void *graph);

/* ── Building ─────────────────────────────────────────────────────────────────────────────── */

/* Tasks of bound streams go into the graph until it is built, then its lines run on them. */
bly_status blyi_graph_build(uint32_t site, void **graph);
/* A PERSISTENT stream. head: the line starts with each run; else another line activates it. */
bly_status blyi_graph_bind(void *graph, void *stream, bool head);
bly_status blyi_graph_unbind(void *graph, void *stream);
/* Where a run is complete; one for a graph. */
bly_status blyi_graph_end_task(void *graph, void *stream, uint32_t site);
/* E_STATE: no stream bound, or no end. */
bly_status blyi_graph_build_end(void *graph);
/* Tasks of bound streams. */
bly_status blyi_graph_activate(void *target, void *stream, uint32_t site);

enum blyi_compare { BLYI_EQ, BLYI_NE, BLYI_GT, BLYI_GE, BLYI_LT, BLYI_LE };
bly_status blyi_graph_switch(const void *left, enum blyi_compare compare, const void *right,
                             bool is_64, void *target, void *stream, uint32_t site);

bly_status blyi_label_create(void **label);
bly_status blyi_label_destroy(void *label);
/* E_STATE: set already. */
bly_status blyi_label_set(void *label, void *stream, uint32_t site);
bly_status blyi_label_list_create(void *const labels[], size_t n, void **list);
bly_status blyi_label_list_destroy(void *list);
/* To the label with the number at `index`, or the last one if it is beyond. */
bly_status blyi_label_switch(const void *index, uint32_t max, void *list, void *stream,
                             uint32_t site);

#endif
