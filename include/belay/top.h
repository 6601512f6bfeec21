/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/top.h - the largest users of memory in a recording, for programs that look at their own
 * (belay/trace.h); what `belay top-ops` tells.
 *
 * Bytes   those asked for, of card memory. Of what was live at the beginning `left` says nothing.
 * Names   a block's tag, else the range that the thread was in, else the place that asked.
 * Places  "function file:line" for lines of scripts and where the file tells them; "module+0x12" of
 *         machine code in a copy that bly_trace_dump() wrote: `belay` looks those up.
 */
#ifndef BLY_TOP_H
#define BLY_TOP_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bly_top_by {
    BLY_TOP_PEAK,  /* bytes live at the peak of all cards */
    BLY_TOP_TOTAL, /* bytes altogether */
    BLY_TOP_COUNT  /* blocks altogether */
} bly_top_by;

typedef struct bly_top_row {
    const char *name;
    const char *from; /* the place that asked for most of it */
    uint64_t peak_bytes, peak_blocks;
    uint64_t total_bytes, total_blocks; /* live at the beginning, or made since */
    uint64_t left_bytes, left_blocks;   /* of those made since, live at the end */
} bly_top_row;

/* Sums are those of the rows. */
typedef struct bly_top {
    size_t n;
    bly_top_row *rows; /* by falling peak_bytes, unless bly_top_order() was called */
    uint64_t peak_bytes, peak_blocks, total_bytes, total_blocks, left_bytes, left_blocks;
    uint64_t duration_ns;
    uint64_t events;        /* in the file, as far as kept */
    uint64_t dropped, lost; /* older than a ring holds; not written, or damaged */
    uint64_t refused;       /* requests for memory */
    void *texts;            /* the library's */
} bly_top;

/* Read a recording of Belay, closed or not. [any]
 * from, to  names of marks (bly_mark()): what lies between the last of either name; NULL: the
 *           beginning and the end. A ring that no longer has `from` begins where it begins.
 * E_IO           the file cannot be read
 * E_PARSE        it is no recording of Belay
 * E_INVALID      path or top is NULL; there is no such mark, or `to` comes before `from`
 * E_HOST_MEMORY  host memory to look at it */
BLY_API bly_status bly_top_read(const char *path, const char *from, const char *to, bly_top *top);

/* Put the rows into another order. E_INVALID: top is NULL, or no such order. [excl] */
BLY_API bly_status bly_top_order(bly_top *top, bly_top_by by);

/* Free what was read; a zeroed one is allowed. [excl] */
BLY_API void bly_top_release(bly_top *top);

#ifdef __cplusplus
}
#endif
#endif
