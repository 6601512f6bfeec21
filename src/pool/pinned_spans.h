/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned_spans.h - pinned segments of one NUMA node, tiled by spans that are live, waiting or free.
 * Free ones are joined with their neighbours at once and found by size. No locking.
 */
#ifndef BLYI_PINNED_SPANS_H
#define BLYI_PINNED_SPANS_H

#include <belay/host_pool.h>

#include "base/list.h"
#include "pool/arena.h"

enum blyi_pinned_state { BLYI_PINNED_FREE, BLYI_PINNED_LIVE, BLYI_PINNED_WAITING };

struct blyi_pinned_segment;
struct blyi_pinned_node;

struct blyi_pinned_span {
    uintptr_t address;
    uint64_t size, asked;
    enum blyi_pinned_state state;
    struct blyi_pinned_segment *segment;
    struct blyi_pinned_span *before, *after; /* in the segment */
    struct blyi_list link;                   /* free: of its size; waiting: oldest first */
    struct blyi_use use;                     /* waiting: for this */
};

struct blyi_pinned_segment {
    struct blyi_pinned_node *node;
    uintptr_t address;
    uint64_t size;
};

#define BLYI_PINNED_BINS  48u /* powers of two */
#define BLYI_PINNED_ALIGN UINT64_C(64)

struct blyi_pinned_node {
    struct blyi_backend *backend;
    bly_host_pool_info *is; /* of all nodes */
    uint64_t limit;
    struct blyi_list bins[BLYI_PINNED_BINS]; /* free spans of 2^i bytes and more */
};

void blyi_pinned_node_init(struct blyi_pinned_node *node, struct blyi_backend *backend,
                           bly_host_pool_info *is, uint64_t limit);
/* A free span of at least `size` bytes, a multiple of BLYI_PINNED_ALIGN, live from now on; at
 * whole pages if `pages`. NULL: there is none, or no host memory to divide one. */
struct blyi_pinned_span *blyi_pinned_take(struct blyi_pinned_node *node, uint64_t size, bool pages);
/* The same out of a new segment. E_PIN_LIMIT, E_HOST_MEMORY. */
bly_status blyi_pinned_grow(struct blyi_pinned_node *node, uint64_t size, bool pages,
                            struct blyi_pinned_span **span);
/* A live or waiting span is free. What it has become is a segment's only span, or not. */
struct blyi_pinned_span *blyi_pinned_give(struct blyi_pinned_span *span);
bool blyi_pinned_is_segment(const struct blyi_pinned_span *span);
/* Unpins segments that are free until at most `keep` bytes are pinned. Bytes. */
uint64_t blyi_pinned_trim(struct blyi_pinned_node *node, uint64_t keep);

#endif
