/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_input.c - see replay_input.h. Blocks are numbered in the order in which they appear.
 */
#include "replay_input.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "command.h"
#include "trace_convert.h"
#include "trace_input.h"
#include "trace_live.h"

struct loader {
    struct blyi_replay_trace *out;
    struct blyi_trace *trace;
    int card;
    size_t room;
    uint64_t live;
    struct blyi_map numbers; /* id of a live walk -> number + 1 */
    struct blyi_map freed;   /* address -> index + 1 of the FREE of its last block */
};

static bly_status no_memory(const struct loader *l)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to replay it",
                     blyi_trace_info(l->trace)->name);
}

static bly_status put(struct loader *l, struct blyi_replay_event event)
{
    struct blyi_replay_trace *out = l->out;
    if (out->n_events == l->room) {
        size_t room = l->room != 0 ? 2 * l->room : 1024;
        struct blyi_replay_event *events = realloc(out->events, room * sizeof(*events));
        if (events == NULL)
            return no_memory(l);
        out->events = events;
        l->room = room;
    }
    out->events[out->n_events++] = event;
    return BLY_OK;
}

static bool is_ours(const struct loader *l, const struct blyi_trace_block *block)
{
    return block->class_ != BLYI_TRACE_PINNED_BLOCK && block->card == l->card;
}

static uint32_t number_of(const struct loader *l, const struct live_block *block)
{
    return (uint32_t)((uintptr_t)blyi_map_get(&l->numbers, block->id) - 1);
}

static bly_status on_made(struct loader *l, const struct live_block *block)
{
    struct blyi_replay_trace *out = l->out;
    uint64_t bytes = block->is.asked;
    if (!is_ours(l, &block->is))
        return BLY_OK;
    if (bytes == 0 || bytes > BLYI_REPLAY_LIVE_MAX - l->live || out->n_blocks >= INT32_MAX)
        return blyi_fail(BLY_E_INVALID,
                         "%s: allocation %" PRIu32 " of %" PRIu64 " bytes with %" PRIu64
                         " live: not memory of a card",
                         blyi_trace_info(l->trace)->name, out->n_blocks + 1, bytes, l->live);
    if (blyi_map_put(&l->numbers, block->id, (void *)((uintptr_t)out->n_blocks + 1)) != BLY_OK)
        return no_memory(l);
    l->live += bytes;
    out->peak_live = l->live > out->peak_live ? l->live : out->peak_live;
    out->n_allocs++;
    return put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_ALLOC,
                                             .block = out->n_blocks++,
                                             .bytes = bytes,
                                             .stream = (int32_t)block->is.stream});
}

static bly_status on_ended(struct loader *l, const struct live_block *block)
{
    if (!is_ours(l, &block->is))
        return BLY_OK;
    l->live -= block->is.asked;
    bly_status status = put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_FREE,
                                                          .block = number_of(l, block),
                                                          .stream = (int32_t)block->is.stream});
    if (status == BLY_OK &&
        blyi_map_put(&l->freed, block->is.address, (void *)(uintptr_t)l->out->n_events) != BLY_OK)
        status = no_memory(l);
    return status;
}

static bly_status on_done(struct loader *l, uint64_t address)
{
    size_t at = (uintptr_t)blyi_map_remove(&l->freed, address);
    if (at == 0)
        return BLY_OK;
    struct blyi_replay_event *freed = &l->out->events[at - 1];
    freed->told = true;
    return put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_DONE, .block = freed->block});
}

static bly_status on_other(struct loader *l, const struct live *live,
                           const struct blyi_probe *probe)
{
    const struct live_block *block;
    switch (probe->kind) {
    case BLYI_PROBE_USE:
        block = live_around(live, probe->address);
        if (block == NULL || !is_ours(l, &block->is))
            return BLY_OK;
        return put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_USE,
                                                 .block = number_of(l, block),
                                                 .stream = (int32_t)probe->stream});
    case BLYI_PROBE_USE_DONE:
        return on_done(l, probe->address);
    case BLYI_PROBE_STREAM_SYNC:
    case BLYI_PROBE_CARD_SYNC:
        if (probe->card != l->card)
            return BLY_OK;
        return put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_SYNC,
                                                 .stream = probe->kind == BLYI_PROBE_CARD_SYNC
                                                               ? -1
                                                               : (int32_t)probe->stream});
    case BLYI_PROBE_MARK:
        return put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_MARK});
    default:
        return BLY_OK;
    }
}

/* What was there before is allocated by rising address, and then the recording begins. */
static bly_status load_start(struct loader *l, const struct live *live)
{
    bly_status status = BLY_OK;
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks);
         status == BLY_OK && node != NULL; node = blyi_tree_next(node))
        status = on_made(l, live_block_of(node));
    if (status == BLY_OK && l->out->n_events > 0)
        status = put(l, (struct blyi_replay_event){.op = BLYI_REPLAY_MARK});
    return status;
}

static bly_status load_events(struct loader *l, struct live *live)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    bly_status status = load_start(l, live);
    while (status == BLY_OK && blyi_trace_next(l->trace, &event)) {
        if (!live_step(live, &event, &change, &block))
            return no_memory(l);
        if (change == LIVE_MADE)
            status = on_made(l, block);
        else if (change == LIVE_NOTHING)
            status = on_other(l, live, &event.probe);
        if (change != LIVE_ENDED)
            continue;
        status = on_ended(l, block);
        free(block);
    }
    return status == BLY_OK ? blyi_trace_status(l->trace) : status;
}

bly_status replay_input_load(struct blyi_trace *trace, int card, struct blyi_replay_trace *out)
{
    *out = (struct blyi_replay_trace){.events = NULL};
    struct loader l = {.out = out, .trace = trace};
    struct live live;
    bly_status status = export_find_card(trace, &(struct export_opts){.card = card}, &l.card);
    if (status != BLY_OK)
        return status;
    blyi_map_init(&l.numbers);
    blyi_map_init(&l.freed);
    if (live_begin(&live, trace)) {
        status = load_events(&l, &live);
        live_end(&live);
    } else {
        status = no_memory(&l);
    }
    blyi_map_fini(&l.numbers);
    blyi_map_fini(&l.freed);
    if (status == BLY_OK && card != EXPORT_ANY_CARD && out->n_allocs == 0)
        status = blyi_fail(BLY_E_INVALID, "%s: there is no allocation on card %d",
                           blyi_trace_info(trace)->name, card);
    return status;
}

bool replay_input_read(const char *path, int card, struct blyi_replay_trace *trace)
{
    struct trace_input input;
    if (!trace_input_open(path, &input))
        return false;
    bly_status status = replay_input_load(input.trace, card, trace);
    trace_input_close(&input);
    if (status == BLY_OK)
        return true;
    say("%s", bly_last_error());
    replay_input_release(trace);
    return false;
}

void replay_input_release(struct blyi_replay_trace *trace)
{
    free(trace->events);
    trace->events = NULL;
}
