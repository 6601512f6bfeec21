/* SPDX-License-Identifier: Apache-2.0
 *
 * check_work.c - tasks from submission to end, and calls that work at once.
 */
#include "observe/check_work.h"

#include <inttypes.h>
#include <stdio.h>

/* ── Work at once ─────────────────────────────────────────────────────────────────────────── */

static void work_now(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_map_get(&check->streams, probe->stream);
    if (stream != NULL) /* behind all that the stream was given */
        blyi_host_learns(check, &stream->vc);
    check->last_now = *probe;
    uint64_t tick = blyi_vc_get(&check->host, 0) + 1;
    struct blyi_epoch who = {.clock = tick, .site = probe->site, .work = blyi_work_of(probe)};
    struct blyi_check_task *task = blyi_task_take(check);
    if (task == NULL || !blyi_vc_raise(&check->host, 0, tick)) {
        blyi_check_stop(check);
        return;
    }
    if (probe->kind == BLYI_PROBE_COPY) {
        task->has_fault = !blyi_use_copy(check, task, probe, &who);
    } else {
        task->n_ranges = 1;
        task->has_fault =
            !blyi_use_resolve(check, task, 0, probe->address, probe->size, BLYI_USE_WRITE, &who);
    }
    task->kind = (uint8_t)probe->kind;
    task->places = (uint8_t)probe->page_kind;
    if (!task->has_fault)
        blyi_access_all(check, task, &who, &check->host);
    else
        blyi_access_none(check, task);
    blyi_task_release(check, task);
}

/* ── Sources ──────────────────────────────────────────────────────────────────────────────── */

/* Since when the source is looked at: the task's submission, or that of its graph's run. */
struct since {
    uint64_t moment, n_done, unknown_done;
};

static struct since since_of(const struct blyi_check_stream *stream,
                             const struct blyi_check_task *task)
{
    if (stream->is_line)
        return (struct since){stream->run_moment, stream->run_done, stream->run_unknown_done};
    return (struct since){task->moment, task->n_done, task->unknown_done};
}

/* Work may write the source in good order before the copy; only the rest was the host. */
static bool was_written_by_work(const struct blyi_check *check, const struct since *since,
                                const struct blyi_use_range *source)
{
    const struct blyi_epoch host = {.slot = 0};
    if ((check->n_graphs > 0 && !check->tells_lines) || check->unknown != check->unknown_done ||
        since->unknown_done != check->unknown_done)
        return true;
    return blyi_shadow_written_since(source->area->shadow, source->lo - source->area->node.key,
                                     source->hi - source->area->node.key, since->n_done) ||
           blyi_access_is_awaited(check, source, &host);
}

/* The host may have written it in good order: before something that the stream has waited for
 * since, or in user code that was given the block. */
static bool was_written_in_order(const struct blyi_check_stream *stream, const struct since *since,
                                 const struct blyi_area *area)
{
    return blyi_vc_get(&stream->vc, BLYI_SLOT_MOMENT) > since->moment || area->n_users > 0 ||
           area->used_until > since->moment;
}

void blyi_work_source_changed(struct blyi_check *check, const struct blyi_probe *probe)
{
    const struct blyi_check_stream *stream = blyi_map_get(&check->streams, probe->stream);
    struct blyi_check_task *task = stream != NULL ? blyi_task_find(stream, probe->task) : NULL;
    if (task == NULL || task->n_ranges != 2 || !blyi_use_is_live(&task->range[1]))
        return;
    const struct since since = since_of(stream, task);
    if (was_written_by_work(check, &since, &task->range[1]) ||
        was_written_in_order(stream, &since, task->range[1].area))
        return;
    uint64_t start = task->range[1].lo;
    char where[BLYI_STREAM_TEXT];
    struct blyi_finding finding = {.kind = BLYI_FINDING_PINNED_CHANGED,
                                   .card = probe->card,
                                   .address = probe->address,
                                   .bytes = probe->size};
    snprintf(finding.message, sizeof(finding.message),
             "source of copy #%" PRIu64 " on %s changed between submit and run: %" PRIu64
             " byte%s in [%" PRIu64 ", %" PRIu64 ")",
             probe->task, blyi_stream_text(check, probe->stream, where), probe->size,
             probe->size == 1 ? "" : "s", probe->address - start, probe->other - start);
    char words[BLYI_FINDING_WORDS];
    snprintf(words, sizeof(words), "copy queued on stream %" PRIu32 " at", probe->stream);
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, probe->site, words);
    blyi_found_stream(&finding, probe->stream);
    blyi_found_area(&finding, task->range[1].area);
    blyi_found(check, &finding, probe->site, task->range[1].area->site);
}

/* ── From probes ──────────────────────────────────────────────────────────────────────────── */

void blyi_work_submitted(struct blyi_check *check, const struct blyi_probe *probe)
{
    if (probe->task == 0) {
        if (probe->kind == BLYI_PROBE_COPY || probe->kind == BLYI_PROBE_SET)
            work_now(check, probe);
        return;
    }
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    struct blyi_check_task *task = stream != NULL ? blyi_task_for(check, stream, probe) : NULL;
    if (task == NULL)
        return;
    const struct blyi_epoch who = {.task = probe->task,
                                   .slot = stream->slot,
                                   .stream = probe->stream,
                                   .site = probe->site,
                                   .work = blyi_work_of(probe)};
    if (probe->kind == BLYI_PROBE_KERNEL_RANGE)
        blyi_use_kernel(check, task, probe, &who);
    else
        blyi_task_fill(check, stream, task, probe, &who);
}

static void end(struct blyi_check *check, struct blyi_check_stream *stream,
                struct blyi_check_task *task, bool has_run)
{
    blyi_order_runs(check, stream, task);
    blyi_order_waited(check, stream, task);
    if (has_run && !task->is_dropped && !task->has_fault && task->is_told) {
        const struct blyi_epoch who = {.clock = stream->base + task->number,
                                       .when = check->n_done,
                                       .task = task->number,
                                       .slot = stream->slot,
                                       .stream = stream->id,
                                       .site = task->site,
                                       .work = task->work};
        blyi_access_all(check, task, &who, &stream->vc);
    } else {
        blyi_access_none(check, task);
    }
    if (!task->is_dropped)
        blyi_order_ended(check, stream, task);
    check->n_done++;
    blyi_check_graph_forgotten(check, task);
    if (task->is_told && blyi_task_is_unknown(task))
        check->unknown_done++;
}

static void found_foreign(struct blyi_check *check, const struct blyi_probe *probe,
                          const struct blyi_area *area, const struct blyi_epoch *who)
{
    char what[BLYI_AREA_TEXT];
    struct blyi_finding finding = {.kind = BLYI_FINDING_WRONG_DEVICE,
                                   .card = probe->card,
                                   .address = probe->address,
                                   .bytes = probe->size};
    snprintf(finding.message, sizeof(finding.message),
             "%s by card %" PRId32 ", which has no access to card %" PRId64 ": the %s",
             blyi_work_text(who->work), probe->card, probe->aux, blyi_area_text(area, what));
    blyi_found_who(check, &finding, who);
    blyi_found_area(&finding, area);
    blyi_found(check, &finding, who->site, area->site);
}

static bool is_in(const struct blyi_probe *probe, uint64_t lo, uint64_t size)
{
    return probe->address - lo < size;
}

void blyi_work_refused(struct blyi_check *check, const struct blyi_probe *probe)
{
    const struct blyi_area *area = blyi_area_find(check, probe->address);
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (area != NULL && blyi_map_next(&check->streams, &cursor, &key, &value)) {
        const struct blyi_check_stream *stream = value;
        struct blyi_check_task *task = stream->first; /* the one that runs */
        for (uint32_t i = 0;
             task != NULL && stream->card == probe->card && i < blyi_task_ranges(task); i++) {
            const struct blyi_use_range *range = blyi_task_range(task, i);
            if (range->area != area || !is_in(probe, range->lo, range->hi - range->lo))
                continue;
            const struct blyi_epoch who = {.task = task->number,
                                           .slot = stream->slot,
                                           .stream = stream->id,
                                           .site = task->site,
                                           .work = task->work};
            found_foreign(check, probe, area, &who);
            return;
        }
    }
    const struct blyi_probe *now = &check->last_now;
    if (area != NULL && (is_in(probe, now->address, now->size) ||
                         (now->kind == BLYI_PROBE_COPY && is_in(probe, now->other, now->size)))) {
        const struct blyi_epoch who = {.site = now->site, .work = blyi_work_of(now)};
        found_foreign(check, probe, area, &who);
    }
}

/* Tasks before it that were never told to have ended have ended as well. */
void blyi_work_done(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_map_get(&check->streams, probe->stream);
    while (stream != NULL && stream->first != NULL && stream->first->number <= probe->task &&
           check->stopped == NULL) {
        struct blyi_check_task *task = stream->first;
        task->is_dropped = task->number == probe->task && probe->page_kind == 1;
        end(check, stream, task, task->number == probe->task && probe->aux == BLY_OK);
        stream->first = task->next;
        if (stream->first == NULL)
            stream->last = NULL;
        stream->n_tasks--;
        blyi_frees_due(check, stream, stream->first != NULL ? task->number : UINT64_MAX);
        blyi_task_release(check, task);
    }
}
