/* SPDX-License-Identifier: Apache-2.0
 *
 * poison.h - places of card memory with an uncorrectable error, which a program asked for
 * (bly_card_poison). Whatever touches one of them fails; the card then knows of it.
 *
 * Places are addresses, not frames: they stay when a block is freed, until they are repaired.
 */
#ifndef BLYI_POISON_H
#define BLYI_POISON_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/compiler.h"

#define BLYI_POISON_MAX 128

extern uint32_t blyi_poison_count; /* read without the lock: nearly always 0 */

static inline bool blyi_poison_any(void)
{
    return unlikely(__atomic_load_n(&blyi_poison_count, __ATOMIC_RELAXED) != 0);
}

/* E_MEMORY_ERROR: the range touches such a place. */
bly_status blyi_poison_touch(uintptr_t start, uint64_t size, bool writes);

struct blyi_poison {
    uintptr_t start;
    uint64_t size;
};
/* Those of the card that were touched, in the order in which they were made. */
size_t blyi_poison_found(int card, struct blyi_poison out[BLYI_POISON_MAX]);
/* Whether each of the ranges is, exactly, a place of the card that was touched: E_INVALID. */
bly_status blyi_poison_check(int card, const struct blyi_poison *ranges, size_t n);
/* The place can be used again; what was there is lost and reads as zeros. E_INVALID as above. */
bly_status blyi_poison_repair(int card, const struct blyi_poison *range);

#endif
