/* SPDX-License-Identifier: Apache-2.0
 *
 * period.c - finds the step that a sequence of allocations repeats: a distance in order of
 * birth at which sizes and lifetimes agree over a long stretch. Lifetimes agree when they have
 * the same power of two, since an event more or less changes many of them a little.
 */
#include <belay/plan.h>

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/check.h"
#include "plan/sort.h"

#define GRAM      8  /* births looked at together, so that a chance match is rare */
#define DISTANCES 32 /* candidates tried */
#define TABLE     ((size_t)1 << 16)
#define MISS_COST 19 /* matches that make up for a difference: 95 % have to agree */

/* One per birth, in order. */
struct births {
    const bly_plan_buffer *buffers;
    uint32_t *order;
    uint64_t *token; /* of one birth: size and about its lifetime */
    size_t n;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static void births_fini(struct births *b)
{
    blyi_host_free(b->order);
    blyi_host_free(b->token);
}

static bly_status births_init(struct births *b, const bly_plan_buffer *buffers, size_t n)
{
    struct blyi_sort_key *keys = blyi_host_alloc((2 * n + 1) * sizeof(*keys));
    *b = (struct births){buffers, NULL, NULL, n};
    b->order = blyi_host_alloc((n + 1) * sizeof(*b->order));
    b->token = blyi_host_alloc((n + 1) * sizeof(*b->token));
    if (keys == NULL || b->order == NULL || b->token == NULL) {
        blyi_host_free(keys);
        births_fini(b);
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "looking for steps in %zu buffers: the host has no "
                         "memory",
                         n);
    }
    for (size_t i = 0; i < n; i++)
        keys[i] =
            (struct blyi_sort_key){(uint64_t)buffers[i].lower ^ ((uint64_t)1 << 63), (uint32_t)i};
    blyi_sort_keys(keys, keys + n, n);
    for (size_t x = 0; x < n; x++) {
        const bly_plan_buffer *at = &buffers[keys[x].value];
        uint64_t life = (uint64_t)at->upper - (uint64_t)at->lower;
        b->order[x] = keys[x].value;
        b->token[x] = mix(mix(1, at->size), (uint64_t)__builtin_clzll(life));
    }
    blyi_host_free(keys);
    return BLY_OK;
}

/* How often each distance lies between a run of GRAM births and its last occurrence. */
static bly_status count_distances(const struct births *b, uint32_t **count)
{
    size_t *last = blyi_host_calloc(TABLE, sizeof(*last)); /* position + 1 */
    *count = blyi_host_calloc(b->n + 1, sizeof(**count));
    if (last == NULL || *count == NULL) {
        blyi_host_free(last);
        blyi_host_free(*count);
        return blyi_fail(BLY_E_HOST_MEMORY, "looking for steps: the host has no memory");
    }
    for (size_t x = 0; x + GRAM <= b->n; x++) {
        uint64_t h = 0;
        for (size_t g = 0; g < GRAM; g++)
            h = mix(h, b->token[x + g]);
        size_t slot = (size_t)(h >> 40) % TABLE;
        if (last[slot] != 0)
            (*count)[x + 1 - last[slot]]++;
        last[slot] = x + 1;
    }
    blyi_host_free(last);
    return BLY_OK;
}

/* The commonest distance, which is then forgotten; 0: none is left. */
static size_t next_distance(const struct births *b, uint32_t *count)
{
    size_t best = 0;
    for (size_t d = 1; d < b->n; d++) {
        if (count[d] > count[best])
            best = d;
    }
    count[best] = 0;
    return best;
}

/* Longest stretch in which nearly all births agree with those `distance` later. */
static size_t longest_stretch(const struct births *b, size_t distance, size_t *start)
{
    size_t best = 0, from = 0, gain = 0, best_gain = 0;
    for (size_t x = 0; x + distance < b->n; x++) {
        if (b->token[x] == b->token[x + distance]) {
            gain++;
        } else if (gain > MISS_COST) {
            gain -= MISS_COST;
        } else {
            gain = 0;
            from = x + 1;
        }
        if (gain > best_gain) {
            best_gain = gain;
            best = x + 1 - from;
            *start = from;
        }
    }
    return best;
}

bly_status bly_plan_find_period(const bly_plan_buffer *buffers, size_t n, bly_plan_period *period)
{
    bly_plan_opts opts = bly_plan_opts_default();
    bly_status status = blyi_plan_check(buffers, n, &opts);
    if (status != BLY_OK)
        return status;
    struct births b;
    uint32_t *count;
    status = births_init(&b, buffers, n);
    if (status != BLY_OK)
        return status;
    status = count_distances(&b, &count);
    size_t best = 0, best_distance = 0, best_start = 0;
    for (size_t tries = 0; status == BLY_OK && tries < DISTANCES; tries++) {
        size_t start = 0, distance = next_distance(&b, count);
        if (distance == 0)
            break;
        size_t run = longest_stretch(&b, distance, &start);
        /* Two steps cover as much as one of twice the length: the shorter wins. */
        size_t covered = run + distance, best_covered = best + best_distance;
        if (run >= distance &&
            buffers[b.order[start + distance]].lower > buffers[b.order[start]].lower &&
            (covered > best_covered || (covered == best_covered && distance < best_distance))) {
            best = run;
            best_distance = distance;
            best_start = start;
        }
    }
    if (status == BLY_OK)
        blyi_host_free(count);
    if (status == BLY_OK && best == 0)
        status = blyi_fail(BLY_E_STATE, "%zu buffers: no step is repeated", n);
    if (status == BLY_OK) {
        int64_t first = buffers[b.order[best_start]].lower;
        *period =
            (bly_plan_period){first, buffers[b.order[best_start + best_distance]].lower - first,
                              best / best_distance + 1, best_start, best_distance};
    }
    births_fini(&b);
    return status;
}
