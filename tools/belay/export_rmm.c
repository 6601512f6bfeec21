/* SPDX-License-Identifier: Apache-2.0
 *
 * export_rmm.c - RMM's log of one card. What was live before recording is allocated at its start,
 * so that the log can be replayed.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "trace_convert.h"
#include "trace_live.h"

struct writer {
    struct blyi_trace *trace;
    FILE *out;
    int card;
    struct export_clock clock;
    uint64_t wall_us; /* of the day, at the start */
};

static void put(struct writer *w, uint32_t thread, uint64_t since_ns, const char *action,
                uint64_t pointer, uint64_t size, uint32_t stream)
{
    struct blyi_trace_thread is;
    uint64_t us = (w->wall_us + since_ns / 1000) % ((uint64_t)86400 * 1000000);
    uint32_t tid = blyi_trace_thread(w->trace, thread, &is) ? is.tid : thread;
    fprintf(w->out, "%u,%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",%u\n", tid,
            (unsigned)(us / 3600000000u), (unsigned)(us / 60000000 % 60),
            (unsigned)(us / 1000000 % 60), (unsigned)(us % 1000000), action, pointer, size, stream);
}

static bool is_ours(const struct writer *w, const struct blyi_trace_block *block)
{
    return block->class_ == BLYI_TRACE_CARD_BLOCK && block->card == w->card;
}

static void put_start(struct writer *w, const struct live *live)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node)) {
        const struct live_block *block = live_block_of(node);
        if (is_ours(w, &block->is))
            put(w, block->thread, 0, "allocate", block->is.address, block->is.asked,
                block->is.stream);
    }
}

static bool put_events(struct writer *w, struct live *live)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    while (blyi_trace_next(w->trace, &event)) {
        const struct blyi_probe *probe = &event.probe;
        uint64_t since = export_since(&w->clock, probe->time_ns);
        if (!live_step(live, &event, &change, &block))
            return false;
        if (change == LIVE_MADE && is_ours(w, &block->is))
            put(w, event.thread, since, "allocate", probe->address, probe->asked, probe->stream);
        else if (change == LIVE_ENDED && is_ours(w, &block->is))
            put(w, event.thread, since, "free", probe->address, block->is.asked, block->is.stream);
        else if (probe->kind == BLYI_PROBE_ALLOC_FAIL && probe->card == w->card)
            put(w, event.thread, since, "allocate failure", 0, probe->asked, probe->stream);
        if (change == LIVE_ENDED)
            free(block);
    }
    return blyi_trace_status(w->trace) == BLY_OK;
}

bly_status export_rmm(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct writer w = {.trace = trace, .out = out};
    struct live live;
    bly_status status = export_find_card(trace, opts, &w.card);
    if (status != BLY_OK)
        return status;
    w.clock = export_clock_of(trace);
    w.wall_us = blyi_trace_info(trace)->start_wall_ns / 1000;
    if (!live_begin(&live, trace))
        return export_no_memory(trace);
    fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
    put_start(&w, &live);
    bool ok = put_events(&w, &live);
    live_end(&live);
    return ok ? BLY_OK : export_no_memory(trace);
}
