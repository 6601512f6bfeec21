/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned_inside.h - what pinned.c (life of blocks), pinned_room.c (addresses and limits) and
 * pinned_look.c (questions) share. The lock guards all of it.
 */
#ifndef BLYI_PINNED_INSIDE_H
#define BLYI_PINNED_INSIDE_H

#include "npu/pinned.h"
#include "npu/freed.h"
#include "npu/window.h"
#include "base/lock.h"
#include "base/ranges.h"
#include "base/tree.h"

#define PINNED_PAGE ((uint64_t)4096)

struct blyi_pinned {
    struct blyi_tree_node node; /* key: address */
    uint64_t asked, rounded, backed;
    uint64_t time_ns, serial;
    uint32_t site, free_site;
    uint32_t n_holds;
    uint16_t module;
    bool dying;  /* freed by the program, held by queued work */
    bool locked; /* really in RAM for good */
    bool mapped; /* pages are behind it; with `next`, the kernel refused to take them away */
    struct blyi_pinned *next;
};

struct blyi_pinned_state {
    struct blyi_lock lock;
    struct blyi_window *window;
    struct blyi_ranges free_pages; /* of the window, in pages */
    struct blyi_tree blocks;       /* live and dying */
    uint64_t booked;    /* bytes that count toward the limit: blocks, made or being made */
    uint64_t elsewhere; /* of those, what is pinned elsewhere (blyi_pinned_book) */
    uint64_t live, asked, peak, locked, n_live;
    struct blyi_freed freed;
    struct blyi_pinned *aside; /* addresses that could not be given back yet, by `next` */
};
extern struct blyi_pinned_state blyi_pinned;

static inline struct blyi_pinned *blyi_pinned_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_pinned, node);
}

static inline uintptr_t blyi_pinned_start(const struct blyi_pinned *block)
{
    return (uintptr_t)block->node.key;
}

/* The block around an address, dying ones included. */
struct blyi_pinned *blyi_pinned_find_locked(uintptr_t address);

uint64_t blyi_pinned_limit(void);
bly_status blyi_pinned_check_limits_locked(uint64_t asked, uint64_t backed);
/* Limits and addresses, into the block's key; undone by blyi_pinned_unreserve(). */
bly_status blyi_pinned_reserve_locked(struct blyi_pinned *block);
/* Frees the structure too. */
void blyi_pinned_unreserve(struct blyi_pinned *block);
/* Takes the pages away and frees the structure. Does not fail: what must wait is tried again at the
 * next allocation. */
void blyi_pinned_give_locked(struct blyi_pinned *block);
/* E_HOST_MEMORY: the host is short, also after trimming. */
bly_status blyi_pinned_take_host(uint64_t bytes);

#endif
