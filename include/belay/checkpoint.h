/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/checkpoint.h - which activations of a chain to keep, and which to compute again.
 *
 * A chain is what training runs: forward through stages 1 .. n, then backward through n .. 1.
 * A schedule says what to do one after another, so that memory stays within a budget and time
 * is short.
 *
 *   forward  i   needs output i-1; leaves output i
 *   save     i   the same, but leaves all that backward i needs, its output included
 *   backward i   needs saved i, output i-1 (alone or inside saved i-1) and gradient i; leaves
 *                gradient i-1 and frees saved i and gradient i
 *   drop     i   frees output i
 *
 * Memory at any time is the chain's input, all outputs and saved sets held, the gradient that
 * is current (that of stage n from the start), and what the running step adds: what it leaves,
 * and its temporary.
 *
 * Units    Sizes are bytes, times are nanoseconds. Stages count from 1.
 * Owner    The caller owns what it passes in; nothing of it is kept after the call. What a
 *          function fills in owns its arrays until its _release().
 * Threads  [any]   safe from any thread at any time
 *          [excl]  nobody else may be using the same object
 * Errors   Functions return a bly_status. Out-parameters are written only on BLY_OK.
 *          bly_last_error() then holds one line of detail.
 */
#ifndef BLY_CHECKPOINT_H
#define BLY_CHECKPOINT_H

#include <belay/base.h>
#include <belay/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BLY_CHAIN_STAGES_MAX 1024
#define BLY_CHAIN_TIME_MAX   ((uint64_t)1 << 42) /* of one stage: 73 minutes */
#define BLY_CHAIN_SIZE_MAX   ((uint64_t)1 << 60) /* of all sizes of a chain together */

typedef struct bly_chain_stage {
    char *name;          /* NULL: none */
    uint64_t forward_ns; /* at most BLY_CHAIN_TIME_MAX, like backward_ns */
    uint64_t backward_ns;
    uint64_t output;
    uint64_t saved;    /* what backward needs, output included: at least output */
    uint64_t gradient; /* of the output */
    uint64_t forward_temp;
    uint64_t backward_temp;
} bly_chain_stage;

typedef struct bly_chain {
    size_t n;                /* 1 .. BLY_CHAIN_STAGES_MAX */
    bly_chain_stage *stages; /* n values; stage i is stages[i - 1] */
    uint64_t input;          /* held from start to end */
    uint64_t unit;           /* bytes that the file counted in; 1 where it did not say */
} bly_chain;

/* Read a chain from a CSV file, or from its text. The header line names the columns, in any
 * order: stage, name (both optional), fwd_us, bwd_us, out, saved, grad, fwd_tmp, bwd_tmp. Times
 * are microseconds with up to three decimals. Lines that start with # are comments, except
 * that `unit_bytes=N` and `input_units=N` in them are read: sizes, and the input's, are counted
 * in that unit. Without them the unit is one byte and the input has none. CRLF is accepted. [any]
 * path, name   what sentences call it
 * E_IO           the file cannot be read
 * E_PARSE        not in this format: the sentence names the line and what is wrong there
 * E_HOST_MEMORY  host memory for the chain */
BLY_API bly_status bly_chain_read(const char *path, bly_chain *chain);
BLY_API bly_status bly_chain_parse(const char *text, size_t length, const char *name,
                                   bly_chain *chain);

/* Free what was read; a zeroed chain is allowed. Not for arrays of the caller's. [excl] */
BLY_API void bly_chain_release(bly_chain *chain);

typedef enum bly_ckpt_kind {
    BLY_CKPT_FORWARD = 0,
    BLY_CKPT_SAVE,      /* the first time or again */
    BLY_CKPT_RECOMPUTE, /* a forward of a stage that ran before */
    BLY_CKPT_DROP,
    BLY_CKPT_BACKWARD
} bly_ckpt_kind;

/* "forward", "save", "recompute", "drop", "backward"; "unknown" for other values. [any] */
BLY_API const char *bly_ckpt_kind_name(bly_ckpt_kind kind);

typedef struct bly_ckpt_op {
    bly_ckpt_kind kind;
    uint32_t stage; /* 1 .. n */
} bly_ckpt_op;

/* Start from bly_ckpt_opts_default(); a zero field means its default. New fields are only ever
 * appended, and struct_size says which ones exist. */
typedef struct bly_ckpt_opts {
    uint32_t struct_size;
    uint32_t persistent; /* not 0: only persistent schedules, see bly_checkpoint() */
    uint32_t unpacked;   /* not 0: no offsets; the budget bounds the sum of live sizes alone */
    uint32_t pack_tries; /* schedules packed until one fits; 0: 32 */
    uint64_t pack_nodes; /* steps of search for each packing; 0: 100,000 */
    uint64_t align;      /* of every offset; 0: 1 */
    uint64_t seed;       /* of the packing */
    uint32_t max_points; /* kept of a part's trade-off; 0: as many as a few seconds allow */
    uint32_t n_threads;  /* for the packing; 0: one */
    const volatile int *cancel; /* not 0 there: stop soon; NULL: cannot be cancelled */
} bly_ckpt_opts;

static inline bly_ckpt_opts bly_ckpt_opts_default(void)
{
    bly_ckpt_opts o = {0, 0, 0, 0, 0, 0, 0, 0, 0, NULL};
    o.struct_size = (uint32_t)sizeof(o);
    return o;
}

typedef struct bly_ckpt_schedule {
    size_t n_ops;
    bly_ckpt_op *ops;
    uint64_t budget;        /* as asked for */
    uint64_t time_ns;       /* of all steps */
    uint64_t base_ns;       /* each stage once: what unlimited memory takes */
    uint64_t persistent_ns; /* of the best persistent one, packed or not; UINT64_MAX: none */
    uint64_t peak;          /* largest sum of live sizes */
    uint64_t packed_peak;   /* largest end of a buffer; 0 where opts->unpacked */
    int exact;              /* persistent_ns is the smallest possible: nothing was left out */
    size_t n_buffers;       /* as bly_checkpoint_buffers() gives them; 0 where opts->unpacked */
    bly_plan_buffer *buffers;
    uint64_t *offsets; /* n_buffers values */
} bly_ckpt_schedule;

/* The schedule of least time whose memory fits `budget`, the chain's input included. [any]
 *
 * Exact among persistent schedules: those that hold what they keep until its last use, and a
 * saved set only together with its input (as Chen's segments, revolve and rotor do). Unless
 * opts->persistent, also searched are schedules that save a stage early, drop its input and compute
 * that again; they are never slower. With packing (the default) the schedule is the fastest found
 * whose buffers have offsets within the budget. Time grows with the number of different stages:
 * milliseconds for 100 layers of a few kinds, seconds for 100 stages that all differ. Each schedule
 * is replayed by bly_checkpoint_replay() before it is returned. The result depends on the arguments
 * alone.
 *
 * E_INVALID      the chain or opts is outside its contract: the sentence names the stage
 * E_NO_MEMORY    no schedule fits; the sentence says what the smallest one found needs
 * E_CANCELLED    cancelled
 * E_HOST_MEMORY  host memory for the work itself */
BLY_API bly_status bly_checkpoint(const bly_chain *chain, uint64_t budget,
                                  const bly_ckpt_opts *opts, bly_ckpt_schedule *schedule);

/* Free what a schedule owns; a zeroed one is allowed. [excl] */
BLY_API void bly_ckpt_schedule_release(bly_ckpt_schedule *schedule);

typedef struct bly_ckpt_point {
    uint64_t budget; /* smallest at which time_ns is reached */
    uint64_t time_ns;
    uint64_t persistent_ns; /* the best persistent schedule there; UINT64_MAX: none */
} bly_ckpt_point;

typedef struct bly_ckpt_front {
    size_t n;
    bly_ckpt_point *points; /* n values: budgets rise, times fall */
    uint64_t base_ns;
    int exact; /* as in bly_ckpt_schedule */
} bly_ckpt_front;

/* All trade-offs between memory and time in one go: for any budget, the last point at or
 * below it. Budgets bound the sum of live sizes, not the packed peak. [any]
 * Errors as bly_checkpoint(); there is always a point. */
BLY_API bly_status bly_checkpoint_front(const bly_chain *chain, const bly_ckpt_opts *opts,
                                        bly_ckpt_front *front);
BLY_API void bly_ckpt_front_release(bly_ckpt_front *front);

typedef struct bly_ckpt_replay {
    uint64_t time_ns;
    uint64_t peak;
    size_t peak_op;    /* the step at which the peak is first reached */
    size_t n_forwards; /* steps of kind forward, save and recompute */
} bly_ckpt_replay;

/* Carry a schedule out on paper, knowing nothing of how it was made. [any]
 * curve  n_ops values, memory while each step runs; NULL: not wanted
 * E_INVALID      a step lacks something, is of an unknown kind or stage, or repeats what is
 *                there; the last step is not backward 1 with nothing left: the sentence names
 *                the step
 * E_HOST_MEMORY  host memory for the state */
BLY_API bly_status bly_checkpoint_replay(const bly_chain *chain, const bly_ckpt_op *ops,
                                         size_t n_ops, bly_ckpt_replay *replay, uint64_t *curve);

/* What a schedule allocates, for bly_plan(): lifetimes are numbers of steps. A saved set is two
 * buffers, its output and the rest. Empty ones are left out. [any]
 * *buffers  *n_buffers values, freed by bly_checkpoint_buffers_free()
 * Errors as bly_checkpoint_replay(). */
BLY_API bly_status bly_checkpoint_buffers(const bly_chain *chain, const bly_ckpt_op *ops,
                                          size_t n_ops, bly_plan_buffer **buffers,
                                          size_t *n_buffers);
BLY_API void bly_checkpoint_buffers_free(bly_plan_buffer *buffers);

#ifdef __cplusplus
}
#endif
#endif
