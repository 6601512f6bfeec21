/* SPDX-License-Identifier: Apache-2.0
 *
 * freed.h - the last 1024 frees of a card, so that an error can say "freed already, there".
 * Guarded by the card's lock.
 */
#ifndef BLYI_FREED_H
#define BLYI_FREED_H

#include <stdint.h>

#define BLYI_FREED_MAX 1024

struct blyi_freed_block {
    uintptr_t address;
    uint64_t backed;
    uint32_t alloc_site, free_site;
    uint64_t time_ns; /* of the free */
};

struct blyi_freed {
    uint64_t count; /* since the card was opened; the next one goes to count % MAX */
    struct blyi_freed_block ring[BLYI_FREED_MAX];
};

void blyi_freed_add(struct blyi_freed *freed, const struct blyi_freed_block *block);
/* The last one freed that held `address`, or NULL. */
const struct blyi_freed_block *blyi_freed_find(const struct blyi_freed *freed, uintptr_t address);

#endif
