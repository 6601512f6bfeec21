/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/plan.h - offsets for buffers whose lifetimes are known beforehand.
 *
 * Units    Sizes, offsets and alignments are bytes. Lifetimes are half-open [lower, upper) in
 *          any unit of the caller's. Durations are nanoseconds.
 * Owner    The caller owns what it passes in; nothing of it is kept after the call. A result
 *          owns its arrays until bly_plan_release().
 * Threads  [any]   safe from any thread at any time
 *          [excl]  nobody else may be using the same result
 * Errors   Functions return a bly_status. Out-parameters are written only on BLY_OK.
 *          bly_last_error() then holds one line of detail.
 *
 * Planning is pure: it touches no device and keeps no state between calls.
 */
#ifndef BLY_PLAN_H
#define BLY_PLAN_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BLY_PLAN_FREE (-1) /* of offset, hint and region: not given */

/* A part [lower, upper) of a buffer's lifetime in which only the bytes [keep_lower, keep_upper)
 * of it are in use; keep_lower == keep_upper: none, so that others may lie there meanwhile. */
typedef struct bly_plan_gap {
    int64_t lower, upper;
    uint64_t keep_lower, keep_upper;
} bly_plan_gap;

typedef struct bly_plan_buffer {
    int64_t lower, upper; /* lower < upper */
    uint64_t size;        /* above 0 */
    uint64_t align;       /* of the offset, any number; 0: opts->align */
    int64_t offset;       /* where it must lie, or BLY_PLAN_FREE */
    int64_t hint;         /* where it lay in an earlier plan, or BLY_PLAN_FREE */
    int32_t region;       /* where it must lie, 0 .. n_regions - 1, or BLY_PLAN_FREE */
    uint32_t n_gaps;
    const bly_plan_gap *gaps; /* n_gaps values, ascending, apart from each other, inside */
} bly_plan_buffer;

/* One buffer without wishes. */
static inline bly_plan_buffer bly_plan_buffer_make(int64_t lower, int64_t upper, uint64_t size)
{
    bly_plan_buffer b = {0, 0, 0, 0, BLY_PLAN_FREE, BLY_PLAN_FREE, BLY_PLAN_FREE, 0, NULL};
    b.lower = lower;
    b.upper = upper;
    b.size = size;
    return b;
}

/* What has been reached so far. Both figures only ever get better. */
typedef struct bly_plan_progress {
    uint64_t peak, lower_bound;
    uint64_t elapsed_ns;
    const char *solver; /* who found it; static storage */
} bly_plan_progress;

/* Start from bly_plan_opts_default(); a zero field means its default. New fields are only ever
 * appended, and struct_size says which ones exist. */
typedef struct bly_plan_opts {
    uint32_t struct_size;       /* bytes, set by bly_plan_opts_default() */
    uint32_t n_threads;         /* at most so many work; 0: one per core */
    uint64_t align;             /* of every offset unless the buffer has its own; 0: 1 */
    uint64_t deadline_ns;       /* from the start of the call; 0: 1 s, UINT64_MAX: none */
    uint64_t node_budget;       /* steps of search; 0: as many as the deadline allows */
    uint64_t seed;              /* of every random choice */
    const uint64_t *capacity;   /* n_regions values; 0: no limit. NULL: no limits */
    uint32_t n_regions;         /* 0: one */
    uint32_t improve;           /* not 0: go on below the capacity; else stop where it fits */
    const volatile int *cancel; /* not 0 there: stop soon; NULL: cannot be cancelled */
    void (*progress)(const bly_plan_progress *progress, void *arg); /* caller's thread */
    void *progress_arg;
} bly_plan_opts;

static inline bly_plan_opts bly_plan_opts_default(void)
{
    bly_plan_opts o = {0, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL};
    o.struct_size = (uint32_t)sizeof(o);
    return o;
}

typedef struct bly_plan_result {
    size_t n;         /* buffers */
    uint64_t *offset; /* n values, inside the buffer's region */
    uint32_t *region; /* n values; NULL when there is one region */
    uint32_t n_regions;
    uint64_t *region_peak; /* n_regions values: largest end of a buffer */
    uint64_t peak;         /* sum of region_peak */
    uint64_t lower_bound;  /* no plan has a smaller peak: proven, not estimated */
    double gap;            /* (peak - lower_bound) / lower_bound; 0 for no buffers */
    int optimal;           /* peak is the smallest possible: proven */
    int cancelled;         /* stopped by the cancel flag */
    uint64_t nodes;        /* steps of search taken */
    uint64_t elapsed_ns;
    const char *solver; /* who found the plan; static storage */
} bly_plan_result;

/* Plan n buffers: no two that live at the same time overlap in a region. [any]
 *
 * The first plan is made in O(n log n); the deadline bounds the search for better ones, so a
 * call with a deadline that is too short still returns a plan, a little late. With a node
 * budget and no effective deadline the result depends on the arguments alone, not on the
 * machine, its load or n_threads. Every plan is checked by a sweep that shares nothing with
 * the solvers before it is returned or reported. Blocks for up to the deadline; starts up to
 * n_threads - 1 threads and ends them.
 *
 * Region 0 is filled first, with what is large and long-lived, then region 1 and so on.
 *
 * E_INVALID      buffers[i] has upper <= lower, size 0, an align, offset or gap outside its
 *                contract, or the sizes sum to more than 2^62; two fixed buffers overlap;
 *                opts has an unknown struct_size
 * E_NO_MEMORY    no plan within the capacities was found; the sentence says whether none exists
 * E_CANCELLED    cancelled before there was a first plan
 * E_HOST_MEMORY  host memory for the work itself */
BLY_API bly_status bly_plan(const bly_plan_buffer *buffers, size_t n, const bly_plan_opts *opts,
                            bly_plan_result *result);

/* Free what a result owns; a zeroed result is allowed. [excl] */
BLY_API void bly_plan_release(bly_plan_result *result);

/* Check offsets (and regions, NULL: one region) against the buffers by a sweep over time;
 * *peak is the largest end of a buffer, summed over regions. [any]
 * E_INVALID      two buffers overlap, or one is misaligned or not where it is fixed: the
 *                sentence names them
 * E_HOST_MEMORY  host memory for the sweep */
BLY_API bly_status bly_plan_verify(const bly_plan_buffer *buffers, size_t n, uint64_t align,
                                   const uint64_t *offset, const uint32_t *region, uint64_t *peak);

/* The repeating part of a sequence of allocations: buffers are taken in order of birth, and
 * two steps are the same when 95 of 100 have the same size and about the same lifetime. Where
 * that finds nothing, lifetimes of 80 of 100 decide: steps of a model whose shapes vary. */
typedef struct bly_plan_period {
    int64_t start;    /* time at which the first full step begins */
    int64_t length;   /* of the first step, in the buffers' unit of time */
    size_t n_steps;   /* steps that repeat, at least 2 */
    size_t first;     /* position, in order of birth, of the first buffer of a step */
    size_t n_buffers; /* born in each step */
    int sizes_differ; /* steps are alike in lifetimes only */
} bly_plan_period;

/* Find the step that covers most buffers. It covers at least a third of them, and at most one in
 * twenty that are born in it stays for good; it begins where least is live. [any]
 * E_STATE        there is none: the sentence says what repeats longest
 * E_INVALID, E_HOST_MEMORY  as bly_plan() */
BLY_API bly_status bly_plan_find_period(const bly_plan_buffer *buffers, size_t n,
                                        bly_plan_period *period);

/* Buffers read from a text. */
typedef struct bly_plan_input {
    size_t n;
    bly_plan_buffer *buffers; /* n values */
    char **ids;               /* n values: what the text calls them */
    bly_plan_gap *gaps;       /* what buffers[].gaps point into */
    char *names;              /* what ids point into */
    int is_trace;             /* lifetimes are numbers of events */
    int32_t *streams;         /* n values: what a trace allocates on; 0 without one */
} bly_plan_input;

/* Read buffers from the text of a CSV file or of a TSV allocation trace. [any]
 *
 * CSV: the header line names the columns, in any order: id (or buffer, buffer_id), lower (or
 * start), upper (or end, which is then included in the lifetime), size; optional alignment,
 * offset, hint, region, gaps. An empty field or -1 is "not given". Gaps are separated by blanks,
 * each "lower-upper" or "lower-upper@keep_lower:keep_upper". Lines that start with # are
 * comments; CRLF is accepted.
 * TSV: columns time_us, op, id, bytes, stream, tag; operations a, f and d count, others are
 * skipped. Lifetimes are numbers of events; a block that is never freed lives to the end, one
 * whose use on another stream ends later lives to its d.
 *
 * name  what sentences call the text
 * E_PARSE        not in one of these formats: the sentence names the line and what is wrong there
 * E_HOST_MEMORY  host memory for the buffers */
BLY_API bly_status bly_plan_parse(const char *text, size_t length, const char *name,
                                  bly_plan_input *input);

/* Free what was read; a zeroed input is allowed. [excl] */
BLY_API void bly_plan_input_release(bly_plan_input *input);

#ifdef __cplusplus
}
#endif
#endif
