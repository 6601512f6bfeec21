/* SPDX-License-Identifier: Apache-2.0
 *
 * basin.c - see basin.h. Counting is most of a search's work, and most valleys are as they were
 * at the node above, so counts are kept until a section of theirs or a wall changes.
 */
#include "plan/basin.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

#define NO_WALL INT64_MAX

bly_status blyi_basins_init(struct blyi_basins *b, const struct blyi_terrain *terrain,
                            const uint32_t *rank)
{
    size_t sections = terrain->pack->n_sections + (size_t)1;
    memset(b, 0, sizeof(*b));
    b->terrain = terrain;
    b->rank = rank;
    b->low = blyi_host_alloc(sections * sizeof(*b->low));
    b->memo = blyi_host_calloc(sections, sizeof(*b->memo));
    if (b->low == NULL || b->memo == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "searching a plan of %u buffers: the host has no memory for it",
                         terrain->pack->n);
    return BLY_OK;
}

void blyi_basins_fini(struct blyi_basins *b)
{
    blyi_host_free(b->low);
    blyi_host_free(b->memo);
}

bool blyi_basin_next(const struct blyi_terrain *t, uint32_t *at, uint32_t hi, struct blyi_basin *b)
{
    for (uint32_t x = *at; x < hi;) {
        if (t->rest[x] == 0) {
            x++;
            continue;
        }
        uint32_t last = x;
        while (last + 1 < hi && t->rest[last + 1] > 0 && t->cross[last + 1] > 0 &&
               t->floor[last + 1] == t->floor[x])
            last++;
        b->first = x;
        b->last = last;
        b->floor = t->floor[x];
        b->left = t->cross[x] > 0 ? t->floor[x - 1] : NO_WALL;
        b->right = last + 1 < hi && t->cross[last + 1] > 0 ? t->floor[last + 1] : NO_WALL;
        x = last + 1;
        if (b->left > b->floor && b->right > b->floor) {
            *at = x;
            return true;
        }
    }
    return false;
}

/* What the choices of a valley need to know: filled once, then asked for each item. */
static void survey(struct blyi_basins *s, const struct blyi_basin *b)
{
    const struct blyi_terrain *t = s->terrain;
    /* low[x]: least end of an item that lies in the valley and ends at or before section x */
    for (uint32_t x = b->first; x <= b->last; x++)
        s->low[x] = NO_WALL;
    for (uint32_t at = t->first_at[b->first]; at < t->first_at[b->last + 1]; at++) {
        uint32_t k = t->by_first[at];
        uint32_t last = t->items[k].last;
        if (t->placed[k] || last > b->last)
            continue;
        int64_t end = t->off[k] + t->items[k].size;
        s->low[last] = end < s->low[last] ? end : s->low[last];
    }
    for (uint32_t x = b->first + 1; x <= b->last; x++)
        s->low[x] = s->low[x - 1] < s->low[x] ? s->low[x - 1] : s->low[x];
}

int64_t blyi_basin_left_height(const struct blyi_terrain *t, const struct blyi_basin *b, uint32_t k)
{
    int64_t end = t->off[k] + t->items[k].size;
    return b->left < end ? b->left : end;
}

/* `most` is the largest rest of the sections left of k. */
static bool can_be_leftmost(const struct blyi_basins *s, const struct blyi_basin *b, uint32_t k,
                            int64_t most)
{
    const struct blyi_terrain *t = s->terrain;
    if (t->placed[k] || t->items[k].last > b->last)
        return false;
    uint32_t twin = t->graph->twin[k];
    if (twin != BLYI_PACK_NONE && !t->placed[twin])
        return false;
    if (t->off[k] + t->items[k].size > s->capacity)
        return false;
    if (t->items[k].first == b->first)
        return true;
    int64_t height = blyi_basin_left_height(t, b, k);
    return most <= s->capacity - height && s->low[t->items[k].first - 1] > height;
}

static bool can_close(const struct blyi_basins *s, const struct blyi_basin *b, int64_t most)
{
    int64_t height = b->left < b->right ? b->left : b->right;
    return height != NO_WALL && most <= s->capacity - height && s->low[b->last] > height;
}

static uint32_t count_choices(struct blyi_basins *s, const struct blyi_basin *b, uint32_t limit)
{
    const struct blyi_terrain *t = s->terrain;
    survey(s, b);
    uint32_t count = 0;
    int64_t most = 0;
    for (uint32_t x = b->first; x <= b->last; x++) {
        for (uint32_t at = t->first_at[x]; at < t->first_at[x + 1]; at++)
            count += can_be_leftmost(s, b, t->by_first[at], most);
        most = t->rest[x] > most ? t->rest[x] : most;
        if (count >= limit || most > s->capacity - b->floor - 1)
            return count; /* nothing further right can be leftmost: this section has no slack */
    }
    return count + can_close(s, b, most);
}

static int64_t slack_of(const struct blyi_basins *s, const struct blyi_basin *b)
{
    int64_t most = 0;
    for (uint32_t x = b->first; x <= b->last; x++)
        most = s->terrain->rest[x] > most ? s->terrain->rest[x] : most;
    return s->capacity - b->floor - most;
}

/* Is the valley as it was then, its walls included? */
static bool is_fresh(const struct blyi_basins *s, const struct blyi_basin *b,
                     const struct blyi_basin_memo *memo)
{
    const struct blyi_terrain *t = s->terrain;
    if (memo->clock == 0 || memo->last != b->last)
        return false;
    uint32_t from = b->first > 0 ? b->first - 1 : 0;
    uint32_t to = b->last + 1 < t->pack->n_sections ? b->last + 1 : b->last;
    for (uint32_t x = from; x <= to; x++) {
        if (t->changed_at[x] > memo->clock)
            return false;
    }
    return true;
}

uint32_t blyi_basin_count(struct blyi_basins *s, const struct blyi_basin *b, uint32_t limit,
                          int64_t *slack)
{
    struct blyi_basin_memo *memo = &s->memo[b->first];
    bool fresh = is_fresh(s, b, memo);
    if (!fresh || (!memo->exact && memo->count < limit)) {
        uint32_t count = count_choices(s, b, limit);
        *memo = (struct blyi_basin_memo){s->terrain->clock, b->last, count, count < limit,
                                         fresh ? memo->slack : slack_of(s, b)};
    }
    *slack = memo->slack;
    return memo->count;
}

uint32_t blyi_basin_choice(struct blyi_basins *s, const struct blyi_basin *b, int64_t tried)
{
    const struct blyi_terrain *t = s->terrain;
    survey(s, b);
    uint32_t n = t->pack->n, best = BLYI_PACK_NONE;
    int64_t most = 0, best_rank = INT64_MAX;
    for (uint32_t x = b->first; x <= b->last; x++) {
        for (uint32_t at = t->first_at[x]; at < t->first_at[x + 1]; at++) {
            uint32_t k = t->by_first[at];
            int64_t rank = s->rank[k];
            if (rank > tried && rank < best_rank && can_be_leftmost(s, b, k, most)) {
                best = k;
                best_rank = rank;
            }
        }
        most = t->rest[x] > most ? t->rest[x] : most;
    }
    if (best == BLYI_PACK_NONE && tried < (int64_t)n && can_close(s, b, most))
        return n;
    return best;
}
