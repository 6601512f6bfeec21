/* SPDX-License-Identifier: Apache-2.0
 *
 * export_folded.c - stacks with a weight, outermost first, for flame graphs: bytes of card memory
 * live at the peak, live at the end, or allocated altogether.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace_convert.h"
#include "trace_live.h"

struct group { /* of blocks of one stack and range */
    struct group *next;
    uint64_t key;
    uint64_t live, at_peak, total;
    uint64_t epoch; /* the peak that at_peak belongs to; one that has not changed since is live */
    uint32_t site, stack, range, name;
    bool before;
};

struct fold {
    struct blyi_trace *trace;
    struct blyi_map groups;
    struct group *first;
    uint64_t live, peak, epoch;
};

static uint64_t key_of(const struct live_block *block)
{
    /* Distinct enough for a map; equal keys of different groups only join their lines. */
    uint64_t key = (uint64_t)block->is.stack << 32 | block->is.site;
    key = (key ^ (uint64_t)block->range * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    key ^= (uint64_t)block->name << 20;
    return key ^ (block->is.flags & BLYI_TRACE_BEFORE);
}

static struct group *group_of(struct fold *fold, const struct live_block *block)
{
    uint64_t key = key_of(block);
    struct group *group = blyi_map_get(&fold->groups, key);
    if (group != NULL)
        return group;
    group = calloc(1, sizeof(*group));
    if (group == NULL || blyi_map_put(&fold->groups, key, group) != BLY_OK) {
        free(group);
        return NULL;
    }
    *group = (struct group){.next = fold->first,
                            .key = key,
                            .site = block->is.site,
                            .stack = block->is.stack,
                            .range = block->range,
                            .name = block->name,
                            .before = (block->is.flags & BLYI_TRACE_BEFORE) != 0};
    return fold->first = group;
}

static void keep_peak(const struct fold *fold, struct group *group)
{
    if (group->epoch != fold->epoch) {
        group->at_peak = group->live;
        group->epoch = fold->epoch;
    }
}

static bool is_card(const struct live_block *block)
{
    return block->is.class_ != BLYI_TRACE_PINNED_BLOCK && block->is.card != 0xff;
}

static bool made(struct fold *fold, const struct live_block *block)
{
    struct group *group = is_card(block) ? group_of(fold, block) : NULL;
    if (group == NULL)
        return !is_card(block);
    keep_peak(fold, group);
    group->live += block->is.asked;
    group->total += block->is.asked;
    fold->live += block->is.asked;
    if (fold->live > fold->peak) {
        fold->peak = fold->live;
        fold->epoch++;
    }
    return true;
}

static void ended(struct fold *fold, const struct live_block *block)
{
    struct group *group = is_card(block) ? group_of(fold, block) : NULL;
    if (group == NULL)
        return;
    keep_peak(fold, group);
    group->live -= block->is.asked;
    fold->live -= block->is.asked;
}

/* ── Lines ────────────────────────────────────────────────────────────────────────────────── */

static void put_frame(FILE *out, const char *text, bool first)
{
    if (!first)
        fputc(';', out);
    for (; *text != '\0'; text++)
        fputc(*text == ';' ? ':' : *text == '\n' || *text == '\r' ? ' ' : *text, out);
}

static void put_range(FILE *out, const struct blyi_trace *trace, uint32_t id)
{
    uint32_t path[64], n = 0;
    struct blyi_trace_range range;
    for (; n < BLYI_COUNT(path) && blyi_trace_range(trace, id, &range); id = range.parent)
        path[n++] = range.name;
    while (n > 0) {
        fputc(';', out);
        put_frame(out, blyi_trace_name(trace, path[--n]), true);
    }
}

static void put_group(FILE *out, const struct blyi_trace *trace, const struct group *group,
                      uint64_t weight)
{
    const char *program = blyi_trace_info(trace)->program, *slash = strrchr(program, '/');
    char text[BLYI_TRACE_SITE_TEXT];
    size_t n;
    const uint32_t *sites = blyi_trace_stack(trace, group->stack, &n);
    put_frame(out, slash ? slash + 1 : program, true);
    put_range(out, trace, group->range);
    if (n == 0 && group->before)
        put_frame(out, "made before recording, site unknown", false);
    else if (n == 0 && group->site == 0 && group->name != 0)
        put_frame(out, blyi_trace_name(trace, group->name), false);
    else if (n == 0)
        put_frame(out, blyi_trace_site_text(trace, group->site, text), false);
    while (n > 0)
        put_frame(out, blyi_trace_site_text(trace, sites[--n], text), false);
    fprintf(out, " %" PRIu64 "\n", weight);
}

static uint64_t weight_of(const struct fold *fold, const struct group *group,
                          enum export_weight weight)
{
    if (weight == WEIGHT_TOTAL)
        return group->total;
    if (weight == WEIGHT_LEAKED)
        return group->live;
    return group->epoch == fold->epoch ? group->at_peak : group->live;
}

static bool walk(struct fold *fold)
{
    struct live live;
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    bool ok = live_begin(&live, fold->trace);
    for (struct blyi_tree_node *node = blyi_tree_first(&live.blocks); ok && node != NULL;
         node = blyi_tree_next(node))
        ok = made(fold, live_block_of(node));
    while (ok && blyi_trace_next(fold->trace, &event)) {
        ok = live_step(&live, &event, &change, &block);
        if (ok && change == LIVE_MADE)
            ok = made(fold, block);
        if (change == LIVE_ENDED) {
            ended(fold, block);
            free(block);
        }
    }
    live_end(&live);
    return ok && blyi_trace_status(fold->trace) == BLY_OK;
}

/* Heaviest first, so that the order is the same in every run. */
static int by_weight(const void *a, const void *b)
{
    const struct group *const *x = a, *const *y = b;
    if ((*x)->at_peak != (*y)->at_peak)
        return (*x)->at_peak > (*y)->at_peak ? -1 : 1;
    return (*x)->key < (*y)->key ? -1 : (*x)->key > (*y)->key;
}

static bool print(struct fold *fold, enum export_weight weight, FILE *out)
{
    struct group **all = malloc((fold->groups.count + 1) * sizeof(struct group *));
    size_t n = 0;
    if (all == NULL)
        return false;
    for (struct group *group = fold->first; group != NULL; group = group->next) {
        group->at_peak = weight_of(fold, group, weight);
        if (group->at_peak > 0)
            all[n++] = group;
    }
    qsort(all, n, sizeof(struct group *), by_weight);
    for (size_t i = 0; i < n; i++)
        put_group(out, fold->trace, all[i], all[i]->at_peak);
    free(all);
    return true;
}

bly_status export_folded(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct fold fold = {.trace = trace, .epoch = 1};
    blyi_map_init(&fold.groups);
    bool ok = walk(&fold) && print(&fold, opts->weight, out);
    while (fold.first != NULL) {
        struct group *group = fold.first;
        fold.first = group->next;
        free(group);
    }
    blyi_map_fini(&fold.groups);
    return ok ? BLY_OK : export_no_memory(trace);
}
