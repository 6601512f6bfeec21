/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_table.c - see ckpt_table.h.
 */
#include "plan/ckpt_table.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/map.h"

/* Corners kept of one curve: enough to be exact for chains whose sizes are small whole units,
 * fewer where the chain has so many different parts that filling would take many seconds. A
 * corner of a way takes about 3 ns, and most ways are not persistent. */
#define CORNERS_MAX 65536
#define CORNERS_MIN 16
#define STEPS_MAX   500000000u
#define STEPS_OTHER 50000000u
#define WAYS_MAX    4000000u /* about; a way takes at least 0.1 us */

static size_t alike_index(uint32_t first, uint32_t last)
{
    return (size_t)last * (last - 1) / 2 + first - 1;
}

const struct blyi_ckpt_curve *blyi_ckpt_table_curve(const struct blyi_ckpt_table *table,
                                                    const struct blyi_ckpt_part *part)
{
    return &table->curves[part->class][table->alike[alike_index(part->first, part->last)]];
}

/* ── Parts that are alike ─────────────────────────────────────────────────────────────────── */

/* The number of the part that continues part `shorter` (UINT32_MAX: the empty one) by a stage;
 * a new one when there was none. Values in the map are the numbers plus one. */
static bly_status part_number(struct blyi_ckpt_table *table, struct blyi_map *map, uint32_t shorter,
                              uint32_t stage, uint32_t *number)
{
    uint64_t key = (uint64_t)shorter << 32 | stage;
    uintptr_t found = (uintptr_t)blyi_map_get(map, key);
    if (found == 0) {
        found = ++table->n_alike;
        bly_status status = blyi_map_put(map, key, (void *)found);
        if (status != BLY_OK)
            return status;
    }
    *number = (uint32_t)found - 1;
    return BLY_OK;
}

static bly_status number_parts(struct blyi_ckpt_table *table)
{
    const struct blyi_ckpt_model *model = table->model;
    struct blyi_map map;
    bly_status status = BLY_OK;
    blyi_map_init(&map);
    for (uint32_t first = 1; first <= model->n && status == BLY_OK; first++) {
        uint32_t number = UINT32_MAX;
        for (uint32_t last = first; last <= model->n && status == BLY_OK; last++) {
            uint32_t n_alike = table->n_alike;
            status = part_number(table, &map, number, model->stages[last].alike, &number);
            table->n_ways += table->n_alike > n_alike ? last - first + 1 : 0;
            table->alike[alike_index(first, last)] = number;
        }
    }
    blyi_map_fini(&map);
    return status;
}

/* ── Filling ──────────────────────────────────────────────────────────────────────────────── */

/* Corners to keep of a curve. Of the whole chain's nothing is built, so all are kept. */
static uint32_t corners_wanted(const struct blyi_ckpt_table *table, const bly_ckpt_opts *opts,
                               const struct blyi_ckpt_part *part)
{
    if (opts->max_points > 0)
        return opts->max_points < CORNERS_MIN ? CORNERS_MIN : opts->max_points;
    if (part->first == 1 && part->last == table->model->n)
        return CORNERS_MAX;
    uint64_t steps = part->class == BLYI_CKPT_PERSISTENT ? STEPS_MAX : STEPS_OTHER;
    uint64_t corners = steps / table->n_ways;
    if (corners > CORNERS_MAX)
        return CORNERS_MAX;
    return corners < CORNERS_MIN ? CORNERS_MIN : (uint32_t)corners;
}

static bly_status fill_curve(const struct blyi_ckpt_table *table,
                             struct blyi_ckpt_envelope *envelope, const struct blyi_ckpt_part *part,
                             struct blyi_ckpt_curve *curve)
{
    struct blyi_ckpt_ways ways;
    blyi_ckpt_ways_start(&ways, table, part);
    while (blyi_ckpt_ways_next(&ways)) {
        bly_status status = blyi_ckpt_envelope_add(envelope, &ways.way);
        if (status != BLY_OK)
            return status;
    }
    return blyi_ckpt_envelope_take(envelope, curve);
}

/* The curves of one part, unless another that is alike has filled them. */
static bly_status fill_part(struct blyi_ckpt_table *table, struct blyi_ckpt_envelope *envelope,
                            const bly_ckpt_opts *opts, uint32_t first, uint32_t last, bool *filled)
{
    uint32_t number = table->alike[alike_index(first, last)];
    if (filled[number])
        return BLY_OK;
    filled[number] = true;
    for (int class = 0; class < BLYI_CKPT_CLASSES; class ++) {
        if (table->curves[class] == NULL)
            continue;
        struct blyi_ckpt_part part = {first, last, (enum blyi_ckpt_class) class};
        envelope->thinned = false;
        envelope->max_corners = corners_wanted(table, opts, &part);
        bly_status status = fill_curve(table, envelope, &part, &table->curves[class][number]);
        if (status != BLY_OK)
            return status;
        table->thinned |= class == BLYI_CKPT_PERSISTENT && envelope->thinned;
    }
    return BLY_OK;
}

static bly_status fill_table(struct blyi_ckpt_table *table, const bly_ckpt_opts *opts)
{
    struct blyi_ckpt_envelope envelope = {.limit = table->limit};
    bool *filled = blyi_host_calloc(table->n_alike, sizeof(*filled));
    if (filled == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %u parts of a chain",
                         table->n_alike);
    bly_status status = BLY_OK;
    uint32_t n = table->model->n;
    for (uint32_t length = 1; length <= n && status == BLY_OK; length++) {
        for (uint32_t first = 1; first + length - 1 <= n && status == BLY_OK; first++) {
            if (opts->cancel != NULL && *opts->cancel != 0)
                status = blyi_fail(BLY_E_CANCELLED, "checkpoint: cancelled at parts of %u stages",
                                   length);
            else
                status = fill_part(table, &envelope, opts, first, first + length - 1, filled);
        }
    }
    blyi_ckpt_envelope_fini(&envelope);
    blyi_host_free(filled);
    return status;
}

static bly_status alloc_curves(struct blyi_ckpt_table *table, bool persistent)
{
    int classes = persistent ? BLYI_CKPT_PERSISTENT + 1 : BLYI_CKPT_CLASSES;
    for (int class = 0; class < classes; class ++) {
        table->curves[class] = blyi_host_calloc(table->n_alike, sizeof(*table->curves[class]));
        if (table->curves[class] == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %u parts of a chain",
                             table->n_alike);
    }
    return BLY_OK;
}

bly_status blyi_ckpt_table_init(struct blyi_ckpt_table *table, const struct blyi_ckpt_model *model,
                                uint64_t limit, const bly_ckpt_opts *opts)
{
    size_t n_parts = (size_t)model->n * (model->n + 1) / 2;
    *table = (struct blyi_ckpt_table){.model = model, .limit = limit};
    table->alike = blyi_host_alloc(n_parts * sizeof(*table->alike));
    if (table->alike == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu parts of a chain", n_parts);
    bly_status status = number_parts(table);
    table->stride = 1;
    if (table->n_ways > WAYS_MAX) {
        table->stride = (uint32_t)(table->n_ways / WAYS_MAX) + 1;
        table->n_ways = WAYS_MAX + (uint64_t)table->n_alike * 2 * BLYI_CKPT_NEAR;
        table->thinned = true;
    }
    if (status == BLY_OK)
        status = alloc_curves(table, opts->persistent != 0);
    if (status == BLY_OK)
        status = fill_table(table, opts);
    if (status != BLY_OK)
        blyi_ckpt_table_fini(table);
    return status;
}

void blyi_ckpt_table_fini(struct blyi_ckpt_table *table)
{
    for (int class = 0; class < BLYI_CKPT_CLASSES; class ++) {
        for (uint32_t i = 0; table->curves[class] != NULL && i < table->n_alike; i++)
            blyi_host_free(table->curves[class][i].corners);
        blyi_host_free(table->curves[class]);
    }
    blyi_host_free(table->alike);
    *table = (struct blyi_ckpt_table){0};
}
