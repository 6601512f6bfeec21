/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome.c - Chrome's trace JSON, which Perfetto opens. A card is a process whose threads
 * are its streams; the program is a process of its own. One event a line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "observe/insight_frame.h"
#include "trace_convert.h"
#include "trace_live.h"

#define HOST_PID 1000 /* in the page: cards are 0 to 63 */

struct writer {
    struct blyi_trace *trace;
    FILE *out;
    struct export_clock clock;
    bool any, ok;
    struct blyi_map named; /* pid and tid that have a name */
    struct blyi_map tags;  /* block -> its last tag */
};

static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *end = text + strlen(text); text < end;) {
        size_t n = blyi_utf8_length((const unsigned char *)text, (const unsigned char *)end);
        unsigned char c = (unsigned char)*text;
        if (n == 0)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(text, 1, n, out);
        text += n > 0 ? n : 1;
    }
    fputc('"', out);
}

static void begin(struct writer *w, char phase, const char *name, uint64_t ns, int pid,
                  uint32_t tid)
{
    fputs(w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", w->out);
    w->any = true;
    fprintf(w->out, "%c\",\"name\":", phase);
    put_string(w->out, name);
    fprintf(w->out, ",\"ts\":%" PRIu64 ".%03u,\"pid\":%d,\"tid\":%u", ns / 1000,
            (unsigned)(ns % 1000), pid, tid);
}

static void end(struct writer *w)
{
    fputc('}', w->out);
}

static void put_meta(struct writer *w, const char *what, const char *name, int pid, uint32_t tid)
{
    begin(w, 'M', what, 0, pid, tid);
    fputs(",\"args\":{\"name\":", w->out);
    put_string(w->out, name);
    fputc('}', w->out);
    end(w);
}

/* True once for each key; false also when host memory is short. */
static bool is_new(struct writer *w, uint64_t key)
{
    if (blyi_map_get(&w->named, key) != NULL)
        return false;
    w->ok = blyi_map_put(&w->named, key, (void *)1) == BLY_OK && w->ok;
    return w->ok;
}

static void name_process(struct writer *w, int pid)
{
    char name[64];
    const char *program = blyi_trace_info(w->trace)->program;
    snprintf(name, sizeof(name), "card %d", pid);
    if (pid == HOST_PID)
        put_meta(w, "process_name", program[0] != '\0' ? program : "program", pid, 0);
    else
        put_meta(w, "process_name", name, pid, 0);
}

/* Names a process and a thread of the page once. */
static bool name_row(struct writer *w, int pid, uint32_t tid)
{
    char name[64];
    struct blyi_trace_thread is;
    uint64_t process = (uint64_t)(uint32_t)(pid + 1) << 32;
    if (is_new(w, process | UINT32_MAX))
        name_process(w, pid);
    if (!is_new(w, process | tid))
        return w->ok;
    if (pid != HOST_PID)
        snprintf(name, sizeof(name), tid == 0 ? "memory" : "stream %u", tid);
    else if (blyi_trace_thread(w->trace, tid, &is))
        snprintf(name, sizeof(name), "%.40s %u", is.name, is.tid);
    else
        snprintf(name, sizeof(name), "thread %u", tid);
    put_meta(w, "thread_name", name, pid, tid);
    return w->ok;
}

static int pid_of(const struct blyi_trace_block *block)
{
    return block->class_ == BLYI_TRACE_PINNED_BLOCK || block->card >= 64 ? HOST_PID : block->card;
}

static void put_counter(struct writer *w, const struct live *live,
                        const struct blyi_trace_block *block, uint64_t ns)
{
    int pid = pid_of(block);
    begin(w, 'C', pid == HOST_PID ? "host_pinned" : "hbm_used", ns, pid, 0);
    fprintf(w->out, ",\"args\":{\"bytes\":%" PRIu64 "}", live->asked[pid == HOST_PID ? 64 : pid]);
    end(w);
}

/* Its tag, else what the event told, else the function that asked: the same from b to e. */
static const char *name_of(const struct writer *w, const struct live_block *block, uint32_t site,
                           char buf[BLYI_TRACE_SITE_TEXT])
{
    uintptr_t tag = (uintptr_t)blyi_map_get(&w->tags, block->id);
    const char *told = blyi_trace_name(w->trace, tag != 0 ? (uint32_t)tag : block->name);
    struct blyi_trace_site about;
    if (told[0] != '\0')
        return told;
    if (!blyi_trace_site(w->trace, site, &about))
        return "block";
    if (about.line == 0) /* else the place stands in args */
        return blyi_frame_text(w->trace, site, buf);
    snprintf(buf, BLYI_TRACE_SITE_TEXT, "%.200s", about.function);
    return buf;
}

/* The life of a block, from b to e. */
static void put_life(struct writer *w, const struct live_block *block, char phase, uint64_t ns)
{
    char name[BLYI_TRACE_SITE_TEXT], text[BLYI_TRACE_SITE_TEXT];
    uint32_t site = blyi_frame_telling(w->trace, block->is.site, block->is.stack);
    begin(w, phase, name_of(w, block, site, name), ns, pid_of(&block->is), block->is.stream);
    fprintf(w->out, ",\"cat\":\"block\",\"id\":\"0x%" PRIx64 "\"", block->id);
    if (phase == 'b') {
        const char *where = blyi_frame_text(w->trace, site, text);
        if (site == 0 && (block->is.flags & BLYI_TRACE_BEFORE))
            where = "made before recording, site unknown";
        fprintf(w->out, ",\"args\":{\"address\":\"0x%" PRIx64 "\",\"bytes\":%" PRIu64 ",\"site\":",
                block->is.address, block->is.asked);
        put_string(w->out, where);
        fputc('}', w->out);
    }
    end(w);
}

static void put_instant(struct writer *w, const struct blyi_trace_event *event, const char *name,
                        char scope, uint64_t ns)
{
    int pid = event->probe.card >= 0 ? event->probe.card : HOST_PID;
    uint32_t tid = pid == HOST_PID ? event->thread : event->probe.stream;
    begin(w, 'i', name, ns, pid, tid);
    fprintf(w->out, ",\"s\":\"%c\",\"args\":{\"no\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", scope,
            event->seq, event->probe.size);
    end(w);
}

static void put_range(struct writer *w, const struct blyi_trace_event *event, uint64_t ns)
{
    struct blyi_trace_range range = {0, 0};
    (void)blyi_trace_range(w->trace, event->probe.event, &range);
    begin(w, event->probe.kind == BLYI_PROBE_RANGE_PUSH ? 'B' : 'E',
          blyi_trace_name(w->trace, range.name), ns, HOST_PID, event->thread);
    end(w);
}

static void put_open_range(struct writer *w, const struct blyi_trace_event *event, uint64_t ns)
{
    begin(w, event->probe.kind == BLYI_PROBE_RANGE_START ? 'b' : 'e',
          blyi_trace_name(w->trace, event->probe.event), ns, HOST_PID, event->thread);
    fprintf(w->out, ",\"cat\":\"range\",\"id\":\"0x%" PRIx64 "\"", event->probe.other);
    end(w);
}

static void put_other(struct writer *w, const struct blyi_trace_event *event, uint64_t ns)
{
    switch (event->probe.kind) {
    case BLYI_PROBE_RANGE_PUSH:
    case BLYI_PROBE_RANGE_POP:
        put_range(w, event, ns);
        break;
    case BLYI_PROBE_RANGE_START:
    case BLYI_PROBE_RANGE_STOP:
        put_open_range(w, event, ns);
        break;
    case BLYI_PROBE_MARK:
        put_instant(w, event, blyi_trace_name(w->trace, event->probe.event), 'p', ns);
        break;
    case BLYI_PROBE_ALLOC_FAIL:
        put_instant(w, event, "oom", 'g', ns);
        break;
    case BLYI_PROBE_TAG:
        break;
    default:
        put_instant(w, event, blyi_probe_key(event->probe.kind), 't', ns);
    }
}

static bool put_start(struct writer *w, const struct live *live)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node)) {
        const struct live_block *block = live_block_of(node);
        if (!name_row(w, pid_of(&block->is), block->is.stream))
            return false;
        put_life(w, block, 'b', 0);
        put_counter(w, live, &block->is, 0);
    }
    return true;
}

static bool put_events(struct writer *w, struct live *live)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    while (blyi_trace_next(w->trace, &event)) {
        uint64_t ns = export_since(&w->clock, event.probe.time_ns);
        if (!name_row(w, HOST_PID, event.thread) ||
            (event.probe.card >= 0 && !name_row(w, event.probe.card, event.probe.stream)) ||
            !live_step(live, &event, &change, &block))
            return false;
        if (change == LIVE_MADE || change == LIVE_ENDED) {
            put_life(w, block, change == LIVE_MADE ? 'b' : 'e', ns);
            put_counter(w, live, &block->is, ns);
        } else {
            put_other(w, &event, ns);
        }
        if (change == LIVE_ENDED)
            free(block);
    }
    return blyi_trace_status(w->trace) == BLY_OK;
}

bly_status export_chrome(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct writer w = {.trace = trace, .out = out, .clock = export_clock_of(trace)};
    struct live live;
    (void)opts;
    blyi_map_init(&w.named);
    blyi_map_init(&w.tags);
    w.ok = live_find_tags(trace, &w.tags);
    if (!live_begin(&live, trace)) {
        blyi_map_fini(&w.tags);
        return export_no_memory(trace);
    }
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
    (void)name_row(&w, HOST_PID, 0);
    bool ok = w.ok && put_start(&w, &live) && put_events(&w, &live);
    fputs("\n]}\n", out);
    live_end(&live);
    blyi_map_fini(&w.named);
    blyi_map_fini(&w.tags);
    return ok ? BLY_OK : export_no_memory(trace);
}
