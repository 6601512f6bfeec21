/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_mode.c - what captures forbid in which thread.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"

#define NO_MODE BLYI_CAPTURE_MODES

/* What the calling thread lets captures forbid. */
static _Thread_local enum blyi_capture_mode exchanged = BLYI_CAPTURE_GLOBAL;
static uint32_t n_captures; /* of the process: most have none */

static int strictest(const uint32_t counts[])
{
    int mode = 0;
    while (mode < BLYI_CAPTURE_MODES && __atomic_load_n(&counts[mode], __ATOMIC_ACQUIRE) == 0)
        mode++;
    return mode;
}

static bool allows(int context_mode, int thread_mode)
{
    if (context_mode == NO_MODE || exchanged == BLYI_CAPTURE_RELAXED)
        return true;
    if (exchanged == BLYI_CAPTURE_GLOBAL)
        return context_mode != BLYI_CAPTURE_GLOBAL && thread_mode != BLYI_CAPTURE_THREAD;
    return thread_mode != BLYI_CAPTURE_GLOBAL && thread_mode != BLYI_CAPTURE_THREAD;
}

/* Of the captures that the calling thread began. */
static int own_mode(const struct blyi_context *context)
{
    int mode = NO_MODE;
    blyi_lock_take(&blyi_graphs_lock);
    BLYI_LIST_FOR(node, &blyi_graphs)
    {
        const struct blyi_graph *graph = BLYI_CONTAINER(node, struct blyi_graph, link);
        if (blyi_graph_state(graph) == BLYI_GRAPH_CAPTURING && graph->context == context &&
            graph->thread == (uint32_t)blyi_own_tid() && (int)graph->mode < mode)
            mode = (int)graph->mode;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return mode;
}

bly_status blyi_capture_allows_now(void)
{
    static const char *const names[] = {"global", "thread-local", "relaxed", "no"};
    if (likely(__atomic_load_n(&n_captures, __ATOMIC_ACQUIRE) == 0))
        return BLY_OK;
    struct blyi_context_here here;
    if (blyi_context_look(&here, 0) != BLY_OK) {
        blyi_fail_clear(); /* a capture belongs to a context */
        return BLY_OK;
    }
    int context_mode = strictest(here.context->captures);
    int thread_mode = context_mode == NO_MODE ? NO_MODE : own_mode(here.context);
    if (allows(context_mode, thread_mode))
        return BLY_OK;
    return blyi_fail(BLY_E_CAPTURE_MODE,
                     "a capture of mode %s goes on in %s of this context, and this thread (tid "
                     "%" PRId32 ", mode %s) may not copy or set at once; "
                     "aclmdlRICaptureThreadExchangeMode to relaxed allows it",
                     names[context_mode], thread_mode == NO_MODE ? "another thread" : "this thread",
                     blyi_own_tid(), names[exchanged]);
}

bly_status blyi_capture_exchange(enum blyi_capture_mode *mode)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if ((unsigned)*mode >= BLYI_CAPTURE_MODES)
        return blyi_fail(BLY_E_INVALID, "capture mode %d is not in 0 .. 2", (int)*mode);
    enum blyi_capture_mode before = exchanged;
    exchanged = *mode;
    *mode = before;
    return BLY_OK;
}

void blyi_capture_enter_locked(struct blyi_graph *graph, enum blyi_capture_mode mode)
{
    graph->mode = mode;
    graph->thread = (uint32_t)blyi_own_tid();
    __atomic_fetch_add(&graph->context->captures[mode], 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&n_captures, 1, __ATOMIC_RELEASE);
}

void blyi_capture_leave_locked(struct blyi_graph *graph)
{
    __atomic_fetch_sub(&graph->context->captures[graph->mode], 1, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&n_captures, 1, __ATOMIC_RELEASE);
}

bly_status blyi_capture_none(const struct blyi_context *context)
{
    if (likely(strictest(context->captures) == NO_MODE))
        return BLY_OK;
    return blyi_fail(BLY_E_CAPTURING,
                     "a stream of the context of card %d is being captured: the context cannot be "
                     "waited for",
                     context->card->id);
}

bly_status blyi_capture_pageable(const struct blyi_stream *stream)
{
    bly_status status = BLY_OK;
    if (likely(__atomic_load_n(&n_captures, __ATOMIC_ACQUIRE) == 0 &&
               blyi_queue_divert(stream) == NULL))
        return BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line != NULL)
        status = blyi_fail(BLY_E_INVALID,
                           "stream %" PRIu32 " is being captured into graph %" PRIu32
                           ": a copy that runs later takes no pageable host memory",
                           stream->id, line->graph->id);
    blyi_lock_drop(&blyi_graphs_lock);
    return status == BLY_OK ? blyi_capture_allows_now() : status;
}
