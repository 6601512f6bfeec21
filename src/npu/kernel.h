/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.h - kernels as tasks: what a launch keeps, how it runs, what becomes of one that faults.
 */
#ifndef BLYI_KERNEL_H
#define BLYI_KERNEL_H

#include <belay/kernel.h>
#include <stdalign.h>
#include <stdbool.h>
#include "base/compiler.h"
#include "npu/engine.h"
#include "npu/fault.h"
#include "npu/owned.h"

struct blyi_binary;
struct blyi_stream;
struct blyi_task;

#define BLYI_KERNEL_NAME 64

/* A place in the argument block that shall hold the address of another place in it. */
struct blyi_kernel_patch {
    uint32_t pointer_at, data_at;
};

struct blyi_kernel_call {
    bly_kernel fn;
    const void *args;
    size_t args_size;
    bly_engine engine;
    uint32_t n_blocks;
    const bly_range *ranges;
    size_t n_ranges;
    const struct blyi_kernel_patch *patches;
    size_t n_patches;
    bool args_on_card;          /* `args` is read when the task runs */
    bool scan;                  /* blocks that the arguments point into count as declared */
    bool tell_overflow;         /* to the context (overflow.h) */
    const char *name;           /* copied; NULL: found out when needed */
    struct blyi_binary *binary; /* referenced by the task; NULL: none */
    void *function;             /* handle, told to exception callbacks */
    uint64_t timeout_us;        /* 0: the process's default (watch.h) */
    uint32_t site;
};

/* Errors as bly_kernel_launch(). */
bly_status blyi_kernel_launch(const struct blyi_kernel_call *call, void *stream);

/* What a launch leaves behind for the one who runs and completes it. Small ones lie in the
 * stream's own slots, one beside each record of its ring; others are allocated.
 *
 *      0          64                  128    192
 *     [ launcher | engine, if it faults | name | ranges | argument block, 64-aligned ]
 *
 * The launcher writes the first and the last, the engine reads them: two lines change sides. */
struct blyi_launch {
    bly_kernel fn;
    struct blyi_binary *binary;
    void *function;
    const void *card_args; /* args_on_card */
    uint64_t timeout_us;
    uint32_t tid; /* who launched it */
    uint32_t n_blocks;
    uint32_t args_size;
    uint16_t n_ranges;
    uint16_t args_at; /* offset of the argument block in this structure */
    uint8_t engine;   /* bly_engine */
    bool scan;
    bool allocated;
    bool expired; /* it was stopped because it ran too long */
    bool tell_overflow;
    bool is_kept; /* by a graph: `kept` is set */

    alignas(BLYI_CACHE_LINE) struct blyi_fault_kernel fault;
    uint32_t block; /* the one that runs */
    struct blyi_kept *kept;

    alignas(BLYI_CACHE_LINE) char name[BLYI_KERNEL_NAME]; /* "": found out when needed */

    bly_range ranges[]; /* then the argument block */
};

#define BLYI_LAUNCH_SLOT 512u /* bytes of a slot */

static inline void *blyi_launch_args(struct blyi_launch *launch)
{
    return (char *)launch + launch->args_at;
}

/* A launch that a graph keeps and runs many times, never twice at once. */
struct blyi_kept {
    uint32_t refs;
    struct blyi_launch *launch;
    uint64_t checked; /* blyi_owned_check() */
    uint32_t n_owned;
    struct blyi_owned owned[]; /* blocks of its ranges and of what its arguments point into */
};

/* Errors as bly_kernel_launch(). One reference. */
bly_status blyi_kernel_keep(const struct blyi_kernel_call *call, struct blyi_kept **out);
void blyi_kept_ref(struct blyi_kept *kept);
void blyi_kept_unref(struct blyi_kept *kept);

/* A stream that never launched has none. */
void blyi_launch_slots_free(struct blyi_launch *slots);

enum blyi_engine_kind blyi_kernel_engine(const struct blyi_task *task);
/* Owner only. False: the kernel was left in the middle; the thread hands the stream over, and
 * another one gets the status of the task from blyi_kernel_failed(). */
bool blyi_kernel_run(struct blyi_stream *stream, struct blyi_task *task, bly_status *status);
bly_status blyi_kernel_failed(struct blyi_stream *stream, struct blyi_task *task);
void blyi_kernel_discard(struct blyi_task *task);
/* Ends the kernel of the stream that runs now, if one does, and waits until it has ended. True:
 * one was running. [any] */
bool blyi_kernel_stop(struct blyi_stream *stream);

#endif
