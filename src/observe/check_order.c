/* SPDX-License-Identifier: Apache-2.0
 *
 * check_order.c - who is behind whom: streams, events, notifies, words, callbacks, the host.
 */
#include "observe/check_inside.h"

#include "base/assert.h"
#include "base/host.h"

static void join(struct blyi_check *check, struct blyi_vc *to, const struct blyi_vc *from)
{
    if (!blyi_vc_join(to, from))
        blyi_check_stop(check);
}

/* ── The host ─────────────────────────────────────────────────────────────────────────────── */

void blyi_host_clock_unref(struct blyi_host_clock *clock)
{
    if (--clock->refs > 0)
        return;
    blyi_vc_fini(&clock->vc);
    blyi_host_free(clock);
}

static void host_changed(struct blyi_check *check)
{
    if (check->host_now != NULL)
        blyi_host_clock_unref(check->host_now);
    check->host_now = NULL;
}

void blyi_host_learns(struct blyi_check *check, const struct blyi_vc *vc)
{
    bool changed = false;
    if (!blyi_vc_join_streams(&check->host, vc, &changed))
        blyi_check_stop(check);
    if (changed)
        host_changed(check);
}

struct blyi_host_clock *blyi_host_clock(struct blyi_check *check)
{
    struct blyi_host_clock *clock = check->host_now;
    if (clock == NULL) {
        clock = blyi_host_calloc(1, sizeof(*clock));
        if (clock == NULL) {
            blyi_check_stop(check);
            return NULL;
        }
        clock->refs = 1;
        join(check, &clock->vc, &check->host);
        check->host_now = clock;
    }
    clock->refs++;
    return clock;
}

/* ── Tasks ────────────────────────────────────────────────────────────────────────────────── */

void blyi_order_submitted(struct blyi_check *check, const struct blyi_check_stream *stream,
                          struct blyi_check_task *task, const struct blyi_probe *probe)
{
    if (!stream->is_line) { /* else the run was submitted, not its tasks */
        task->tick = blyi_vc_get(&check->host, 0);
        task->host = blyi_host_clock(check);
        task->moment = ++check->moment;
    }
    task->legacy = probe->aux == 1;
    task->event = probe->event;
    task->joins_all = (probe->kind == BLYI_PROBE_INDIRECT && probe->aux == 1) ||
                      ((probe->kind == BLYI_PROBE_WAIT || probe->kind == BLYI_PROBE_NOTIFY_WAIT) &&
                       probe->aux == 2);
    if (probe->kind == BLYI_PROBE_RECORD) {
        struct blyi_check_event *event = blyi_check_event(check, blyi_event_key(probe->event));
        if (event != NULL)
            task->mark = blyi_mark_add(check, event, probe->stream, probe->task);
    } else if (probe->kind == BLYI_PROBE_WAIT && !task->legacy && probe->other != 0) {
        task->waits_for = (uint32_t)probe->other;
        task->waits_task = probe->asked;
        task->mark = blyi_mark_find(blyi_map_get(&check->events, blyi_event_key(probe->event)),
                                    task->waits_for, probe->asked);
        if (task->mark != NULL)
            task->mark->refs++;
    }
}

static uint64_t clock_of(const struct blyi_check_stream *stream, const struct blyi_check_task *task)
{
    return stream->base + task->number;
}

void blyi_order_runs(struct blyi_check *check, struct blyi_check_stream *stream,
                     struct blyi_check_task *task)
{
    if (task->host != NULL && task->host != stream->joined) {
        join(check, &stream->vc, &task->host->vc);
        if (stream->joined != NULL)
            blyi_host_clock_unref(stream->joined);
        stream->joined = task->host;
        task->host = NULL;
    }
    uint64_t clock = clock_of(stream, task);
    if (!blyi_vc_raise(&stream->vc, 0, task->tick) ||
        !blyi_vc_raise(&stream->vc, BLYI_SLOT_MOMENT, task->moment) ||
        !blyi_vc_raise(&stream->vc, stream->slot, clock))
        blyi_check_stop(check);
    if (clock > check->slots[stream->slot].last)
        check->slots[stream->slot].last = clock;
}

/* The host as well, as it is now. */
static void join_host(struct blyi_check *check, struct blyi_vc *to)
{
    join(check, to, &check->host);
    if (!blyi_vc_raise(to, BLYI_SLOT_MOMENT, ++check->moment))
        blyi_check_stop(check);
}

/* Those that are gone as well: the host knows of them. */
static void join_every_stream(struct blyi_check *check, struct blyi_vc *to)
{
    join_host(check, to);
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->streams, &cursor, &key, &value))
        join(check, to, &((struct blyi_check_stream *)value)->vc);
}

/* What is not known is taken to be in order: a finding must be right. */
static void join_stream_id(struct blyi_check *check, struct blyi_vc *to, uint32_t id)
{
    struct blyi_check_stream *stream = blyi_map_get(&check->streams, id);
    if (stream != NULL)
        join(check, to, &stream->vc);
    /* One that is gone is behind the host. */
    join_host(check, to);
}

static void join_flag(struct blyi_check *check, struct blyi_vc *to, uint64_t key)
{
    if (check->has_unknown_signals)
        join_every_stream(check, to);
    struct blyi_check_event *event = blyi_map_get(&check->events, key);
    if (event != NULL)
        join(check, to, &event->flag);
    else
        join_every_stream(check, to);
}

struct writers {
    struct blyi_check *check;
    struct blyi_vc *to;
};

static void join_writer(void *arg, const struct blyi_epoch *epoch, bool write)
{
    const struct writers *writers = arg;
    if (!write)
        return;
    if (epoch->stream != 0)
        join_stream_id(writers->check, writers->to, epoch->stream);
    else
        join_host(writers->check, writers->to);
}

/* A word may have been changed by a signal, or by any work that writes there. */
static void join_word(struct blyi_check *check, struct blyi_vc *to, uint64_t address)
{
    struct blyi_check_event *word = blyi_map_get(&check->events, blyi_word_key(address));
    if (word != NULL)
        join(check, to, &word->flag);
    if (check->unknown > 0 || check->has_unknown_signals)
        join_every_stream(check, to);
    const struct blyi_area *area = blyi_area_find(check, address);
    if (area == NULL)
        return;
    if (area->shadow->is_shared)
        join_every_stream(check, to);
    uint64_t at = address - area->node.key;
    struct writers writers = {check, to};
    blyi_shadow_unknown(area->shadow, at, at + sizeof(uint64_t), to, join_writer, &writers);
}

/* A wait has passed: what it waited for came before. */
void blyi_order_waited(struct blyi_check *check, struct blyi_check_stream *stream,
                       struct blyi_check_task *task)
{
    if (task->joins_all || (task->graph == BLYI_INDIRECT_GRAPH && !task->has_lines)) {
        join_every_stream(check, &stream->vc);
        return;
    }
    if (task->mark == NULL && task->waits_for != 0) { /* a graph's record, told behind the wait */
        task->mark = blyi_mark_find(blyi_map_get(&check->events, blyi_event_key(task->event)),
                                    task->waits_for, task->waits_task);
        if (task->mark != NULL)
            task->mark->refs++;
    }
    switch ((enum blyi_probe_kind)task->kind) {
    case BLYI_PROBE_WAIT:
        if (task->legacy)
            join_flag(check, &stream->vc, blyi_event_key(task->event));
        else if (task->mark != NULL && task->mark->has_run)
            join(check, &stream->vc, &task->mark->vc);
        else if (task->waits_for != 0 && task->mark == NULL) /* of a graph, or not recorded */
            join_every_stream(check, &stream->vc);
        else if (task->waits_for != 0)
            join_stream_id(check, &stream->vc, task->waits_for);
        break;
    case BLYI_PROBE_NOTIFY_WAIT:
        join_flag(check, &stream->vc, blyi_notify_key(task->event));
        break;
    case BLYI_PROBE_VALUE_WAIT:
        join_word(check, &stream->vc, task->word);
        break;
    case BLYI_PROBE_INDIRECT:
        if (task->has_lines)
            join(check, &stream->vc, &stream->arrived);
        break;
    default:
        break;
    }
}

/* What others learn of a task's end. */
void blyi_order_ended(struct blyi_check *check, struct blyi_check_stream *stream,
                      struct blyi_check_task *task)
{
    if (task->kind == BLYI_PROBE_RECORD && task->mark != NULL) {
        join(check, &task->mark->vc, &stream->vc);
        task->mark->has_run = true;
    } else if (task->kind == BLYI_PROBE_CALLBACK) {
        /* The stream may have waited for user code, which is the host's. */
        join(check, &stream->vc, &check->host);
    }
}

static uint64_t signal_key(const struct blyi_check_task *task)
{
    switch ((enum blyi_probe_kind)task->kind) {
    case BLYI_PROBE_RECORD:
        return blyi_event_key(task->event);
    case BLYI_PROBE_NOTIFY_RECORD:
        return blyi_notify_key(task->event);
    case BLYI_PROBE_VALUE_WRITE:
        return blyi_word_key(task->word);
    default:
        return 0;
    }
}

void blyi_order_signal(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    struct blyi_check_task *task = stream != NULL ? blyi_task_find(stream, probe->task) : NULL;
    uint64_t key = task != NULL ? signal_key(task) : 0;
    if (task == NULL)
        check->has_unknown_signals = true;
    if (key == 0)
        return;
    /* An event that is gone has nobody who will wait for it. */
    struct blyi_check_event *event = task->kind == BLYI_PROBE_RECORD
                                         ? blyi_map_get(&check->events, key)
                                         : blyi_check_event(check, key);
    blyi_order_runs(check, stream, task);
    if (event != NULL)
        join(check, &event->flag, &stream->vc);
}

static void host_learns_all(struct blyi_check *check)
{
    struct blyi_vc all = {NULL, 0, 0};
    join_every_stream(check, &all);
    blyi_host_learns(check, &all);
    blyi_vc_fini(&all);
}

/* User code of a stream begins: it is the host's, behind what the stream did before. */
void blyi_order_callback(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    struct blyi_check_task *task = stream != NULL ? blyi_task_find(stream, probe->task) : NULL;
    if (stream == NULL)
        return;
    if (task != NULL)
        blyi_order_runs(check, stream, task);
    blyi_host_learns(check, &stream->vc);
    if (task == NULL && probe->task != 0) /* of a graph */
        host_learns_all(check);
}

void blyi_order_stream_sync(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_map_get(&check->streams, probe->stream);
    if (stream != NULL)
        blyi_host_learns(check, &stream->vc);
}

void blyi_order_event_sync(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_event *event = blyi_map_get(&check->events, blyi_event_key(probe->event));
    struct blyi_mark *mark = blyi_mark_find(event, (uint32_t)probe->other, probe->asked);
    if (probe->aux == 2 || event == NULL) {
        host_learns_all(check);
    } else if (mark != NULL && mark->has_run) {
        blyi_host_learns(check, &mark->vc);
    } else {
        struct blyi_check_stream *stream = blyi_map_get(&check->streams, probe->other);
        if (stream != NULL)
            blyi_host_learns(check, &stream->vc);
    }
}

void blyi_order_fini(struct blyi_check *check)
{
    blyi_streams_fini(check);
    host_changed(check);
    blyi_vc_fini(&check->host);
}
