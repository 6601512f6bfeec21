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
struct blyi_launch;
struct blyi_notify;
struct blyi_report;
struct blyi_stream;

enum blyi_task_kind {
    BLYI_TASK_NOP,
    BLYI_TASK_COPY,
    BLYI_TASK_COPY2D,
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
};

/* Pinned host blocks that are held until the task has ended. */
#define BLYI_TASK_HOLDS_DST 1u
#define BLYI_TASK_HOLDS_SRC 2u

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
        } copy;
        struct {
            void *dst;
            const void *src;
            uint64_t dpitch, spitch, width, height;
        } copy2d;
        struct {
            void *dst;
            uint64_t size;
        } set;
        struct {
            struct blyi_event *event;  /* referenced by the task */
            struct blyi_stream *after; /* modern wait: whose record; NULL: nothing to wait for */
            uint64_t position;         /* of that record */
            uint64_t timeout_ns;       /* 0: none */
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
        uint64_t words[6];
    } u;
};

_Static_assert(sizeof(struct blyi_task) == BLYI_CACHE_LINE, "a task is one cache line");

#endif
