/* SPDX-License-Identifier: Apache-2.0
 *
 * import_tsv.c - the TSV of allocation traces. Blocks have ids there and no addresses: each gets
 * one of its own, in the order of allocation.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "plan/text.h"
#include "trace_input.h"

#define FIRST_ADDRESS 0x100000000000u
#define ALIGN         512u
#define NAME_MAX_TEXT 256

enum { FIELD_TIME, FIELD_OP, FIELD_ID, FIELD_BYTES, FIELD_STREAM, FIELD_TAG, N_FIELDS };

struct block {
    uint64_t address, bytes;
    uint32_t stream;
    bool freed;
};

struct import {
    struct blyi_tracewriter *w;
    const struct blyi_text *text;
    struct blyi_map blocks; /* id -> struct block */
    uint64_t next_address;
    bool begun; /* an event was written: a preexisting block is too late */
};

static bly_status bad_line(const struct import *im, const char *what)
{
    return blyi_fail(BLY_E_PARSE, "%s:%zu: %s", im->text->name, im->text->line, what);
}

static void slice_text(struct blyi_slice slice, char text[NAME_MAX_TEXT])
{
    size_t n = slice.length < NAME_MAX_TEXT - 1 ? slice.length : NAME_MAX_TEXT - 1;
    if (n > 0)
        memcpy(text, slice.at, n);
    text[n] = '\0';
}

static void put(struct import *im, const struct blyi_probe *probe)
{
    im->begun = true;
    blyi_tracewriter_event(im->w, &(struct blyi_trace_event){.probe = *probe});
}

static bly_status on_alloc(struct import *im, uint64_t time, uint64_t id, int64_t bytes,
                           uint32_t stream, struct blyi_slice tag)
{
    char name[NAME_MAX_TEXT];
    if (bytes <= 0)
        return bad_line(im, "an allocation of no bytes");
    if (blyi_map_get(&im->blocks, id) != NULL)
        return bad_line(im, "an id that was allocated before");
    struct block *block = malloc(sizeof(*block));
    if (block == NULL || blyi_map_put(&im->blocks, id, block) != BLY_OK) {
        free(block);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for its blocks", im->text->name);
    }
    *block =
        (struct block){.address = im->next_address, .bytes = (uint64_t)bytes, .stream = stream};
    im->next_address += blyi_align_up(block->bytes, ALIGN);
    if (!im->begun && blyi_slice_is(tag, "preexisting")) {
        blyi_tracewriter_block(im->w, &(struct blyi_trace_block){.address = block->address,
                                                                 .asked = block->bytes,
                                                                 .rounded = block->bytes,
                                                                 .backed = block->bytes,
                                                                 .stream = stream,
                                                                 .flags = BLYI_TRACE_BEFORE});
        return BLY_OK;
    }
    slice_text(tag, name);
    uint32_t named = strcmp(name, "-") == 0 ? 0 : blyi_tracewriter_name(im->w, name);
    put(im, &(struct blyi_probe){.kind = BLYI_PROBE_ALLOC,
                                 .address = block->address,
                                 .asked = block->bytes,
                                 .size = block->bytes,
                                 .rounded = block->bytes,
                                 .backed = block->bytes,
                                 .stream = stream,
                                 .event = named,
                                 .time_ns = time});
    return BLY_OK;
}

static bly_status on_block(struct import *im, char op, uint64_t time, uint64_t id, uint32_t stream)
{
    struct block *block = blyi_map_get(&im->blocks, id);
    if (block == NULL)
        return bad_line(im, "an id that was not allocated");
    struct blyi_probe probe = {.address = block->address, .stream = stream, .time_ns = time};
    if (op == 'f') {
        if (block->freed)
            return bad_line(im, "an id that was freed before");
        block->freed = true;
        probe.kind = BLYI_PROBE_FREE;
        probe.asked = probe.size = probe.rounded = probe.backed = block->bytes;
        probe.stream = block->stream;
    } else {
        if (op == 'd' && !block->freed)
            return bad_line(im, "the end of the uses of an id that was not freed");
        probe.kind = op == 'u' ? BLYI_PROBE_USE : BLYI_PROBE_USE_DONE;
    }
    put(im, &probe);
    return BLY_OK;
}

static void on_marker(struct import *im, uint64_t time, struct blyi_slice tag)
{
    char name[NAME_MAX_TEXT];
    slice_text(tag, name);
    if (!im->begun && strcmp(name, "trace_start") == 0)
        return; /* what stood before it is told as what was live */
    put(im, &(struct blyi_probe){.kind = BLYI_PROBE_MARK,
                                 .card = -1,
                                 .event = blyi_tracewriter_name(im->w, name),
                                 .time_ns = time});
}

static bly_status read_line(struct import *im, struct blyi_slice line)
{
    struct blyi_slice field[N_FIELDS] = {{NULL, 0}};
    int64_t number[N_FIELDS] = {0};
    size_t n = 0;
    while (n < N_FIELDS && blyi_slice_field(&line, '\t', &field[n]))
        n++;
    if (n <= FIELD_STREAM || field[FIELD_OP].length != 1)
        return bad_line(im, n <= FIELD_STREAM ? "fewer than 5 fields" : "op is not one letter");
    char op = field[FIELD_OP].at[0];
    if (strchr("afudse", op) == NULL)
        return BLY_OK; /* of a later version */
    static const int numbers[] = {FIELD_TIME, FIELD_ID, FIELD_BYTES, FIELD_STREAM};
    for (size_t i = 0; i < BLYI_COUNT(numbers); i++)
        if (!blyi_slice_int(field[numbers[i]], &number[numbers[i]]))
            return bad_line(im, "time, id, bytes or stream is not an integer");
    if (number[FIELD_TIME] < 0 || (uint64_t)number[FIELD_TIME] > UINT64_MAX / 2000)
        return bad_line(im, "the time is not in its range");
    if (number[FIELD_STREAM] < -1 || number[FIELD_STREAM] > UINT32_MAX)
        return bad_line(im, "the stream is not in its range");
    uint64_t time = (uint64_t)number[FIELD_TIME] * 1000, id = (uint64_t)number[FIELD_ID];
    uint32_t stream = (uint32_t)number[FIELD_STREAM];
    if (op == 'a')
        return on_alloc(im, time, id, number[FIELD_BYTES], stream, field[FIELD_TAG]);
    if (op == 'f' || op == 'u' || op == 'd')
        return on_block(im, op, time, id, stream);
    if (op == 'e')
        on_marker(im, time, field[FIELD_TAG]);
    else
        put(im, &(struct blyi_probe){.kind = number[FIELD_STREAM] < 0 ? BLYI_PROBE_CARD_SYNC
                                                                      : BLYI_PROBE_STREAM_SYNC,
                                     .stream = number[FIELD_STREAM] < 0 ? 0 : stream,
                                     .time_ns = time});
    return BLY_OK;
}

static void keep_comments(struct blyi_tracewriter *w, const char *text, size_t length)
{
    size_t end = 0;
    while (end < length && text[end] == '#') {
        const char *newline = memchr(text + end, '\n', length - end);
        end = newline != NULL ? (size_t)(newline - text) + 1 : length;
    }
    if (end > 0)
        blyi_tracewriter_meta(w, BLYI_TRACE_META_COMMENT, text, end, NULL, 0);
}

bly_status import_tsv(const char *text, size_t length, const char *name, struct blyi_tracewriter *w)
{
    struct blyi_text cursor = {name, text, text + length, 0};
    struct import im = {.w = w, .text = &cursor, .next_address = FIRST_ADDRESS};
    struct blyi_slice line;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        cursor.at += 3;
    keep_comments(w, cursor.at, (size_t)(cursor.end - cursor.at));
    if (!blyi_text_line(&cursor, &line))
        return blyi_fail(BLY_E_PARSE, "%s: no header line", name);
    blyi_map_init(&im.blocks);
    bly_status status = BLY_OK;
    while (status == BLY_OK && blyi_text_line(&cursor, &line))
        status = read_line(&im, line);
    size_t at = 0;
    uint64_t key;
    void *block;
    while (blyi_map_next(&im.blocks, &at, &key, &block))
        free(block);
    blyi_map_fini(&im.blocks);
    return status;
}
