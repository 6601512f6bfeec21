/* SPDX-License-Identifier: Apache-2.0
 *
 * read_trace.c - lifetimes from a TSV allocation trace, counted in events.
 */
#include "plan/read.h"

#include "base/fail.h"
#include "base/map.h"

enum { FIELD_TIME, FIELD_OP, FIELD_ID, FIELD_BYTES, FIELDS_MIN };

struct trace {
    struct blyi_reader *reader;
    struct blyi_map live; /* id -> position + 1 */
    int64_t now;
};

static bly_status bad_line(const struct blyi_text *text, const char *what)
{
    return blyi_fail(BLY_E_PARSE, "%s:%zu: %s", text->name, text->line, what);
}

static bly_status begin_block(struct trace *t, const struct blyi_text *text, struct blyi_slice id,
                              int64_t key, int64_t bytes)
{
    if (bytes <= 0)
        return bad_line(text, "an allocation of no bytes");
    if (blyi_map_get(&t->live, (uint64_t)key) != NULL)
        return bad_line(text, "an id that was allocated before");
    bly_plan_buffer b = bly_plan_buffer_make(t->now++, INT64_MAX, (uint64_t)bytes);
    bly_status status = blyi_reader_add(t->reader, &b, id);
    if (status == BLY_OK)
        status = blyi_map_put(&t->live, (uint64_t)key, (void *)(uintptr_t)t->reader->n);
    return status;
}

/* A free, or the end of a use that outlasted it. */
static bly_status end_block(struct trace *t, const struct blyi_text *text, int64_t key, bool frees)
{
    void *found = blyi_map_get(&t->live, (uint64_t)key);
    if (found == NULL)
        return bad_line(text, "a free of an id that was not allocated");
    int64_t *upper = &t->reader->buffers[(uintptr_t)found - 1].upper;
    if (frees && *upper != INT64_MAX)
        return bad_line(text, "a free of an id that was freed before");
    *upper = t->now++;
    return BLY_OK;
}

/* 0 where the field is missing or no number of a stream. */
static int32_t stream_of(struct blyi_slice rest)
{
    struct blyi_slice field;
    int64_t stream;
    bool ok = blyi_slice_field(&rest, '\t', &field) && blyi_slice_int(field, &stream) &&
              stream >= 0 && stream <= INT32_MAX;
    return ok ? (int32_t)stream : 0;
}

static bly_status read_event(struct trace *t, const struct blyi_text *text, struct blyi_slice line)
{
    struct blyi_slice field[FIELDS_MIN];
    for (size_t f = 0; f < FIELDS_MIN; f++) {
        if (!blyi_slice_field(&line, '\t', &field[f]))
            return bad_line(text, "fewer than 4 fields");
    }
    struct blyi_slice op = field[FIELD_OP];
    bool begins = blyi_slice_is(op, "a"), frees = blyi_slice_is(op, "f");
    if (!begins && !frees && !blyi_slice_is(op, "d"))
        return BLY_OK;
    int64_t key, bytes;
    if (!blyi_slice_int(field[FIELD_ID], &key) || !blyi_slice_int(field[FIELD_BYTES], &bytes))
        return bad_line(text, "id or bytes is not an integer");
    if (!begins)
        return end_block(t, text, key, frees);
    bly_status status = begin_block(t, text, field[FIELD_ID], key, bytes);
    if (status == BLY_OK)
        t->reader->streams[t->reader->n - 1] = stream_of(line);
    return status;
}

bly_status blyi_read_trace(struct blyi_reader *r, struct blyi_text *text, struct blyi_slice header)
{
    struct trace t = {.reader = r};
    struct blyi_slice line = header, field;
    if (!blyi_slice_field(&header, '\t', &field) || !blyi_slice_is(field, "time_us"))
        return bad_line(text, "not the header of a trace: it starts with time_us");
    blyi_map_init(&t.live);
    bly_status status = BLY_OK;
    while (status == BLY_OK && blyi_text_line(text, &line))
        status = read_event(&t, text, line);
    for (size_t i = 0; i < r->n; i++) {
        if (r->buffers[i].upper == INT64_MAX)
            r->buffers[i].upper = t.now;
    }
    blyi_map_fini(&t.live);
    return status;
}
