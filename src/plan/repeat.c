/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.c - distances in order of birth are voted for by runs of births that have occurred
 * before; the commonest are then looked at from end to end.
 */
#include "plan/repeat.h"

#include "base/fail.h"
#include "base/host.h"
#include "plan/sort.h"

#define GRAM          8  /* births looked at together, so that a chance match is rare */
#define GRAM_LONG     32 /* the same where sizes do not count */
#define DISTANCES     32 /* candidates tried */
#define TABLE         ((size_t)1 << 16)
#define MISS_COST     19 /* matches that make up for a difference: 95 % have to agree */
#define MISS_COST_ANY 4  /* the same where sizes do not count: 80 % */

struct search {
    const struct blyi_birth *at;
    size_t n;
    bool any_size;
    uint64_t end; /* of all lifetimes */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static int power_of(uint64_t life)
{
    return __builtin_clzll(life);
}

void blyi_births_fini(struct blyi_births *births)
{
    blyi_host_free(births->at);
}

bly_status blyi_births_init(struct blyi_births *births, const bly_plan_buffer *buffers, size_t n)
{
    int64_t last = 0;
    struct blyi_sort_key *keys = blyi_host_alloc_dense((2 * n + 1) * sizeof(*keys));
    *births = (struct blyi_births){blyi_host_alloc_dense((n + 1) * sizeof(*births->at)), n, 0};
    if (keys == NULL || births->at == NULL) {
        blyi_host_free(keys);
        blyi_births_fini(births);
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "looking for steps in %zu buffers: the host has no memory", n);
    }
    for (size_t i = 0; i < n; i++)
        keys[i] =
            (struct blyi_sort_key){(uint64_t)buffers[i].lower ^ ((uint64_t)1 << 63), (uint32_t)i};
    blyi_sort_keys(keys, keys + n, n);
    for (size_t x = 0; x < n; x++) {
        const bly_plan_buffer *b = &buffers[keys[x].value];
        births->at[x] =
            (struct blyi_birth){b->lower, (uint64_t)b->upper - (uint64_t)b->lower, b->size};
        last = x == 0 || b->upper > last ? b->upper : last;
    }
    births->end = (uint64_t)last;
    blyi_host_free(keys);
    return BLY_OK;
}

/* Whether a birth is smaller than the one before it, as large, or larger: layers differ in it even
 * where shapes change. */
static int trend(const struct search *s, size_t x)
{
    uint64_t size = s->at[x].size, before = x > 0 ? s->at[x - 1].size : 0;
    return (size > before) - (size < before);
}

/* How often each distance lies between a run of births and its last occurrence. */
static bly_status count_distances(const struct search *s, uint32_t **count)
{
    size_t *last = blyi_host_calloc_dense(TABLE, sizeof(*last)); /* position + 1 */
    size_t gram = s->any_size ? GRAM_LONG : GRAM;
    *count = blyi_host_calloc_dense(s->n + 1, sizeof(**count));
    if (last == NULL || *count == NULL) {
        blyi_host_free(last);
        blyi_host_free(*count);
        return blyi_fail(BLY_E_HOST_MEMORY, "looking for steps: the host has no memory");
    }
    for (size_t x = 0; x + gram <= s->n; x++) {
        uint64_t h = 0;
        for (size_t g = x; g < x + gram; g++) {
            uint64_t size = s->any_size ? (uint64_t)trend(s, g) : s->at[g].size;
            h = mix(mix(h, (uint64_t)power_of(s->at[g].life)), size);
        }
        size_t slot = (size_t)(h >> 40) % TABLE;
        if (last[slot] != 0)
            (*count)[x + 1 - last[slot]]++;
        last[slot] = x + 1;
    }
    blyi_host_free(last);
    return BLY_OK;
}

/* The commonest distance, which is then forgotten; 0: none is left. */
static size_t next_distance(size_t n, uint32_t *count)
{
    size_t best = 0;
    for (size_t d = 1; d < n; d++) {
        if (count[d] > count[best])
            best = d;
    }
    count[best] = 0;
    return best;
}

/* Lifetimes are about the same, or both outlast the distance, or the later one was never seen to
 * end. */
static bool alike(const struct search *s, const struct blyi_birth *a, const struct blyi_birth *b)
{
    uint64_t least = a->life < b->life ? a->life : b->life;
    uint64_t most = a->life < b->life ? b->life : a->life;
    uint64_t step = (uint64_t)b->lower - (uint64_t)a->lower;
    bool unended = b->life == most && (uint64_t)b->lower + b->life == s->end;
    return most - least <= least / 2 + 1 || least >= step || unended;
}

static bool agree(const struct search *s, size_t x, size_t distance)
{
    const struct blyi_birth *a = &s->at[x], *b = &s->at[x + distance];
    bool sizes = s->any_size ? trend(s, x) == trend(s, x + distance) : a->size == b->size;
    return sizes && alike(s, a, b);
}

/* Longest stretch in which nearly all births agree with those `distance` later. */
static struct blyi_repeat longest_stretch(const struct search *s, size_t distance)
{
    struct blyi_repeat best = {0, 0, distance};
    size_t from = 0, gain = 0, best_gain = 0, cost = s->any_size ? MISS_COST_ANY : MISS_COST;
    for (size_t x = 0; x + distance < s->n; x++) {
        if (agree(s, x, distance)) {
            gain++;
        } else if (gain > cost) {
            gain -= cost;
        } else {
            gain = 0;
            from = x + 1;
        }
        if (gain > best_gain) {
            best_gain = gain;
            best.first = from;
            best.run = x + 1 - from;
        }
    }
    return best;
}

/* Two steps cover as much as one of twice the length: the shorter wins. */
static bool is_better(const struct blyi_repeat *r, const struct blyi_repeat *than)
{
    size_t covered = r->run + r->distance, other = than->run + than->distance;
    return than->run == 0 || covered > other || (covered == other && r->distance < than->distance);
}

bly_status blyi_repeat_find(const struct blyi_births *births, bool any_size,
                            struct blyi_repeat *repeat)
{
    struct search s = {births->at, births->n, any_size, births->end};
    uint32_t *count;
    bly_status status = count_distances(&s, &count);
    if (status != BLY_OK)
        return status;
    *repeat = (struct blyi_repeat){0, 0, 0};
    for (size_t tries = 0; tries < DISTANCES; tries++) {
        size_t distance = next_distance(s.n, count);
        if (distance == 0)
            break;
        struct blyi_repeat r = longest_stretch(&s, distance);
        if (r.run >= distance && s.at[r.first + distance].lower > s.at[r.first].lower &&
            is_better(&r, repeat))
            *repeat = r;
    }
    blyi_host_free(count);
    return BLY_OK;
}
