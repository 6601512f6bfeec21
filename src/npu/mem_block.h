/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_block.h - a live block of card memory, as memory.c keeps it.
 *
 *   huge, giant   [ frame ][ frame ] ...                    granules of its own
 *   normal        [ frame ] ... [ tail | others' pages ]    the tail begins a partial frame
 *   normal, small               [ others | pages | others ] anywhere in a partial frame
 *
 * Which frames are behind it is read from the window's entries.
 */
#ifndef BLYI_MEM_BLOCK_H
#define BLYI_MEM_BLOCK_H

#include "base/probe.h"
#include "base/tree.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/share.h"

struct blyi_tail;

struct blyi_block {
    struct blyi_tree_node node; /* key: address */
    uint64_t asked, rounded, backed;
    uint64_t time_ns, serial;
    uint32_t site;
    uint32_t flags; /* BLYI_MEM_ */
    uint32_t whole; /* frames of its own, from its start */
    uint32_t pages; /* behind them, in a partial frame */
    uint16_t module;
    enum blyi_page_kind page_kind;
    struct blyi_hold hold;  /* of an exported block: its frames are a share's */
    struct blyi_tail *tail; /* room for what is left of it, when it has pages of a partial frame */
};

static inline struct blyi_block *blyi_block_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_block, node);
}

static inline uintptr_t blyi_block_start(const struct blyi_block *block)
{
    return (uintptr_t)block->node.key;
}

/* The live block around an address, or NULL. The card's lock is held. */
struct blyi_block *blyi_block_find_locked(struct blyi_card *card, uintptr_t address);
/* Adds to the thread's sentence why `bad` may not be touched: "; the nearest block is ..., 512 B
 * before it", or when and where it was freed. */
void blyi_mem_append_why_locked(struct blyi_card *card, uintptr_t bad);

#endif
