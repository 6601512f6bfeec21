/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_file.h - the file that a recorder writes by way of mappings: room for chunks, and the
 * stream of names.
 *
 * Room is taken from the file system before it is mapped, so that a full disk is an error here and
 * not a signal there. What is mapped stays so. No locking: the recorder's.
 */
#ifndef BLYI_RECORDER_FILE_H
#define BLYI_RECORDER_FILE_H

#include <belay/base.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include "observe/trace_format.h"

struct blyi_recfile_extent;

struct blyi_recfile {
    char path[PATH_MAX]; /* "" for one that has no name */
    int fd;
    dev_t device; /* of the file: the program may close the descriptor and get its number */
    ino_t inode;
    struct blyi_trace_header *header; /* mapped */
    struct blyi_recfile_extent *extents;
    uint64_t size;          /* of the file, header included */
    uint64_t used;          /* of that: nothing stands behind it */
    uint32_t extent_chunks; /* taken at a time */
    struct blyi_trace_chunk *meta;
};

/* Makes an opened file, which loses its content, a trace; `header` is complete but for what is
 * written while recording. path NULL: memory alone, without a file.
 * E_IO: the path and why. *file stays as it was then, and fd is closed. */
bly_status blyi_recfile_open(struct blyi_recfile *file, const char *path, int fd,
                             const struct blyi_trace_header *header);

/* A row of chunks, zeroed but for type and n_chunks. *at is its place in the file when not NULL.
 * E_IO: no room; the sentence says how much there is of the file. */
bly_status blyi_recfile_take(struct blyi_recfile *file, enum blyi_trace_chunk_type type, uint32_t n,
                             struct blyi_trace_chunk **chunk, uint64_t *at);
/* Writes a copy of n chunks that lie one behind the other to the end of the file. E_IO. */
bly_status blyi_recfile_append(struct blyi_recfile *file, const struct blyi_trace_chunk *chunks,
                               uint32_t n);

/* Adds one record to the stream of names: `head` and behind it `tail`, which may be empty. */
bly_status blyi_recfile_meta(struct blyi_recfile *file, enum blyi_trace_meta type, const void *head,
                             size_t head_size, const void *tail, size_t tail_size);

/* Reads what the file holds, through the descriptor. E_IO. */
bly_status blyi_recfile_read(struct blyi_recfile *file, void *buf, size_t size, uint64_t at);

/* Unmaps everything and closes. trim: cuts off what was never used; nobody may be writing. */
void blyi_recfile_close(struct blyi_recfile *file, bool trim);
/* In the child of a fork: forgets what belongs to the parent, and writes nothing. */
void blyi_recfile_forget(struct blyi_recfile *file);

#endif
