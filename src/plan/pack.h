/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.h - a packing problem in the form in which all solvers read it.
 *
 * Times are cut into sections: a section ends where a birth follows a death, so that two
 * buffers meet exactly when they share a section, and a section's buffers all meet each
 * other. Sizes are divided by the greatest common divisor of everything given.
 *
 *   time      0....1....2....3....4....5
 *   a         [---------)
 *   b              [---------)
 *   c                        [---------)
 *   section   <----- 0 ----->|<-- 1 -->      a, b meet in 0; b, c do not meet
 *
 * A buffer with gaps is a list of pieces; one without is its own only piece. Read only once
 * made, so any number of threads may solve it at once.
 */
#ifndef BLYI_PLAN_PACK_H
#define BLYI_PLAN_PACK_H

#include <belay/plan.h>
#include <stdbool.h>

#define BLYI_PACK_NONE UINT32_MAX
#define BLYI_PACK_FREE (-1)

struct blyi_pack_item {
    uint32_t first, last; /* sections, both included */
    int64_t size;         /* units */
};

/* Sections in which the units [lo, hi) of a buffer are in use. */
struct blyi_pack_piece {
    uint32_t first, last;
    int64_t lo, hi;
};

struct blyi_pack {
    uint32_t n;
    uint32_t n_sections;
    int64_t unit; /* bytes per unit */
    struct blyi_pack_item *items;
    int64_t *align;     /* units, per item; NULL: all 1 */
    int64_t *fixed;     /* units, BLYI_PACK_FREE where free; NULL: all free */
    int64_t *hint;      /* units, BLYI_PACK_FREE where none; NULL: no hints */
    uint32_t *piece_at; /* n + 1 positions in pieces; NULL: no gaps at all */
    struct blyi_pack_piece *pieces;
    uint64_t *time; /* n_sections + 1 section borders, for folding and windows */
    int64_t bound;  /* certified lower bound of the peak, units */
    bool windowed;  /* some gap keeps a part of its buffer: the tree search proves nothing */
};

/* Builds the problem from members[0 .. n) of the buffers (NULL: all of them, in order). The
 * buffers have passed blyi_plan_check().
 * E_HOST_MEMORY: nothing was made. */
bly_status blyi_pack_init(struct blyi_pack *pack, const bly_plan_buffer *buffers,
                          const uint32_t *members, size_t n, uint64_t default_align);
void blyi_pack_fini(struct blyi_pack *pack);

/* Pieces of item i: sets *count and returns the first. `own` is room for the only piece of a
 * buffer without gaps. */
static inline const struct blyi_pack_piece *blyi_pack_pieces(const struct blyi_pack *pack,
                                                             uint32_t i, uint32_t *count,
                                                             struct blyi_pack_piece *own)
{
    if (pack->piece_at != NULL) {
        *count = pack->piece_at[i + 1] - pack->piece_at[i];
        return &pack->pieces[pack->piece_at[i]];
    }
    own->first = pack->items[i].first;
    own->last = pack->items[i].last;
    own->lo = 0;
    own->hi = pack->items[i].size;
    *count = 1;
    return own;
}

static inline int64_t blyi_pack_align(const struct blyi_pack *pack, uint32_t i, int64_t offset)
{
    if (pack->align == NULL)
        return offset;
    int64_t align = pack->align[i];
    int64_t over = offset % align;
    return over == 0 ? offset : offset + (align - over);
}

static inline bool blyi_pack_is_fixed(const struct blyi_pack *pack, uint32_t i)
{
    return pack->fixed != NULL && pack->fixed[i] != BLYI_PACK_FREE;
}

/* Largest end of all buffers. */
int64_t blyi_pack_peak(const struct blyi_pack *pack, const int64_t *offset);

#endif
