/* SPDX-License-Identifier: Apache-2.0
 *
 * task.h - one record of a stream's ring: a cache line, written by the submitter, read by
 * whoever owns the stream.
 *
 *      0        8    9     10      12     16                        64
 *     [ ticket | kind flags spare  value | site |  operands (48)     ]
 *
 * `ticket` is the record's position + 1 once the rest may be read; anything else means that the
 * record of that position is not there yet. It is never cleared: the next round's differs.
 */
#ifndef BLYI_TASK_H
#define BLYI_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

struct blyi_event;
struct blyi_graph;
struct blyi_launch;
struct blyi_line;
struct blyi_node;
struct blyi_notify;
struct blyi_report;
struct blyi_crossing;
struct blyi_stream;

enum blyi_task_kind {
    BLYI_TASK_NOP,
    BLYI_TASK_COPY,
    BLYI_TASK_COPY2D,
    BLYI_TASK_COPY_INDIRECT,
    BLYI_TASK_SET,
    BLYI_TASK_RECORD,
    BLYI_TASK_WAIT,
    BLYI_TASK_RESET,
    BLYI_TASK_HOST_FUNC, /* user code on the context's thread; the stream waits */
    BLYI_TASK_CALLBACK,  /* user code on a report thread */
    BLYI_TASK_KERNEL,
    BLYI_TASK_NOTIFY_RECORD,
    BLYI_TASK_NOTIFY_WAIT,
    BLYI_TASK_VALUE_WRITE,
    BLYI_TASK_VALUE_WAIT,
    BLYI_TASK_REDUCE,
    BLYI_TASK_RETIRE, /* the last task of a stream: its owner lets the stream go for ever */

    /* Of graphs (graph.h); those up to GRAPH stand in rings only. */
    BLYI_TASK_NODE,  /* becomes the task that the graph holds there */
    BLYI_TASK_FEED,  /* puts the line's next tasks into its ring */
    BLYI_TASK_DONE,  /* the line has ended */
    BLYI_TASK_GRAPH, /* a run of a graph; the stream waits for it */
    BLYI_TASK_UPDATE,
    BLYI_TASK_MARK,     /* an event recorded for those outside of the graph */
    BLYI_TASK_BODY,     /* a condition chooses a graph to run */
    BLYI_TASK_JUMP,     /* to a label, by an index in memory */
    BLYI_TASK_SWITCH,   /* to a stream, by a comparison in memory */
    BLYI_TASK_ACTIVATE, /* starts another stream of the graph */
    BLYI_TASK_END,      /* the run has reached its end */
};
#define BLYI_TASK_RARE BLYI_TASK_RETIRE /* from here on, kinds that engines meet rarely */

/* Pinned host blocks that are held until the task has ended. */
#define BLYI_TASK_HOLDS_DST 1u
#define BLYI_TASK_HOLDS_SRC 2u
/* Of a graph's task: it has run, or its run has begun. */
#define BLYI_TASK_BEGUN 4u
/* An event's record or wait that crosses the border of a graph (ACL_EVENT_*_EXTERNAL). */
#define BLYI_TASK_EXTERNAL 8u

struct blyi_task {
    uint64_t ticket;
    uint8_t kind;
    uint8_t flags;
    uint8_t value; /* SET; how notifies and words change and compare; REDUCE: kind */
    uint8_t spare;
    uint32_t site;
    union {
        struct {
            void *dst;
            const void *src;
            uint64_t size;
            void *kept; /* source.h; NULL: nothing is compared */
        } copy;
        struct {
            void *dst;
            const void *src;
            uint64_t dpitch, spitch, width, height;
        } copy2d;
        struct {
            const void *dst_word, *src_word; /* of the card, which hold the addresses; dst_word */
            uint64_t dst_offset, src_offset; /* NULL: src_word is a descriptor */
            uint64_t size;
        } indirect;
        struct {
            void *dst;
            uint64_t size;
        } set;
        struct {
            struct blyi_event *event;  /* referenced by the task */
            struct blyi_stream *after; /* modern wait: whose record; NULL: nothing to wait for */
            uint64_t position;         /* of that record */
            uint64_t timeout_ns;       /* 0: none */
            uint32_t lane, generation; /* shared events: see signal.h */
            uint32_t of;               /* id of the stream of that record; for probes */
        } event;
        struct {
            void (*fn)(void *);
            void *arg;
        } host;
        struct {
            struct blyi_report *report; /* owned by the task until it runs */
        } callback;
        struct {
            struct blyi_launch *launch; /* owned by the task */
        } kernel;
        struct {
            struct blyi_notify *notify; /* referenced by the task */
            uint64_t timeout_ns;
            uint32_t value;
            bool clear;
        } notify;
        struct {
            uint64_t *address;
            uint64_t value;
        } value;
        struct {
            void *dst;
            const void *src;
            uint64_t size;
            uint32_t type;
        } reduce;
        struct {
            struct blyi_node *node;
        } node;
        struct {
            struct blyi_line *line;
        } line;
        struct {
            struct blyi_graph *graph;  /* GRAPH: referenced; BODY: the one that runs */
            struct blyi_crossing *run; /* owned; NULL: nothing to know of it */
            struct blyi_stream *stream;
            struct blyi_node *node; /* BODY */
        } graph;
        struct {
            struct blyi_graph *graph; /* referenced */
            struct blyi_node *node;
            struct blyi_launch *launch; /* owned */
        } update;
        uint64_t words[6];
    } u;
};

_Static_assert(sizeof(struct blyi_task) == BLYI_CACHE_LINE, "a task is one cache line");

#endif
