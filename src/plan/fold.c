/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.c - one step of a repeating trace as a problem of its own, wound around a circle:
 *
 *   trace   |--a--|   |--a--|   |--a--|         step   |--a--|      a lies at one offset in all
 *              |----b----|                             |  |-----    steps; b reaches into the
 *                        |----b----|                   |--|         next and gets a gap
 *
 * A buffer that reaches over the border of its step is in use at both ends of it and not in
 * between, which is a buffer with a gap. Buffers that live longer than a step would meet
 * themselves, so several steps are wound up together then. A slot of the step takes the union
 * of the lifetimes that its buffers have in all steps; what fits into no slot is planned by
 * itself, above everything that repeats.
 */
#include "plan/fold.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/inner.h"
#include "plan/repeat.h"
#include "plan/shelf.h"

#define SAMPLE     65536 /* births looked at to find the step */
#define STEPS_MAX  8     /* wound up together */
#define SLOTS_MAX  60000
#define DRIFT      16 /* a birth may be off by a part of the step */
#define FEW        64 /* left over, that are put into holes */
#define REST_SHARE 8  /* of all buffers that may be left over */

struct slot {
    int64_t lower, upper; /* since the start of its step */
    int64_t size;
    uint64_t life; /* of the buffer that it was made for */
};

struct fold {
    struct blyi_solve *solve;
    const struct blyi_timeline *line;
    int64_t start, length; /* of a step */
    int64_t first;         /* birth that begins a step */
    size_t n_born;         /* in a step */
    size_t n_steps;        /* wound up together */
    struct slot *slots;    /* n_born values */
    int64_t *place;        /* n_born * n_steps offsets */
    uint32_t *rest;        /* items that fit into no slot */
    size_t n_rest;
    int64_t height; /* of what repeats */
};

static int64_t lower_of(const struct blyi_pack *pack, uint32_t i)
{
    return (int64_t)pack->time[pack->items[i].first];
}

static int64_t upper_of(const struct blyi_pack *pack, uint32_t i)
{
    return (int64_t)pack->time[pack->items[i].last + 1];
}

static int64_t floor_div(int64_t a, int64_t b)
{
    bly_assert(b > 0);
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/* Slot of a birth, and the time since the start of the step that it belongs to. */
static struct slot *slot_of(const struct fold *f, uint32_t birth, int64_t *step, int64_t *since)
{
    const struct blyi_pack *pack = f->solve->pack;
    int64_t n = (int64_t)f->n_born, at = (int64_t)birth - f->first;
    *step = floor_div(at, n);
    *since = lower_of(pack, f->line->born[birth]) - f->start - *step * f->length;
    return &f->slots[at - *step * n];
}

/* The step is looked for in the middle, away from how a run begins and ends. */
static bly_status find_step(struct fold *f, bool *found)
{
    const struct blyi_pack *pack = f->solve->pack;
    size_t n = pack->n < SAMPLE ? pack->n : SAMPLE, from = (pack->n - n) / 2;
    bly_plan_buffer *sample = blyi_host_alloc_dense(n * sizeof(*sample));
    if (sample == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "folding %u buffers: the host has no memory", pack->n);
    for (size_t x = 0; x < n; x++) {
        uint32_t i = f->line->born[from + x];
        sample[x] = bly_plan_buffer_make(lower_of(pack, i), upper_of(pack, i),
                                         (uint64_t)pack->items[i].size);
    }
    struct blyi_repeat r = {0, 0, 0};
    struct blyi_births births;
    bly_status status = blyi_births_init(&births, sample, n);
    blyi_host_free(sample);
    if (status != BLY_OK)
        return status;
    status = blyi_repeat_find(&births, false, &r);
    blyi_births_fini(&births);
    *found = r.run > 0;
    if (!*found)
        return status;
    /* Steps at the ends of a run may differ a little: one from the middle is the model. */
    size_t n_steps = r.run / r.distance + 1, first = from + r.first + n_steps / 2 * r.distance;
    f->n_born = r.distance;
    f->first = (int64_t)first;
    f->start = lower_of(pack, f->line->born[first]);
    size_t next = n_steps > 2 ? first + r.distance : first;
    f->length =
        lower_of(pack, f->line->born[next]) - lower_of(pack, f->line->born[next - r.distance]);
    *found = f->length > 0;
    return status;
}

static bool is_alike(const struct fold *f, const struct slot *slot, uint32_t i, int64_t since)
{
    const struct blyi_pack *pack = f->solve->pack;
    uint64_t life = (uint64_t)(upper_of(pack, i) - lower_of(pack, i));
    int64_t off = since - slot->lower;
    return pack->items[i].size == slot->size && life < 2 * slot->life + 2 &&
           off <= f->length / DRIFT && -off <= f->length / DRIFT;
}

/* Sorts all buffers into slots; `widen`: slots grow to hold what is alike, else that is left over.
 */
static void fill_slots(struct fold *f, bool widen)
{
    const struct blyi_pack *pack = f->solve->pack;
    int64_t step, since;
    f->n_rest = 0;
    for (uint32_t birth = 0; birth < pack->n; birth++) {
        uint32_t i = f->line->born[birth];
        struct slot *slot = slot_of(f, birth, &step, &since);
        int64_t upper = since + upper_of(pack, i) - lower_of(pack, i);
        bool inside = since >= slot->lower && upper <= slot->upper;
        if (!is_alike(f, slot, i, since) || (!inside && !widen)) {
            f->rest[f->n_rest++] = i;
            continue;
        }
        slot->lower = since < slot->lower ? since : slot->lower;
        slot->upper = upper > slot->upper ? upper : slot->upper;
    }
}

/* Slots from one step; widened by all others where many differ. */
static void make_slots(struct fold *f)
{
    const struct blyi_pack *pack = f->solve->pack;
    int64_t step, since;
    for (size_t x = 0; x < f->n_born; x++) {
        uint32_t birth = (uint32_t)(f->first + (int64_t)x), i = f->line->born[birth];
        struct slot *slot = slot_of(f, birth, &step, &since);
        int64_t life = upper_of(pack, i) - lower_of(pack, i);
        *slot = (struct slot){since, since + life, pack->items[i].size, (uint64_t)life};
    }
    fill_slots(f, false);
    if (f->n_rest > FEW)
        fill_slots(f, true);
    int64_t longest = 1;
    for (size_t x = 0; x < f->n_born; x++) {
        int64_t life = f->slots[x].upper - f->slots[x].lower;
        longest = life > longest ? life : longest;
    }
    f->n_steps = (size_t)((longest + f->length - 1) / f->length);
}

/* All slots of the steps that are wound up together, on one round of time. */
static bly_status plan_round(struct fold *f)
{
    size_t n = f->n_born * f->n_steps;
    int64_t round = f->length * (int64_t)f->n_steps;
    bly_plan_buffer *buffers = blyi_host_alloc_dense(n * sizeof(*buffers));
    bly_plan_gap *gaps = blyi_host_alloc_dense(n * sizeof(*gaps));
    bly_status status = BLY_OK;
    if (buffers == NULL || gaps == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "folding %zu buffers: the host has no memory", n);
    for (size_t x = 0; status == BLY_OK && x < n; x++) {
        const struct slot *slot = &f->slots[x % f->n_born];
        int64_t step = (int64_t)(x / f->n_born) * f->length;
        int64_t turns = floor_div(slot->lower + step, round) * round;
        int64_t lower = slot->lower + step - turns, upper = slot->upper + step - turns;
        if (upper <= round) {
            buffers[x] = bly_plan_buffer_make(lower, upper, (uint64_t)slot->size);
            continue;
        }
        buffers[x] = bly_plan_buffer_make(0, round, (uint64_t)slot->size);
        gaps[x] = (bly_plan_gap){upper - round, lower, 0, 0};
        if (gaps[x].lower < gaps[x].upper) {
            buffers[x].gaps = &gaps[x];
            buffers[x].n_gaps = 1;
        }
    }
    if (status == BLY_OK)
        status = blyi_solve_inner(f->solve, buffers, n, &f->solve->stop, f->place, &f->height);
    blyi_host_free(buffers);
    blyi_host_free(gaps);
    return status;
}

static bly_status plan_rest(struct fold *f)
{
    const struct blyi_pack *pack = f->solve->pack;
    int64_t peak;
    bly_plan_buffer *buffers = blyi_host_alloc_dense((f->n_rest + 1) * sizeof(*buffers));
    int64_t *offset = blyi_host_alloc_dense((f->n_rest + 1) * sizeof(*offset));
    bly_status status = BLY_OK;
    if (buffers == NULL || offset == NULL)
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "folding %u buffers: the host has no memory", pack->n);
    for (size_t x = 0; status == BLY_OK && x < f->n_rest; x++) {
        uint32_t i = f->rest[x];
        buffers[x] = bly_plan_buffer_make(lower_of(pack, i), upper_of(pack, i),
                                          (uint64_t)pack->items[i].size);
    }
    if (status == BLY_OK)
        status = blyi_solve_inner(f->solve, buffers, f->n_rest, &f->solve->stop, offset, &peak);
    for (size_t x = 0; status == BLY_OK && x < f->n_rest; x++)
        f->solve->spare[f->rest[x]] = f->height + offset[x];
    blyi_host_free(buffers);
    blyi_host_free(offset);
    return status;
}

static bool is_clear(const struct blyi_shelf *shelf, uint32_t i, int64_t offset)
{
    struct blyi_shelf_wish w = blyi_shelf_wish_of(shelf->pack, i);
    int64_t end = offset + shelf->pack->items[i].size;
    for (size_t x = 0; x < shelf->n && shelf->entries[x].start < end; x++) {
        if (shelf->entries[x].end > offset &&
            blyi_shelf_meets(&w, shelf->entries[x].first, shelf->entries[x].last))
            return false;
    }
    return true;
}

/* Each stays in its slot where that is clear, as it mostly is at the ends of a run, and else goes
 * as low as everything else allows. */
static bly_status drop_rest(struct fold *f)
{
    const struct blyi_pack *pack = f->solve->pack;
    struct blyi_shelf shelf;
    bly_status status = blyi_shelf_init(&shelf, pack);
    if (status != BLY_OK)
        return status;
    struct blyi_sort_key *keys = blyi_host_alloc_dense(2 * (size_t)pack->n * sizeof(*keys));
    if (keys == NULL)
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "folding %u buffers: the host has no memory", pack->n);
    int64_t wanted[FEW];
    for (size_t x = 0; x < f->n_rest; x++) {
        wanted[x] = f->solve->spare[f->rest[x]];
        f->solve->spare[f->rest[x]] = BLYI_PACK_FREE;
    }
    if (status == BLY_OK)
        blyi_shelf_load(&shelf, f->solve->spare, INT64_MAX, keys);
    for (size_t x = 0; status == BLY_OK && x < f->n_rest; x++) {
        uint32_t i = f->rest[x];
        bool clear = is_clear(&shelf, i, wanted[x]);
        f->solve->spare[i] = clear ? wanted[x] : blyi_shelf_room(&shelf, i, false);
        blyi_shelf_put(&shelf, i, f->solve->spare[i]);
    }
    blyi_host_free(keys);
    blyi_shelf_fini(&shelf);
    return status;
}

static void tile(struct fold *f)
{
    const struct blyi_pack *pack = f->solve->pack;
    int64_t step, since, steps = (int64_t)f->n_steps;
    for (uint32_t birth = 0; birth < pack->n; birth++) {
        size_t slot = (size_t)(slot_of(f, birth, &step, &since) - f->slots);
        size_t turn = (size_t)(step - floor_div(step, steps) * steps);
        f->solve->spare[f->line->born[birth]] = f->place[turn * f->n_born + slot];
    }
}

static bly_status fold(struct fold *f, bool *done)
{
    const struct blyi_pack *pack = f->solve->pack;
    f->slots = blyi_host_alloc_dense(f->n_born * sizeof(*f->slots));
    f->rest = blyi_host_alloc_dense((pack->n + (size_t)1) * sizeof(*f->rest));
    if (f->slots == NULL || f->rest == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "folding %u buffers: the host has no memory", pack->n);
    make_slots(f);
    if (f->n_rest > pack->n / REST_SHARE || f->n_steps > STEPS_MAX ||
        f->n_born * f->n_steps > SLOTS_MAX || 2 * f->n_born * f->n_steps > pack->n)
        return BLY_OK;
    f->place = blyi_host_alloc_dense(f->n_born * f->n_steps * sizeof(*f->place));
    if (f->place == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "folding %u buffers: the host has no memory", pack->n);
    bly_status status = plan_round(f);
    if (status == BLY_OK)
        tile(f);
    if (status == BLY_OK && f->n_rest > 0)
        status = f->n_rest <= FEW ? drop_rest(f) : plan_rest(f);
    *done = status == BLY_OK;
    return status;
}

bly_status blyi_fold(struct blyi_solve *solve, const struct blyi_timeline *line, bool *done)
{
    struct fold f = {.solve = solve, .line = line};
    bool found = false;
    *done = false;
    bly_status status = find_step(&f, &found);
    if (status == BLY_OK && found)
        status = fold(&f, done);
    blyi_host_free(f.slots);
    blyi_host_free(f.rest);
    blyi_host_free(f.place);
    return status;
}
