/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c - open addressing with linear probing. A slot is empty (value NULL), removed (value
 * REMOVED) or live. At most three quarters are used, so a probe always meets an empty slot.
 */
#include "base/map.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"

#define CAPACITY_MIN 16

struct blyi_map_slot {
    uint64_t key;
    void *value;
};

static char removed_mark;
#define REMOVED ((void *)&removed_mark)

/* The finalizer of splitmix64: every bit of the key reaches every bit of the hash. */
static uint64_t hash(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return key ^ (key >> 31);
}

static bool is_live(const struct blyi_map_slot *slot)
{
    return slot->value != NULL && slot->value != REMOVED;
}

static struct blyi_map_slot *find(const struct blyi_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return NULL;
    size_t mask = map->capacity - 1;
    for (size_t i = hash(key) & mask; map->slots[i].value != NULL; i = (i + 1) & mask)
        if (map->slots[i].key == key && map->slots[i].value != REMOVED)
            return &map->slots[i];
    return NULL;
}

/* For a key that is absent: the first removed or empty slot on its way. */
static struct blyi_map_slot *find_room(struct blyi_map_slot *slots, size_t capacity, uint64_t key)
{
    size_t mask = capacity - 1, i = hash(key) & mask;
    while (is_live(&slots[i]))
        i = (i + 1) & mask;
    return &slots[i];
}

/* Moves to a table that is at most half full. */
static bly_status rehash(struct blyi_map *map)
{
    size_t capacity = CAPACITY_MIN;
    while (capacity < 2 * (map->count + 1))
        capacity *= 2;
    struct blyi_map_slot *slots = blyi_host_calloc(capacity, sizeof(*slots));
    if (slots == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a map of %zu slots (%zu bytes)",
                         capacity, capacity * sizeof(*slots));
    for (size_t i = 0; i < map->capacity; i++)
        if (is_live(&map->slots[i]))
            *find_room(slots, capacity, map->slots[i].key) = map->slots[i];
    blyi_host_free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->used = map->count;
    return BLY_OK;
}

void blyi_map_init(struct blyi_map *map)
{
    *map = (struct blyi_map){.slots = NULL};
}

void blyi_map_fini(struct blyi_map *map)
{
    blyi_host_free(map->slots);
    blyi_map_init(map);
}

bly_status blyi_map_put(struct blyi_map *map, uint64_t key, void *value)
{
    bly_assert(value != NULL && value != REMOVED);
    struct blyi_map_slot *slot = find(map, key);
    if (slot != NULL) {
        slot->value = value;
        return BLY_OK;
    }
    if (4 * (map->used + 1) > 3 * map->capacity) {
        bly_status status = rehash(map);
        if (status != BLY_OK)
            return status;
    }
    slot = find_room(map->slots, map->capacity, key);
    if (slot->value == NULL)
        map->used++;
    *slot = (struct blyi_map_slot){.key = key, .value = value};
    map->count++;
    return BLY_OK;
}

void *blyi_map_get(const struct blyi_map *map, uint64_t key)
{
    struct blyi_map_slot *slot = find(map, key);
    return slot ? slot->value : NULL;
}

void *blyi_map_remove(struct blyi_map *map, uint64_t key)
{
    struct blyi_map_slot *slot = find(map, key);
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    slot->value = REMOVED;
    map->count--;
    /* No probe passes through marks that end at an empty slot: make them empty again. */
    size_t mask = map->capacity - 1, i = (size_t)(slot - map->slots);
    if (map->slots[(i + 1) & mask].value == NULL)
        for (; map->slots[i].value == REMOVED; i = (i - 1) & mask) {
            map->slots[i].value = NULL;
            map->used--;
        }
    return value;
}

bool blyi_map_next(const struct blyi_map *map, size_t *cursor, uint64_t *key, void **value)
{
    while (*cursor < map->capacity) {
        const struct blyi_map_slot *slot = &map->slots[(*cursor)++];
        if (is_live(slot)) {
            *key = slot->key;
            *value = slot->value;
            return true;
        }
    }
    return false;
}

bool blyi_map_audit(const struct blyi_map *map)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct blyi_map_slot *slot = &map->slots[i];
        used += slot->value != NULL;
        count += is_live(slot);
        if (is_live(slot) && find(map, slot->key) != slot)
            return false;
    }
    return count == map->count && used == map->used && 4 * map->used <= 3 * map->capacity &&
           (map->capacity & (map->capacity - 1)) == 0;
}
