/* SPDX-License-Identifier: Apache-2.0
 *
 * partial.c - a tree of partial frames by their longest unused run, and a table by frame.
 */
#include "npu/partial.h"
#include "npu/bits.h"
#include "base/assert.h"
#include "base/host.h"

struct blyi_partials {
    struct blyi_tree by_run;
    uint64_t unused_pages;
    uint32_t n_frames;
    struct blyi_partial *of_frame[]; /* by frame number */
};

static struct blyi_partial *of_node(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_partial, node);
}

struct blyi_partials *blyi_partials_create(uint32_t n_frames)
{
    struct blyi_partials *p =
        blyi_host_calloc(1, sizeof *p + n_frames * sizeof(struct blyi_partial *));
    if (p)
        p->n_frames = n_frames;
    return p;
}

void blyi_partials_destroy(struct blyi_partials *p)
{
    bly_assert(!p || p->by_run.count == 0);
    blyi_host_free(p);
}

/* Next run of unused pages at or behind `*start`; its end in *stop. */
static bool next_run(const struct blyi_partial *partial, uint32_t *start, uint32_t *stop)
{
    *start = blyi_bits_find(partial->used, *start, BLYI_FRAME_PAGES, false);
    *stop = blyi_bits_find(partial->used, *start, BLYI_FRAME_PAGES, true);
    return *start < BLYI_FRAME_PAGES;
}

static uint32_t longest_run(const struct blyi_partial *partial)
{
    uint32_t longest = 0;
    for (uint32_t start = 0, stop; next_run(partial, &start, &stop); start = stop)
        if (stop - start > longest)
            longest = stop - start;
    return longest;
}

/* Puts it where its longest run says. */
static void relink(struct blyi_partials *p, struct blyi_partial *partial)
{
    uint32_t longest = longest_run(partial);
    if (longest == partial->node.key)
        return;
    blyi_tree_remove(&p->by_run, &partial->node);
    blyi_tree_insert(&p->by_run, &partial->node, longest, partial->address);
}

struct blyi_partial *blyi_partial_choose(struct blyi_partials *p, uint32_t pages, uint32_t below)
{
    struct blyi_tree_node *node = blyi_tree_ceil(&p->by_run, pages);
    while (node && of_node(node)->frame >= below)
        node = blyi_tree_next(node);
    return of_node(node);
}

struct blyi_partial *blyi_partial_new(void)
{
    return blyi_host_calloc(1, sizeof(struct blyi_partial));
}

void blyi_partial_drop(struct blyi_partial *partial)
{
    blyi_host_free(partial);
}

void blyi_partial_add(struct blyi_partials *p, struct blyi_partial *partial, uintptr_t address,
                      uint32_t frame)
{
    bly_assert(frame < p->n_frames && !p->of_frame[frame] && partial->n_used == 0);
    partial->address = address;
    partial->frame = frame;
    p->of_frame[frame] = partial;
    p->unused_pages += BLYI_FRAME_PAGES;
    blyi_tree_insert(&p->by_run, &partial->node, BLYI_FRAME_PAGES, address);
}

void blyi_partial_remove(struct blyi_partials *p, struct blyi_partial *partial)
{
    bly_assert(partial->n_used == 0);
    p->of_frame[partial->frame] = NULL;
    p->unused_pages -= BLYI_FRAME_PAGES;
    blyi_tree_remove(&p->by_run, &partial->node);
    blyi_host_free(partial);
}

void blyi_partial_move(struct blyi_partials *p, struct blyi_partial *partial, uint32_t frame)
{
    bly_assert(frame < p->n_frames && !p->of_frame[frame]);
    p->of_frame[partial->frame] = NULL;
    partial->frame = frame;
    p->of_frame[frame] = partial;
}

void blyi_partial_lift(struct blyi_partials *p, struct blyi_partial *partial)
{
    bly_assert(p->of_frame[partial->frame] == partial);
    p->of_frame[partial->frame] = NULL;
    partial->frame = p->n_frames;
}

void blyi_partial_land(struct blyi_partials *p, struct blyi_partial *partial, uint32_t frame)
{
    bly_assert(partial->frame == p->n_frames && frame < p->n_frames && !p->of_frame[frame]);
    partial->frame = frame;
    p->of_frame[frame] = partial;
}

struct blyi_partial *blyi_partial_of(const struct blyi_partials *p, uint32_t frame)
{
    return p->of_frame[frame];
}

uint32_t blyi_partial_fit(const struct blyi_partial *partial, uint32_t pages)
{
    uint32_t best = 0, best_length = UINT32_MAX;
    for (uint32_t start = 0, stop; next_run(partial, &start, &stop); start = stop) {
        if (stop - start >= pages && stop - start < best_length) {
            best = start;
            best_length = stop - start;
        }
    }
    bly_check_msg(best_length != UINT32_MAX, "no run of %u unused pages in frame %u", pages,
                  partial->frame);
    return best;
}

void blyi_partial_take(struct blyi_partials *p, struct blyi_partial *partial, uint32_t page,
                       uint32_t pages, bool readonly)
{
    bly_assert(blyi_bits_count(partial->used, page, page + pages) == 0);
    blyi_bits_set(partial->used, page, page + pages);
    if (readonly)
        blyi_bits_set(partial->readonly, page, page + pages);
    partial->n_used += pages;
    p->unused_pages -= pages;
    relink(p, partial);
}

void blyi_partial_give(struct blyi_partials *p, struct blyi_partial *partial, uint32_t page,
                       uint32_t pages)
{
    bly_check_msg(blyi_bits_count(partial->used, page, page + pages) == pages,
                  "pages [%u, +%u) of frame %u given back", page, pages, partial->frame);
    blyi_bits_clear(partial->used, page, page + pages);
    blyi_bits_clear(partial->readonly, page, page + pages);
    partial->n_used -= pages;
    p->unused_pages += pages;
    relink(p, partial);
}

uint32_t blyi_partial_bad(const struct blyi_partial *partial, uint32_t page, uint32_t end,
                          bool write)
{
    uint32_t bad = blyi_bits_find(partial->used, page, end, false);
    if (write) {
        uint32_t readonly = blyi_bits_find(partial->readonly, page, end, true);
        bad = readonly < bad ? readonly : bad;
    }
    return bad;
}

uint64_t blyi_partials_unused(const struct blyi_partials *p)
{
    return p->unused_pages * BLYI_PAGE_SIZE;
}

uint64_t blyi_partials_longest(const struct blyi_partials *p)
{
    struct blyi_tree_node *last = blyi_tree_last(&p->by_run);
    return last ? last->key * BLYI_PAGE_SIZE : 0;
}

uint32_t blyi_partials_count(const struct blyi_partials *p)
{
    return (uint32_t)p->by_run.count;
}

/* Keys, counts and the table agree with the bits; no partial frame is without a live page. */
bool blyi_partials_audit(const struct blyi_partials *p)
{
    uint64_t unused = 0;
    if (!blyi_tree_audit(&p->by_run))
        return false;
    for (struct blyi_tree_node *node = blyi_tree_first(&p->by_run); node;
         node = blyi_tree_next(node)) {
        const struct blyi_partial *partial = of_node(node);
        if (blyi_bits_count(partial->used, 0, BLYI_FRAME_PAGES) != partial->n_used ||
            partial->n_used == 0 || node->key != longest_run(partial) ||
            node->sub != partial->address ||
            (partial->frame < p->n_frames && p->of_frame[partial->frame] != partial))
            return false;
        for (uint32_t i = 0; i < BLYI_FRAME_PAGES / 64; i++)
            if (partial->readonly[i] & ~partial->used[i])
                return false;
        unused += BLYI_FRAME_PAGES - partial->n_used;
    }
    return unused == p->unused_pages;
}
