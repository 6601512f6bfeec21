/* SPDX-License-Identifier: Apache-2.0
 *
 * check_access.c - what work does to memory, entered when it ends.
 */
#include "observe/check_work.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS_MAX 4096 /* more rows than that are no evidence */

static bool writes_there(struct blyi_check_task *task, const struct blyi_use_range *range)
{
    for (uint32_t i = 0; i < blyi_task_ranges(task); i++) {
        const struct blyi_use_range *other = blyi_task_range(task, i);
        if (other->area == range->area && (other->access & BLYI_USE_WRITE) != 0 &&
            other->lo < range->hi && range->lo < other->hi)
            return true;
    }
    return false;
}

/* Queued work of other streams will write there, and may as well have come first: a race, which is
 * told when that work runs. */
bool blyi_access_is_awaited(const struct blyi_check *check, const struct blyi_use_range *range,
                            const struct blyi_epoch *who)
{
    if (range->area->refs < 2)
        return false;
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->streams, &cursor, &key, &value)) {
        const struct blyi_check_stream *stream = value;
        if (who->slot != 0 && stream->id == who->stream)
            continue;
        for (struct blyi_check_task *task = stream->first; task != NULL; task = task->next)
            if (writes_there(task, range))
                return true;
    }
    return false;
}

static bool tells_init(const struct blyi_check *check, const struct blyi_use_range *range,
                       bool is_unknown_itself)
{
    return range->area != NULL && !range->area->is_gone && range->area->shadow->tracks_init &&
           range->area->shadow->unknown + is_unknown_itself == check->unknown &&
           check->opts.complete;
}

static void found_unwritten(struct blyi_check *check, const struct blyi_use_range *range,
                            uint64_t bytes, const struct blyi_gap *first,
                            const struct blyi_epoch *who)
{
    char a[BLYI_AREA_TEXT];
    const struct blyi_area *area = range->area;
    struct blyi_finding finding = {.kind = BLYI_FINDING_UNINITIALISED_READ,
                                   .card = area->card,
                                   .address = area->node.key + first->lo,
                                   .bytes = bytes};
    snprintf(finding.message, sizeof(finding.message),
             "%s reads %" PRIu64 " bytes that nobody wrote, from 0x%" PRIx64 " on, of the %s",
             blyi_work_text(who->work), bytes, finding.address, blyi_area_text(area, a));
    blyi_found_detail(&finding,
                      "the first of them are [%" PRIu64 ", %" PRIu64 ") of the block; it reads "
                      "[%" PRIu64 ", %" PRIu64 ")\n",
                      first->lo, first->hi, range->lo - area->node.key, range->hi - area->node.key);
    blyi_found_who(check, &finding, who);
    blyi_found_area(&finding, area);
    if (blyi_check_graph_may_write(check, who->stream))
        blyi_check_graph_keep(check, &finding, who->site, area->site);
    else
        blyi_found(check, &finding, who->site, area->site);
}

static bool is_in_rows(const struct blyi_use_range *range)
{
    return range->pitch > range->width;
}

/* Unwritten bytes of all rows; of their gaps the first one alone. */
static uint64_t gaps_in_rows(const struct blyi_use_range *range, struct blyi_gap *first)
{
    uint64_t sum = 0, base = range->area->node.key;
    if (range->is_vague || (range->hi - range->lo) / range->pitch >= ROWS_MAX)
        return 0;
    for (uint64_t at = range->lo; at < range->hi; at += range->pitch) {
        struct blyi_gap gaps[BLYI_GAPS];
        uint64_t end = at + range->width < range->hi ? at + range->width : range->hi;
        uint32_t n = 0;
        uint64_t bytes = blyi_shadow_gaps(range->area->shadow, at - base, end - base, gaps, &n);
        if (bytes > 0 && sum == 0)
            *first = gaps[0];
        sum += bytes;
    }
    return sum;
}

/* Bytes that nobody wrote, before the access itself is entered. A copy from card to card hands them
 * on: `gaps` are of its source. Of rows they are not handed on. */
static uint32_t look_for_unwritten(struct blyi_check *check, const struct blyi_use_range *range,
                                   const struct blyi_epoch *who, const struct blyi_check_task *task,
                                   struct blyi_gap gaps[BLYI_GAPS])
{
    uint32_t n = 0;
    if ((range->access & BLYI_USE_READ) == 0 ||
        !tells_init(check, range, blyi_task_is_unknown(task)))
        return 0;
    uint64_t lo = range->lo - range->area->node.key, hi = range->hi - range->area->node.key;
    uint64_t bytes = is_in_rows(range) ? gaps_in_rows(range, gaps)
                                       : blyi_shadow_gaps(range->area->shadow, lo, hi, gaps, &n);
    if (bytes == 0)
        return 0;
    bool may_be_written = blyi_check_graph_may_write(check, who->stream);
    if (may_be_written && !blyi_check_graph_is_alone(check, who->stream))
        return 0;
    bool hands_on = who->work == BLYI_WORK_COPY && (task->places & BLYI_DST_CARD) != 0;
    bool is_fault = who->work == BLYI_WORK_COPY || who->work == BLYI_WORK_REDUCE ||
                    (who->work == BLYI_WORK_KERNEL && (range->access & BLYI_USE_WRITE) == 0 &&
                     bytes == hi - lo);
    if (!hands_on && is_fault && !blyi_access_is_awaited(check, range, who))
        found_unwritten(check, range, bytes, &gaps[0], who);
    return may_be_written ? 0 : n;
}

static void enter(struct blyi_check *check, const struct blyi_use_range *range, uint64_t lo,
                  uint64_t hi, const struct blyi_epoch *who, const struct blyi_vc *known,
                  struct blyi_conflict *conflicts, uint32_t *n)
{
    struct blyi_shadow *shadow = range->area->shadow;
    bool writes = (range->access & BLYI_USE_WRITE) != 0;
    uint64_t from = lo - range->area->node.key, to = hi - range->area->node.key;
    bool done;
    /* Words are signals; what the library does for itself is no access of the program's. */
    if (who->work == BLYI_WORK_VALUE || who->site == 0 || range->is_vague)
        done = !writes || blyi_shadow_fill(shadow, from, to, check->n_done);
    else
        done = blyi_shadow_access(shadow, from, to, who, known, writes, conflicts, n);
    if (!done)
        blyi_check_stop(check);
}

static void enter_rows(struct blyi_check *check, const struct blyi_use_range *range,
                       const struct blyi_epoch *who, const struct blyi_vc *known,
                       struct blyi_conflict *conflicts, uint32_t *n)
{
    if ((range->hi - range->lo) / range->pitch >= ROWS_MAX) {
        range->area->shadow->tracks_init = false;
        return;
    }
    for (uint64_t at = range->lo; at < range->hi && check->stopped == NULL; at += range->pitch) {
        uint64_t end = at + range->width < range->hi ? at + range->width : range->hi;
        enter(check, range, at, end, who, known, conflicts, n);
    }
}

static void access_range(struct blyi_check *check, const struct blyi_use_range *range,
                         const struct blyi_epoch *who, const struct blyi_vc *known)
{
    struct blyi_conflict conflicts[BLYI_CONFLICTS];
    struct blyi_epoch epoch = *who;
    uint32_t n = 0;
    epoch.area = range->area->id;
    blyi_born_check(check, range->area, who, (range->access & BLYI_USE_WRITE) != 0, known);
    if (is_in_rows(range) && !range->is_vague)
        enter_rows(check, range, &epoch, known, conflicts, &n);
    else
        enter(check, range, range->lo, range->hi, &epoch, known, conflicts, &n);
    for (uint32_t i = 0; i < n; i++)
        blyi_found_race(check, range->area, &epoch, (range->access & BLYI_USE_WRITE) != 0,
                        &conflicts[i]);
}

/* Bytes that a copy took from where nobody wrote are written by nobody at its other side. */
static void hand_on(struct blyi_check *check, const struct blyi_use_range *to,
                    const struct blyi_use_range *from, const struct blyi_gap *gaps, uint32_t n)
{
    if (!blyi_use_is_live(to) || to->pitch != 0 || !to->area->shadow->tracks_init)
        return;
    uint64_t base = to->lo - to->area->node.key, first = from->lo - from->area->node.key;
    uint64_t limit = to->hi - to->area->node.key;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t lo = base + gaps[i].lo - first, hi = base + gaps[i].hi - first;
        if (hi > limit)
            hi = limit;
        if (lo < hi && !blyi_shadow_unwrite(to->area->shadow, lo, hi))
            blyi_check_stop(check);
    }
}

void blyi_access_all(struct blyi_check *check, struct blyi_check_task *task,
                     const struct blyi_epoch *who, const struct blyi_vc *known)
{
    struct blyi_gap gaps[BLYI_GAPS];
    uint32_t n_gaps = 0;
    for (uint32_t i = 0; i < blyi_task_ranges(task); i++) {
        const struct blyi_use_range *range = blyi_task_range(task, i);
        struct blyi_gap of[BLYI_GAPS];
        uint32_t n = blyi_use_is_live(range) ? look_for_unwritten(check, range, who, task, of) : 0;
        if (i == 1 && task->kind == BLYI_PROBE_COPY) {
            n_gaps = n;
            for (uint32_t g = 0; g < n; g++)
                gaps[g] = of[g];
        }
    }
    for (uint32_t i = blyi_task_ranges(task); i-- > 0 && check->stopped == NULL;)
        if (blyi_use_is_live(blyi_task_range(task, i)))
            access_range(check, blyi_task_range(task, i), who, known);
    if (n_gaps > 0 && check->stopped == NULL)
        hand_on(check, &task->range[0], &task->range[1], gaps, n_gaps);
}

/* Work that had a fault, failed or was dropped: one fault is told once, so what it should have
 * written counts as written. */
void blyi_access_none(struct blyi_check *check, struct blyi_check_task *task)
{
    for (uint32_t i = 0; i < blyi_task_ranges(task); i++) {
        const struct blyi_use_range *range = blyi_task_range(task, i);
        if (!blyi_use_is_live(range) || (range->access & BLYI_USE_WRITE) == 0)
            continue;
        uint64_t base = range->area->node.key;
        if (!blyi_shadow_fill(range->area->shadow, range->lo - base, range->hi - base,
                              check->n_done))
            blyi_check_stop(check);
    }
}
