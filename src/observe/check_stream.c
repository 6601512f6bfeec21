/* SPDX-License-Identifier: Apache-2.0
 *
 * check_stream.c - records of streams, and of events with their last records.
 */
#include "observe/check_inside.h"

#include "base/host.h"
#include "observe/check_leak.h"

/* ── Streams ──────────────────────────────────────────────────────────────────────────────── */

/* A component that no stream has; its clock goes on. */
static bool take_slot(struct blyi_check *check, uint32_t *slot)
{
    for (uint32_t i = 1; i < check->n_slots; i++) {
        if (!check->slots[i].is_used) {
            check->slots[i].is_used = true;
            *slot = i;
            return true;
        }
    }
    if (check->n_slots == check->slots_room) {
        uint32_t room = check->slots_room > 0 ? 2 * check->slots_room : 16;
        struct blyi_slot *slots = blyi_host_realloc(check->slots, room * sizeof(*slots));
        if (slots == NULL)
            return false;
        check->slots = slots;
        check->slots_room = room;
    }
    while (check->n_slots <= BLYI_SLOT_MOMENT) /* the host's */
        check->slots[check->n_slots++] = (struct blyi_slot){0, true};
    check->slots[check->n_slots] = (struct blyi_slot){0, true};
    *slot = check->n_slots++;
    return true;
}

struct blyi_check_stream *blyi_check_stream(struct blyi_check *check, uint32_t id, int32_t card)
{
    struct blyi_check_stream *stream = blyi_map_get(&check->streams, id);
    if (stream != NULL || id == 0)
        return stream;
    stream = blyi_host_calloc(1, sizeof(*stream));
    if (stream == NULL || !take_slot(check, &stream->slot) ||
        blyi_map_put(&check->streams, id, stream) != BLY_OK) {
        blyi_host_free(stream);
        blyi_check_stop(check);
        return NULL;
    }
    stream->id = id;
    stream->card = card;
    stream->base = check->slots[stream->slot].last;
    return stream;
}

void blyi_stream_made(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_check_stream(check, probe->stream, probe->card);
    if (stream == NULL)
        return;
    stream->site = probe->site;
    stream->is_default = probe->aux != 0;
    stream->is_made = true;
}

static void stream_free(struct blyi_check *check, struct blyi_check_stream *stream)
{
    while (stream->first != NULL) {
        struct blyi_check_task *task = stream->first;
        stream->first = task->next;
        blyi_check_graph_forgotten(check, task);
        blyi_task_release(check, task);
    }
    check->n_lines -= stream->is_line;
    blyi_frees_drop(stream);
    blyi_vc_fini(&stream->vc);
    blyi_vc_fini(&stream->arrived);
    if (stream->joined != NULL)
        blyi_host_clock_unref(stream->joined);
    blyi_host_free(stream);
}

/* Whoever ends a stream knows that its work has ended. */
void blyi_stream_gone(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *stream = blyi_map_remove(&check->streams, probe->stream);
    if (stream == NULL)
        return;
    if (probe->aux == 1)
        blyi_leak_stream(check, stream, true);
    blyi_host_learns(check, &stream->vc);
    check->slots[stream->slot].is_used = false;
    stream_free(check, stream);
}

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

void blyi_mark_unref(struct blyi_mark *mark)
{
    if (mark == NULL || --mark->refs > 0)
        return;
    blyi_vc_fini(&mark->vc);
    blyi_host_free(mark);
}

struct blyi_check_event *blyi_check_event(struct blyi_check *check, uint64_t key)
{
    struct blyi_check_event *event = blyi_map_get(&check->events, key);
    if (event != NULL)
        return event;
    event = blyi_host_calloc(1, sizeof(*event));
    if (event == NULL || blyi_map_put(&check->events, key, event) != BLY_OK) {
        blyi_host_free(event);
        blyi_check_stop(check);
        return NULL;
    }
    event->card = -1;
    return event;
}

static void event_free(struct blyi_check_event *event)
{
    for (uint32_t i = 0; i < event->n_marks; i++)
        blyi_mark_unref(event->marks[i]);
    blyi_vc_fini(&event->flag);
    blyi_host_free(event);
}

void blyi_event_gone(struct blyi_check *check, uint64_t key)
{
    struct blyi_check_event *event = blyi_map_remove(&check->events, key);
    if (event != NULL)
        event_free(event);
}

struct blyi_mark *blyi_mark_find(const struct blyi_check_event *event, uint32_t stream,
                                 uint64_t task)
{
    for (uint32_t i = event != NULL ? event->n_marks : 0; i-- > 0;)
        if (event->marks[i]->stream == stream && event->marks[i]->task == task)
            return event->marks[i];
    return NULL;
}

struct blyi_mark *blyi_mark_add(struct blyi_check *check, struct blyi_check_event *event,
                                uint32_t stream, uint64_t task)
{
    struct blyi_mark *mark = blyi_host_calloc(1, sizeof(*mark));
    if (mark == NULL) {
        blyi_check_stop(check);
        return NULL;
    }
    *mark = (struct blyi_mark){.refs = 2, .stream = stream, .task = task}; /* event's and task's */
    if (event->n_marks == BLYI_MARKS) {
        blyi_mark_unref(event->marks[0]);
        for (uint32_t i = 1; i < BLYI_MARKS; i++)
            event->marks[i - 1] = event->marks[i];
        event->n_marks--;
    }
    event->marks[event->n_marks++] = mark;
    return mark;
}

void blyi_streams_fini(struct blyi_check *check)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->streams, &cursor, &key, &value))
        stream_free(check, value);
    cursor = 0;
    while (blyi_map_next(&check->events, &cursor, &key, &value))
        event_free(value);
    blyi_map_fini(&check->streams);
    blyi_map_fini(&check->events);
    blyi_host_free(check->slots);
    while (check->spare != NULL) {
        struct blyi_check_task *next = check->spare->next;
        blyi_host_free(check->spare);
        check->spare = next;
    }
}
