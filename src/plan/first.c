/* SPDX-License-Identifier: Apache-2.0
 *
 * first.c - the quick half of the portfolio: greedy plans, until one is at the goal. What is
 * tried depends on the size of the problem, so that the first second is enough for all of it.
 */
#include "plan/solve.h"

#include <string.h>

#include "base/host.h"
#include "plan/crest.h"
#include "plan/dive.h"
#include "plan/fit.h"
#include "plan/fold.h"
#include "plan/shelf.h"
#include "plan/strata.h"
#include "plan/sweep.h"

#define SHELF_MAX   20000 /* items up to which every order is tried on a shelf */
#define BREADTH_MAX 70000 /* and up to which one is */
#define N_DIVES     3
#define FOLD_MIN    3000   /* below, trees see the whole of it */
#define MANY        50000  /* below, searches see enough of it */
#define PROBED      64     /* a two-ended sweep is good at one part in so many above the bound */
#define HURRY       8      /* where so many times more is left than was used, there is none */
#define SWEEPS_MAX  300000 /* above, a handful of sweeps */

void blyi_solve_offer(struct blyi_solve *s, const char *solver)
{
    int64_t peak = blyi_pack_peak(s->pack, s->spare);
    if (peak >= s->peak)
        return;
    int64_t *swap = s->offset;
    s->offset = s->spare;
    s->spare = swap;
    s->peak = peak;
    s->solver = solver;
    if (s->report != NULL)
        s->report(s);
}

static bool over(struct blyi_solve *s)
{
    return s->peak != INT64_MAX && (blyi_solve_done(s) || blyi_stop_now(&s->stop));
}

/* Ceilings of the two-ended sweep, in 1/400 above the bound, and what lives long for it. */
static const struct {
    uint16_t rise, life;
} two_ended[] = {{1, 64}, {0, 64}, {2, 64}, {4, 64}, {0, 512}, {2, 512},
                 {0, 8},  {2, 8},  {1, 16}, {0, 16}, {8, 64},  {8, 512}};

/* What does not end above `limit` is a plan. */
static bly_status sweep_two_ended(struct blyi_solve *s, const struct blyi_timeline *line, size_t t,
                                  int64_t limit)
{
    int64_t ceiling = s->bound + s->bound / 400 * two_ended[t].rise;
    bool done = false;
    bly_status status = blyi_sweep(s->pack, line, BLYI_SWEEP_TWO_ENDED, ceiling, two_ended[t].life,
                                   limit, &s->stop, s->spare, &done);
    if (status == BLY_OK && done)
        blyi_solve_offer(s, "sweep-two-ended");
    return status;
}

/* Looks whether two-ended sweeps are what this trace wants: as soon as not, it is over. */
static bly_status probe_two_ended(struct blyi_solve *s, const struct blyi_timeline *line)
{
    if (s->pack->n <= MANY || s->pack->align != NULL)
        return BLY_OK;
    return sweep_two_ended(s, line, 0, s->bound + s->bound / PROBED);
}

/* A sweep whose plan is taken unless it ends above `limit`. */
static bly_status sweep_fit(struct blyi_solve *s, const struct blyi_timeline *line,
                            enum blyi_sweep_fit fit, int64_t limit, const char *name)
{
    bool done = false, first = s->peak == INT64_MAX; /* a first plan is made whatever it takes */
    bly_status status =
        blyi_sweep(s->pack, line, fit, 0, 0, limit, first ? NULL : &s->stop, s->spare, &done);
    if (status == BLY_OK && done)
        blyi_solve_offer(s, name);
    return status;
}

/* Is what is left of the time better spent on pressing what there is? */
static bool is_hurried(const struct blyi_solve *s)
{
    uint64_t now = blyi_clock_ns(), deadline_ns = s->stop.deadline_ns;
    if (deadline_ns == UINT64_MAX)
        return false;
    return deadline_ns <= now || (deadline_ns - now) / HURRY < now - s->began_ns;
}

/* Where memory of the host is too short for it, the sweeps need less. */
static void place_strata(struct blyi_solve *s, const struct blyi_timeline *line)
{
    bool done = false;
    int64_t limit = s->peak == INT64_MAX ? INT64_MAX : s->peak - 1;
    bly_status status = blyi_strata(s->pack, line, s->bound, limit, &s->stop, s->spare, &done);
    if (status == BLY_OK && done)
        blyi_solve_offer(s, "strata");
}

/* So much is live at once that few of them decide: those first, the others around them. */
static bly_status place_crowd(struct blyi_solve *s, const struct blyi_timeline *line, bool large)
{
    const char *solver = NULL;
    bly_status status = BLY_OK;
    if (!large)
        status = sweep_fit(s, line, BLYI_SWEEP_BEST, INT64_MAX, "sweep-best");
    /* Where memory of the host is short, the sweeps that follow need least. */
    if (status == BLY_OK && !over(s) && blyi_crest(s, line, &solver) == BLY_OK && solver != NULL)
        blyi_solve_offer(s, solver);
    return status;
}

static bly_status sweep_two_ends(struct blyi_solve *s, const struct blyi_timeline *line,
                                 bool probed, bool large)
{
    bly_status status = BLY_OK;
    size_t tries = large ? 2 : sizeof(two_ended) / sizeof(two_ended[0]);
    for (size_t t = probed; t < tries && status == BLY_OK && !over(s); t++) {
        int64_t peak = s->peak;
        status = sweep_two_ended(s, line, t, s->peak - 1);
        if (large && s->peak == peak)
            break; /* where the first is of no use, the second is not, either */
    }
    return status;
}

static bly_status sweep_all(struct blyi_solve *s, const struct blyi_timeline *line)
{
    bool plain = s->pack->align == NULL && s->pack->pieces == NULL;
    bool many = s->pack->n > MANY && plain, large = s->pack->n > SWEEPS_MAX;
    bool done = false;
    bly_status status = probe_two_ended(s, line);
    bool probed = s->peak != INT64_MAX;
    if (status == BLY_OK && many && !probed) {
        place_strata(s, line);
        if (s->peak == INT64_MAX && !blyi_stop_now(&s->stop))
            status = place_crowd(s, line, large);
        /* Where time is short it is better spent on pressing that. */
        if (status != BLY_OK || (s->peak != INT64_MAX && (over(s) || is_hurried(s))))
            return status;
    }
    if (status == BLY_OK && s->peak == INT64_MAX)
        status = sweep_fit(s, line, BLYI_SWEEP_FIRST, INT64_MAX, "sweep-first");
    if (status == BLY_OK)
        status = sweep_two_ends(s, line, probed, large);
    if (status == BLY_OK && !over(s) && s->pack->n >= FOLD_MIN && plain) {
        status = blyi_fold(s, line, &done);
        if (status == BLY_OK && done)
            blyi_solve_offer(s, "fold");
    }
    if (status == BLY_OK && !over(s) && !many && s->pack->n >= FOLD_MIN && plain)
        place_strata(s, line);
    if (status == BLY_OK && !over(s) && !large)
        status = sweep_fit(s, line, BLYI_SWEEP_BEST, s->peak - 1, "sweep-best");
    return status;
}

static bly_status try_sweeps(struct blyi_solve *s)
{
    struct blyi_timeline line;
    bly_status status = blyi_timeline_init(&line, s->pack);
    if (status != BLY_OK)
        return status;
    status = sweep_all(s, &line);
    blyi_timeline_fini(&line);
    return status;
}

static const struct {
    enum blyi_fit_by by;
    double octaves;
    bool tight;
    const char *name;
} orders[] = {
    {BLYI_FIT_LIFETIME, 2, true, "class-lifetime"},
    {BLYI_FIT_SIZE, 0.5, false, "class-size"},
    {BLYI_FIT_LIFETIME, 0.5, false, "class-lifetime"},
    {BLYI_FIT_SIZE, 1, false, "class-size"},
    {BLYI_FIT_BREADTH, 0, true, "breadth"},
    {BLYI_FIT_SIZE, 2, true, "class-size"},
    {BLYI_FIT_SIZE, 0.25, false, "class-size"},
    {BLYI_FIT_LIFETIME, 4, true, "class-lifetime"},
    {BLYI_FIT_SIZE, 0, false, "size"},
    {BLYI_FIT_LIFETIME, 1, false, "class-lifetime"},
    {BLYI_FIT_AREA, 0, false, "area"},
    {BLYI_FIT_AREA, 0, true, "area"},
    {BLYI_FIT_SIZE, 4, true, "class-size"},
    {BLYI_FIT_LIFETIME, 2, false, "class-lifetime"},
};

static bly_status try_order(struct blyi_solve *s, struct blyi_shelf *shelf, uint32_t *order,
                            enum blyi_fit_by by, double octaves, uint32_t n_tight, const char *name)
{
    bly_status status = blyi_fit_order(s->pack, by, octaves, order);
    if (status != BLY_OK)
        return status;
    if (blyi_fit_place(shelf, order, n_tight, s->peak - 1, &s->stop)) {
        memcpy(s->spare, shelf->offset, s->pack->n * sizeof(*s->spare));
        blyi_solve_offer(s, name);
    }
    return BLY_OK;
}

static bly_status try_orders(struct blyi_solve *s)
{
    const struct blyi_pack *pack = s->pack;
    struct blyi_shelf shelf;
    bly_status status = blyi_shelf_init(&shelf, pack);
    if (status != BLY_OK)
        return status;
    uint32_t *order = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*order));
    if (order == NULL) {
        blyi_shelf_fini(&shelf);
        return BLY_OK; /* the other plans will do */
    }
    if (pack->hint != NULL)
        status = try_order(s, &shelf, order, BLYI_FIT_HINT, 0, 0, "hint");
    if (pack->n > SHELF_MAX) {
        /* The peak is decided by few; the others take the first hole, which is quick. */
        if (status == BLY_OK && !over(s))
            status = try_order(s, &shelf, order, BLYI_FIT_BREADTH, 0, pack->n / 8, "breadth");
    } else {
        for (size_t t = 0; t < sizeof(orders) / sizeof(orders[0]) && status == BLY_OK && !over(s);
             t++)
            status = try_order(s, &shelf, order, orders[t].by, orders[t].octaves,
                               orders[t].tight ? pack->n : 0, orders[t].name);
    }
    blyi_host_free(order);
    blyi_shelf_fini(&shelf);
    return status;
}

/* Dives from..to of the list; the first is the best on average and the quickest. */
static bly_status try_dives(struct blyi_solve *s, size_t from, size_t to)
{
    static const enum blyi_fit_by keys[N_DIVES] = {BLYI_FIT_AREA, BLYI_FIT_LIFETIME, BLYI_FIT_SIZE};
    bly_status status = BLY_OK;
    for (size_t t = from; t < to && status == BLY_OK && !over(s); t++) {
        struct blyi_dive_style style = {.by = keys[t]};
        bool done;
        status = blyi_dive(s->pack, &style, INT64_MAX, &s->stop, s->spare, &done);
        if (status == BLY_OK && done)
            blyi_solve_offer(s, "dive");
    }
    return status;
}

/* A sweep ignores fixed offsets and holds buffers through their gaps. */
bly_status blyi_solve_first(struct blyi_solve *s)
{
    const struct blyi_pack *pack = s->pack;
    bly_status status = BLY_OK;
    bool sweeps = pack->fixed == NULL;
    if (sweeps)
        status = try_sweeps(s);
    if (status == BLY_OK && !over(s) &&
        (pack->n <= BLYI_DIVE_MAX || !sweeps || pack->pieces != NULL))
        status = try_dives(s, 0, 1);
    if (status == BLY_OK && !over(s) && pack->n <= BREADTH_MAX)
        status = try_orders(s);
    if (status == BLY_OK && !over(s) && pack->n <= BLYI_DIVE_MAX)
        status = try_dives(s, 1, N_DIVES);
    return status;
}
