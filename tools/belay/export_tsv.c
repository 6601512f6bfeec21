/* SPDX-License-Identifier: Apache-2.0
 *
 * export_tsv.c - the TSV of allocation traces: the memory of one card, handles included. Block ids
 * are the order of appearance.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace_convert.h"
#include "trace_live.h"

struct writer {
    struct blyi_trace *trace;
    FILE *out;
    int card;
    struct export_clock clock;
    struct blyi_map tags;
};

/* One field: no tab, no end of line. */
static void put_text(FILE *out, const char *text)
{
    if (text[0] == '\0')
        fputc('-', out);
    for (; *text != '\0'; text++)
        fputc(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text, out);
}

static void put(struct writer *w, uint64_t us, char op, uint64_t id, uint64_t bytes, int64_t stream,
                const char *tag)
{
    fprintf(w->out, "%" PRIu64 "\t%c\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t", us, op, id, bytes,
            stream);
    put_text(w->out, tag);
    fputc('\n', w->out);
}

static bool is_ours(const struct writer *w, const struct blyi_trace_block *block)
{
    return block->class_ != BLYI_TRACE_PINNED_BLOCK && block->card == w->card;
}

static void put_header(struct writer *w)
{
    const struct blyi_trace_info *info = blyi_trace_info(w->trace);
    const char *comment = blyi_trace_comment(w->trace);
    if (comment[0] == '#') {
        fputs(comment, w->out);
        if (comment[strlen(comment) - 1] != '\n')
            fputc('\n', w->out);
    } else {
        fprintf(w->out, "# trace: %s\n# kind: recorded by Belay %s, card %d\n", info->program,
                info->writer, w->card);
    }
    if (info->dropped + info->cut + info->lost > 0)
        fprintf(w->out,
                "# note: %" PRIu64 " events seen; %" PRIu64 " oldest dropped, %" PRIu64
                " cut off, %" PRIu64 " lost\n",
                info->seen, info->dropped, info->cut, info->lost);
    fputs("time_us\top\tid\tbytes\tstream\ttag\n", w->out);
}

static void put_start(struct writer *w, const struct live *live)
{
    bool any = false;
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node)) {
        const struct live_block *block = live_block_of(node);
        if (!is_ours(w, &block->is))
            continue;
        put(w, 0, 'a', block->id, block->is.asked, block->is.stream, "preexisting");
        any = true;
    }
    if (any)
        put(w, 0, 'e', 0, 0, 0, "trace_start");
}

static void put_made(struct writer *w, uint64_t us, const struct live_block *block)
{
    char range[BLYI_TRACE_RANGE_TEXT];
    uint32_t tag = (uint32_t)(uintptr_t)blyi_map_get(&w->tags, block->id);
    const char *text = blyi_trace_name(w->trace, tag != 0 ? tag : block->name);
    if (text[0] == '\0')
        text = blyi_trace_range_text(w->trace, block->range, range);
    put(w, us, 'a', block->id, block->is.asked, block->is.stream, text);
}

static void put_other(struct writer *w, const struct live *live, uint64_t us,
                      const struct blyi_trace_event *event)
{
    const struct blyi_probe *probe = &event->probe;
    struct blyi_trace_range range;
    const struct live_block *block;
    switch (probe->kind) {
    case BLYI_PROBE_USE:
        block = live_around(live, probe->address);
        if (block != NULL && is_ours(w, &block->is))
            put(w, us, 'u', block->id, 0, probe->stream, "-");
        break;
    case BLYI_PROBE_STREAM_SYNC:
        if (probe->card == w->card)
            put(w, us, 's', 0, 0, probe->stream, "-");
        break;
    case BLYI_PROBE_CARD_SYNC:
        if (probe->card == w->card)
            put(w, us, 's', 0, 0, -1, "-");
        break;
    case BLYI_PROBE_MARK:
        put(w, us, 'e', 0, 0, 0, blyi_trace_name(w->trace, probe->event));
        break;
    case BLYI_PROBE_RANGE_PUSH:
        if (blyi_trace_range(w->trace, probe->event, &range))
            put(w, us, 'e', 0, 0, 0, blyi_trace_name(w->trace, range.name));
        break;
    default:
        break;
    }
}

/* USE_DONE names an address that is free by then: its last block is remembered. */
static bool note_freed(struct blyi_map *freed, const struct live_block *block)
{
    return blyi_map_put(freed, block->is.address, (void *)(uintptr_t)block->id) == BLY_OK;
}

static bool put_events(struct writer *w, struct live *live, struct blyi_map *freed)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    while (blyi_trace_next(w->trace, &event)) {
        uint64_t us = export_since(&w->clock, event.probe.time_ns) / 1000;
        if (!live_step(live, &event, &change, &block))
            return false;
        if (change == LIVE_MADE && is_ours(w, &block->is))
            put_made(w, us, block);
        else if (change == LIVE_NOTHING)
            put_other(w, live, us, &event);
        if (event.probe.kind == BLYI_PROBE_USE_DONE) {
            uint64_t id = (uintptr_t)blyi_map_remove(freed, event.probe.address);
            if (id != 0)
                put(w, us, 'd', id, 0, 0, "-");
        }
        if (change != LIVE_ENDED)
            continue;
        if (is_ours(w, &block->is))
            put(w, us, 'f', block->id, 0, block->is.stream, "-");
        bool ok = !is_ours(w, &block->is) || note_freed(freed, block);
        free(block);
        if (!ok)
            return false;
    }
    return blyi_trace_status(w->trace) == BLY_OK;
}

bly_status export_tsv(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct writer w = {.trace = trace, .out = out};
    struct live live;
    struct blyi_map freed;
    bly_status status = export_find_card(trace, opts, &w.card);
    if (status != BLY_OK)
        return status;
    w.clock = export_clock_of(trace);
    blyi_map_init(&w.tags);
    blyi_map_init(&freed);
    bool ok = live_find_tags(trace, &w.tags) && live_begin(&live, trace);
    if (ok) {
        put_header(&w);
        put_start(&w, &live);
        ok = put_events(&w, &live, &freed);
        live_end(&live);
    }
    blyi_map_fini(&freed);
    blyi_map_fini(&w.tags);
    return ok ? BLY_OK : export_no_memory(trace);
}
