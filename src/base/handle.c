/* SPDX-License-Identifier: Apache-2.0
 *
 * handle.c - one table of slots for handles of all kinds.
 *
 * Slots lie in chunks that are made when needed and never move or go away, so any value can
 * be checked at any time. All that decides the fate of a slot is one atomic word:
 *
 *     63     62..60 59    52 51        32 31    0
 *     [live] [  0 ] [ kind ] [generation] [ pins ]
 *
 * get adds a pin if the word still says live, this kind, this generation; remove clears
 * `live`. Whoever makes the word "not live, no pins" - the remove or the last put - is alone
 * with the object, destroys it and gives the slot back.
 *
 * Lock HANDLES guards the free slots and the number of slots. Free slots are reused oldest
 * first and only when QUARANTINE of them wait, so that a stale handle stays recognisable for
 * at least QUARANTINE * 2^20 creations.
 */
#include "base/handle.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/order.h"

#include <stdatomic.h>

#define CHUNK_SLOTS 1024u
#define MAX_SLOTS   ((1u << 20) - 1)
#define QUARANTINE  1024u
#define NO_SLOT     UINT32_MAX
#define FIELD_20    0xfffffu
#define LIVE        ((uint64_t)1 << 63)
#define PINS        ((uint64_t)UINT32_MAX)
#define KIND_BITS   ((uint64_t)0xff << 52)

struct slot {
    _Atomic uint64_t word;
    void *object;
    blyi_handle_destroy destroy;
    uint32_t next; /* free slot after this one; under the lock */
};

static struct blyi_lock free_lock = BLYI_LOCK_INIT(BLYI_RANK_HANDLES);
static uint32_t free_first = NO_SLOT, free_last = NO_SLOT, n_free; /* under free_lock */
/* Written under free_lock, read by anyone: release and acquire, since who learns of a chunk
 * also reads its slots. */
static _Atomic(struct slot *) chunks[MAX_SLOTS / CHUNK_SLOTS + 1];
static _Atomic uint32_t n_slots;
static _Atomic uint64_t n_live[BLYI_HANDLE_KIND_COUNT]; /* relaxed: figures for people */

static uint64_t word_of(uint64_t kind, uint64_t generation)
{
    return LIVE | kind << 52 | generation << 32;
}

static uint32_t generation_of(uint64_t word)
{
    return (uint32_t)(word >> 32) & FIELD_20;
}

static uint64_t value_kind(uint64_t value)
{
    return value >> 40;
}

static uint32_t value_generation(uint64_t value)
{
    return (uint32_t)(value >> 20) & FIELD_20;
}

static struct slot *slot_at(uint32_t index)
{
    struct slot *chunk = atomic_load_explicit(&chunks[index / CHUNK_SLOTS], memory_order_acquire);
    return &chunk[index % CHUNK_SLOTS];
}

/* The slot that a value names, NULL when no handle ever had this shape. */
static struct slot *slot_of(uint64_t value)
{
    uint32_t number = (uint32_t)value & FIELD_20;
    if (value_kind(value) == BLYI_HANDLE_NONE || value_kind(value) >= BLYI_HANDLE_KIND_COUNT)
        return NULL;
    if (number == 0 || number > atomic_load_explicit(&n_slots, memory_order_acquire))
        return NULL;
    return slot_at(number - 1);
}

/* The word of the slot while the handle is live, pins left out. */
static uint64_t live_word(uint64_t value)
{
    return word_of(value_kind(value), value_generation(value));
}

const char *blyi_handle_kind_text(enum blyi_handle_kind kind)
{
    static const char *const texts[] = {"nothing",
#define KIND_TEXT(name, text) text,
                                        BLYI_HANDLE_KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    return kind < BLYI_HANDLE_KIND_COUNT ? texts[kind] : "nothing";
}

/* Words the refusal of a value that is not a live handle of `kind`. */
static bly_status refuse(enum blyi_handle_kind kind, uint64_t value)
{
    const char *wanted = blyi_handle_kind_text(kind);
    unsigned long long shown = value;
    struct slot *slot = slot_of(value);
    if (slot == NULL)
        return blyi_fail(BLY_E_HANDLE, "0x%llx was never a handle; a %s is needed", shown, wanted);
    const char *own = blyi_handle_kind_text((enum blyi_handle_kind)value_kind(value));
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint32_t age = (generation_of(word) - value_generation(value)) & FIELD_20;
    bool same_kind = (word & KIND_BITS) == (live_word(value) & KIND_BITS);
    /* Half of the circle of generations counts as the past, the other as never reached. */
    if (value_generation(value) == 0 || age > FIELD_20 / 2 || (age == 0 && !same_kind))
        return blyi_fail(BLY_E_HANDLE, "0x%llx was never a handle; a %s is needed", shown, wanted);
    if (age > 0 || !(word & LIVE))
        return blyi_fail(BLY_E_HANDLE, "the %s 0x%llx was destroyed; a live %s is needed", own,
                         shown, wanted);
    return blyi_fail(BLY_E_HANDLE, "0x%llx is a live %s; a %s is needed", shown, own, wanted);
}

/* A slot for a new handle, NO_SLOT with a sentence and *status when there is none. */
static uint32_t take_slot_locked(bly_status *status)
{
    bly_assert(blyi_lock_held(&free_lock));
    uint32_t count = atomic_load_explicit(&n_slots, memory_order_relaxed);
    bool full = count == MAX_SLOTS;
    if (n_free > (full ? 0 : QUARANTINE)) {
        uint32_t index = free_first;
        free_first = slot_at(index)->next;
        if (free_first == NO_SLOT)
            free_last = NO_SLOT;
        n_free--;
        return index;
    }
    if (full) {
        *status = blyi_fail(BLY_E_NO_MEMORY, "all %u handles of the process are in use", MAX_SLOTS);
        return NO_SLOT;
    }
    if (count % CHUNK_SLOTS == 0 &&
        atomic_load_explicit(&chunks[count / CHUNK_SLOTS], memory_order_relaxed) == NULL) {
        struct slot *chunk = blyi_host_calloc(CHUNK_SLOTS, sizeof(*chunk));
        if (chunk == NULL) {
            *status = blyi_fail(BLY_E_HOST_MEMORY,
                                "no host memory for %zu bytes, a table of handles beside %u others",
                                CHUNK_SLOTS * sizeof(*chunk), count);
            return NO_SLOT;
        }
        atomic_store_explicit(&chunks[count / CHUNK_SLOTS], chunk, memory_order_release);
    }
    atomic_store_explicit(&n_slots, count + 1, memory_order_release);
    return count;
}

static void give_slot(uint32_t index)
{
    blyi_lock_take(&free_lock);
    slot_at(index)->next = NO_SLOT;
    if (free_last == NO_SLOT)
        free_first = index;
    else
        slot_at(free_last)->next = index;
    free_last = index;
    n_free++;
    blyi_lock_drop(&free_lock);
}

bly_status blyi_handle_create(enum blyi_handle_kind kind, void *object, blyi_handle_destroy destroy,
                              void **handle)
{
    bly_assert(kind > BLYI_HANDLE_NONE && kind < BLYI_HANDLE_KIND_COUNT && object != NULL);
    bly_status status = BLY_OK;
    blyi_lock_take(&free_lock);
    uint32_t index = take_slot_locked(&status);
    blyi_lock_drop(&free_lock);
    if (index == NO_SLOT)
        return status;

    struct slot *slot = slot_at(index);
    uint64_t old = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint32_t generation = (generation_of(old) + 1) & FIELD_20;
    if (generation == 0)
        generation = 1; /* 0 marks a slot that was never used */
    slot->object = object;
    slot->destroy = destroy;
    atomic_fetch_add_explicit(&n_live[kind], 1, memory_order_relaxed);
    /* Release: who pins the handle finds the object. */
    atomic_store_explicit(&slot->word, word_of(kind, generation), memory_order_release);
    *handle = (void *)(uintptr_t)((uint64_t)kind << 40 | (uint64_t)generation << 20 | (index + 1));
    return BLY_OK;
}

void *blyi_handle_get(enum blyi_handle_kind kind, const void *handle)
{
    uint64_t value = (uintptr_t)handle, live = live_word(value);
    struct slot *slot = slot_of(value);
    if (unlikely(slot == NULL || value_kind(value) != kind)) {
        refuse(kind, value);
        return NULL;
    }
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while (likely((word & ~PINS) == live)) {
        /* Acquire pairs with create; nothing else is published through a pin. */
        if (atomic_compare_exchange_weak_explicit(&slot->word, &word, word + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return slot->object;
    }
    refuse(kind, value);
    return NULL;
}

/* The caller made the word "not live, no pins". */
static void bury(struct slot *slot, uint64_t value)
{
    blyi_order_acquire(slot);
    if (slot->destroy)
        slot->destroy(slot->object);
    slot->object = NULL;
    give_slot(((uint32_t)value & FIELD_20) - 1);
}

void blyi_handle_put(const void *handle)
{
    uint64_t value = (uintptr_t)handle;
    struct slot *slot = slot_of(value);
    bly_check_msg(slot != NULL, "handle 0x%llx", (unsigned long long)value);
    /* Release what was done under the pin, acquire what others did under theirs. */
    blyi_order_release(slot);
    uint64_t word = atomic_fetch_sub_explicit(&slot->word, 1, memory_order_acq_rel);
    bly_check_msg((word & PINS) > 0 && generation_of(word) == value_generation(value),
                  "handle 0x%llx was not pinned", (unsigned long long)value);
    if ((word & (LIVE | PINS)) == 1)
        bury(slot, value);
}

bly_status blyi_handle_remove(enum blyi_handle_kind kind, const void *handle)
{
    uint64_t value = (uintptr_t)handle, live = live_word(value);
    struct slot *slot = slot_of(value);
    if (slot == NULL || value_kind(value) != kind)
        return refuse(kind, value);
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    while ((word & ~PINS) == live) {
        if (!atomic_compare_exchange_weak_explicit(&slot->word, &word, word & ~LIVE,
                                                   memory_order_acq_rel, memory_order_relaxed))
            continue;
        atomic_fetch_sub_explicit(&n_live[kind], 1, memory_order_relaxed);
        if ((word & PINS) == 0)
            bury(slot, value);
        return BLY_OK;
    }
    return refuse(kind, value);
}

size_t blyi_handle_live(enum blyi_handle_kind kind)
{
    bly_assert(kind < BLYI_HANDLE_KIND_COUNT);
    return (size_t)atomic_load_explicit(&n_live[kind], memory_order_relaxed);
}

/* Exact only while no other thread makes or removes handles. */
bool blyi_handle_audit(void)
{
    uint64_t live[BLYI_HANDLE_KIND_COUNT] = {0}, dead = 0;
    bool sound = true;
    blyi_lock_take(&free_lock);
    uint32_t count = atomic_load_explicit(&n_slots, memory_order_relaxed);
    for (uint32_t i = 0; i < count && sound; i++) {
        uint64_t word = atomic_load_explicit(&slot_at(i)->word, memory_order_acquire);
        uint64_t kind = (word & KIND_BITS) >> 52;
        sound = kind > BLYI_HANDLE_NONE && kind < BLYI_HANDLE_KIND_COUNT;
        if (sound && (word & LIVE))
            live[kind]++;
        else if ((word & PINS) == 0)
            dead++;
    }
    uint32_t n = 0, last = NO_SLOT;
    for (uint32_t i = free_first; i != NO_SLOT && n <= n_free; i = slot_at(i)->next, n++)
        last = i;
    sound = sound && n == n_free && dead == n_free && last == free_last;
    blyi_lock_drop(&free_lock);
    for (int kind = 0; kind < BLYI_HANDLE_KIND_COUNT; kind++)
        sound = sound && live[kind] == atomic_load_explicit(&n_live[kind], memory_order_relaxed);
    return sound;
}
