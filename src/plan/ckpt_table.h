/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_table.h - for every part of a chain, its trade-off between memory and time.
 *
 * A part first .. last starts when output first-1 is there (somebody else holds it, and it is
 * not counted in the part's memory) and gradient `last` is there (counted). It ends when
 * backward `first` has run. Ways to do it:
 *
 *   save       save first; the part first+1 .. last; backward first
 *   checkpoint forward first .. k, hold output k; the part k+1 .. last; drop k; the part
 *              first .. k
 *   early      forward first .. k-1, save k, drop output k-1; the part k+1 .. last; the part
 *              first .. k, of which saved k is there already
 *
 * The first two make the persistent schedules, and their best is exact. The third is not
 * persistent: output k-1 is computed twice, but the second time on the way to what has to be
 * computed again anyway, so it costs forward k less than a checkpoint and holds no output k-1.
 *
 * Parts that look alike stage by stage share one trade-off, so a chain of identical layers has
 * as many as it has layers.
 */
#ifndef BLYI_CKPT_TABLE_H
#define BLYI_CKPT_TABLE_H

#include "plan/ckpt_curve.h"
#include "plan/ckpt_model.h"

enum blyi_ckpt_class {
    BLYI_CKPT_PERSISTENT,
    BLYI_CKPT_EARLY, /* all three ways, or as a persistent part */
    BLYI_CKPT_HELD,  /* all three ways, and saved `last` is there at the start (counted) */
    BLYI_CKPT_CLASSES
};

#define BLYI_CKPT_NEAR 4u /* stages from an end of a part */

struct blyi_ckpt_part {
    uint32_t first, last;
    enum blyi_ckpt_class class;
};

struct blyi_ckpt_table {
    const struct blyi_ckpt_model *model;
    uint64_t limit;   /* of the memory of a part */
    bool thinned;     /* some persistent curve is not exact */
    uint32_t stride;  /* of checkpoints tried far from both ends of a part; 1: all */
    uint32_t n_alike; /* different parts */
    uint64_t n_ways;  /* sum of their lengths: what filling costs */
    uint32_t *alike;  /* of the part first .. last, at alike_index() */
    struct blyi_ckpt_curve *curves[BLYI_CKPT_CLASSES]; /* n_alike values; NULL: not wanted */
};

/* Fills a table for parts that use at most `limit` bytes, persistent ones only or all. */
bly_status blyi_ckpt_table_init(struct blyi_ckpt_table *table, const struct blyi_ckpt_model *model,
                                uint64_t limit, const bly_ckpt_opts *opts);
void blyi_ckpt_table_fini(struct blyi_ckpt_table *table);

const struct blyi_ckpt_curve *blyi_ckpt_table_curve(const struct blyi_ckpt_table *table,
                                                    const struct blyi_ckpt_part *part);

enum blyi_ckpt_choice {
    BLYI_CKPT_AS_PERSISTENT, /* so that the rest is never worse, even when thinned */
    BLYI_CKPT_SAVE,
    BLYI_CKPT_CHECKPOINT,
    BLYI_CKPT_SAVE_EARLY
};

/* Goes through the ways of a part, one after another. */
struct blyi_ckpt_ways {
    const struct blyi_ckpt_table *table;
    struct blyi_ckpt_part part;
    uint64_t present; /* held throughout the forwards: gradient `last`, perhaps saved `last` */
    uint64_t forward; /* memory of the forwards up to k */
    uint64_t before;  /* and of those before k */
    enum blyi_ckpt_choice choice;
    uint32_t k; /* as in the list above */
    struct blyi_ckpt_way way;
};
void blyi_ckpt_ways_start(struct blyi_ckpt_ways *ways, const struct blyi_ckpt_table *table,
                          const struct blyi_ckpt_part *part);
bool blyi_ckpt_ways_next(struct blyi_ckpt_ways *ways); /* false: there are no more */

#endif
