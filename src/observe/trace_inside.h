/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_inside.h - what the parts of the reader share.
 *
 *   trace_reader.c   open
 *   trace_merge.c    the order of events
 *   trace_source.c   bytes of a file or of memory; one chunk of events
 *   trace_names.c    the stream of names
 *   trace_ask.c      answers from it
 *   trace_start.c    what was live at the first event
 */
#ifndef BLYI_TRACE_INSIDE_H
#define BLYI_TRACE_INSIDE_H

#include "base/map.h"
#include "observe/trace_reader.h"

/* ── Bytes ────────────────────────────────────────────────────────────────────────────────── */

struct blyi_trace_source {
    const char *name;
    int fd; /* -1: memory */
    const unsigned char *bytes;
    uint64_t size; /* when it was opened */
};
/* Reads as much as there is of it: a file may have become shorter. E_IO. */
bly_status blyi_trace_source_read(const struct blyi_trace_source *source, void *buf, size_t size,
                                  uint64_t at, size_t *got);

/* ── One chunk of events ──────────────────────────────────────────────────────────────────── */

struct blyi_trace_cursor {
    uint64_t words[BLYI_TRACE_CHUNK / 8]; /* what follows the chunk's header */
    uint32_t n_words, at;
    struct blyi_trace_context context;
    bool has_context, damaged;
    struct blyi_trace_event event; /* the present one; probe.kind as the file numbers it */
};
/* Reads the chunk at `at`. E_IO. */
bly_status blyi_trace_cursor_open(struct blyi_trace_cursor *cursor,
                                  const struct blyi_trace_source *source, uint64_t at);
/* Steps to the next event; false at the end. Numbers rise within a chunk, else it is damaged. */
bool blyi_trace_cursor_next(struct blyi_trace_cursor *cursor);

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

struct blyi_trace_module {
    const char *path, *build_id;
};

struct blyi_trace_site_entry {
    uint32_t module, line;
    uint64_t offset;
    const char *function, *source;
};

struct blyi_trace_stack_entry {
    uint32_t n;
    uint32_t sites[];
};

struct blyi_trace_names {
    unsigned char *bytes; /* the whole stream; texts point into it, or into copies */
    size_t size, room;
    char **texts; /* copies, terminated */
    size_t n_texts, texts_room;
    /* Tables by id. */
    struct blyi_map sites, modules, stacks, names, ranges, threads, kinds;
    void **parts; /* values of the maps */
    size_t n_parts, parts_room;
    struct blyi_trace_block *blocks;
    size_t n_blocks, blocks_room;
    struct blyi_trace_card *cards;
    size_t n_cards, cards_room;
    const char *comment;
    uint64_t damaged;
    uint32_t n_sites, n_stacks, n_threads;
};
void blyi_trace_names_init(struct blyi_trace_names *names);
void blyi_trace_names_fini(struct blyi_trace_names *names);
bly_status blyi_trace_names_add(struct blyi_trace_names *names, const void *bytes, size_t size);
/* Understands what was added. E_HOST_MEMORY. */
bly_status blyi_trace_names_parse(struct blyi_trace_names *names);
/* A copy, terminated, that lives as long as the names; NULL without host memory. */
const char *blyi_trace_keep_text(struct blyi_trace_names *names, const void *text, size_t length);
/* This library's number of a kind in the file; -1: unknown. */
int blyi_trace_names_kind(const struct blyi_trace_names *names, uint32_t kind);

/* ── The whole ────────────────────────────────────────────────────────────────────────────── */

struct blyi_trace_chunk_at {
    uint64_t at, first_seq, last_seq;
};

struct blyi_trace {
    struct blyi_trace_source source;
    struct blyi_trace_header header;
    struct blyi_trace_info info;
    struct blyi_trace_names names;
    struct blyi_trace_chunk_at *chunks; /* of events, by first_seq */
    size_t n_chunks, chunks_room;
    struct blyi_trace_block *table; /* of a ring, as found */
    size_t n_table;
    struct blyi_trace_block *start;
    size_t n_start, start_room;
    /* The merge: a heap of chunks that overlap, by the number of their present event. */
    struct blyi_trace_cursor **heap;
    size_t n_heap, heap_room, next_chunk;
    uint64_t last_seq; /* delivered */
    bly_status status;
};

/* Fills start and the figures of info that need a look at every event. */
bly_status blyi_trace_find_start(struct blyi_trace *trace);
/* Next event of any kind, unknown ones as probe.kind BLYI_PROBE_COUNT. */
bool blyi_trace_step(struct blyi_trace *trace, struct blyi_trace_event *event);

/* Room for one more entry of `size` bytes; false without host memory. */
bool blyi_trace_room(void *array, size_t n, size_t *room, size_t size);

#endif
