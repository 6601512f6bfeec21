/* SPDX-License-Identifier: Apache-2.0
 *
 * physical_frames.c - the frames of physical memory, of a card or of the host: taken, given back,
 * in runs.
 */
#include "npu/card.h"
#include "npu/stock.h"
#include "npu/vmm_inside.h"
#include "base/fail.h"
#include "base/host.h"

static bool add_run(struct blyi_physical *p, struct blyi_run run)
{
    if (p->n_runs > 0) {
        struct blyi_run *last = &p->runs[p->n_runs - 1];
        if (last->first + last->count == run.first) {
            last->count += run.count;
            return true;
        }
    }
    if (p->n_runs == p->max_runs) {
        uint32_t more = p->max_runs > 0 ? 2 * p->max_runs : 1;
        struct blyi_run *runs = blyi_host_realloc(p->runs, more * sizeof *runs);
        if (!runs)
            return false;
        p->runs = runs;
        p->max_runs = more;
    }
    p->runs[p->n_runs++] = run;
    return true;
}

static void append(struct blyi_run *runs, uint32_t *n, uint32_t first, uint32_t count)
{
    if (count == 0)
        return;
    if (*n > 0 && runs[*n - 1].first + runs[*n - 1].count == first)
        runs[*n - 1].count += count;
    else
        runs[(*n)++] = (struct blyi_run){first, count};
}

bly_status blyi_physical_runs_with(const struct blyi_physical *p, uint32_t index, uint32_t first,
                                   uint32_t count, struct blyi_run **out, uint32_t *n_out)
{
    uint32_t n = 0, at = 0, end = index + count;
    struct blyi_run *runs = blyi_host_alloc((p->n_runs + 2) * sizeof *runs);
    if (!runs)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
    for (uint32_t r = 0; r < p->n_runs; at += p->runs[r].count, r++) {
        const struct blyi_run *run = &p->runs[r];
        uint32_t stop = at + run->count;
        uint32_t before = at >= index ? 0 : (stop < index ? stop : index) - at;
        uint32_t after = stop <= end ? 0 : stop - (at > end ? at : end);
        append(runs, &n, run->first, before);
        if (at <= index && index < stop)
            append(runs, &n, first, count);
        append(runs, &n, run->first + run->count - after, after);
    }
    *out = runs;
    *n_out = n;
    return BLY_OK;
}

static void give_host_run(struct blyi_run run)
{
    blyi_frames_give(blyi_vmm.host_frames, run.first, run.count);
    blyi_backing_retire(blyi_vmm.host_backing, run.first, run.count);
}

static void give_run(struct blyi_physical *p, struct blyi_run run)
{
    if (p->card)
        blyi_run_give(p->card, run);
    else
        give_host_run(run);
}

static bool take_run(struct blyi_physical *p, enum blyi_short kind, uint32_t left,
                     struct blyi_run *run)
{
    if (p->card)
        return blyi_run_take(p->card, kind, left, run);
    if (p->contiguous)
        run->count = blyi_frames_take_run(blyi_vmm.host_frames, left, 1, &run->first) ? left : 0;
    else
        run->count = blyi_frames_take(blyi_vmm.host_frames, left,
                                      blyi_backing_prefer(blyi_vmm.host_backing), &run->first);
    if (run->count > 0)
        blyi_backing_reuse(blyi_vmm.host_backing, run->first, run->count);
    return run->count > 0;
}

void blyi_physical_give_frames_locked(struct blyi_physical *p)
{
    for (uint32_t i = 0; i < p->n_runs; i++)
        give_run(p, p->runs[i]);
    p->n_runs = 0;
    blyi_backing_settle(p->card ? p->card->backing : blyi_vmm.host_backing);
}

bly_status blyi_physical_take_frames_locked(struct blyi_physical *p, enum blyi_short kind,
                                            bool *is_short)
{
    uint64_t n = p->size / BLYI_FRAME_SIZE, taken = 0;
    *is_short =
        n > (p->card ? blyi_stock_free(p->card->stock) : blyi_frames_free(blyi_vmm.host_frames));
    if (*is_short)
        return BLY_E_NO_MEMORY;
    while (taken < n) {
        struct blyi_run run;
        if (!take_run(p, kind, (uint32_t)(n - taken), &run)) {
            *is_short = true;
            blyi_physical_give_frames_locked(p);
            return BLY_E_NO_MEMORY;
        }
        if (!add_run(p, run)) {
            give_run(p, run);
            blyi_physical_give_frames_locked(p);
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
        }
        taken += run.count;
    }
    return BLY_OK;
}

/* Its frames are taken and as many as its size says. */
bool blyi_physical_audit(const struct blyi_physical *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        n += p->runs[i].count;
        for (uint32_t k = 0; k < p->runs[i].count; k++)
            if (p->card ? blyi_stock_is_free(p->card->stock, p->runs[i].first + k)
                        : blyi_frames_is_free(blyi_vmm.host_frames, p->runs[i].first + k))
                return false;
    }
    return n * BLYI_FRAME_SIZE == p->size && (!p->contiguous || p->n_runs == 1);
}
