/* SPDX-License-Identifier: Apache-2.0
 *
 * poison.c - places of card memory with an uncorrectable error. Lock: rank POISON, the list.
 */
#include "npu/poison.h"

#include <belay/card.h>
#include <inttypes.h>
#include "base/fail.h"
#include "base/lock.h"
#include "npu/copy.h"
#include "npu/memory.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"

struct place {
    struct blyi_poison range;
    int card;
    bool touched;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_POISON);
static struct place places[BLYI_POISON_MAX];
uint32_t blyi_poison_count;

bly_status bly_card_poison(const void *address, uint64_t size)
{
    int card;
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    if (size == 0 || blyi_place_of(address, &card) != BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes at %p are no card memory", size,
                         address);
    status = blyi_mem_use(address, size, BLYI_READ); /* it is live; or has such a place already */
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&lock);
    uint32_t n = blyi_poison_count;
    if (n == BLYI_POISON_MAX) {
        status = blyi_fail(BLY_E_STATE, "%d places have errors already, that is all there can be",
                           BLYI_POISON_MAX);
    } else {
        places[n] = (struct place){{(uintptr_t)address, size}, card, false};
        __atomic_store_n(&blyi_poison_count, n + 1, __ATOMIC_RELAXED);
    }
    blyi_lock_drop(&lock);
    return status;
}

bly_status blyi_poison_touch(uintptr_t start, uint64_t size, bool writes)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    for (uint32_t i = 0; i < blyi_poison_count; i++) {
        struct place *place = &places[i];
        /* Neither wraps: both lie inside a window. */
        if (start >= place->range.start + place->range.size || place->range.start >= start + size)
            continue;
        place->touched = true;
        status =
            blyi_fail(BLY_E_MEMORY_ERROR,
                      "card %d: %s of %" PRIu64 " bytes at 0x%" PRIxPTR
                      " touches an uncorrectable memory error, %" PRIu64 " bytes at 0x%" PRIxPTR,
                      place->card, writes ? "write" : "read", size, start, place->range.size,
                      place->range.start);
    }
    blyi_lock_drop(&lock);
    return status;
}

size_t blyi_poison_found(int card, struct blyi_poison out[BLYI_POISON_MAX])
{
    size_t n = 0;
    blyi_lock_take(&lock);
    for (uint32_t i = 0; i < blyi_poison_count; i++) {
        if (places[i].card == card && places[i].touched)
            out[n++] = places[i].range;
    }
    blyi_lock_drop(&lock);
    return n;
}

/* BLYI_POISON_MAX: there is none. */
static uint32_t find_locked(int card, const struct blyi_poison *range)
{
    for (uint32_t i = 0; i < blyi_poison_count; i++) {
        const struct place *place = &places[i];
        if (place->card == card && place->touched && place->range.start == range->start &&
            place->range.size == range->size)
            return i;
    }
    return BLYI_POISON_MAX;
}

static bly_status tell_none(int card, const struct blyi_poison *range)
{
    return blyi_fail(BLY_E_INVALID,
                     "%" PRIu64 " bytes at 0x%" PRIxPTR " are no memory error that card %d found",
                     range->size, range->start, card);
}

bly_status blyi_poison_check(int card, const struct blyi_poison *ranges, size_t n)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    for (size_t i = 0; i < n && status == BLY_OK; i++) {
        if (find_locked(card, &ranges[i]) == BLYI_POISON_MAX)
            status = tell_none(card, &ranges[i]);
    }
    blyi_lock_drop(&lock);
    return status;
}

bly_status blyi_poison_repair(int card, const struct blyi_poison *range)
{
    bly_status status = blyi_snapshot_pass(); /* it writes */
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&lock);
    uint32_t found = find_locked(card, range);
    if (found != BLYI_POISON_MAX) {
        uint32_t n = blyi_poison_count - 1;
        for (uint32_t i = found; i < n; i++)
            places[i] = places[i + 1];
        __atomic_store_n(&blyi_poison_count, n, __ATOMIC_RELAXED);
    }
    blyi_lock_drop(&lock);
    if (found == BLYI_POISON_MAX)
        return tell_none(card, range);
    /* Memory that was freed meanwhile has nothing to be lost. */
    if (blyi_set_own((void *)range->start, 0, range->size) != BLY_OK)
        blyi_fail_clear();
    return BLY_OK;
}
