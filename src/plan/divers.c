/* SPDX-License-Identifier: Apache-2.0
 *
 * divers.c - which styles of the skyline dive are tried.
 */
#include "plan/dive.h"

#include <string.h>

#define TRIES_FIRST 8
#define TRIES_LEAST 2
#define NODE_ITEMS  16

void blyi_divers_init(struct blyi_divers *divers, uint64_t seed)
{
    memset(divers, 0, sizeof(*divers));
    blyi_rand_init(&divers->rand, seed);
    divers->peak = INT64_MAX;
    divers->tries = TRIES_FIRST;
}

/* 2^low to 2^high, each octave as likely. */
static double octaves(struct blyi_rand *rand, int low, int high)
{
    double x = 1 + blyi_rand_unit(rand);
    for (int64_t o = low + (int64_t)blyi_rand_below(rand, (uint64_t)(high - low)); o != 0;
         o += o < 0 ? 1 : -1)
        x *= o < 0 ? 0.5 : 2;
    return x;
}

/* BLYI_FIT_HINT stands for the order of birth where there are no hints. What won most among
 * hundreds of styles on the families of bench/plan comes first; the ranges of the others hold
 * whatever was among the best tenth. */
static const struct blyi_dive_style opening[] = {
    {BLYI_FIT_HINT, 0.017, 0, BLYI_DIVE_LIFETIME, 0, 0},
    {BLYI_FIT_HINT, 0.007, 0.07, BLYI_DIVE_ROOT_AREA, 0, 0},
    {BLYI_FIT_LIFETIME, 0, 0.06, BLYI_DIVE_LIFETIME, 0, 0},
    {BLYI_FIT_AREA, 0.002, 0.09, BLYI_DIVE_ROOT_AREA, 0, 0},
    {BLYI_FIT_AREA, 0, 0.14, BLYI_DIVE_ROOT_AREA, 0, 0},
    {BLYI_FIT_LIFETIME, 0.003, 0, BLYI_DIVE_LIFETIME, 0, 0},
    {BLYI_FIT_AREA, 0.007, 0.1, BLYI_DIVE_LIFETIME, 0, 0},
};
#define N_OPENING (sizeof(opening) / sizeof(opening[0]))

static struct blyi_dive_style new_style(struct blyi_divers *divers)
{
    static const enum blyi_fit_by by[4] = {BLYI_FIT_AREA, BLYI_FIT_LIFETIME, BLYI_FIT_SIZE,
                                           BLYI_FIT_HINT};
    struct blyi_rand *rand = &divers->rand;
    if (divers->opened < N_OPENING)
        return opening[divers->opened++];
    struct blyi_dive_style style = {.by = by[blyi_rand_below(rand, 4)]};
    style.noise = blyi_rand_next(rand);
    style.blur = blyi_rand_below(rand, 2) == 0 ? 0 : octaves(rand, -5, -1);
    if (blyi_rand_below(rand, 2) == 0)
        style.step = octaves(rand, -9, -2);
    if (style.step <= 0 || blyi_rand_below(rand, 2) == 0)
        style.pull = octaves(rand, -8, -1);
    style.pull_by = blyi_rand_below(rand, 2) == 0 ? BLYI_DIVE_LIFETIME : BLYI_DIVE_ROOT_AREA;
    return style;
}

static struct blyi_dive_style neighbour(struct blyi_rand *rand, const struct blyi_dive_style *of)
{
    struct blyi_dive_style style = *of;
    style.noise = blyi_rand_next(rand);
    style.pull *= 0.7 + 0.7 * blyi_rand_unit(rand);
    style.step *= 0.7 + 0.7 * blyi_rand_unit(rand);
    if (style.blur <= 0 || blyi_rand_below(rand, 3) == 0)
        style.blur = octaves(rand, -5, -1);
    return style;
}

bly_status blyi_divers_run(struct blyi_divers *divers, const struct blyi_pack *pack,
                           struct blyi_stop *stop, int64_t *spare, int64_t *offset, int64_t *peak,
                           uint64_t *nodes)
{
    bool gained = false;
    *nodes = 0;
    for (uint32_t t = 0; t < divers->tries && !blyi_stop_now(stop); t++) {
        bool fresh = divers->opened < N_OPENING || divers->peak == INT64_MAX ||
                     blyi_rand_below(&divers->rand, 2) == 0;
        struct blyi_dive_style style =
            fresh ? new_style(divers) : neighbour(&divers->rand, &divers->best);
        bool done;
        bly_status status = blyi_dive(pack, &style, divers->peak - 1, stop, spare, &done);
        if (status != BLY_OK)
            return status;
        *nodes += pack->n / NODE_ITEMS + 1;
        if (!done)
            continue;
        int64_t reached = blyi_pack_peak(pack, spare);
        divers->peak = reached;
        divers->best = style;
        if (reached < *peak) {
            memcpy(offset, spare, pack->n * sizeof(*offset));
            *peak = reached;
            gained = true;
        }
    }
    divers->tries = gained ? TRIES_FIRST : divers->tries / 2;
    divers->tries = divers->tries > TRIES_LEAST ? divers->tries : TRIES_LEAST;
    return BLY_OK;
}
