/* SPDX-License-Identifier: Apache-2.0
 *
 * freed.h - the last 1024 frees of a card, so that an error can say "freed already, there".
 * Guarded by the card's lock.
 */
#ifndef BLYI_FREED_H
#define BLYI_FREED_H

#include <stdint.h>
#include "base/site.h"

#define BLYI_FREED_MAX 1024

struct blyi_freed_block {
    uintptr_t address;
    uint64_t asked;  /* as the program wrote it; for sentences */
    uint64_t backed; /* how far it reached */
    uint32_t alloc_site, free_site;
    uint64_t time_ns; /* of the free */
};

struct blyi_freed {
    uint64_t count; /* since the card was opened; the next one goes to count % MAX */
    struct blyi_freed_block ring[BLYI_FREED_MAX];
};

/* Blocks are numbered as they are made, those of cards and pinned ones alike, so that work which
 * names an address for long (graph.h) knows its block again. */
uint64_t blyi_block_serial(void);
/* Moves with each free: as long as it stands still, no block has ended. */
uint64_t blyi_freed_turn(void);

void blyi_freed_add(struct blyi_freed *freed, const struct blyi_freed_block *block);
/* The last one freed that held `address`, or NULL. */
const struct blyi_freed_block *blyi_freed_find(const struct blyi_freed *freed, uintptr_t address);

#define BLYI_FREED_TEXT (BLYI_SITE_TEXT + 64)
/* "512 us ago at main+0x1c (prog)", or "512 us ago by a device reset" when no site did it. */
const char *blyi_freed_when(const struct blyi_freed_block *block, char buf[BLYI_FREED_TEXT]);

#endif
