/* SPDX-License-Identifier: Apache-2.0
 *
 * import_rmm.c - the log of RMM: Thread,Time,Action,Pointer,Size,Stream. Times have no date, so a
 * clock that falls back by half a day has passed midnight.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "plan/text.h"
#include "trace_input.h"

#define DAY_NS ((uint64_t)86400 * 1000000000u)

enum { FIELD_THREAD, FIELD_TIME, FIELD_ACTION, FIELD_POINTER, FIELD_SIZE, FIELD_STREAM, N_FIELDS };

struct import {
    struct blyi_tracewriter *w;
    const struct blyi_text *text;
    struct blyi_map threads, streams; /* as the file calls them -> number */
    uint32_t n_threads, n_streams;
    uint64_t days, last;
    bool begun;
};

static bly_status bad_field(const struct import *im, const char *name, struct blyi_slice field)
{
    char show[48];
    return blyi_fail(BLY_E_PARSE, "%s:%zu: %s \"%s\" cannot be read", im->text->name,
                     im->text->line, name, blyi_slice_show(field, show));
}

/* Decimal, or hexadecimal behind 0x; "(nil)" is 0. */
static bool read_number(struct blyi_slice field, uint64_t *value)
{
    char text[32], *end;
    while (field.length > 0 && field.at[0] == ' ') {
        field.at++;
        field.length--;
    }
    if (blyi_slice_is(field, "(nil)")) {
        *value = 0;
        return true;
    }
    if (field.length == 0 || field.length >= sizeof(text) || field.at[0] == '-' ||
        field.at[0] == '+')
        return false;
    memcpy(text, field.at, field.length);
    text[field.length] = '\0';
    *value = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
    return *end == '\0' && end != text;
}

static bool read_time(struct blyi_slice field, uint64_t *ns)
{
    struct blyi_slice part[3], fraction;
    int64_t value[4] = {0};
    static const int64_t limit[3] = {24, 60, 61};
    for (int i = 0; i < 3; i++)
        if (!blyi_slice_field(&field, i < 2 ? ':' : '.', &part[i]) ||
            !blyi_slice_int(part[i], &value[i]) || value[i] < 0 || value[i] >= limit[i])
            return false;
    if (!blyi_slice_field(&field, '.', &fraction))
        fraction = (struct blyi_slice){"0", 1};
    if (fraction.length > 9 || !blyi_slice_int(fraction, &value[3]) || value[3] < 0)
        return false;
    for (size_t digits = fraction.length; digits < 9; digits++)
        value[3] *= 10;
    *ns = (uint64_t)((value[0] * 60 + value[1]) * 60 + value[2]) * 1000000000u + (uint64_t)value[3];
    return true;
}

/* A small number for each value met, from `first`; 0 without host memory. */
static uint32_t number_of(struct blyi_map *map, uint64_t key, uint32_t *count, bool *is_new)
{
    uint32_t number = (uint32_t)(uintptr_t)blyi_map_get(map, key);
    *is_new = number == 0;
    if (*is_new && blyi_map_put(map, key, (void *)(uintptr_t)(*count + 1)) == BLY_OK)
        number = ++*count;
    return number;
}

static uint32_t thread_of(struct import *im, uint64_t tid)
{
    bool is_new;
    uint32_t thread = number_of(&im->threads, tid, &im->n_threads, &is_new);
    uint32_t head[2] = {thread, (uint32_t)tid};
    if (is_new && thread != 0)
        blyi_tracewriter_meta(im->w, BLYI_TRACE_META_THREAD, head, sizeof(head), NULL, 0);
    return thread;
}

/* 0 is the default stream; handles are numbered as they come. */
static uint32_t stream_of(struct import *im, uint64_t handle)
{
    bool is_new;
    return handle == 0 ? 0 : number_of(&im->streams, handle, &im->n_streams, &is_new);
}

static bool find_kind(struct blyi_slice action, struct blyi_probe *probe)
{
    if (blyi_slice_is(action, "allocate"))
        probe->kind = BLYI_PROBE_ALLOC;
    else if (blyi_slice_is(action, "free"))
        probe->kind = BLYI_PROBE_FREE;
    else if (blyi_slice_is(action, "allocate failure") || blyi_slice_is(action, "allocate_failure"))
        probe->kind = BLYI_PROBE_ALLOC_FAIL;
    else
        return false;
    return true;
}

static bly_status read_line(struct import *im, struct blyi_slice line)
{
    struct blyi_slice field[N_FIELDS];
    struct blyi_probe probe = {0};
    uint64_t thread, time, pointer, size, stream;
    for (size_t n = 0; n < N_FIELDS; n++)
        if (!blyi_slice_field(&line, ',', &field[n]))
            return blyi_fail(BLY_E_PARSE, "%s:%zu: fewer than 6 fields", im->text->name,
                             im->text->line);
    if (!find_kind(field[FIELD_ACTION], &probe))
        return BLY_OK; /* of another version */
    if (!read_number(field[FIELD_THREAD], &thread))
        return bad_field(im, "thread", field[FIELD_THREAD]);
    if (!read_time(field[FIELD_TIME], &time))
        return bad_field(im, "time", field[FIELD_TIME]);
    if (!read_number(field[FIELD_POINTER], &pointer))
        return bad_field(im, "pointer", field[FIELD_POINTER]);
    if (!read_number(field[FIELD_SIZE], &size))
        return bad_field(im, "size", field[FIELD_SIZE]);
    if (pointer == 0 && probe.kind != BLYI_PROBE_ALLOC_FAIL && size > 0)
        return bad_field(im, "pointer", field[FIELD_POINTER]);
    if (pointer == 0 && probe.kind != BLYI_PROBE_ALLOC_FAIL)
        return BLY_OK; /* nothing was asked */
    if (!read_number(field[FIELD_STREAM], &stream))
        return bad_field(im, "stream", field[FIELD_STREAM]);
    if (!im->begun)
        blyi_tracewriter_set_start(im->w, time, time);
    im->begun = true;
    if (time + DAY_NS / 2 < im->last)
        im->days++;
    im->last = time;
    probe.time_ns = im->days * DAY_NS + time;
    probe.asked = probe.size = size;
    probe.stream = stream_of(im, stream);
    if (probe.kind == BLYI_PROBE_ALLOC_FAIL) {
        probe.aux = BLY_E_NO_MEMORY;
    } else {
        probe.address = pointer;
        probe.rounded = probe.backed = size;
    }
    struct blyi_trace_event event = {.probe = probe, .thread = thread_of(im, thread)};
    blyi_tracewriter_event(im->w, &event);
    return BLY_OK;
}

bly_status import_rmm(const char *text, size_t length, const char *name, struct blyi_tracewriter *w)
{
    struct blyi_text cursor = {name, text, text + length, 0};
    struct import im = {.w = w, .text = &cursor};
    struct blyi_slice line;
    blyi_map_init(&im.threads);
    blyi_map_init(&im.streams);
    bly_status status = BLY_OK;
    (void)blyi_text_line(&cursor, &line); /* the header, which told the format */
    while (status == BLY_OK && blyi_text_line(&cursor, &line))
        status = read_line(&im, line);
    blyi_map_fini(&im.threads);
    blyi_map_fini(&im.streams);
    return status;
}
