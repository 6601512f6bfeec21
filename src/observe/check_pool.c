/* SPDX-License-Identifier: Apache-2.0
 *
 * check_pool.c - memory in the order of streams: what may use it from when on, and until when.
 *
 * A block that was allocated on a stream is there for work behind what that stream had been given;
 * one that is freed on a stream is gone for all but work that comes before that moment. What the
 * stream knows then is known when the last task that it had been given ends, so a free is judged at
 * that end.
 */
#include "observe/check_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/host.h"

struct blyi_late_free {
    struct blyi_late_free *next;
    struct blyi_area *area;       /* referenced; out of its tree */
    struct blyi_host_clock *host; /* what the host knew; referenced */
    uint64_t task;                /* judged behind it */
    uint64_t tick;
    uint32_t site;
};

static void release(struct blyi_late_free *late)
{
    blyi_area_unref(late->area);
    if (late->host != NULL)
        blyi_host_clock_unref(late->host);
    blyi_host_free(late);
}

/* ── What is said ─────────────────────────────────────────────────────────────────────────── */

static void found_early_free(struct blyi_check *check, const struct blyi_check_stream *stream,
                             const struct blyi_late_free *late, const struct blyi_epoch *user,
                             bool writes)
{
    char size[BLYI_SIZE_TEXT], words[BLYI_FINDING_WORDS];
    const struct blyi_area *area = late->area;
    struct blyi_finding finding = {.kind = BLYI_FINDING_RACE,
                                   .card = area->card,
                                   .address = area->node.key,
                                   .bytes = area->size};
    snprintf(finding.message, sizeof(finding.message),
             "free on stream %" PRIu32 " not ordered after %s on stream %" PRIu32
             ": %s at 0x%" PRIx64,
             stream->id, writes ? "write" : "read", user->stream, blyi_size_text(area->size, size),
             area->node.key);
    snprintf(words, sizeof(words), "%s by %s on stream %" PRIu32 ", queued at",
             writes ? "write" : "read", blyi_work_text(user->work), user->stream);
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, user->site, words);
    blyi_finding_add_site(&finding, BLYI_ROLE_FREE, late->site, NULL);
    blyi_found_stream(&finding, stream->id);
    blyi_found_stream(&finding, user->stream);
    blyi_found_area(&finding, area);
    const struct blyi_area *now = blyi_area_find(check, area->node.key);
    if (now != NULL && now->site != 0)
        blyi_finding_add_site(&finding, BLYI_ROLE_OTHER, now->site, "the bytes given out again at");
    blyi_found_detail(&finding,
                      "missing: an event recorded on stream %" PRIu32 " behind task %" PRIu64
                      " and waited for on stream %" PRIu32 " before the free\n",
                      user->stream, user->task, stream->id);
    snprintf(finding.cure, sizeof(finding.cure),
             "record an event on stream %" PRIu32 " behind the last use and let stream %" PRIu32
             " wait for it before the free (aclrtRecordEvent, aclrtStreamWaitEvent)",
             user->stream, stream->id);
    blyi_found(check, &finding, late->site, user->site);
}

void blyi_born_check(struct blyi_check *check, const struct blyi_area *area,
                     const struct blyi_epoch *who, bool writes, const struct blyi_vc *known)
{
    char size[BLYI_SIZE_TEXT], words[BLYI_FINDING_WORDS];
    if (area->born_slot == 0 || area->born_slot == who->slot || who->site == 0 ||
        blyi_vc_get(known, area->born_slot) >= area->born_clock)
        return;
    struct blyi_finding finding = {.kind = BLYI_FINDING_RACE,
                                   .card = area->card,
                                   .address = area->node.key,
                                   .bytes = area->size};
    int n = snprintf(finding.message, sizeof(finding.message), "%s ", writes ? "write" : "read");
    char *to = finding.message + n;
    size_t room = sizeof(finding.message) - (size_t)n;
    if (who->slot == 0)
        n = snprintf(to, room, "by the host");
    else
        n = snprintf(to, room, "on stream %" PRIu32, who->stream);
    snprintf(to + n, room - (size_t)n,
             " not ordered after the allocation on stream %" PRIu32 ": %s at 0x%" PRIx64,
             area->born_stream, blyi_size_text(area->size, size), area->node.key);
    snprintf(words, sizeof(words), "%s by %s, %s at", writes ? "write" : "read",
             blyi_work_text(who->work), who->slot == 0 ? "called" : "queued");
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, who->site, words);
    blyi_found_stream(&finding, area->born_stream);
    blyi_found_stream(&finding, who->stream);
    blyi_found_area(&finding, area);
    snprintf(finding.cure, sizeof(finding.cure),
             "record an event on stream %" PRIu32
             " behind the allocation and wait for it before the first use elsewhere",
             area->born_stream);
    blyi_found(check, &finding, who->site, area->site);
}

/* ── Judging ──────────────────────────────────────────────────────────────────────────────── */

struct judge {
    struct blyi_check *check;
    const struct blyi_check_stream *stream;
    const struct blyi_late_free *late;
    bool found;
};

static void judge_epoch(void *arg, const struct blyi_epoch *epoch, bool write)
{
    struct judge *judge = arg;
    if (epoch->slot == 0 || epoch->stream == judge->stream->id || judge->found)
        return;
    judge->found = true; /* one fault, one finding */
    found_early_free(judge->check, judge->stream, judge->late, epoch, write);
}

static bool is_named(const struct blyi_area *area, uint32_t slot, uint64_t clock)
{
    for (uint32_t i = 0; i < area->n_uses; i++)
        if (area->uses[i].slot == slot && clock <= area->uses[i].clock)
            return true;
    return false;
}

/* Work of another stream that has not ended is none that the free comes behind. */
static void judge_queued(struct judge *judge)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    if (judge->late->area->refs < 2)
        return;
    while (!judge->found && blyi_map_next(&judge->check->streams, &cursor, &key, &value)) {
        const struct blyi_check_stream *stream = value;
        if (stream == judge->stream)
            continue;
        for (struct blyi_check_task *task = stream->first; task != NULL; task = task->next)
            for (uint32_t i = 0; i < blyi_task_ranges(task) && !task->is_dropped; i++) {
                const struct blyi_use_range *range = blyi_task_range(task, i);
                const struct blyi_epoch epoch = {.task = task->number,
                                                 .slot = stream->slot,
                                                 .stream = stream->id,
                                                 .site = task->site,
                                                 .work = task->work};
                if (range->area == judge->late->area && !task->has_fault && task->site != 0 &&
                    !is_named(range->area, stream->slot, stream->base + task->number))
                    judge_epoch(judge, &epoch, (range->access & BLYI_USE_WRITE) != 0);
            }
    }
}

static void judge_free(struct blyi_check *check, const struct blyi_check_stream *stream,
                       const struct blyi_late_free *late)
{
    struct judge judge = {check, stream, late, false};
    const struct blyi_area *area = late->area;
    struct blyi_vc known = {NULL, 0, 0};
    bool ok = blyi_vc_join(&known, &stream->vc) && blyi_vc_raise(&known, 0, late->tick) &&
              (late->host == NULL || blyi_vc_join(&known, &late->host->vc));
    for (uint32_t i = 0; i < area->n_uses && ok; i++)
        ok = blyi_vc_raise(&known, area->uses[i].slot, area->uses[i].clock);
    if (ok && late->site != 0) {
        judge_queued(&judge);
        blyi_shadow_unknown(area->shadow, 0, area->reach, &known, judge_epoch, &judge);
    }
    blyi_vc_fini(&known);
    if (!ok)
        blyi_check_stop(check);
}

void blyi_frees_due(struct blyi_check *check, struct blyi_check_stream *stream, uint64_t task)
{
    while (stream->frees != NULL && stream->frees->task <= task && check->stopped == NULL) {
        struct blyi_late_free *late = stream->frees;
        stream->frees = late->next;
        judge_free(check, stream, late);
        release(late);
    }
}

void blyi_frees_drop(struct blyi_check_stream *stream)
{
    while (stream->frees != NULL) {
        struct blyi_late_free *late = stream->frees;
        stream->frees = late->next;
        release(late);
    }
}

/* ── From probes ──────────────────────────────────────────────────────────────────────────── */

static uint64_t last_clock(const struct blyi_check *check, const struct blyi_check_stream *stream)
{
    return stream->last != NULL ? stream->base + stream->last->number
                                : check->slots[stream->slot].last;
}

void blyi_area_born(struct blyi_check *check, struct blyi_area *area,
                    const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    if (stream == NULL)
        return;
    area->born_slot = stream->slot;
    area->born_stream = stream->id;
    area->born_clock = last_clock(check, stream);
}

void blyi_area_used(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_area *area = blyi_area_find(check, probe->address);
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    if (area == NULL || stream == NULL)
        return;
    uint32_t i = 0;
    while (i < area->n_uses && area->uses[i].slot != stream->slot)
        i++;
    if (i == BLYI_AREA_USES) { /* no evidence any more */
        blyi_shadow_forget(area->shadow);
        return;
    }
    if (i == area->n_uses)
        area->n_uses++;
    area->uses[i].slot = stream->slot;
    area->uses[i].clock = last_clock(check, stream);
}

void blyi_free_ordered(struct blyi_check *check, struct blyi_area *area,
                       const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    struct blyi_late_free *late = stream != NULL ? blyi_host_calloc(1, sizeof(*late)) : NULL;
    if (late == NULL) {
        if (stream != NULL)
            blyi_check_stop(check);
        blyi_area_end(check, area, probe->site);
        return;
    }
    late->area = area;
    late->host = blyi_host_clock(check);
    late->tick = blyi_vc_get(&check->host, 0);
    late->task = stream->last != NULL ? stream->last->number : 0;
    late->site = probe->site;
    blyi_area_ref(area);
    blyi_area_end(check, area, probe->site);
    struct blyi_late_free **at = &stream->frees;
    while (*at != NULL)
        at = &(*at)->next;
    *at = late;
    if (stream->last == NULL)
        blyi_frees_due(check, stream, UINT64_MAX);
}
