/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_front.c - all trade-offs of a chain at once: the table's curve of the whole chain.
 */
#include "base/fail.h"
#include "base/host.h"
#include "plan/ckpt_table.h"

#define NO_LIMIT ((uint64_t)1 << 62)

static bly_status copy_curve(const struct blyi_ckpt_table *table, enum blyi_ckpt_class class,
                             bly_ckpt_front *front)
{
    uint32_t n = table->model->n;
    const struct blyi_ckpt_curve *curve =
        blyi_ckpt_table_curve(table, &(struct blyi_ckpt_part){1, n, class});
    const struct blyi_ckpt_curve *persistent =
        blyi_ckpt_table_curve(table, &(struct blyi_ckpt_part){1, n, BLYI_CKPT_PERSISTENT});
    bly_ckpt_point *points = blyi_host_alloc(curve->n * sizeof(*points));
    if (points == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a trade-off of %u points",
                         curve->n);
    for (uint32_t i = 0; i < curve->n; i++) {
        const struct blyi_ckpt_corner *corner = &curve->corners[i];
        const struct blyi_ckpt_corner *other = blyi_ckpt_curve_at(persistent, corner->memory);
        points[i] = (bly_ckpt_point){corner->memory + table->model->stages[0].output, corner->time,
                                     other != NULL ? other->time : UINT64_MAX};
    }
    *front = (bly_ckpt_front){curve->n, points, table->model->base_ns, !table->thinned};
    return BLY_OK;
}

bly_status bly_checkpoint_front(const bly_chain *chain, const bly_ckpt_opts *opts,
                                bly_ckpt_front *front)
{
    if (opts->struct_size != sizeof(*opts))
        return blyi_fail(BLY_E_INVALID,
                         "checkpoint: opts has struct_size %u; this library knows %zu",
                         opts->struct_size, sizeof(*opts));
    struct blyi_ckpt_model model;
    bly_status status = blyi_ckpt_model_init(&model, chain);
    if (status != BLY_OK)
        return status;
    struct blyi_ckpt_table table;
    status = blyi_ckpt_table_init(&table, &model, NO_LIMIT, opts);
    if (status == BLY_OK) {
        status =
            copy_curve(&table, opts->persistent ? BLYI_CKPT_PERSISTENT : BLYI_CKPT_EARLY, front);
        blyi_ckpt_table_fini(&table);
    }
    blyi_ckpt_model_fini(&model);
    return status;
}

void bly_ckpt_front_release(bly_ckpt_front *front)
{
    blyi_host_free(front->points);
    *front = (bly_ckpt_front){0};
}
