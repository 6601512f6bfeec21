/* SPDX-License-Identifier: Apache-2.0
 *
 * partial.h - frames that are used in 4 KiB pages: which pages of which frame are live.
 * A partial frame belongs to this process and keeps one address range until its last page is
 * freed. Guarded by the card's lock; maps nothing.
 */
#ifndef BLYI_PARTIAL_H
#define BLYI_PARTIAL_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/tree.h"

#define BLYI_PAGE_SIZE   ((uint64_t)4096)
#define BLYI_FRAME_PAGES 512u

struct blyi_partial {
    struct blyi_tree_node node; /* key: longest run of unused pages; sub: address */
    uintptr_t address;
    uint32_t frame;
    uint32_t n_used;
    uint32_t n_deferred; /* of those: of freed blocks that others hold (share_tail.c) */
    uint64_t used[BLYI_FRAME_PAGES / 64];
    uint64_t readonly[BLYI_FRAME_PAGES / 64];
};

struct blyi_partials; /* of one card */

/* NULL: no host memory. */
struct blyi_partials *blyi_partials_create(uint32_t n_frames);
void blyi_partials_destroy(struct blyi_partials *partials);

/* The partial frame whose longest unused run is the shortest that holds `pages`, with a frame
 * number under `below`; NULL when there is none. */
struct blyi_partial *blyi_partial_choose(struct blyi_partials *partials, uint32_t pages,
                                         uint32_t below);
/* A partial frame without live pages, not in the set yet. NULL: no host memory. */
struct blyi_partial *blyi_partial_new(void);
void blyi_partial_drop(struct blyi_partial *partial); /* one that was never added */
void blyi_partial_add(struct blyi_partials *partials, struct blyi_partial *partial,
                      uintptr_t address, uint32_t frame);
/* Takes it out and frees it; no page may be live. */
void blyi_partial_remove(struct blyi_partials *partials, struct blyi_partial *partial);
/* Its frame is another one now, at the same address. */
void blyi_partial_move(struct blyi_partials *partials, struct blyi_partial *partial,
                       uint32_t frame);
/* It has no frame for a while; and it has one again. */
void blyi_partial_lift(struct blyi_partials *partials, struct blyi_partial *partial);
void blyi_partial_land(struct blyi_partials *partials, struct blyi_partial *partial,
                       uint32_t frame);
struct blyi_partial *blyi_partial_of(const struct blyi_partials *partials, uint32_t frame);

/* First page of the shortest unused run that holds `pages`; there is one. */
uint32_t blyi_partial_fit(const struct blyi_partial *partial, uint32_t pages);
void blyi_partial_take(struct blyi_partials *partials, struct blyi_partial *partial, uint32_t page,
                       uint32_t pages, bool readonly);
void blyi_partial_give(struct blyi_partials *partials, struct blyi_partial *partial, uint32_t page,
                       uint32_t pages);
/* First page of [page, end) that is not live (or, for writing, read-only); `end` if all are
 * fit for use. */
uint32_t blyi_partial_bad(const struct blyi_partial *partial, uint32_t page, uint32_t end,
                          bool write);

/* Bytes of unused pages, and the longest run of them. */
uint64_t blyi_partials_unused(const struct blyi_partials *partials);
uint64_t blyi_partials_longest(const struct blyi_partials *partials);
uint32_t blyi_partials_count(const struct blyi_partials *partials);
bool blyi_partials_audit(const struct blyi_partials *partials);

#endif
