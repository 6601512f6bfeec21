/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool_blocks.h"

#include <stddef.h>

static const struct blyi_pool_blocks *offered;
static uint64_t turn;

void blyi_pool_blocks_offer(const struct blyi_pool_blocks *ops)
{
    __atomic_store_n(&offered, ops, __ATOMIC_RELEASE);
}

bool blyi_pool_blocks_keep(uintptr_t address, struct blyi_pool_block *block)
{
    const struct blyi_pool_blocks *ops = __atomic_load_n(&offered, __ATOMIC_ACQUIRE);
    return ops != NULL && ops->keep(address, block);
}

bool blyi_pool_blocks_find(uintptr_t address, struct blyi_pool_block *block)
{
    const struct blyi_pool_blocks *ops = __atomic_load_n(&offered, __ATOMIC_ACQUIRE);
    return ops != NULL && ops->find(address, block);
}

void blyi_pool_blocks_settle(void)
{
    const struct blyi_pool_blocks *ops = __atomic_load_n(&offered, __ATOMIC_ACQUIRE);
    if (ops != NULL)
        ops->settle();
}

void blyi_pool_blocks_ended(void)
{
    /* Release: who reads the turn sees that the block has ended. */
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
}

uint64_t blyi_pool_blocks_turn(void)
{
    return __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
}
