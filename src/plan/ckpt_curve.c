/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_curve.c - see ckpt_curve.h. Almost all the time of the planner is spent in merge().
 */
#include "plan/ckpt_curve.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* What a missing curve stands for: no time from no memory on. */
static struct blyi_ckpt_corner nothing_corner;
static const struct blyi_ckpt_curve nothing = {1, &nothing_corner};

/* How many of n corners lie at or below `memory`. */
static size_t corners_upto(const struct blyi_ckpt_corner *corners, size_t n, uint64_t memory)
{
    size_t low = 0;
    while (n > 0) {
        size_t half = n / 2;
        if (corners[low + half].memory <= memory) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

const struct blyi_ckpt_corner *blyi_ckpt_curve_at(const struct blyi_ckpt_curve *curve,
                                                  uint64_t memory)
{
    size_t upto = corners_upto(curve->corners, curve->n, memory);
    return upto > 0 ? &curve->corners[upto - 1] : NULL;
}

uint64_t blyi_ckpt_way_time(const struct blyi_ckpt_way *way, uint64_t memory)
{
    if (memory < way->threshold || memory < way->held)
        return UINT64_MAX;
    const struct blyi_ckpt_corner *first =
        blyi_ckpt_curve_at(way->first ? way->first : &nothing, memory - way->held);
    const struct blyi_ckpt_corner *second =
        blyi_ckpt_curve_at(way->second ? way->second : &nothing, memory);
    return first && second ? way->time + first->time + second->time : UINT64_MAX;
}

void blyi_ckpt_envelope_fini(struct blyi_ckpt_envelope *envelope)
{
    blyi_host_free(envelope->corners);
    blyi_host_free(envelope->spare);
    *envelope = (struct blyi_ckpt_envelope){0};
}

static bly_status envelope_reserve(struct blyi_ckpt_envelope *envelope, size_t n)
{
    if (n <= envelope->capacity)
        return BLY_OK;
    size_t capacity = n + n / 2 + 64;
    struct blyi_ckpt_corner *corners =
        blyi_host_realloc(envelope->corners, capacity * sizeof(*corners));
    if (corners != NULL)
        envelope->corners = corners;
    struct blyi_ckpt_corner *spare = blyi_host_realloc(envelope->spare, capacity * sizeof(*spare));
    if (spare != NULL)
        envelope->spare = spare;
    if (corners == NULL || spare == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a trade-off of %zu points", n);
    envelope->capacity = capacity;
    return BLY_OK;
}

/* A way being walked from corner to corner of its two curves. */
struct walk {
    const struct blyi_ckpt_corner *first, *first_last, *second, *second_last;
    uint64_t held, time, memory; /* memory is where it stands */
};

static inline uint64_t walk_time(const struct walk *walk)
{
    return walk->time + walk->first->time + walk->second->time;
}

/* To the last corners at or below `memory`. */
static inline void walk_to(struct walk *walk, uint64_t memory)
{
    while (walk->first < walk->first_last && walk->first[1].memory + walk->held <= memory)
        walk->first++;
    while (walk->second < walk->second_last && walk->second[1].memory <= memory)
        walk->second++;
    walk->memory = memory;
}

/* Where the way takes less for the next time; UINT64_MAX: nowhere. */
static inline uint64_t walk_next(const struct walk *walk)
{
    uint64_t first =
        walk->first < walk->first_last ? walk->first[1].memory + walk->held : UINT64_MAX;
    uint64_t second = walk->second < walk->second_last ? walk->second[1].memory : UINT64_MAX;
    return first < second ? first : second;
}

/* False when the way is never possible within the limit. */
static bool walk_start(struct walk *walk, const struct blyi_ckpt_way *way, uint64_t limit)
{
    const struct blyi_ckpt_curve *first = way->first ? way->first : &nothing;
    const struct blyi_ckpt_curve *second = way->second ? way->second : &nothing;
    if (first->n == 0 || second->n == 0)
        return false;
    *walk = (struct walk){first->corners,
                          first->corners + first->n - 1,
                          second->corners,
                          second->corners + second->n - 1,
                          way->held,
                          way->time,
                          0};
    uint64_t start = way->threshold;
    if (start < first->corners[0].memory + way->held)
        start = first->corners[0].memory + way->held;
    if (start < second->corners[0].memory)
        start = second->corners[0].memory;
    if (start > limit)
        return false;
    walk->memory = start;
    return true;
}

/* Walks to the first memory at which the way takes less than the envelope, and tells how many
 * corners of that lie below. False when there is no such memory, as for most ways. */
static bool walk_to_gain(struct walk *walk, const struct blyi_ckpt_envelope *envelope,
                         size_t *below)
{
    const uint64_t least = walk->time + walk->first_last->time + walk->second_last->time;
    const struct blyi_ckpt_corner *corners = envelope->corners;
    size_t upto = corners_upto(corners, envelope->n, walk->memory);
    for (uint64_t memory = walk->memory; memory <= envelope->limit; memory = walk_next(walk)) {
        walk_to(walk, memory);
        while (upto < envelope->n && corners[upto].memory <= memory)
            upto++;
        uint64_t best = upto > 0 ? corners[upto - 1].time : UINT64_MAX;
        if (walk_time(walk) < best) {
            *below = upto > 0 && corners[upto - 1].memory == memory ? upto - 1 : upto;
            return true;
        }
        if (best <= least)
            return false;
    }
    return false;
}

/* Merges the envelope from corner `at` on with the way, from where it stands on, into
 * spare[at..]. */
static size_t merge(const struct blyi_ckpt_envelope *envelope, struct walk *walk, size_t at)
{
    const struct blyi_ckpt_corner *old = envelope->corners + at;
    const struct blyi_ckpt_corner *old_end = envelope->corners + envelope->n;
    struct blyi_ckpt_corner *out = envelope->spare + at;
    uint64_t best = at > 0 ? envelope->corners[at - 1].time : UINT64_MAX;
    uint64_t ours = walk->memory;
    while (old < old_end || ours <= envelope->limit) {
        struct blyi_ckpt_corner corner;
        if (old < old_end && old->memory < ours) {
            corner = *old++;
        } else {
            if (ours > envelope->limit)
                break;
            walk_to(walk, ours);
            corner = (struct blyi_ckpt_corner){ours, walk_time(walk)};
            ours = walk_next(walk);
            if (old < old_end && old->memory == corner.memory) {
                if (old->time < corner.time)
                    corner.time = old->time;
                old++;
            }
        }
        if (corner.time < best) {
            best = corner.time;
            *out++ = corner;
        }
    }
    return (size_t)(out - envelope->spare);
}

/* Leaves at most max_corners, at least a step apart in memory. A curve with corners left out
 * is still true, as it only promises less. */
static void envelope_thin(struct blyi_ckpt_envelope *envelope)
{
    struct blyi_ckpt_corner *corners = envelope->corners;
    size_t n = envelope->n, kept = 1;
    if (n <= envelope->max_corners)
        return;
    uint64_t step = (corners[n - 1].memory - corners[0].memory) / (envelope->max_corners - 2) + 1;
    for (size_t i = 1; i < n; i++)
        if (i == n - 1 || corners[i].memory - corners[kept - 1].memory >= step)
            corners[kept++] = corners[i];
    envelope->n = kept;
    envelope->thinned = true;
}

bly_status blyi_ckpt_envelope_add(struct blyi_ckpt_envelope *envelope,
                                  const struct blyi_ckpt_way *way)
{
    struct walk walk;
    size_t at = 0;
    if (!walk_start(&walk, way, envelope->limit) || !walk_to_gain(&walk, envelope, &at))
        return BLY_OK;
    size_t more =
        (size_t)(walk.first_last - walk.first + 1) + (size_t)(walk.second_last - walk.second + 1);
    bly_status status = envelope_reserve(envelope, envelope->n + more);
    if (status != BLY_OK)
        return status;
    size_t n = merge(envelope, &walk, at);
    memcpy(envelope->corners + at, envelope->spare + at, (n - at) * sizeof(*envelope->corners));
    envelope->n = n;
    if (n / 2 > envelope->max_corners)
        envelope_thin(envelope);
    return BLY_OK;
}

bly_status blyi_ckpt_envelope_take(struct blyi_ckpt_envelope *envelope,
                                   struct blyi_ckpt_curve *curve)
{
    envelope_thin(envelope);
    struct blyi_ckpt_corner *corners = NULL;
    if (envelope->n > 0) {
        corners = blyi_host_alloc(envelope->n * sizeof(*corners));
        if (corners == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a trade-off of %zu points",
                             envelope->n);
        memcpy(corners, envelope->corners, envelope->n * sizeof(*corners));
    }
    *curve = (struct blyi_ckpt_curve){(uint32_t)envelope->n, corners};
    envelope->n = 0;
    return BLY_OK;
}
