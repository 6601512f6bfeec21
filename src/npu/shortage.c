/* SPDX-License-Identifier: Apache-2.0
 *
 * shortage.c - what is free, in which form, and the sites that hold most.
 */
#include "npu/shortage.h"
#include "npu/card.h"
#include "npu/defrag.h"
#include "npu/mem_block.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/physical.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/option.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <string.h>

#define SITE_SLOTS 1024 /* sites told apart; what comes later is added to "other sites" */
#define TOP_SITES  3

struct holder {
    uint64_t bytes, count;
    uint32_t site;
};

struct holders {
    struct holder slots[SITE_SLOTS];
    struct holder others;
    uint32_t used;
};

static struct holder *holder_of(struct holders *h, uint32_t site)
{
    for (uint32_t i = site % SITE_SLOTS;; i = (i + 1) % SITE_SLOTS) {
        struct holder *slot = &h->slots[i];
        if (slot->count > 0 && slot->site == site)
            return slot;
        if (slot->count > 0)
            continue;
        if (h->used == SITE_SLOTS - 1) /* one stays empty, so that every search ends */
            return &h->others;
        h->used++;
        slot->site = site;
        return slot;
    }
}

static struct holder *largest(struct holders *h)
{
    struct holder *best = NULL;
    for (uint32_t i = 0; i < SITE_SLOTS; i++)
        if (h->slots[i].bytes > 0 && (!best || h->slots[i].bytes > best->bytes))
            best = &h->slots[i];
    return best;
}

static void add_physical(void *arg, const struct blyi_physical_info *info)
{
    struct holders *of = arg; /* [0]: with an address, [1]: orphans */
    struct holder *holder = holder_of(&of[info->n_mappings == 0], info->site);
    holder->bytes += info->size;
    holder->count++;
}

static void append_top(struct holders *h, int n, const char *what, const char *plural,
                       const char **before)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    for (int i = 0; i < n; i++) {
        struct holder *top = largest(h);
        if (!top)
            return;
        blyi_fail_append("%s%s in %" PRIu64 " %s at %s", *before, blyi_size_text(top->bytes, size),
                         top->count, top->count == 1 ? what : plural,
                         blyi_site_text(top->site, site));
        top->bytes = 0;
        *before = ", ";
    }
}

/* "; held: 536870912 B (512 MiB) in 64 orphan handles (reachable by no address) at ..., 60129542144
 * B (56 GiB) in 12 blocks at main+0x1c (prog), ...": orphans first, they can only be a mistake. */
static void append_holders_locked(struct blyi_card *card)
{
    const char *before = "; held: ";
    struct holders blocks, handles[2];
    memset(&blocks, 0, sizeof blocks);
    memset(handles, 0, sizeof handles);
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        struct holder *holder = holder_of(&blocks, blyi_block_of(node)->site);
        holder->bytes += blyi_block_of(node)->backed;
        holder->count++;
    }
    blyi_physical_walk_locked(card, add_physical, handles);
    append_top(&handles[1], TOP_SITES, "orphan handle (physical memory, reachable by no address)",
               "orphan handles (physical memory, reachable by no address)", &before);
    append_top(&blocks, TOP_SITES, "block", "blocks", &before);
    append_top(&handles[0], TOP_SITES, "mapped handle", "mapped handles", &before);
    if (before[0] == ';')
        blyi_fail_append("; no block is live");
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* "no room for <asked> <of what>" and the largest request of this kind that would fit. */
static const char *describe(struct blyi_card *card, enum blyi_short kind, uint64_t *usable)
{
    uint64_t whole = blyi_frames_free(card->frames) * BLYI_FRAME_SIZE;
    uint64_t run = blyi_frames_longest(card->frames) * BLYI_FRAME_SIZE;
    switch (kind) {
    case BLYI_SHORT_NORMAL:
        *usable = max(whole, blyi_partials_longest(card->partials));
        return "of normal pages";
    case BLYI_SHORT_HUGE:
        *usable = whole;
        return "of huge pages";
    case BLYI_SHORT_GIANT:
    case BLYI_SHORT_GIANT_RUN:
        *usable = blyi_frames_giants(card->frames) * GiB;
        return kind == BLYI_SHORT_GIANT ? "of 1 GiB pages" : "of contiguous 1 GiB pages";
    case BLYI_SHORT_RUN:
        *usable = run;
        return "in contiguous frames";
    case BLYI_SHORT_LOW:
        break;
    }
    *usable = run;
    return "in contiguous frames of the first 4 GiB";
}

/* What keeps frames apart: some can be moved, some cannot. */
static void append_run_locked(struct blyi_card *card, uint64_t run)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    struct blyi_fixed fixed;
    blyi_fixed_locked(card, &fixed);
    blyi_fail_append(", longest contiguous run %s", blyi_size_text(run, a));
    if (fixed.count > 0)
        blyi_fail_append(", of what is held %s must stay in place, most of it (%s)%s%s",
                         blyi_size_text(fixed.bytes, b), fixed.why, fixed.site ? " made at " : "",
                         fixed.site ? blyi_site_text(fixed.site, site) : "");
    blyi_fail_append(", the rest can be moved (bly_card_defrag)");
}

bly_status blyi_shortage_card_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                     enum blyi_short kind, const char *what)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    char e[BLYI_SIZE_TEXT];
    uint64_t usable, whole = blyi_frames_free(card->frames) * BLYI_FRAME_SIZE;
    uint64_t unused = blyi_partials_unused(card->partials);
    uint64_t run = blyi_frames_longest(card->frames) * BLYI_FRAME_SIZE;
    const char *of = describe(card, kind, &usable);
    bly_status status =
        blyi_fail(BLY_E_NO_MEMORY,
                  "card %d: no room for %s %s%s%s: in pages %s, free %s, largest usable %s%s, "
                  "short by %s",
                  card->id, blyi_size_text(asked, a), of, what ? ", " : "", what ? what : "",
                  blyi_size_text(backed, e), blyi_size_text(whole + unused, b),
                  blyi_size_text(usable, c), kind == BLYI_SHORT_LOW ? " anywhere" : "",
                  blyi_size_text(backed > usable ? backed - usable : 0, d));
    if (kind != BLYI_SHORT_NORMAL && kind != BLYI_SHORT_HUGE)
        append_run_locked(card, run);
    if (unused > 0)
        blyi_fail_append(", of the free %s whole frames and %s unused pages in %u partial frame%s",
                         blyi_size_text(whole, a), blyi_size_text(unused, b),
                         blyi_partials_count(card->partials),
                         blyi_partials_count(card->partials) == 1 ? "" : "s");
    blyi_fail_append(", total %s, runtime overhead %s", blyi_size_text(card->total, c),
                     blyi_size_text(card->overhead, d));
    append_holders_locked(card);
    return status;
}

bly_status blyi_shortage_cap_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                    const char *what)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    char e[BLYI_SIZE_TEXT], f[BLYI_SIZE_TEXT], g[BLYI_SIZE_TEXT], h[BLYI_SIZE_TEXT];
    uint64_t cap = (uint64_t)blyi_option_int(BLYI_OPT_CAP), used = blyi_mem_cap_used();
    uint64_t left = cap > used ? cap - used : 0, overhead = 0;
    uint64_t free =
        blyi_frames_free(card->frames) * BLYI_FRAME_SIZE + blyi_partials_unused(card->partials);
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *other = blyi_card_get(i);
        if (other) /* relaxed: for the sentence; other cards' locks are not held */
            overhead += __atomic_load_n(&other->overhead, __ATOMIC_RELAXED);
    }
    bly_status status = blyi_fail(
        BLY_E_CAP,
        "the process's cap BELAY_CAP, not card %d, is reached%s%s: cap %s, used %s of which %s are "
        "the runtime's overhead, left %s, asked %s backed by %s, short by %s; the card itself has "
        "%s free",
        card->id, what ? " by " : "", what ? what : "", blyi_size_text(cap, a),
        blyi_size_text(used, b), blyi_size_text(overhead, c), blyi_size_text(left, d),
        blyi_size_text(asked, e), blyi_size_text(backed, f), blyi_size_text(backed - left, g),
        blyi_size_text(free, h));
    append_holders_locked(card);
    return status;
}
