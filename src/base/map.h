/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h - hash map from a 64-bit key to a pointer (open addressing). No locking.
 */
#ifndef BLYI_MAP_H
#define BLYI_MAP_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_map {
    struct blyi_map_slot *slots;
    size_t capacity, count, used; /* used counts tombstones too */
};

void blyi_map_init(struct blyi_map *map);
void blyi_map_fini(struct blyi_map *map); /* does not touch the values */

/* Value is not NULL; replaces an old one. E_HOST_MEMORY: nothing changed. */
bly_status blyi_map_put(struct blyi_map *map, uint64_t key, void *value);
void *blyi_map_get(const struct blyi_map *map, uint64_t key);
void *blyi_map_remove(struct blyi_map *map, uint64_t key); /* the value removed, or NULL */

/* Iteration in no order: start with *cursor 0; false at the end. Removing the key just
 * visited is allowed. */
bool blyi_map_next(const struct blyi_map *map, size_t *cursor, uint64_t *key, void **value);
bool blyi_map_audit(const struct blyi_map *map);

#endif
