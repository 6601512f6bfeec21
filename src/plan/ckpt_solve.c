/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_solve.c - budget to schedule: fill the table, take its best point, write the schedule,
 * replay it, pack it, and go to a point that needs less memory where it did not fit.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/ckpt_table.h"
#include "plan/ckpt_write.h"

#define PACK_TRIES 32
#define PACK_NODES 100000
#define NO_LIMIT   ((uint64_t)1 << 62)

static bly_status opts_check(const bly_ckpt_opts *opts)
{
    if (opts->struct_size != sizeof(*opts))
        return blyi_fail(BLY_E_INVALID,
                         "checkpoint: opts has struct_size %u; this library knows %zu",
                         opts->struct_size, sizeof(*opts));
    return BLY_OK;
}

static enum blyi_ckpt_class whole_class(const bly_ckpt_opts *opts)
{
    return opts->persistent ? BLYI_CKPT_PERSISTENT : BLYI_CKPT_EARLY;
}

static const struct blyi_ckpt_curve *whole_curve(const struct blyi_ckpt_table *table,
                                                 enum blyi_ckpt_class class)
{
    return blyi_ckpt_table_curve(table, &(struct blyi_ckpt_part){1, table->model->n, class});
}

static uint64_t persistent_ns(const struct blyi_ckpt_table *table, uint64_t memory)
{
    const struct blyi_ckpt_corner *corner =
        blyi_ckpt_curve_at(whole_curve(table, BLYI_CKPT_PERSISTENT), memory);
    return corner != NULL ? corner->time : UINT64_MAX;
}

/* ── One schedule ─────────────────────────────────────────────────────────────────────────── */

void bly_ckpt_schedule_release(bly_ckpt_schedule *schedule)
{
    blyi_host_free(schedule->ops);
    blyi_host_free(schedule->buffers);
    blyi_host_free(schedule->offsets);
    *schedule = (bly_ckpt_schedule){0};
}

/* The schedule behind a corner, replayed; nothing of it is packed yet. */
static bly_status make_schedule(const struct blyi_ckpt_table *table, const bly_chain *chain,
                                enum blyi_ckpt_class class, const struct blyi_ckpt_corner *corner,
                                bly_ckpt_schedule *schedule)
{
    bly_status status =
        blyi_ckpt_write(table, class, corner->memory, &schedule->ops, &schedule->n_ops);
    bly_ckpt_replay replay = {0};
    if (status == BLY_OK)
        status = bly_checkpoint_replay(chain, schedule->ops, schedule->n_ops, &replay, NULL);
    if (status != BLY_OK) {
        bly_check_msg(status == BLY_E_HOST_MEMORY, "%s", blyi_fail_text());
        return status;
    }
    bly_check_msg(replay.time_ns == corner->time && replay.peak <= corner->memory + chain->input,
                  "planned %" PRIu64 " ns in %" PRIu64 " B, replayed %" PRIu64 " ns in %" PRIu64
                  " B",
                  corner->time, corner->memory + chain->input, replay.time_ns, replay.peak);
    schedule->time_ns = replay.time_ns;
    schedule->peak = replay.peak;
    return BLY_OK;
}

/* E_NO_MEMORY: no offsets within the budget were found. */
static bly_status pack_schedule(const bly_chain *chain, const bly_ckpt_opts *opts,
                                bly_ckpt_schedule *schedule)
{
    bly_status status = bly_checkpoint_buffers(chain, schedule->ops, schedule->n_ops,
                                               &schedule->buffers, &schedule->n_buffers);
    if (status != BLY_OK)
        return status;
    bly_plan_opts plan_opts = bly_plan_opts_default();
    plan_opts.n_threads = opts->n_threads ? opts->n_threads : 1;
    plan_opts.align = opts->align;
    plan_opts.deadline_ns = UINT64_MAX;
    plan_opts.node_budget = opts->pack_nodes ? opts->pack_nodes : PACK_NODES;
    plan_opts.seed = opts->seed;
    plan_opts.capacity = &schedule->budget;
    plan_opts.cancel = opts->cancel;
    bly_plan_result plan = {0};
    status = bly_plan(schedule->buffers, schedule->n_buffers, &plan_opts, &plan);
    if (status != BLY_OK)
        return status;
    schedule->packed_peak = plan.peak;
    schedule->offsets = plan.offset;
    plan.offset = NULL;
    bly_plan_release(&plan);
    return BLY_OK;
}

static bly_status try_corner(const struct blyi_ckpt_table *table, const bly_chain *chain,
                             uint64_t budget, const bly_ckpt_opts *opts,
                             const struct blyi_ckpt_corner *corner, bly_ckpt_schedule *schedule)
{
    bly_ckpt_schedule made = {.budget = budget,
                              .base_ns = table->model->base_ns,
                              .persistent_ns = persistent_ns(table, budget - chain->input),
                              .exact = !table->thinned};
    bly_status status = make_schedule(table, chain, whole_class(opts), corner, &made);
    if (status == BLY_OK && !opts->unpacked)
        status = pack_schedule(chain, opts, &made);
    if (status == BLY_OK)
        *schedule = made;
    else
        bly_ckpt_schedule_release(&made);
    return status;
}

/* ── The search for one that fits ─────────────────────────────────────────────────────────── */

/* The smallest memory that suffices. Thinning keeps the first corner of every curve, and the
 * first corners depend on first corners alone, so a coarse table tells it exactly, unless it
 * left out ways. */
static bly_status fail_budget(const struct blyi_ckpt_model *model, const bly_chain *chain,
                              uint64_t budget, const bly_ckpt_opts *opts)
{
    bly_ckpt_opts coarse = *opts;
    coarse.max_points = 1;
    struct blyi_ckpt_table table;
    bly_status status = blyi_ckpt_table_init(&table, model, NO_LIMIT, &coarse);
    if (status != BLY_OK)
        return status;
    uint64_t least = whole_curve(&table, whole_class(opts))->corners[0].memory + chain->input;
    bool all = table.stride == 1;
    blyi_ckpt_table_fini(&table);
    return blyi_fail(
        BLY_E_NO_MEMORY,
        "chain of %zu stages: a budget of %" PRIu64 " B is below the %" PRIu64 " B that %s needs",
        chain->n, budget, least, all ? "its smallest schedule" : "the smallest schedule looked at");
}

/* From the fastest corner to smaller ones until the packing fits, in wider steps the longer it
 * takes; the last try is the smallest. */
static bly_status try_corners(const struct blyi_ckpt_table *table, const bly_chain *chain,
                              uint64_t budget, const bly_ckpt_opts *opts,
                              bly_ckpt_schedule *schedule)
{
    const struct blyi_ckpt_curve *curve = whole_curve(table, whole_class(opts));
    uint32_t tries = opts->pack_tries ? opts->pack_tries : PACK_TRIES;
    uint32_t at = curve->n - 1, tried = 0;
    for (;;) {
        bly_status status = try_corner(table, chain, budget, opts, &curve->corners[at], schedule);
        if (status != BLY_E_NO_MEMORY)
            return status;
        if (++tried >= tries || at == 0)
            break;
        uint32_t step = 1 + tried / 8;
        at = tried + 1 == tries || step > at ? 0 : at - step;
    }
    return blyi_fail(BLY_E_NO_MEMORY,
                     "chain of %zu stages: none of %u schedules within a budget of %" PRIu64
                     " B has offsets within it; the smallest has %" PRIu64 " B live at its peak",
                     chain->n, tried, budget, curve->corners[at].memory + chain->input);
}

bly_status bly_checkpoint(const bly_chain *chain, uint64_t budget, const bly_ckpt_opts *opts,
                          bly_ckpt_schedule *schedule)
{
    bly_status status = opts_check(opts);
    struct blyi_ckpt_model model;
    if (status == BLY_OK)
        status = blyi_ckpt_model_init(&model, chain);
    if (status != BLY_OK)
        return status;

    struct blyi_ckpt_table table;
    uint64_t limit = budget < chain->input ? 0 : budget - chain->input;
    status = blyi_ckpt_table_init(&table, &model, limit < NO_LIMIT ? limit : NO_LIMIT, opts);
    if (status == BLY_OK) {
        if (budget < chain->input || whole_curve(&table, whole_class(opts))->n == 0)
            status = fail_budget(&model, chain, budget, opts);
        else
            status = try_corners(&table, chain, budget, opts, schedule);
        blyi_ckpt_table_fini(&table);
    }
    blyi_ckpt_model_fini(&model);
    return status;
}
