/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reader.h - the one reader of traces (docs/trace-format.md).
 *
 * It trusts nothing in the file: what is damaged is left out and counted. Opening reads the file
 * once and keeps names and the blocks that were live at the first event; events are then read as a
 * stream in the order in which they happened, in memory that depends on the number of threads and
 * not on the length of the trace. [excl]
 */
#ifndef BLYI_TRACE_READER_H
#define BLYI_TRACE_READER_H

#include <belay/base.h>
#include <stdbool.h>
#include "observe/trace_format.h"

struct blyi_trace;

/* Ids of sites, stacks, names and ranges are those of the file. */
struct blyi_trace_event {
    struct blyi_probe probe; /* kind as this library numbers it */
    uint64_t seq;
    uint32_t thread; /* 0: unknown */
    uint32_t range;  /* path that the thread was in; of RANGE_PUSH the one that begins */
    uint32_t stack;  /* 0: none */
};

struct blyi_trace_info {
    const char *name;    /* of the file */
    const char *program; /* that ran, or the file that was imported */
    const char *writer;  /* version of Belay */
    uint32_t version, pid, flags, stack_depth;
    enum blyi_trace_state state;
    const char *stop_text;
    uint64_t ring; /* 0: all */
    uint64_t start_ns, start_wall_ns;
    uint64_t end_ns;    /* when it was closed; 0: was not */
    uint64_t first_seq; /* number of the first event that belongs here: 1 unless cut or a ring */
    uint64_t seen;      /* events that happened, up to the last number */
    uint64_t kept;      /* of those, in the file */
    uint64_t dropped;   /* older than the ring */
    uint64_t cut;       /* left out by a cut, at the front */
    uint64_t lost;      /* neither: not written when the process died, or damaged */
    uint64_t unknown;   /* of `kept`, of kinds that this library does not know: not delivered */
    uint64_t damaged;   /* pieces of the file that make no sense */
    uint64_t first_ns, last_ns; /* times of the first and last event; 0 without events */
    uint32_t n_threads, n_sites, n_stacks;
};

/* E_IO: cannot be read. E_PARSE: not a trace, or of a later major version. E_HOST_MEMORY. */
bly_status blyi_trace_open(const char *path, struct blyi_trace **out);
/* The same of bytes in memory, which must stay. */
bly_status blyi_trace_open_memory(const void *bytes, size_t size, const char *name,
                                  struct blyi_trace **out);
/* The same of an open file, which is the trace's from then on, also when this fails. */
bly_status blyi_trace_open_fd(int fd, const char *name, struct blyi_trace **out);
void blyi_trace_close(struct blyi_trace *trace); /* NULL is allowed */
const struct blyi_trace_info *blyi_trace_info(const struct blyi_trace *trace);
/* True for what begins like a trace. */
bool blyi_trace_is(const void *bytes, size_t size);

/* The next event; false at the end, or when the file cannot be read (blyi_trace_status()). */
bool blyi_trace_next(struct blyi_trace *trace, struct blyi_trace_event *event);
bly_status blyi_trace_status(const struct blyi_trace *trace);
bly_status blyi_trace_rewind(struct blyi_trace *trace);

/* Blocks live just before the first event, by rising address. flags BLYI_TRACE_BEFORE: made before
 * recording began; seq tells of the others which dropped event made them, 0: unknown. */
const struct blyi_trace_block *blyi_trace_start_blocks(const struct blyi_trace *trace, size_t *n);

struct blyi_trace_site {
    const char *module; /* "" when unknown */
    const char *build_id;
    uint64_t offset;      /* in the module's file, of the byte before the return address */
    const char *function; /* "" when the file does not say, and so on */
    const char *source;
    uint32_t line;
};
/* False for ids that the file does not know. */
bool blyi_trace_site(const struct blyi_trace *trace, uint32_t site, struct blyi_trace_site *out);
/* All sites in no order: start with *cursor 0; false at the end. */
bool blyi_trace_next_site(const struct blyi_trace *trace, size_t *cursor, uint32_t *id,
                          struct blyi_trace_site *out);
/* What somebody found out about a site; texts are copied. Without host memory nothing changes. */
void blyi_trace_set_source(struct blyi_trace *trace, uint32_t site, const char *function,
                           const char *file, uint32_t line);
/* Sites, innermost first; NULL and 0 without. */
const uint32_t *blyi_trace_stack(const struct blyi_trace *trace, uint32_t stack, size_t *n);
const char *blyi_trace_name(const struct blyi_trace *trace, uint32_t name); /* never NULL */
struct blyi_trace_range {
    uint32_t parent, name;
};
bool blyi_trace_range(const struct blyi_trace *trace, uint32_t range, struct blyi_trace_range *out);
struct blyi_trace_thread {
    uint32_t tid;
    const char *name;
};
bool blyi_trace_thread(const struct blyi_trace *trace, uint32_t thread,
                       struct blyi_trace_thread *out);
struct blyi_trace_card {
    int32_t card;
    uint64_t total, overhead;
};
const struct blyi_trace_card *blyi_trace_cards(const struct blyi_trace *trace, size_t *n);
/* The records of names as they stand in the file: start with *cursor 0; false at the end. */
bool blyi_trace_record(const struct blyi_trace *trace, size_t *cursor, uint32_t *type,
                       const void **bytes, size_t *length);
const char *blyi_trace_comment(const struct blyi_trace *trace); /* "" without */

/* "function file:line", "module+0x12", "site unknown": for people. */
#define BLYI_TRACE_SITE_TEXT 512
const char *blyi_trace_site_text(const struct blyi_trace *trace, uint32_t site,
                                 char buf[BLYI_TRACE_SITE_TEXT]);
/* "outer/inner". */
#define BLYI_TRACE_RANGE_TEXT 1024
const char *blyi_trace_range_text(const struct blyi_trace *trace, uint32_t range,
                                  char buf[BLYI_TRACE_RANGE_TEXT]);

#endif
