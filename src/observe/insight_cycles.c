/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_cycles.c - where the cycles of a program lie: at marks and ranges that repeat, else where
 * its curve turns.
 */
#include "observe/insight_growth.h"

#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/map.h"

struct making {
    const struct blyi_history *h;
    uint8_t card;
    struct blyi_cycles *out;
    size_t room;
};

static void keep_last(struct blyi_cycles *c)
{
    if (c->n <= BLYI_CYCLES_KEPT)
        return;
    size_t behind = c->n - BLYI_CYCLES_KEPT;
    memmove(c->at, c->at + behind, BLYI_CYCLES_KEPT * sizeof(*c->at));
    memmove(c->live, c->live + behind, BLYI_CYCLES_KEPT * sizeof(*c->live));
    memmove(c->reserved, c->reserved + behind, BLYI_CYCLES_KEPT * sizeof(*c->reserved));
    c->n = BLYI_CYCLES_KEPT;
    c->dropped += behind;
}

/* The last BLYI_CYCLES_KEPT are kept; they are moved down when twice as many have come. */
static bool put(struct making *m, const struct blyi_live *live, uint32_t at)
{
    struct blyi_cycles *c = m->out;
    if (c->at == NULL) {
        m->room = (size_t)2 * BLYI_CYCLES_KEPT;
        c->at = blyi_host_alloc(m->room * sizeof(*c->at));
        c->live = blyi_host_alloc(m->room * sizeof(*c->live));
        c->reserved = blyi_host_alloc(m->room * sizeof(*c->reserved));
    }
    if (c->at == NULL || c->live == NULL || c->reserved == NULL)
        return false;
    if (c->n == m->room)
        keep_last(c);
    c->at[c->n] = at;
    c->live[c->n] = live->asked;
    c->reserved[c->n++] = live->reserved;
    return true;
}

/* ── Marks and ranges ─────────────────────────────────────────────────────────────────────── */

/* "iter12" and "iter13" are one. */
static uint64_t stem_of(const struct blyi_history *h, uint32_t name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *text = blyi_trace_name(h->trace, name); *text != '\0'; text++)
        if (*text < '0' || *text > '9')
            hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash | 1;
}

/* The outermost mark or range that comes often enough, the first among equals. */
static bool choose(const struct blyi_history *h, uint64_t *stem, uint32_t *depth, bool *ok)
{
    struct blyi_map counts;
    bool found = false;
    blyi_map_init(&counts);
    *ok = true;
    for (size_t i = 0; *ok && i < h->n_moments; i++) {
        uint64_t key = stem_of(h, h->moments[i].name) ^ (uint64_t)h->moments[i].depth << 1;
        uintptr_t n = (uintptr_t)blyi_map_get(&counts, key) + 1;
        *ok = blyi_map_put(&counts, key, (void *)n) == BLY_OK;
    }
    for (size_t i = 0; *ok && i < h->n_moments; i++) {
        const struct blyi_moment *m = &h->moments[i];
        uint64_t key = stem_of(h, m->name) ^ (uint64_t)m->depth << 1;
        if ((uintptr_t)blyi_map_get(&counts, key) <= BLYI_CYCLES_MIN ||
            (found && m->depth >= *depth))
            continue;
        found = true;
        *stem = stem_of(h, m->name);
        *depth = m->depth;
    }
    blyi_map_fini(&counts);
    return found;
}

/* The least in each stretch from one of them to the next. */
static bool follow_marks(struct making *m, uint64_t stem, uint32_t depth)
{
    const struct blyi_history *h = m->h;
    struct blyi_curve curve;
    struct blyi_live least = {0};
    uint32_t least_at = 0;
    bool open = false, ok = true;
    size_t next = 0;
    blyi_curve_begin(&curve, h);
    for (bool more = true; more && ok; more = blyi_curve_next(&curve)) {
        bool begins = false;
        for (; next < h->n_moments && h->moments[next].at <= curve.at; next++) {
            const struct blyi_moment *moment = &h->moments[next];
            if (moment->depth != depth || stem_of(h, moment->name) != stem)
                continue;
            if (m->out->name == 0)
                m->out->name = moment->name;
            begins = true;
        }
        const struct blyi_live *live = &curve.live[m->card];
        if (begins && open)
            ok = put(m, &least, least_at);
        if (begins || (open && live->asked < least.asked)) {
            least = *live;
            least_at = (uint32_t)curve.at;
        }
        open = open || begins;
    }
    return ok; /* the last one is not over: the program may have torn down in it */
}

/* ── The curve ────────────────────────────────────────────────────────────────────────────── */

/* Valleys between two rises of at least `height`: a low is one once the curve has come up from it
 * by so much, and a new one begins once the curve has come down by so much. What is low at the end
 * is none: the program may be tearing down. Without `put_them` they are only counted. */
static size_t follow_curve(struct making *m, uint64_t height, bool put_them, bool *ok)
{
    struct blyi_curve curve;
    struct blyi_live low;
    uint32_t low_at = 0;
    uint64_t high;
    bool falling = false; /* at first one rises */
    size_t n = 0;
    blyi_curve_begin(&curve, m->h);
    low = curve.live[m->card];
    high = low.asked;
    while (*ok && blyi_curve_next(&curve)) {
        const struct blyi_live *live = &curve.live[m->card];
        if (falling && live->asked < low.asked) {
            low = *live;
            low_at = (uint32_t)curve.at;
        } else if (falling && live->asked >= low.asked + height) {
            n++;
            if (put_them)
                *ok = put(m, &low, low_at);
            falling = false;
            high = live->asked;
        } else if (!falling && live->asked >= high) {
            high = live->asked;
        } else if (!falling && live->asked + height <= high) {
            falling = true;
            low = *live;
            low_at = (uint32_t)curve.at;
        }
    }
    return n;
}

/* The coarsest teeth of which there are enough. */
static bool find_by_curve(struct making *m, bool *ok)
{
    struct blyi_peak peaks[BLYI_PEAK_COUNT];
    blyi_peaks_make(m->h, peaks);
    uint64_t most = peaks[m->card].at_peak.asked;
    for (int shift = 1; shift <= 11 && most >> shift > 0; shift += 2) {
        if (follow_curve(m, most >> shift, false, ok) < BLYI_CYCLES_MIN)
            continue;
        (void)follow_curve(m, most >> shift, true, ok);
        return true;
    }
    return false;
}

bly_status blyi_cycles_make(const struct blyi_history *h, uint8_t card, struct blyi_cycles *out)
{
    struct blyi_cycles cycles = {0};
    struct making m = {.h = h, .card = card, .out = &cycles};
    uint64_t stem = 0;
    uint32_t depth = 0;
    bool ok = true;
    if (choose(h, &stem, &depth, &ok)) {
        cycles.source = BLYI_CYCLES_MARKS;
        ok = follow_marks(&m, stem, depth);
    } else if (ok && find_by_curve(&m, &ok)) {
        cycles.source = BLYI_CYCLES_CURVE;
    }
    if (!ok) {
        blyi_cycles_fini(&cycles);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to find its cycles",
                         blyi_trace_info(h->trace)->name);
    }
    keep_last(&cycles);
    *out = cycles;
    return BLY_OK;
}

void blyi_cycles_fini(struct blyi_cycles *cycles)
{
    blyi_host_free(cycles->at);
    blyi_host_free(cycles->live);
    blyi_host_free(cycles->reserved);
}
