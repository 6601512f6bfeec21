/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trace.c - the reader of traces takes any bytes; its sums hold, numbers rise, and what it
 * tells can be written again and read again.
 *
 * Input: the ring (u16), the number of the last event (u16), the place of the table in chunks (u8),
 * then chunks: type (u8), row (u8), length (u16), bytes. So little of an input is zeros.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "observe/trace_reader.h"
#include "observe/trace_writer.h"

#define CHUNKS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond)
{
    if (!cond)
        abort();
}

static uint64_t number(const uint8_t **at, const uint8_t *end, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes && *at < end; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

/* The file that the input stands for; returns its size. */
static size_t expand(const uint8_t *data, size_t size, uint8_t *file)
{
    const uint8_t *at = data, *end = data + size;
    struct blyi_trace_header header = {.version = BLYI_TRACE_VERSION,
                                       .order = BLYI_TRACE_ORDER,
                                       .header_size = BLYI_TRACE_HEADER,
                                       .chunk_size = BLYI_TRACE_CHUNK};
    memcpy(header.magic, BLYI_TRACE_MAGIC, sizeof(header.magic));
    header.ring = number(&at, end, 2);
    header.n_events = number(&at, end, 2);
    header.table_at = number(&at, end, 1) * BLYI_TRACE_CHUNK;
    memcpy(file, &header, sizeof(header));
    size_t n = 0;
    for (; n < CHUNKS_MAX && at < end; n++) {
        uint8_t *to = file + BLYI_TRACE_HEADER + n * BLYI_TRACE_CHUNK;
        struct blyi_trace_chunk chunk = {.type = (uint32_t)number(&at, end, 1)};
        chunk.n_chunks = (uint32_t)number(&at, end, 1);
        chunk.used = (uint32_t)number(&at, end, 2);
        chunk.capacity = chunk.used / sizeof(struct blyi_trace_block);
        memset(to, 0, BLYI_TRACE_CHUNK);
        memcpy(to, &chunk, sizeof(chunk));
        size_t length = chunk.used;
        if (length > BLYI_TRACE_CHUNK_ROOM)
            length = BLYI_TRACE_CHUNK_ROOM;
        if (length > (size_t)(end - at))
            length = (size_t)(end - at);
        memcpy(to + sizeof(chunk), at, length);
        at += length;
    }
    return BLYI_TRACE_HEADER + n * BLYI_TRACE_CHUNK;
}

static void ask(const struct blyi_trace *trace, const struct blyi_trace_event *event)
{
    char site[BLYI_TRACE_SITE_TEXT], range[BLYI_TRACE_RANGE_TEXT];
    struct blyi_trace_thread thread;
    size_t n;
    require(strlen(blyi_trace_site_text(trace, event->probe.site, site)) < sizeof(site));
    require(strlen(blyi_trace_range_text(trace, event->range, range)) < sizeof(range));
    (void)blyi_trace_name(trace, event->probe.event);
    (void)blyi_trace_thread(trace, event->thread, &thread);
    const uint32_t *sites = blyi_trace_stack(trace, event->stack, &n);
    for (size_t i = 0; i < n; i++)
        (void)blyi_trace_site_text(trace, sites[i], site);
}

static uint64_t read_all(struct blyi_trace *trace, struct blyi_tracewriter *w)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct blyi_trace_event event;
    uint64_t n = 0, last = 0;
    size_t n_blocks;
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n_blocks);
    require(info->cut + info->dropped + info->kept + info->lost == info->seen);
    for (size_t i = 0; i < n_blocks; i++)
        require(blocks[i].address != 0);
    while (blyi_trace_next(trace, &event)) {
        require(event.seq > last && event.seq <= info->seen && event.seq >= info->first_seq);
        require(event.probe.kind < BLYI_PROBE_COUNT);
        last = event.seq;
        n++;
        ask(trace, &event);
        if (w != NULL)
            blyi_tracewriter_event(w, &event);
    }
    require(blyi_trace_status(trace) == BLY_OK);
    require(n == info->kept - info->unknown);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[BLYI_TRACE_HEADER + CHUNKS_MAX * BLYI_TRACE_CHUNK];
    struct blyi_trace *trace, *again;
    struct blyi_tracewriter *w;
    size_t length = expand(data, size, file);
    if (blyi_trace_open_memory(data, size, "input", &trace) == BLY_OK)
        blyi_trace_close(trace);
    require(blyi_trace_open_memory(file, length, "input", &trace) == BLY_OK);
    require(blyi_tracewriter_new(&(struct blyi_tracewriter_opts){.program = "again"}, &w) ==
            BLY_OK);
    uint64_t n = read_all(trace, w);
    require(blyi_tracewriter_finish(w, 0, 0, &again) == BLY_OK);
    require(read_all(again, NULL) == n);
    blyi_trace_close(again);
    blyi_trace_close(trace);
    return 0;
}
