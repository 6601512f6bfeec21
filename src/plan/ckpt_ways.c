/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_ways.c - the ways to do a part of a chain, and what each needs and takes. Both the table
 * and the writer of schedules go through them here, so they cannot disagree.
 */
#include "plan/ckpt_table.h"

#define NO_STAGE UINT32_MAX

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static const struct blyi_ckpt_curve *curve_of(const struct blyi_ckpt_ways *ways, uint32_t first,
                                              uint32_t last, enum blyi_ckpt_class class)
{
    return blyi_ckpt_table_curve(ways->table, &(struct blyi_ckpt_part){first, last, class});
}

/* The class of a part that ends where the whole part does not. */
static enum blyi_ckpt_class lower_class(enum blyi_ckpt_class class)
{
    return class == BLYI_CKPT_PERSISTENT ? BLYI_CKPT_PERSISTENT : BLYI_CKPT_EARLY;
}

static void way_as_persistent(struct blyi_ckpt_ways *ways)
{
    ways->choice = BLYI_CKPT_AS_PERSISTENT;
    ways->way = (struct blyi_ckpt_way){
        .first = curve_of(ways, ways->part.first, ways->part.last, BLYI_CKPT_PERSISTENT)};
}

static void way_save(struct blyi_ckpt_ways *ways)
{
    const struct blyi_ckpt_part *part = &ways->part;
    const struct blyi_ckpt_stage *stage = &ways->table->model->stages[part->first];
    uint64_t backward = stage->saved + stage->gradient + stage[-1].gradient + stage->backward_temp;
    uint64_t forward = ways->present + stage->saved + stage->forward_temp;
    bool alone = part->first == part->last, there = alone && part->class == BLYI_CKPT_HELD;
    ways->choice = BLYI_CKPT_SAVE;
    ways->way = (struct blyi_ckpt_way){
        .threshold = there ? backward : larger(forward, backward),
        .time = stage->backward_ns + (there ? 0 : stage->forward_ns),
        .held = alone ? 0 : stage->saved,
        .first = alone ? NULL : curve_of(ways, part->first + 1, part->last, part->class),
    };
}

/* Memory of forward k, without what is held throughout: the part's input is not counted. */
static uint64_t forward_memory(const struct blyi_ckpt_ways *ways, uint32_t k)
{
    const struct blyi_ckpt_stage *stage = &ways->table->model->stages[k];
    return (k > ways->part.first ? stage[-1].output : 0) + stage->output + stage->forward_temp;
}

static void way_checkpoint(struct blyi_ckpt_ways *ways)
{
    const struct blyi_ckpt_part *part = &ways->part;
    uint32_t k = ways->k;
    ways->choice = BLYI_CKPT_CHECKPOINT;
    ways->way = (struct blyi_ckpt_way){
        .threshold = ways->present + ways->forward,
        .time = blyi_ckpt_forward_ns(ways->table->model, part->first, k),
        .held = ways->table->model->stages[k].output,
        .first = curve_of(ways, k + 1, part->last, part->class),
        .second = curve_of(ways, part->first, k, lower_class(part->class)),
    };
}

static void way_early(struct blyi_ckpt_ways *ways)
{
    const struct blyi_ckpt_part *part = &ways->part;
    uint32_t k = ways->k;
    const struct blyi_ckpt_stage *stage = &ways->table->model->stages[k];
    uint64_t save = stage[-1].output + stage->saved + stage->forward_temp;
    ways->choice = BLYI_CKPT_SAVE_EARLY;
    ways->way = (struct blyi_ckpt_way){
        .threshold = ways->present + larger(ways->before, save),
        .time = blyi_ckpt_forward_ns(ways->table->model, part->first, k),
        .held = stage->saved,
        .first = curve_of(ways, k + 1, part->last, part->class),
        .second = curve_of(ways, part->first, k, BLYI_CKPT_HELD),
    };
}

void blyi_ckpt_ways_start(struct blyi_ckpt_ways *ways, const struct blyi_ckpt_table *table,
                          const struct blyi_ckpt_part *part)
{
    const struct blyi_ckpt_stage *last = &table->model->stages[part->last];
    *ways = (struct blyi_ckpt_ways){.table = table, .part = *part, .k = NO_STAGE};
    ways->present = last->gradient + (part->class == BLYI_CKPT_HELD ? last->saved : 0);
}

/* In a chain of very many different parts only some of the far checkpoints are tried. */
static bool is_skipped(const struct blyi_ckpt_ways *ways)
{
    uint32_t after = ways->k - ways->part.first, before = ways->part.last - ways->k;
    return after >= BLYI_CKPT_NEAR && before > BLYI_CKPT_NEAR && after % ways->table->stride != 0;
}

/* To the next k that is tried; false: there is none. */
static bool next_checkpoint(struct blyi_ckpt_ways *ways)
{
    ways->k = ways->choice == BLYI_CKPT_SAVE ? ways->part.first : ways->k + 1;
    for (;; ways->k++) {
        if (ways->k >= ways->part.last)
            return false;
        ways->before = ways->forward;
        ways->forward = larger(ways->forward, forward_memory(ways, ways->k));
        if (!is_skipped(ways))
            return true;
    }
}

bool blyi_ckpt_ways_next(struct blyi_ckpt_ways *ways)
{
    const struct blyi_ckpt_part *part = &ways->part;
    if (ways->k == NO_STAGE) {
        ways->k = part->first;
        if (part->class == BLYI_CKPT_EARLY) {
            way_as_persistent(ways);
            return true;
        }
        ways->choice = BLYI_CKPT_AS_PERSISTENT;
    }
    if (ways->choice == BLYI_CKPT_AS_PERSISTENT) {
        way_save(ways);
        return true;
    }
    bool early = part->class != BLYI_CKPT_PERSISTENT && ways->k > part->first;
    if (ways->choice == BLYI_CKPT_CHECKPOINT && early) {
        way_early(ways);
        return true;
    }
    if (!next_checkpoint(ways))
        return false;
    way_checkpoint(ways);
    return true;
}
