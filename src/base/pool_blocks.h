/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_blocks.h - blocks of memory pools, for work that names an address for long (npu/owned.h):
 * whoever has pools says how to know a block again. And for who stops all changes (npu/snapshot.h).
 */
#ifndef BLYI_POOL_BLOCKS_H
#define BLYI_POOL_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define BLYI_POOL_SERIAL (UINT64_C(1) << 63) /* of all serial numbers of theirs */

struct blyi_pool_block {
    uintptr_t address;
    uint64_t asked, serial; /* serial 0: nobody keeps it */
    uint32_t site;          /* 0: not known */
    int card;
};

struct blyi_pool_blocks {
    /* The live block around an address gets a number, unless it has one. False: none lives there,
     * or no host memory. */
    bool (*keep)(uintptr_t address, struct blyi_pool_block *block);
    bool (*find)(uintptr_t address, struct blyi_pool_block *block);
    /* Returns when what pools have begun to change on a device has been done. */
    void (*settle)(void);
};

void blyi_pool_blocks_offer(const struct blyi_pool_blocks *ops);
bool blyi_pool_blocks_keep(uintptr_t address, struct blyi_pool_block *block);
bool blyi_pool_blocks_find(uintptr_t address, struct blyi_pool_block *block);
void blyi_pool_blocks_settle(void); /* no lock is held */

/* A block that was kept has ended; how often that was. */
void blyi_pool_blocks_ended(void);
uint64_t blyi_pool_blocks_turn(void);

#endif
