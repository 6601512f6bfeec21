/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_source.c - files are read and not mapped: one that becomes shorter meanwhile must not end
 * the reader by a signal.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "observe/trace_inside.h"

bly_status blyi_trace_source_read(const struct blyi_trace_source *source, void *buf, size_t size,
                                  uint64_t at, size_t *got)
{
    *got = 0;
    if (at >= source->size)
        return BLY_OK;
    if (size > source->size - at)
        size = (size_t)(source->size - at);
    if (source->fd < 0) {
        memcpy(buf, source->bytes + at, size);
        *got = size;
        return BLY_OK;
    }
    while (*got < size) {
        ssize_t n = pread(source->fd, (char *)buf + *got, size - *got, (off_t)(at + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return blyi_fail(BLY_E_IO, "%s: %s", source->name, strerror(errno));
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return BLY_OK;
}

bly_status blyi_trace_cursor_open(struct blyi_trace_cursor *cursor,
                                  const struct blyi_trace_source *source, uint64_t at)
{
    union {
        struct blyi_trace_chunk chunk;
        unsigned char bytes[BLYI_TRACE_CHUNK];
    } read;
    size_t got;
    bly_status status = blyi_trace_source_read(source, &read, sizeof(read), at, &got);
    if (status != BLY_OK)
        return status;
    size_t used = 0;
    if (got > sizeof(read.chunk)) {
        size_t there = got - sizeof(read.chunk);
        used = read.chunk.used < there ? read.chunk.used : there;
    }
    cursor->n_words = (uint32_t)(used / 8);
    memcpy(cursor->words, read.bytes + sizeof(read.chunk), cursor->n_words * (size_t)8);
    cursor->at = 0;
    cursor->has_context = false;
    cursor->damaged = used % 8 != 0 || (got > sizeof(read.chunk) && used < read.chunk.used);
    cursor->event.seq = 0;
    return BLY_OK;
}

static uint32_t low(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t high(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static void take_fields(struct blyi_probe *probe, uint32_t *stack, uint32_t mask,
                        const uint64_t *from)
{
    probe->site = probe->stream = 0;
    if (mask & 1u << BLYI_TRACE_FIELD_PLACE) {
        probe->site = low(*from);
        probe->stream = high(*from++);
    }
#define TAKE(field, to, else_) to = (mask & 1u << BLYI_TRACE_FIELD_##field) ? *from++ : (else_)
    TAKE(ADDRESS, probe->address, 0);
    TAKE(OTHER, probe->other, 0);
    TAKE(ASKED, probe->asked, 0);
    TAKE(SIZE, probe->size, probe->asked);
    TAKE(ROUNDED, probe->rounded, 0);
    TAKE(BACKED, probe->backed, 0);
    uint64_t aux, event, pc, took;
    TAKE(AUX, aux, 0);
    TAKE(EVENT, event, 0);
    TAKE(PC, pc, 0);
    TAKE(TASK, probe->task, 0);
    TAKE(TOOK, took, 0);
    uint64_t sizes, near;
    TAKE(SIZES, sizes, 0);
    TAKE(NEAR, near, 0);
#undef TAKE
    probe->aux = (int64_t)aux;
    probe->event = low(event);
    if (mask & 1u << BLYI_TRACE_FIELD_SIZES) {
        bool as_asked = (mask & 1u << BLYI_TRACE_FIELD_SIZE) == 0;
        probe->asked = low(sizes);
        probe->rounded = probe->asked + (high(sizes) & 0xff);
        probe->backed = (sizes >> 40) * 4096;
        probe->size = as_asked ? probe->asked : probe->size;
    }
    if (mask & 1u << BLYI_TRACE_FIELD_NEAR) {
        probe->site = low(near) & 0xffff;
        probe->stream = low(near) >> 16;
        probe->event = high(near);
    }
    /* A call that began before the clock did is damage. */
    probe->began_ns = took > 0 && took < probe->time_ns ? probe->time_ns - took : 0;
    *stack = high(event);
    probe->pc = (const void *)(uintptr_t)pc;
}

static bool end_here(struct blyi_trace_cursor *cursor)
{
    cursor->damaged = cursor->damaged || cursor->at < cursor->n_words;
    cursor->at = cursor->n_words;
    return false;
}

bool blyi_trace_cursor_next(struct blyi_trace_cursor *cursor)
{
    struct blyi_trace_event *event = &cursor->event;
    while (cursor->n_words - cursor->at >= 2) {
        const uint64_t *word = cursor->words + cursor->at;
        uint32_t mask = high(word[0]), n = (uint32_t)__builtin_popcount(mask);
        if (cursor->n_words - cursor->at < 2 + n)
            break;
        if ((word[0] & 0xff) == BLYI_TRACE_CONTEXT) {
            if ((mask & 7) != 7)
                break;
            cursor->context =
                (struct blyi_trace_context){word[2], word[3], low(word[4]), high(word[4])};
            cursor->has_context = true;
            cursor->at += 2 + n;
            continue;
        }
        uint64_t seq = cursor->context.seq + low(word[1]);
        if (!cursor->has_context || seq <= event->seq)
            break;
        event->seq = seq;
        event->thread = cursor->context.thread;
        event->range = cursor->context.range;
        event->probe.kind = (enum blyi_probe_kind)(word[0] & 0xff);
        int32_t card = (int32_t)(word[0] >> 8 & 0xff);
        event->probe.card = card < 128 ? card : card - 256;
        event->probe.page_kind = (word[0] >> 16) & 0xff;
        event->probe.time_ns = cursor->context.time_ns + high(word[1]);
        take_fields(&event->probe, &event->stack, mask, word + 2);
        cursor->at += 2 + n;
        return true;
    }
    return end_here(cursor);
}
