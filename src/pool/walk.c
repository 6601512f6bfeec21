/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.c - from arena to zone, extent, span and slot.
 */
#include "pool/walk.h"

#include "pool/front_inside.h"
#include "pool/pool.h"

struct walk {
    void (*fn)(void *arg, const struct blyi_walked *block);
    void *arg;
};

/* Of a slot with a note only its depot knows, whose lock comes first. */
static uint64_t asked_of(const struct blyi_spot *spot)
{
    if (spot->slab == NULL)
        return spot->span->asked;
    uint16_t state = blyi_slab_state(spot->slab, spot->slot);
    return blyi_spot_size(spot) - (BLYI_SLOT_PLAIN(state) ? state : 0);
}

static void tell(const struct walk *walk, const struct blyi_spot *spot)
{
    const struct blyi_arena *arena = blyi_spot_arena(spot);
    if (blyi_spot_life(spot) != BLYI_LIFE_LIVE)
        return;
    const struct blyi_walked block = {
        .address = spot->address,
        .asked = asked_of(spot),
        .size = blyi_spot_size(spot),
        .site = spot->slab == NULL ? spot->span->site : 0,
        .stream = __atomic_load_n(&arena->number, __ATOMIC_RELAXED),
    };
    walk->fn(walk->arg, &block);
}

static void walk_span(const struct walk *walk, struct blyi_span *span)
{
    struct blyi_spot spot = {.address = span->address, .span = span, .slab = span->slab};
    if (spot.slab == NULL) {
        tell(walk, &spot);
        return;
    }
    for (unsigned i = 0; i < spot.slab->n; i++) {
        spot.slot = i;
        spot.address = spot.slab->base + i * blyi_slab_slot_size(spot.slab);
        tell(walk, &spot);
    }
}

void blyi_pool_walk(bly_pool *pool, void (*fn)(void *arg, const struct blyi_walked *block),
                    void *arg)
{
    const struct walk walk = {fn, arg};
    blyi_lock_take(&pool->lock);
    BLYI_LIST_FOR(a, &pool->arenas)
    {
        const struct blyi_arena *arena = BLYI_CONTAINER(a, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++) {
            if (arena->zones[i] == NULL)
                continue;
            BLYI_LIST_FOR(e, &arena->zones[i]->extents)
            {
                struct blyi_extent *extent = BLYI_CONTAINER(e, struct blyi_extent, link);
                for (struct blyi_span *span = extent->leftmost; span != NULL; span = span->after)
                    if (!span->hole)
                        walk_span(&walk, span);
            }
        }
    }
    blyi_lock_drop(&pool->lock);
}
