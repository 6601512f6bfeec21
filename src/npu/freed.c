/* SPDX-License-Identifier: Apache-2.0
 *
 * freed.c - a ring, searched backwards and only when something went wrong.
 */
#include "npu/freed.h"
#include <inttypes.h>
#include <stdio.h>
#include "base/clock.h"

static uint64_t last_serial, turn;

uint64_t blyi_block_serial(void)
{
    return __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
}

uint64_t blyi_freed_turn(void)
{
    /* Acquire: who reads a turn sees the blocks that ended before it moved as ended. */
    return __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
}

void blyi_freed_add(struct blyi_freed *freed, const struct blyi_freed_block *block)
{
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    freed->ring[freed->count++ % BLYI_FREED_MAX] = *block;
}

const struct blyi_freed_block *blyi_freed_find(const struct blyi_freed *freed, uintptr_t address)
{
    uint64_t n = freed->count < BLYI_FREED_MAX ? freed->count : BLYI_FREED_MAX;
    for (uint64_t i = 1; i <= n; i++) {
        const struct blyi_freed_block *block = &freed->ring[(freed->count - i) % BLYI_FREED_MAX];
        if (address - block->address < block->backed)
            return block;
    }
    return NULL;
}

const char *blyi_freed_when(const struct blyi_freed_block *block, char buf[BLYI_FREED_TEXT])
{
    char site[BLYI_SITE_TEXT];
    uint64_t us = (blyi_clock_ns() - block->time_ns) / 1000;
    if (block->free_site == 0)
        snprintf(buf, BLYI_FREED_TEXT, "%" PRIu64 " us ago by a device reset", us);
    else
        snprintf(buf, BLYI_FREED_TEXT, "%" PRIu64 " us ago at %s", us,
                 blyi_site_text(block->free_site, site));
    return buf;
}
