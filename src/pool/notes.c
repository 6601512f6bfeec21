/* SPDX-License-Identifier: Apache-2.0
 *
 * notes.c - blocks that other streams use: a note for each in its depot, from bly_pool_use() to the
 * free, which then waits for the uses that have not passed (waiting.h).
 *
 * A block that a graph keeps has one, too, with the number by which the graph knows it again.
 *
 * A slot with a note is in state USED, which keeps it off the fast path. A block of its own says so
 * by `uses`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/pool_blocks.h"
#include "base/probe.h"
#include "pool/front_inside.h"
#include "pool/own.h"
#include "pool/pool.h"
#include "pool/regions.h"
#include "pool/waiting.h"

#define NOTE_USES 4u /* room at first */

struct blyi_note {
    uint64_t asked;
    uint64_t serial; /* 0: no graph keeps it */
    size_t n, capacity;
    struct blyi_use uses[];
};

static struct blyi_depot *depot_of(const struct blyi_spot *spot)
{
    return *blyi_arena_front(spot->span->arena);
}

/* With room for one more use; NULL: no host memory, and the old note stands. */
static struct blyi_note *roomy(struct blyi_note *note)
{
    if (note != NULL && note->n < note->capacity)
        return note;
    size_t n = note == NULL ? 0 : note->n, capacity = n == 0 ? NOTE_USES : 2 * n;
    struct blyi_note *larger =
        blyi_host_realloc(note, sizeof(*note) + capacity * sizeof(note->uses[0]));
    if (larger != NULL) {
        larger->capacity = capacity;
        if (note == NULL)
            larger->asked = larger->serial = larger->n = 0;
    }
    return larger;
}

static void add_use(struct blyi_note *note, struct blyi_arena *arena)
{
    struct blyi_use use = {arena, blyi_arena_mark(arena)};
    size_t i = 0;
    while (i < note->n && note->uses[i].arena != arena)
        i++;
    note->n += i == note->n;
    note->uses[i] = use;
}

/* The block's note, with room for one more use, made where there is none. NULL: no host memory. */
static struct blyi_note *need_locked(struct blyi_depot *depot, const struct blyi_spot *spot)
{
    struct blyi_map *notes = &depot->notes;
    struct blyi_note *old = blyi_map_get(notes, spot->address);
    bool known = old != NULL;
    struct blyi_note *note = roomy(old);
    if (note == NULL)
        return NULL;
    if (note != old && blyi_map_put(notes, spot->address, note) != BLY_OK) {
        bly_assert(!known); /* it would have been replaced in its place */
        blyi_host_free(note);
        return NULL;
    }
    if (!known && spot->slab != NULL) {
        note->asked = blyi_spot_size(spot) - blyi_slab_state(spot->slab, spot->slot);
        blyi_slab_set_state(spot->slab, spot->slot, BLYI_SLOT_USED);
    }
    return note;
}

bly_status blyi_note_use(const struct blyi_spot *spot, struct blyi_arena *arena)
{
    struct blyi_depot *depot = depot_of(spot);
    blyi_lock_take_quick(&depot->lock);
    struct blyi_note *note = need_locked(depot, spot);
    if (note != NULL)
        add_use(note, arena);
    blyi_lock_drop_quick(&depot->lock);
    if (note == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "pool: no host memory to note a use of block 0x%" PRIxPTR, spot->address);
    if (spot->slab == NULL)
        __atomic_store_n(&spot->span->n_uses, 1, __ATOMIC_RELAXED);
    return BLY_OK;
}

uint64_t blyi_note_keep(const struct blyi_spot *spot)
{
    static uint64_t last;
    struct blyi_depot *depot = depot_of(spot);
    uint64_t serial = 0;
    blyi_lock_take_quick(&depot->lock);
    struct blyi_note *note = need_locked(depot, spot);
    if (note != NULL && note->serial == 0)
        note->serial = BLYI_POOL_SERIAL | __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    if (note != NULL)
        serial = note->serial;
    blyi_lock_drop_quick(&depot->lock);
    if (note != NULL && spot->slab == NULL)
        __atomic_store_n(&spot->span->n_uses, 1, __ATOMIC_RELAXED);
    return serial;
}

uint64_t blyi_note_serial(const struct blyi_spot *spot)
{
    struct blyi_depot *depot = depot_of(spot);
    blyi_lock_take_quick(&depot->lock);
    const struct blyi_note *note = blyi_map_get(&depot->notes, spot->address);
    uint64_t serial = note == NULL ? 0 : note->serial;
    blyi_lock_drop_quick(&depot->lock);
    return serial;
}

bool blyi_note_has_uses(const struct blyi_spot *spot)
{
    struct blyi_depot *depot = depot_of(spot);
    blyi_lock_take_quick(&depot->lock);
    const struct blyi_note *note = blyi_map_get(&depot->notes, spot->address);
    bool has = note != NULL && note->n > 0;
    blyi_lock_drop_quick(&depot->lock);
    return has;
}

uint64_t blyi_note_asked(const struct blyi_spot *spot)
{
    struct blyi_depot *depot = depot_of(spot);
    blyi_lock_take_quick(&depot->lock);
    const struct blyi_note *note = blyi_map_get(&depot->notes, spot->address);
    uint64_t asked = note == NULL ? 0 : note->asked;
    blyi_lock_drop_quick(&depot->lock);
    return asked;
}

/* Uses that have passed go. How many are left. */
static size_t drop_passed(struct blyi_note *note)
{
    for (size_t i = 0; i < note->n;) {
        const struct blyi_use *use = &note->uses[i];
        if (blyi_arena_passed(use->arena, use->mark))
            note->uses[i] = note->uses[--note->n];
        else
            i++;
    }
    return note->n;
}

/* From live to waiting. */
static void retire_locked(struct blyi_depot *depot, const struct blyi_spot *spot, uint64_t waste)
{
    if (spot->slab == NULL) {
        __atomic_store_n(&spot->span->live, BLYI_LIFE_WAITING, __ATOMIC_RELAXED);
        blyi_arena_retire(spot->span);
        return;
    }
    blyi_slab_set_state(spot->slab, spot->slot, BLYI_SLOT_WAITING);
    blyi_depot_add(&depot->waiting_bytes, blyi_spot_size(spot));
    blyi_depot_add(&depot->n_waiting, 1);
    blyi_depot_add(&depot->waste, -waste);
    if (spot->slab->region != BLY_POOL_ANY) {
        uint64_t size = blyi_spot_size(spot);
        blyi_region_count(depot->pool, spot->slab->region, size, size - waste, -1);
        blyi_region_wait(depot->pool, spot->slab->region, size, 1);
    }
}

/* As if nobody had noted a use. */
static void make_plain(const struct blyi_spot *spot, uint64_t asked)
{
    if (spot->slab == NULL)
        __atomic_store_n(&spot->span->n_uses, 0, __ATOMIC_RELAXED);
    else
        blyi_slab_set_state(spot->slab, spot->slot, (uint16_t)(blyi_spot_size(spot) - asked));
}

bly_status blyi_note_free(const struct blyi_spot *spot, bool *deferred)
{
    struct blyi_depot *depot = depot_of(spot);
    bly_status status = BLY_OK;
    bool kept = false;
    blyi_lock_take_quick(&depot->lock);
    struct blyi_note *note = blyi_map_get(&depot->notes, spot->address);
    if (note != NULL && blyi_own_leaves(spot->span)) /* noted at the export: there is room */
        add_use(note, blyi_spot_arena(spot));
    *deferred = note != NULL && drop_passed(note) > 0;
    /* It may come back at once: blyi_front_back() then waits for the lock. */
    if (note == NULL)
        status = blyi_spot_live(spot, spot->address, "free"); /* another thread freed it, too */
    else if (*deferred)
        status = blyi_waiting_add(depot->pool, (void *)spot->address, blyi_spot_size(spot),
                                  note->uses, note->n);
    if (note != NULL && status == BLY_OK) {
        if (*deferred)
            retire_locked(depot, spot, blyi_spot_size(spot) - note->asked);
        else
            make_plain(spot, note->asked);
        kept = note->serial != 0;
        blyi_map_remove(&depot->notes, spot->address);
        blyi_host_free(note);
    }
    blyi_lock_drop_quick(&depot->lock);
    if (unlikely(kept))
        blyi_pool_blocks_ended(); /* before anybody can have it again: he frees it behind us */
    return status;
}

void blyi_front_back(void *block)
{
    struct blyi_spot spot;
    bool found = blyi_spot_find((uintptr_t)block, &spot);
    bly_check_msg(found, "%p does not wait", block);
    struct blyi_depot *depot = depot_of(&spot);
    blyi_lock_take_quick(&depot->lock);
    bly_check_msg(blyi_spot_life(&spot) == BLYI_LIFE_WAITING, "%p does not wait", block);
    if (spot.slab == NULL) {
        __atomic_store_n(&spot.span->live, BLYI_LIFE_FREE, __ATOMIC_RELAXED);
    } else {
        blyi_slab_set_state(spot.slab, spot.slot, BLYI_SLOT_FREE);
        blyi_depot_add(&depot->waiting_bytes, -blyi_spot_size(&spot));
        blyi_depot_add(&depot->n_waiting, -UINT64_C(1));
        blyi_region_wait(depot->pool, spot.slab->region, blyi_spot_size(&spot), -1);
    }
    blyi_lock_drop_quick(&depot->lock);
    BLYI_PROBE(USE_DONE, .card = depot->pool->device, .address = spot.address,
               .other = depot->pool->number);
    if (spot.slab == NULL && blyi_own_leaves(spot.span))
        blyi_arena_end(spot.span);
    else if (spot.slab == NULL)
        blyi_arena_give(spot.span);
    else
        blyi_depot_put(depot, &(struct blyi_parcel){spot.address, spot.slab}, 1);
}
