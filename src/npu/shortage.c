/* SPDX-License-Identifier: Apache-2.0
 *
 * shortage.c - what is free, in which form, and the sites that hold most.
 */
#include "npu/shortage.h"
#include "npu/ledger.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/defrag.h"
#include "npu/mem_block.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/physical.h"
#include "npu/share_inside.h"
#include "npu/stock.h"
#include "npu/tally.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/pool_rows.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SITE_SLOTS 1024 /* sites told apart; what comes later is added to "other sites" */
#define TOP_SITES  3
#define POOLS_TOLD 8

struct holder {
    uint64_t bytes, count;
    uint64_t oldest_ns; /* when the first of them was made */
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

static void add(struct holder *holder, uint64_t bytes, uint64_t time_ns)
{
    if (holder->count == 0 || time_ns < holder->oldest_ns)
        holder->oldest_ns = time_ns;
    holder->bytes += bytes;
    holder->count++;
}

/* " made in the last 12 ms": several from one place are often one sequence. */
static void append_age(const struct holder *holder)
{
    uint64_t ms = (blyi_clock_ns() - holder->oldest_ns) / 1000000u;
    if (holder->count < 2)
        return;
    if (ms < 10000)
        blyi_fail_append(" made in the last %" PRIu64 " ms", ms + 1);
    else
        blyi_fail_append(" made in the last %" PRIu64 " s", ms / 1000 + 1);
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
    if (info->of_pool)
        return; /* append_pools() */
    struct holder *holder = holder_of(&of[info->n_mappings == 0], info->site);
    add(holder, info->size, info->time_ns);
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
        append_age(top);
        top->bytes = 0;
        *before = ", ";
    }
}

/* "; held: 536870912 B (512 MiB) in 64 orphan handles (reachable by no address) at ..., 60129542144
 * B (56 GiB) in 12 blocks at main+0x1c (prog), ...": orphans first, they can only be a mistake.
 * False: nobody does. */
static bool append_holders_locked(struct blyi_card *card)
{
    const char *before = "; held: ";
    struct holders blocks, handles[2];
    memset(&blocks, 0, sizeof blocks);
    memset(handles, 0, sizeof handles);
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        struct holder *holder = holder_of(&blocks, blyi_block_of(node)->site);
        add(holder, blyi_block_of(node)->backed, blyi_block_of(node)->time_ns);
    }
    blyi_physical_walk_locked(card, add_physical, handles);
    append_top(&handles[1], TOP_SITES, "orphan handle (physical memory, reachable by no address)",
               "orphan handles (physical memory, reachable by no address)", &before);
    append_top(&blocks, TOP_SITES, "block", "blocks", &before);
    append_top(&handles[0], TOP_SITES, "mapped handle", "mapped handles", &before);
    memset(&blocks, 0, sizeof blocks); /* room for another kind */
    BLYI_LIST_FOR(node, &card->import_ages)
    {
        const struct blyi_import *import = BLYI_CONTAINER(node, struct blyi_import, link);
        add(holder_of(&blocks, import->site), import->size, import->time_ns);
    }
    append_top(&blocks, TOP_SITES, "import (memory of another process)",
               "imports (memory of other processes)", &before);
    return before[0] != ';';
}

/* Pools of this process that are not busy with a request of their own. */
static void append_pools(int card)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    struct blyi_pool_row *rows = blyi_host_alloc(POOLS_TOLD * sizeof(*rows));
    size_t n = rows != NULL ? blyi_pool_rows(rows, POOLS_TOLD, true) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct blyi_pool_row *row = &rows[i];
        if (row->card != card || row->held == 0)
            continue;
        blyi_fail_append("; pool %" PRIu32 " (%s) holds %s: in use %s, idle %s, waiting for "
                         "streams %s",
                         row->number, row->name, blyi_size_text(row->held, a),
                         blyi_size_text(row->live, b), blyi_size_text(row->idle, c),
                         blyi_size_text(row->waiting, d));
    }
    blyi_host_free(rows);
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* "no room for <asked> <of what>" and the largest request of this kind that would fit. */
static const char *describe(struct blyi_card *card, const struct blyi_stock_figures *frames,
                            enum blyi_short kind, uint64_t *usable)
{
    uint64_t whole = frames->free * BLYI_FRAME_SIZE, run = frames->longest * BLYI_FRAME_SIZE;
    switch (kind) {
    case BLYI_SHORT_NORMAL:
        *usable = max(whole, blyi_partials_longest(card->partials));
        return "of normal pages";
    case BLYI_SHORT_HUGE:
        *usable = whole;
        return "of huge pages";
    case BLYI_SHORT_GIANT:
    case BLYI_SHORT_GIANT_RUN:
        *usable = frames->giants * GiB;
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

/* Pages that others have not used are free for them alone. */
static void append_unused_locked(struct blyi_card *card, uint64_t whole, uint64_t unused)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    uint32_t n = blyi_partials_count(card->partials);
    uint64_t ours = blyi_partials_unused(card->partials);
    blyi_fail_append(", of the free %s whole frames", blyi_size_text(whole, a));
    if (n > 0)
        blyi_fail_append("%s%s unused pages in %" PRIu32 " partial frame%s",
                         unused > ours ? ", " : " and ", blyi_size_text(ours, b), n,
                         n == 1 ? "" : "s");
    if (unused > ours)
        blyi_fail_append(" and %s unused pages in partial frames of other processes",
                         blyi_size_text(unused - ours, b));
}

void blyi_shortage_room_locked(struct blyi_card *card, enum blyi_short kind, uint64_t *free,
                               uint64_t *usable)
{
    struct blyi_stock_figures frames;
    blyi_stock_figures(card->stock, &frames);
    *free = frames.free * BLYI_FRAME_SIZE + frames.unused;
    (void)describe(card, &frames, kind, usable);
}

bly_status blyi_shortage_card_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                     enum blyi_short kind, const char *what)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    char e[BLYI_SIZE_TEXT];
    struct blyi_stock_figures frames;
    if (blyi_ledger_is_lost()) /* the card's figures are not the reason */
        return blyi_fail(BLY_E_NO_MEMORY, "card %d: nothing for %s: " BLYI_LEDGER_LOST_TEXT,
                         card->id, blyi_size_text(asked, a));
    blyi_tally_card_locked(card);
    blyi_stock_figures(card->stock, &frames);
    uint64_t usable, whole = frames.free * BLYI_FRAME_SIZE;
    uint64_t unused = frames.unused, run = frames.longest * BLYI_FRAME_SIZE;
    const char *of = describe(card, &frames, kind, &usable);
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
        append_unused_locked(card, whole, unused);
    blyi_fail_append(", total %s, runtime overhead %s", blyi_size_text(card->total, c),
                     blyi_size_text(card->overhead, d));
    if (!append_holders_locked(card))
        blyi_fail_append("; no block is live");
    append_pools(card->id);
    blyi_tally_append_memory(card->id);
    blyi_share_append_freed(card->id);
    return status;
}

/* "the cap BELAY_CAP of pid 12 (serve) and its children" */
static const char *whose_cap(const struct blyi_cap_view *view, char text[96])
{
    if (view->is_own && view->n_others == 0)
        snprintf(text, 96, "the process's cap BELAY_CAP");
    else if (view->is_own)
        snprintf(text, 96, "the cap BELAY_CAP of this process and its children");
    else if (view->pid != 0)
        snprintf(text, 96, "the cap BELAY_CAP of pid %" PRIu32 " (%s) and its children", view->pid,
                 view->name);
    else
        snprintf(text, 96, "the cap BELAY_CAP of an ended process and its children");
    return text;
}

/* ", by this process 268435456 B (256 MiB) and by pid 13 (worker) 67108864 B (64 MiB)," */
static void append_members(const struct blyi_cap_view *view)
{
    char size[BLYI_SIZE_TEXT];
    if (view->n_others == 0)
        return;
    blyi_fail_append(", by this process %s", blyi_size_text(view->mine, size));
    for (uint32_t i = 0; i < view->n_others && i < BLYI_CAP_ROWS; i++)
        blyi_fail_append(", by pid %" PRIu32 " (%s) %s", view->rows[i].pid, view->rows[i].name,
                         blyi_size_text(view->rows[i].booked, size));
    if (view->n_others > BLYI_CAP_ROWS)
        blyi_fail_append(", by %" PRIu32 " more the rest", view->n_others - BLYI_CAP_ROWS);
    blyi_fail_append(",");
}

bly_status blyi_shortage_cap_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                    const char *what)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    char e[BLYI_SIZE_TEXT], f[BLYI_SIZE_TEXT], g[BLYI_SIZE_TEXT], h[BLYI_SIZE_TEXT];
    struct blyi_cap_view view;
    blyi_cap_view(backed, &view);
    uint64_t left = view.cap > view.used ? view.cap - view.used : 0, overhead = 0;
    struct blyi_stock_figures frames;
    blyi_stock_figures(card->stock, &frames);
    uint64_t free = frames.free * BLYI_FRAME_SIZE + frames.unused;
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *other = blyi_card_get(i);
        if (other) /* relaxed: for the sentence; other cards' locks are not held */
            overhead += __atomic_load_n(&other->overhead, __ATOMIC_RELAXED);
    }
    char whose[96];
    bly_status status =
        blyi_fail(BLY_E_CAP, "%s, not card %d, is reached%s%s: cap %s, used %s",
                  whose_cap(&view, whose), card->id, what ? " by " : "", what ? what : "",
                  blyi_size_text(view.cap, a), blyi_size_text(view.used, b));
    append_members(&view);
    blyi_fail_append(" of which %s are the runtime's overhead%s", blyi_size_text(overhead, c),
                     view.n_others > 0 ? " in this process" : "");
    if (view.imported > 0)
        blyi_fail_append(" and %s are imported memory", blyi_size_text(view.imported, c));
    blyi_fail_append(", left %s, asked %s backed by %s, short by %s; the card itself has %s free",
                     blyi_size_text(left, d), blyi_size_text(asked, e), blyi_size_text(backed, f),
                     blyi_size_text(backed > left ? backed - left : 0, g), blyi_size_text(free, h));
    if (!append_holders_locked(card))
        blyi_fail_append("; no block is live");
    append_pools(card->id);
    return status;
}

void blyi_shortage_append_others(struct blyi_card *card)
{
    blyi_card_lock(card);
    (void)append_holders_locked(card);
    blyi_tally_append_memory(card->id);
    blyi_card_unlock(card);
}
