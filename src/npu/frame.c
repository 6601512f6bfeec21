/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - the buddy allocator of frames: one bitmap of free blocks per order, and one of
 * free frames for what the orders cannot answer (runs across blocks, double gives).
 *
 *   order 9  [block of 512]                       a set bit: this block is free and no
 *   order 8  [256][256]                           larger free block holds it
 *      :
 *   order 0  [1][1][1][1]...
 *   free     one bit a frame, set while it is free, whatever block it is in
 */
#include "npu/frame.h"
#include "npu/bits.h"
#include "base/assert.h"
#include "base/compiler.h"

#define TOP        (BLYI_FRAME_ORDERS - 1)
#define PREFER_MAX 64 /* free blocks looked at for one that is resident */

struct blyi_frames {
    uint32_t n, n_free;
    uint32_t n_blocks[BLYI_FRAME_ORDERS];
    uint32_t map_at[BLYI_FRAME_ORDERS]; /* first word of the order's bitmap */
    uint32_t low[BLYI_FRAME_ORDERS];    /* no bit is set in words below this one */
    uint32_t free_at;
    uint32_t n_words;
    uint64_t words[];
};

/* Room for the buddy of the last block, so that looking at it needs no bound check. */
static uint32_t order_words(uint32_t n, unsigned order)
{
    return (uint32_t)BLYI_BITS_WORDS(((n - 1) >> order) + 2);
}

static uint32_t order_bits(const struct blyi_frames *f, unsigned order)
{
    return ((f->n - 1) >> order) + 1;
}

static uint64_t *order_map(const struct blyi_frames *f, unsigned order)
{
    return (uint64_t *)(uintptr_t)&f->words[f->map_at[order]];
}

static uint64_t *free_map(const struct blyi_frames *f)
{
    return (uint64_t *)(uintptr_t)&f->words[f->free_at];
}

static unsigned order_of(uint32_t count)
{
    return count <= 1 ? 0 : (unsigned)(32 - __builtin_clz(count - 1));
}

static void block_add(struct blyi_frames *f, unsigned order, uint32_t index)
{
    order_map(f, order)[index / 64] |= (uint64_t)1 << (index % 64);
    f->n_blocks[order]++;
    if (index / 64 < f->low[order])
        f->low[order] = index / 64;
}

static void block_remove(struct blyi_frames *f, unsigned order, uint32_t index)
{
    order_map(f, order)[index / 64] &= ~((uint64_t)1 << (index % 64));
    f->n_blocks[order]--;
}

/* Puts free frames into the orders, joining buddies; the free bitmap is the caller's. */
static void blocks_put(struct blyi_frames *f, uint32_t first, uint32_t count)
{
    while (count > 0) {
        unsigned order = first == 0 ? TOP : (unsigned)__builtin_ctz(first);
        if (order > TOP)
            order = TOP;
        while ((1u << order) > count)
            order--;
        uint32_t size = 1u << order;
        uint32_t index = first >> order;
        while (order < TOP && blyi_bits_get(order_map(f, order), index ^ 1)) {
            block_remove(f, order, index ^ 1);
            index >>= 1;
            order++;
        }
        block_add(f, order, index);
        first += size;
        count -= size;
    }
}

/* Takes free frames out of the orders, wherever their blocks begin and end. */
static void blocks_carve(struct blyi_frames *f, uint32_t first, uint32_t count)
{
    uint32_t end = first + count;
    while (first < end) {
        unsigned order = 0;
        while (!blyi_bits_get(order_map(f, order), first >> order))
            order++;
        uint32_t start = first >> order << order;
        uint32_t stop = start + (1u << order);
        block_remove(f, order, first >> order);
        if (start < first)
            blocks_put(f, start, first - start);
        if (stop > end)
            blocks_put(f, end, stop - end);
        first = stop;
    }
}

static void mark_taken(struct blyi_frames *f, uint32_t first, uint32_t count)
{
    blyi_bits_clear(free_map(f), first, first + count);
    f->n_free -= count;
}

/* Index of a free block of this order; there is one. */
static uint32_t block_choose(struct blyi_frames *f, unsigned order, const uint64_t *prefer)
{
    uint64_t *map = order_map(f, order);
    while (map[f->low[order]] == 0)
        f->low[order]++;
    uint32_t bits = order_bits(f, order);
    uint32_t lowest = blyi_bits_find(map, f->low[order] * 64, bits, true);
    if (!prefer)
        return lowest;
    uint32_t index = lowest;
    for (int i = 0; i < PREFER_MAX && index < bits; i++) {
        uint32_t frame = index << order;
        /* relaxed: only a hint, and a stale one costs a commit, nothing else */
        if ((__atomic_load_n(&prefer[frame / 64], __ATOMIC_RELAXED) >> (frame % 64)) & 1)
            return index;
        index = blyi_bits_find(map, index + 1, bits, true);
    }
    return lowest;
}

/* Whole GiB: the first row of free giants that is long enough, else the longest row. */
static uint32_t take_giants(struct blyi_frames *f, uint32_t want, uint32_t *first)
{
    const uint64_t *map = order_map(f, TOP);
    uint32_t bits = order_bits(f, TOP), best = 0, best_length = 0;
    for (uint32_t start = blyi_bits_find(map, 0, bits, true), stop; start < bits;
         start = blyi_bits_find(map, stop, bits, true)) {
        stop = blyi_bits_find(map, start, bits, false);
        if (stop - start > best_length) {
            best = start;
            best_length = stop - start;
        }
        if (best_length >= want)
            break;
    }
    uint32_t count = best_length < want ? best_length : want;
    for (uint32_t i = 0; i < count; i++)
        block_remove(f, TOP, best + i);
    *first = best << TOP;
    mark_taken(f, *first, count << TOP);
    return count << TOP;
}

uint32_t blyi_frames_take(struct blyi_frames *f, uint32_t want, const uint64_t *prefer,
                          uint32_t *first)
{
    if (want == 0 || f->n_free == 0)
        return 0;
    if (want >= BLYI_GIANT_FRAMES && f->n_blocks[TOP] > 0)
        return take_giants(f, want / BLYI_GIANT_FRAMES, first);

    unsigned least = want >= BLYI_GIANT_FRAMES ? TOP : order_of(want);
    unsigned order = least;
    while (order < BLYI_FRAME_ORDERS && f->n_blocks[order] == 0)
        order++;
    if (order == BLYI_FRAME_ORDERS) {
        order = least;
        while (f->n_blocks[--order] == 0) /* ends: a frame is free, so some order has a block */
            ;
    }
    uint32_t index = block_choose(f, order, prefer);
    uint32_t size = 1u << order;
    uint32_t got = want < size ? want : size;
    *first = index << order;
    block_remove(f, order, index);
    blocks_put(f, *first + got, size - got);
    mark_taken(f, *first, got);
    return got;
}

/* Smallest run of free frames in [0, below) that holds an aligned `count`. */
static bool find_run(const struct blyi_frames *f, uint32_t count, uint32_t align, uint32_t below,
                     uint32_t *first)
{
    uint32_t best_length = UINT32_MAX, stop = 0;
    const uint64_t *map = free_map(f);
    for (;;) {
        uint32_t start = blyi_bits_find(map, stop, below, true);
        if (start == below)
            return best_length != UINT32_MAX;
        stop = blyi_bits_find(map, start, below, false);
        uint64_t at = blyi_align_up(start, align);
        if (at + count <= stop && stop - start < best_length) {
            best_length = stop - start;
            *first = (uint32_t)at;
        }
    }
}

static bool take_exact(struct blyi_frames *f, uint32_t count, uint32_t align, uint32_t below,
                       uint32_t *first)
{
    if (count == 0 || count > f->n_free || !find_run(f, count, align, below, first))
        return false;
    blocks_carve(f, *first, count);
    mark_taken(f, *first, count);
    return true;
}

bool blyi_frames_take_run(struct blyi_frames *f, uint32_t count, uint32_t align, uint32_t *first)
{
    bly_assert(blyi_is_pow2(align));
    return take_exact(f, count, align, f->n, first);
}

bool blyi_frames_take_below(struct blyi_frames *f, uint32_t count, uint32_t below, uint32_t *first)
{
    return take_exact(f, count, 1, below < f->n ? below : f->n, first);
}

bool blyi_frames_take_at(struct blyi_frames *f, uint32_t first, uint32_t count)
{
    if (count == 0 || first >= f->n || count > f->n - first ||
        blyi_bits_count(free_map(f), first, first + count) != count)
        return false;
    blocks_carve(f, first, count);
    mark_taken(f, first, count);
    return true;
}

void blyi_frames_give(struct blyi_frames *f, uint32_t first, uint32_t count)
{
    uint64_t *map = free_map(f);
    bly_check_msg(count > 0 && first < f->n && count <= f->n - first,
                  "frames [%u, +%u) of %u given back", first, count, f->n);
    bly_check_msg(blyi_bits_count(map, first, first + count) == 0,
                  "frames [%u, +%u) given back while some are free", first, count);
    blyi_bits_set(map, first, first + count);
    f->n_free += count;
    blocks_put(f, first, count);
}

size_t blyi_frames_footprint(uint32_t n_frames)
{
    size_t words = BLYI_BITS_WORDS(n_frames);
    for (unsigned order = 0; order < BLYI_FRAME_ORDERS; order++)
        words += order_words(n_frames, order);
    return sizeof(struct blyi_frames) + words * sizeof(uint64_t);
}

struct blyi_frames *blyi_frames_init_taken(void *memory, uint32_t n_frames)
{
    bly_assert(n_frames > 0);
    struct blyi_frames *f = memory;
    f->n = n_frames;
    for (unsigned order = 0; order < BLYI_FRAME_ORDERS; order++) {
        f->map_at[order] = f->n_words;
        f->n_words += order_words(n_frames, order);
        f->low[order] = 0;
    }
    f->free_at = f->n_words;
    f->n_words += (uint32_t)BLYI_BITS_WORDS(n_frames);
    return f;
}

struct blyi_frames *blyi_frames_init(void *memory, uint32_t n_frames)
{
    struct blyi_frames *f = blyi_frames_init_taken(memory, n_frames);
    blyi_frames_give(f, 0, n_frames);
    return f;
}

uint32_t blyi_frames_free(const struct blyi_frames *f)
{
    return f->n_free;
}

uint32_t blyi_frames_total(const struct blyi_frames *f)
{
    return f->n;
}

uint32_t blyi_frames_longest(const struct blyi_frames *f)
{
    const uint64_t *map = free_map(f);
    uint32_t longest = 0, stop = 0;
    for (;;) {
        uint32_t start = blyi_bits_find(map, stop, f->n, true);
        if (start == f->n)
            return longest;
        stop = blyi_bits_find(map, start, f->n, false);
        if (stop - start > longest)
            longest = stop - start;
    }
}

uint32_t blyi_frames_giants(const struct blyi_frames *f)
{
    return f->n_blocks[TOP];
}

bool blyi_frames_is_free(const struct blyi_frames *f, uint32_t frame)
{
    return frame < f->n && blyi_bits_get(free_map(f), frame);
}

/* Every free frame is in exactly one block: blocks lie on free frames only, the sums agree, and
 * no two buddies are free side by side. */
bool blyi_frames_audit(const struct blyi_frames *f)
{
    uint64_t in_blocks = 0;
    for (unsigned order = 0; order < BLYI_FRAME_ORDERS; order++) {
        const uint64_t *map = order_map(f, order);
        uint32_t bits = order_bits(f, order), count = 0;
        for (uint32_t i = blyi_bits_find(map, 0, bits, true); i < bits;
             i = blyi_bits_find(map, i + 1, bits, true)) {
            uint32_t first = i << order, size = 1u << order;
            if (i / 64 < f->low[order] || size > f->n - first ||
                blyi_bits_count(free_map(f), first, first + size) != size)
                return false;
            if (order < TOP && blyi_bits_get(map, i ^ 1))
                return false;
            count++;
        }
        if (count != f->n_blocks[order])
            return false;
        in_blocks += (uint64_t)count << order;
    }
    return in_blocks == f->n_free && blyi_bits_count(free_map(f), 0, f->n) == f->n_free;
}
