/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned_spans.c - pinned segments and what they are divided into.
 */
#include "pool/pinned_spans.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"

#define PAGE    UINT64_C(4096)
#define SEGMENT MiB           /* for small blocks */
#define LARGE   (MiB / 4)     /* has a segment of its own */
#define REST    UINT64_C(512) /* is described by itself */

static unsigned bin_of(uint64_t size)
{
    unsigned bin = 63u - (unsigned)__builtin_clzll(size);
    return bin < BLYI_PINNED_BINS ? bin : BLYI_PINNED_BINS - 1;
}

void blyi_pinned_node_init(struct blyi_pinned_node *node, struct blyi_backend *backend,
                           bly_host_pool_info *is, uint64_t limit)
{
    node->backend = backend;
    node->is = is;
    node->limit = limit;
    for (unsigned bin = 0; bin < BLYI_PINNED_BINS; bin++)
        blyi_list_init(&node->bins[bin]);
}

static void enter(struct blyi_pinned_span *span)
{
    struct blyi_pinned_node *node = span->segment->node;
    span->state = BLYI_PINNED_FREE;
    blyi_list_push_front(&node->bins[bin_of(span->size)], &span->link);
}

static struct blyi_pinned_span *span_new(struct blyi_pinned_segment *segment, uintptr_t address,
                                         uint64_t size)
{
    struct blyi_pinned_span *span = blyi_host_calloc(1, sizeof(*span));
    if (span != NULL) {
        span->segment = segment;
        span->address = address;
        span->size = size;
        blyi_list_init(&span->link);
    }
    return span;
}

/* Bytes to leave out at the begin. */
static uint64_t gap_of(const struct blyi_pinned_span *span, bool pages)
{
    return pages ? blyi_align_up(span->address, PAGE) - span->address : 0;
}

/* The smallest that fits of the bin where the size belongs, else any of the next one. */
static struct blyi_pinned_span *find(struct blyi_pinned_node *node, uint64_t size, bool pages)
{
    struct blyi_pinned_span *best = NULL;
    for (unsigned bin = bin_of(size); bin < BLYI_PINNED_BINS && best == NULL; bin++)
        BLYI_LIST_FOR(link, &node->bins[bin])
        {
            struct blyi_pinned_span *span = BLYI_CONTAINER(link, struct blyi_pinned_span, link);
            if (span->size >= size + gap_of(span, pages) &&
                (best == NULL || span->size < best->size))
                best = span;
        }
    return best;
}

/* Cuts a free span that is in no list at `size`; false: no host memory. The rest is entered. */
static bool cut(struct blyi_pinned_span *span, uint64_t size)
{
    struct blyi_pinned_span *rest =
        span_new(span->segment, span->address + size, span->size - size);
    if (rest == NULL)
        return false;
    rest->before = span;
    rest->after = span->after;
    if (span->after != NULL)
        span->after->before = rest;
    span->after = rest;
    span->size = size;
    enter(rest);
    return true;
}

struct blyi_pinned_span *blyi_pinned_take(struct blyi_pinned_node *node, uint64_t size, bool pages)
{
    struct blyi_pinned_span *span = find(node, size, pages);
    if (span == NULL)
        return NULL;
    uint64_t gap = gap_of(span, pages);
    blyi_list_remove(&span->link);
    if (gap > 0) {
        struct blyi_pinned_span *left = span;
        bool done = cut(span, gap);
        span = left->after;
        enter(left);
        if (!done)
            return NULL;
        blyi_list_remove(&span->link);
    }
    /* A rest that is too small to describe, or cannot be, goes along. */
    if (span->size - size >= REST)
        (void)cut(span, size);
    span->state = BLYI_PINNED_LIVE;
    return span;
}

static bly_status check_limit(const struct blyi_pinned_node *node, uint64_t size)
{
    const bly_host_pool_info *is = node->is;
    if (node->limit == 0 || (is->pinned <= node->limit && size <= node->limit - is->pinned))
        return BLY_OK;
    return blyi_fail(BLY_E_PIN_LIMIT,
                     "host pool: cannot pin %" PRIu64 " bytes: %" PRIu64
                     " are pinned (idle %" PRIu64 ", waiting %" PRIu64 "), the limit is %" PRIu64,
                     size, is->pinned, is->pinned - is->live - is->waiting, is->waiting,
                     node->limit);
}

static bly_status grow(struct blyi_pinned_node *node, uint64_t bytes, uint64_t size, bool pages,
                       struct blyi_pinned_span **out)
{
    void *address;
    bly_status status = check_limit(node, bytes);
    if (status != BLY_OK)
        return status;
    struct blyi_pinned_segment *segment = blyi_host_calloc(1, sizeof(*segment));
    struct blyi_pinned_span *span = segment != NULL ? span_new(segment, 0, bytes) : NULL;
    if (span == NULL) {
        blyi_host_free(segment);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe pinned memory");
    }
    status = node->backend->ops->pin(node->backend, bytes, &address);
    if (status != BLY_OK) {
        blyi_host_free(span);
        blyi_host_free(segment);
        return status;
    }
    *segment = (struct blyi_pinned_segment){node, (uintptr_t)address, bytes};
    span->address = (uintptr_t)address;
    bly_host_pool_info *is = node->is;
    is->pins++;
    is->pinned += bytes;
    is->pinned_peak = is->pinned > is->pinned_peak ? is->pinned : is->pinned_peak;
    enter(span);
    *out = blyi_pinned_take(node, size, pages);
    return *out != NULL ? BLY_OK
                        : blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe pinned memory");
}

bly_status blyi_pinned_grow(struct blyi_pinned_node *node, uint64_t size, bool pages,
                            struct blyi_pinned_span **out)
{
    uint64_t least = blyi_align_up(size, PAGE);
    bly_status status = size < LARGE ? grow(node, SEGMENT, size, pages, out) : BLY_E_PIN_LIMIT;
    if (status != BLY_E_PIN_LIMIT)
        return status;
    status = grow(node, least, size, pages, out); /* so much may be left */
    if (status == BLY_OK)
        blyi_fail_clear();
    return status;
}

/* The right one of two free neighbours, which are in no list, becomes part of the left one. */
static void join(struct blyi_pinned_span *left, struct blyi_pinned_span *right)
{
    left->size += right->size;
    left->after = right->after;
    if (right->after != NULL)
        right->after->before = left;
    blyi_host_free(right);
}

struct blyi_pinned_span *blyi_pinned_give(struct blyi_pinned_span *span)
{
    struct blyi_pinned_span *before = span->before, *after = span->after;
    blyi_list_remove(&span->link);
    if (after != NULL && after->state == BLYI_PINNED_FREE) {
        blyi_list_remove(&after->link);
        join(span, after);
    }
    if (before != NULL && before->state == BLYI_PINNED_FREE) {
        blyi_list_remove(&before->link);
        join(before, span);
        span = before;
    }
    enter(span);
    return span;
}

bool blyi_pinned_is_segment(const struct blyi_pinned_span *span)
{
    return span->before == NULL && span->after == NULL;
}

static void unpin(struct blyi_pinned_span *span)
{
    struct blyi_pinned_segment *segment = span->segment;
    struct blyi_pinned_node *node = segment->node;
    blyi_list_remove(&span->link);
    node->backend->ops->unpin(node->backend, (void *)segment->address, segment->size);
    node->is->unpins++;
    node->is->pinned -= segment->size;
    blyi_host_free(span);
    blyi_host_free(segment);
}

uint64_t blyi_pinned_trim(struct blyi_pinned_node *node, uint64_t keep)
{
    uint64_t before = node->is->pinned;
    for (unsigned bin = BLYI_PINNED_BINS; bin-- > 0 && node->is->pinned > keep;)
        BLYI_LIST_FOR_SAFE(link, &node->bins[bin])
        {
            struct blyi_pinned_span *span = BLYI_CONTAINER(link, struct blyi_pinned_span, link);
            if (node->is->pinned > keep && blyi_pinned_is_segment(span))
                unpin(span);
        }
    return before - node->is->pinned;
}
