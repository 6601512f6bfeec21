/* SPDX-License-Identifier: Apache-2.0
 *
 * export_memscope.c - the event file of msMemScope: all cards and pinned host memory.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "trace_convert.h"
#include "trace_live.h"

struct writer {
    struct blyi_trace *trace;
    FILE *out;
    struct export_clock clock;
    uint64_t id;
    struct blyi_map tags;
};

/* A CSV field; quotes are doubled. */
static void put_field(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* ID .. Ptr; the rest of the line follows. */
static void put_head(struct writer *w, const struct blyi_trace_event *event, const char *kind,
                     const char *type, const char *name, uint64_t since_ns)
{
    const struct blyi_trace_info *info = blyi_trace_info(w->trace);
    struct blyi_trace_thread is;
    uint32_t tid = blyi_trace_thread(w->trace, event->thread, &is) ? is.tid : event->thread;
    fprintf(w->out, "%" PRIu64 ",%s,%s,", ++w->id, kind, type);
    put_field(w->out, name[0] != '\0' ? name : "N/A");
    fprintf(w->out, ",%" PRIu64 ",%u,%u,", info->start_wall_ns + since_ns, info->pid, tid);
    if (event->probe.card >= 0)
        fprintf(w->out, "%d,", event->probe.card);
    else
        fputs("host,", w->out);
}

static void put_stack(struct writer *w, uint32_t site, uint32_t stack)
{
    char text[BLYI_TRACE_SITE_TEXT];
    size_t n;
    const uint32_t *sites = blyi_trace_stack(w->trace, stack, &n);
    const uint32_t *at = n > 0 ? sites : &site;
    if (n == 0)
        n = site != 0;
    fputs(",,\"", w->out); /* Python's is not known */
    for (size_t i = 0; i < n; i++) {
        for (const char *c = blyi_trace_site_text(w->trace, at[i], text); *c != '\0'; c++) {
            if (*c == '"')
                fputc('"', w->out);
            fputc(*c, w->out);
        }
        fputc('\n', w->out);
    }
    fputs("\"\n", w->out);
}

static void put_block(struct writer *w, const struct live *live,
                      const struct blyi_trace_event *event, const struct live_block *block,
                      bool made, uint64_t since)
{
    bool pinned = block->is.class_ == BLYI_TRACE_PINNED_BLOCK;
    uint32_t tag = (uint32_t)(uintptr_t)blyi_map_get(&w->tags, block->id);
    int slot = pinned || block->is.card >= 64 ? 64 : block->is.card;
    size_t n;
    uint64_t total = 0;
    const struct blyi_trace_card *cards = blyi_trace_cards(w->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (!pinned && cards[i].card == block->is.card)
            total = cards[i].total;
    put_head(w, event, made ? "MALLOC" : "FREE", pinned ? "HOST" : "HAL", "N/A", since);
    fprintf(w->out, "%" PRIu64 ",", block->is.address);
    fprintf(w->out,
            "\"{allocation_id:%" PRIu64 ",addr:%" PRIu64 ",size:%" PRIu64 ",owner:", block->id,
            block->is.address, block->is.asked);
    for (const char *c = blyi_trace_name(w->trace, tag != 0 ? tag : block->name); *c != '\0'; c++)
        fputc(*c == '"' || *c == ',' || *c == '\n' ? '_' : *c, w->out);
    fprintf(w->out, ",total:%" PRIu64 ",used:%" PRIu64 "}\"", total, live->asked[slot]);
    put_stack(w, event->probe.site, event->stack);
}

static void put_mark(struct writer *w, const struct blyi_trace_event *event, const char *type,
                     const char *name, uint64_t since)
{
    put_head(w, event, "MSTX", type, name, since);
    fputs("N/A,N/A", w->out);
    put_stack(w, 0, 0);
}

static void put_other(struct writer *w, const struct blyi_trace_event *event, uint64_t since)
{
    const struct blyi_probe *probe = &event->probe;
    struct blyi_trace_range range = {0, 0};
    switch (probe->kind) {
    case BLYI_PROBE_MARK:
        put_mark(w, event, "Mark", blyi_trace_name(w->trace, probe->event), since);
        break;
    case BLYI_PROBE_RANGE_PUSH:
    case BLYI_PROBE_RANGE_POP:
        (void)blyi_trace_range(w->trace, probe->event, &range);
        put_mark(w, event, probe->kind == BLYI_PROBE_RANGE_PUSH ? "Range_start" : "Range_end",
                 blyi_trace_name(w->trace, range.name), since);
        break;
    case BLYI_PROBE_RANGE_START:
    case BLYI_PROBE_RANGE_STOP:
        put_mark(w, event, probe->kind == BLYI_PROBE_RANGE_START ? "Range_start" : "Range_end",
                 blyi_trace_name(w->trace, probe->event), since);
        break;
    case BLYI_PROBE_KERNEL:
        put_head(w, event, "KERNEL_LAUNCH", "KERNEL_LAUNCH", "N/A", since);
        fprintf(w->out, "%" PRIu64 ",\"{streamId:%u}\"", probe->address, probe->stream);
        put_stack(w, probe->site, event->stack);
        break;
    default:
        break;
    }
}

static bool put_events(struct writer *w, struct live *live)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    while (blyi_trace_next(w->trace, &event)) {
        uint64_t since = export_since(&w->clock, event.probe.time_ns);
        if (!live_step(live, &event, &change, &block))
            return false;
        if (change == LIVE_MADE || change == LIVE_ENDED)
            put_block(w, live, &event, block, change == LIVE_MADE, since);
        else
            put_other(w, &event, since);
        if (change == LIVE_ENDED)
            free(block);
    }
    return blyi_trace_status(w->trace) == BLY_OK;
}

/* What was live before is allocated by nobody at the start. */
static void put_start(struct writer *w, const struct live *live)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node)) {
        const struct live_block *block = live_block_of(node);
        struct blyi_trace_event event = {
            .probe = {.card = block->is.card == 0xff ? -1 : block->is.card, .site = block->is.site},
            .stack = block->is.stack};
        put_block(w, live, &event, block, true, 0);
    }
}

bly_status export_memscope(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct writer w = {.trace = trace, .out = out, .clock = export_clock_of(trace)};
    struct live live;
    (void)opts;
    blyi_map_init(&w.tags);
    bool ok = live_find_tags(trace, &w.tags) && live_begin(&live, trace);
    if (ok) {
        fputs("ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread ID,Device ID,Ptr,Attr,"
              "Call Stack(Python),Call Stack(C)\n",
              out);
        put_start(&w, &live);
        ok = put_events(&w, &live);
        live_end(&live);
    }
    blyi_map_fini(&w.tags);
    return ok ? BLY_OK : export_no_memory(trace);
}
