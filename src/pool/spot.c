/* SPDX-License-Identifier: Apache-2.0
 *
 * spot.c - what lies at an address, and the sentences for addresses where no block lives.
 */
#include <inttypes.h>

#include "base/fail.h"
#include "pool/front_inside.h"
#include "pool/pool.h"

bool blyi_spot_find(uintptr_t address, struct blyi_spot *spot)
{
    struct blyi_span *span = blyi_pages_find(address);
    if (span == NULL)
        return false;
    *spot = (struct blyi_spot){.address = span->address, .span = span, .slab = span->slab};
    if (spot->slab != NULL) {
        uint64_t size = blyi_slab_slot_size(spot->slab);
        uint64_t slot = (address - BLYI_READ(spot->slab->base)) / size;
        if (slot >= spot->slab->n)
            return false; /* it has gone meanwhile */
        spot->slot = (unsigned)slot;
        spot->address = BLYI_READ(spot->slab->base) + slot * size;
    }
    return true;
}

bly_pool *blyi_spot_pool(const struct blyi_spot *spot)
{
    return blyi_arena_pool(spot->span->arena);
}

uint64_t blyi_spot_size(const struct blyi_spot *spot)
{
    return spot->slab != NULL ? blyi_slab_slot_size(spot->slab) : spot->span->size;
}

bly_status blyi_spot_none(uintptr_t address, const char *verb)
{
    return blyi_fail(BLY_E_INVALID, "cannot %s 0x%" PRIxPTR ": %s", verb, address,
                     blyi_pages_known(address)
                         ? "no block of a pool is there: freed already, or never allocated"
                         : "not memory of a pool");
}

enum blyi_life blyi_spot_life(const struct blyi_spot *spot)
{
    if (spot->slab == NULL)
        return (enum blyi_life)__atomic_load_n(&spot->span->live, __ATOMIC_RELAXED);
    uint16_t state = blyi_slab_state(spot->slab, spot->slot);
    return state == BLYI_SLOT_FREE      ? BLYI_LIFE_FREE
           : state == BLYI_SLOT_WAITING ? BLYI_LIFE_WAITING
                                        : BLYI_LIFE_LIVE;
}

uint64_t blyi_spot_asked(const struct blyi_spot *spot)
{
    if (spot->slab == NULL)
        return spot->span->asked;
    uint16_t state = blyi_slab_state(spot->slab, spot->slot);
    return state == BLYI_SLOT_USED ? blyi_note_asked(spot) : blyi_spot_size(spot) - state;
}

bly_status blyi_spot_live(const struct blyi_spot *spot, uintptr_t address, const char *verb)
{
    enum blyi_life life = blyi_spot_life(spot);
    const char *pool = blyi_spot_pool(spot)->name;
    if (life == BLYI_LIFE_LIVE && address == spot->address)
        return BLY_OK;
    if (life == BLYI_LIFE_LIVE)
        return blyi_fail(BLY_E_INVALID,
                         "pool %s: cannot %s 0x%" PRIxPTR ": %" PRIu64
                         " bytes into the block 0x%" PRIxPTR " of %" PRIu64 " bytes",
                         pool, verb, address, address - spot->address, spot->address,
                         blyi_spot_size(spot));
    return blyi_fail(BLY_E_INVALID,
                     "pool %s: cannot %s 0x%" PRIxPTR ": the block 0x%" PRIxPTR " of %" PRIu64
                     " bytes there was freed already%s",
                     pool, verb, address, spot->address, blyi_spot_size(spot),
                     life == BLYI_LIFE_WAITING ? " and waits for work of other streams" : "");
}

bool blyi_spot_has_note(const struct blyi_spot *spot)
{
    return spot->slab != NULL ? blyi_slab_state(spot->slab, spot->slot) == BLYI_SLOT_USED
                              : __atomic_load_n(&spot->span->n_uses, __ATOMIC_RELAXED) > 0;
}

bly_status blyi_front_refuse(const void *address, const char *verb)
{
    struct blyi_spot spot;
    bly_status status = BLY_OK;
    if (blyi_spot_find((uintptr_t)address, &spot))
        status = blyi_spot_live(&spot, (uintptr_t)address, verb);
    return status != BLY_OK ? status : blyi_spot_none((uintptr_t)address, verb);
}
