/* SPDX-License-Identifier: Apache-2.0
 *
 * ended.h - how many streams have ended, and how often all memory of a card did. Who keeps things
 * at hand for a stream or a card compares, and asks whether they still are when the number differs.
 *
 * The top bit stands beside the number while somebody wants to be told of blocks (probe.h): then
 * nothing may be handed out in passing, and who does so has one comparison for both.
 */
#ifndef BLYI_ENDED_H
#define BLYI_ENDED_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/word.h"

#define BLYI_ENDED_TOLD (UINT64_C(1) << 63)
BLYI_HOT_EXTERN uint64_t blyi_ended_count;

/* Before the caller of the program's ending call can go on. */
static inline void blyi_ended_add(void)
{
    __atomic_fetch_add(&blyi_ended_count, 1, __ATOMIC_RELEASE);
}

static inline uint64_t blyi_ended_now(void)
{
    return __atomic_load_n(&blyi_ended_count, __ATOMIC_ACQUIRE) & ~BLYI_ENDED_TOLD;
}

/* Nothing has ended since, and nobody wants to be told. */
static inline bool blyi_ended_none(uint64_t since)
{
    return BLYI_WORD_IS(blyi_ended_count, since);
}

void blyi_ended_tell(bool told);

#endif
