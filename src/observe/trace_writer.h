/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_writer.h - a trace made from what another file says: parts of traces, files of other
 * tools. Recordings of this process are the recorder's.
 *
 * An error is kept and told by blyi_tracewriter_finish(); what is written after it is ignored.
 * [excl]
 */
#ifndef BLYI_TRACE_WRITER_H
#define BLYI_TRACE_WRITER_H

#include <belay/base.h>
#include "observe/trace_reader.h"

struct blyi_tracewriter;

struct blyi_tracewriter_opts {
    const char *path;    /* NULL: a file without a name, for blyi_tracewriter_open() */
    const char *program; /* that was recorded, or the file that is imported */
    uint32_t flags;      /* BLYI_TRACE_ */
    uint32_t pid;
    uint64_t start_ns, start_wall_ns;
    uint64_t first_seq; /* 0: 1 */
};

/* E_IO: the file cannot be made; E_HOST_MEMORY. */
bly_status blyi_tracewriter_new(const struct blyi_tracewriter_opts *opts,
                                struct blyi_tracewriter **out);

/* Numbers rise: e->seq, or with 0 the next one. Names come at any time, their ids are the
 * caller's; kinds are ours. */
void blyi_tracewriter_event(struct blyi_tracewriter *w, const struct blyi_trace_event *e);
void blyi_tracewriter_meta(struct blyi_tracewriter *w, enum blyi_trace_meta type, const void *head,
                           size_t head_size, const void *tail, size_t tail_size);
/* When the recording began, where that is known only while reading. */
void blyi_tracewriter_set_start(struct blyi_tracewriter *w, uint64_t start_ns,
                                uint64_t start_wall_ns);
/* Names that the writer numbers itself, each text once; 0 for "" and when there is an error. */
uint32_t blyi_tracewriter_name(struct blyi_tracewriter *w, const char *text);
uint32_t blyi_tracewriter_source(struct blyi_tracewriter *w, const char *function, const char *file,
                                 uint32_t line);
uint32_t blyi_tracewriter_stack(struct blyi_tracewriter *w, const uint32_t *sites, size_t n);
void blyi_tracewriter_block(struct blyi_tracewriter *w, const struct blyi_trace_block *block);
void blyi_tracewriter_card(struct blyi_tracewriter *w, const struct blyi_trace_card *card);

/* Ends with the last event's number, or `seen` when that is higher. Frees the writer in any case.
 * *trace, when not NULL, is then the trace, opened. E_IO, E_HOST_MEMORY; E_INVALID: the numbers
 * of events did not rise. */
bly_status blyi_tracewriter_finish(struct blyi_tracewriter *w, uint64_t seen, uint64_t end_ns,
                                   struct blyi_trace **trace);
void blyi_tracewriter_abandon(struct blyi_tracewriter *w); /* leaves no file; NULL is allowed */

#endif
