/* SPDX-License-Identifier: Apache-2.0 */
#include "npu/told.h"

#include "npu/card.h"
#include "npu/copy.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/memory.h"
#include "npu/notify.h"
#include "npu/queue.h"
#include "npu/stream.h"
#include "npu/task.h"

static uint32_t place_bits(const void *address, uint32_t card, uint32_t pinned)
{
    switch (blyi_place_of(address, NULL)) {
    case BLYI_PLACE_CARD:
        return card;
    case BLYI_PLACE_PINNED:
        return pinned;
    case BLYI_PLACE_HOST:
        break;
    }
    return 0;
}

static uint32_t places(const void *dst, const void *src)
{
    uint32_t bits = place_bits(dst, BLYI_DST_CARD, BLYI_DST_PINNED);
    return src != NULL ? bits | place_bits(src, BLYI_SRC_CARD, BLYI_SRC_PINNED) : bits;
}

static struct blyi_probe begin(enum blyi_probe_kind kind, const struct blyi_stream *stream,
                               uint32_t site)
{
    struct blyi_probe probe = {.kind = kind, .card = -1, .site = site};
    if (stream != NULL) {
        probe.card = stream->card->id;
        probe.stream = stream->id;
    }
    return probe;
}

static void emit(struct blyi_probe *probe)
{
    if (blyi_probe_on(probe->kind))
        blyi_probe_emit_slow(probe);
}

static void put_copy(struct blyi_probe *probe, const void *dst, const void *src, uint64_t size)
{
    probe->kind = BLYI_PROBE_COPY;
    probe->address = (uintptr_t)dst;
    probe->other = (uintptr_t)src;
    probe->size = probe->asked = size;
    probe->page_kind = places(dst, src);
}

static void put_rows(struct blyi_probe *probe, const struct blyi_rows *rows)
{
    put_copy(probe, rows->dst, rows->src, rows->width * rows->height);
    probe->asked = rows->width;
    probe->rounded = rows->dpitch;
    probe->backed = rows->spitch;
}

static void put_set(struct blyi_probe *probe, const void *dst, uint64_t size)
{
    probe->kind = BLYI_PROBE_SET;
    probe->address = (uintptr_t)dst;
    probe->size = probe->asked = size;
    probe->page_kind = places(dst, NULL);
}

static void put_value(struct blyi_probe *probe, enum blyi_probe_kind kind, const void *address)
{
    probe->kind = kind;
    probe->address = (uintptr_t)address;
    probe->size = probe->asked = sizeof(uint64_t);
}

static void put_event(struct blyi_probe *probe, const struct blyi_task *task)
{
    const struct blyi_event *event = task->u.event.event;
    probe->event = event->id;
    if (task->kind == BLYI_TASK_RECORD) {
        probe->kind = BLYI_PROBE_RECORD;
        probe->aux = !event->modern;
    } else if (task->kind == BLYI_TASK_RESET) {
        probe->kind = BLYI_PROBE_EVENT_RESET;
    } else {
        probe->kind = BLYI_PROBE_WAIT;
        probe->aux = event->signal != NULL ? 2 : !event->modern;
        if (task->u.event.of != 0) {
            probe->other = task->u.event.of;
            probe->asked = task->u.event.position + 1;
        }
    }
}

static void tell_kernel(struct blyi_probe *probe, const struct blyi_task *task)
{
    const struct blyi_launch *launch = task->u.kernel.launch;
    for (int i = 0; i < launch->n_ranges && blyi_probe_on(BLYI_PROBE_KERNEL_RANGE); i++) {
        const bly_range *range = &launch->ranges[i];
        struct blyi_probe of = *probe;
        if (range->size == 0)
            continue;
        of.kind = BLYI_PROBE_KERNEL_RANGE;
        of.address = (uintptr_t)range->address;
        of.size = of.asked = range->size;
        of.aux = range->access & BLYI_RANGE_ACCESS;
        blyi_probe_emit_slow(&of);
    }
    probe->kind = BLYI_PROBE_KERNEL;
    probe->address = (uintptr_t)launch->fn;
    probe->size = probe->asked = launch->args_size;
    probe->aux = launch->engine;
}

void blyi_task_tell(const struct blyi_stream *stream, const struct blyi_task *task,
                    uint64_t position)
{
    struct blyi_probe probe = begin(BLYI_PROBE_COPY, stream, task->site);
    probe.task = position + 1;
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_NOP:
    case BLYI_TASK_RETIRE:
    case BLYI_TASK_NODE: /* told as what it becomes */
    case BLYI_TASK_FEED:
    case BLYI_TASK_DONE:
    case BLYI_TASK_MARK:
    case BLYI_TASK_END:
        return;
    case BLYI_TASK_COPY:
        put_copy(&probe, task->u.copy.dst, task->u.copy.src, task->u.copy.size);
        break;
    case BLYI_TASK_COPY2D:
        put_rows(&probe, &(struct blyi_rows){task->u.copy2d.dst, task->u.copy2d.dpitch,
                                             task->u.copy2d.src, task->u.copy2d.spitch,
                                             task->u.copy2d.width, task->u.copy2d.height});
        break;
    case BLYI_TASK_REDUCE:
        put_copy(&probe, task->u.reduce.dst, task->u.reduce.src, task->u.reduce.size);
        probe.aux = 1;
        break;
    case BLYI_TASK_COPY_INDIRECT:
        probe.kind = BLYI_PROBE_INDIRECT;
        break;
    case BLYI_TASK_SET:
        put_set(&probe, task->u.set.dst, task->u.set.size);
        break;
    case BLYI_TASK_RECORD:
    case BLYI_TASK_WAIT:
    case BLYI_TASK_RESET:
        put_event(&probe, task);
        break;
    case BLYI_TASK_HOST_FUNC:
    case BLYI_TASK_CALLBACK:
        probe.kind = BLYI_PROBE_CALLBACK;
        break;
    case BLYI_TASK_KERNEL:
        tell_kernel(&probe, task);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
    case BLYI_TASK_NOTIFY_WAIT:
        probe.kind = task->kind == BLYI_TASK_NOTIFY_RECORD ? BLYI_PROBE_NOTIFY_RECORD
                                                           : BLYI_PROBE_NOTIFY_WAIT;
        probe.event = task->u.notify.notify->id;
        if (__atomic_load_n(&task->u.notify.notify->signal, __ATOMIC_RELAXED) != NULL)
            probe.aux = 2; /* shared by processes */
        break;
    case BLYI_TASK_VALUE_WRITE:
        put_value(&probe, BLYI_PROBE_VALUE_WRITE, task->u.value.address);
        break;
    case BLYI_TASK_VALUE_WAIT:
        put_value(&probe, BLYI_PROBE_VALUE_WAIT, task->u.value.address);
        break;
    case BLYI_TASK_GRAPH:
        probe.kind = BLYI_PROBE_INDIRECT;
        probe.aux = BLYI_INDIRECT_GRAPH;
        break;
    case BLYI_TASK_BODY:
        probe.kind = BLYI_PROBE_INDIRECT;
        probe.aux = BLYI_INDIRECT_BODY;
        break;
    case BLYI_TASK_UPDATE:
    case BLYI_TASK_JUMP:
    case BLYI_TASK_SWITCH:
    case BLYI_TASK_ACTIVATE:
        probe.kind = BLYI_PROBE_INDIRECT;
        probe.aux = BLYI_INDIRECT_NONE;
        break;
    }
    emit(&probe);
}

void blyi_task_tell_stale(const struct blyi_stream *stream, const struct blyi_task *task,
                          const void *at)
{
    enum blyi_probe_kind work = task->kind == BLYI_TASK_KERNEL ? BLYI_PROBE_KERNEL
                                : task->kind == BLYI_TASK_SET  ? BLYI_PROBE_SET
                                : task->kind == BLYI_TASK_COPY || task->kind == BLYI_TASK_COPY2D ||
                                        task->kind == BLYI_TASK_REDUCE
                                    ? BLYI_PROBE_COPY
                                    : BLYI_PROBE_INDIRECT;
    BLYI_PROBE(STALE_USE, .card = stream->card->id, .stream = stream->id,
               .task = blyi_queue_completed(stream) + 1, .address = (uintptr_t)at,
               .site = task->site, .aux = work, .page_kind = task->kind == BLYI_TASK_REDUCE);
}

void blyi_task_tell_signal(const struct blyi_stream *stream)
{
    BLYI_PROBE(SIGNAL, .card = stream->card->id, .stream = stream->id,
               .task = blyi_queue_completed(stream) + 1);
}

void blyi_task_tell_callback(const struct blyi_stream *stream, bool held)
{
    BLYI_PROBE(CALLBACK_RUN, .card = stream->card->id, .stream = stream->id,
               .task = held ? blyi_queue_completed(stream) + 1 : 0);
}

void blyi_copy_tell(const struct blyi_stream *stream, const void *dst, const void *src,
                    uint64_t size, uint32_t site)
{
    if (likely(!blyi_probe_on(BLYI_PROBE_COPY)))
        return;
    struct blyi_probe probe = begin(BLYI_PROBE_COPY, stream, site);
    put_copy(&probe, dst, src, size);
    blyi_probe_emit_slow(&probe);
}

void blyi_set_tell(const struct blyi_stream *stream, const void *dst, uint64_t size, uint32_t site)
{
    if (likely(!blyi_probe_on(BLYI_PROBE_SET)))
        return;
    struct blyi_probe probe = begin(BLYI_PROBE_SET, stream, site);
    put_set(&probe, dst, size);
    blyi_probe_emit_slow(&probe);
}

void blyi_rows_tell(const struct blyi_stream *stream, const struct blyi_rows *rows, uint32_t site)
{
    if (likely(!blyi_probe_on(BLYI_PROBE_COPY)))
        return;
    struct blyi_probe probe = begin(BLYI_PROBE_COPY, stream, site);
    put_rows(&probe, rows);
    blyi_probe_emit_slow(&probe);
}

void blyi_line_tell_begin(const struct blyi_line *line, const struct blyi_stream *by)
{
    BLYI_PROBE(LINE_BEGIN, .card = line->stream->card->id, .stream = line->stream->id,
               .event = line->graph->id, .other = by->id, .asked = blyi_queue_completed(by) + 1);
}

void blyi_line_tell_end(const struct blyi_line *line, const struct blyi_stream *runner)
{
    BLYI_PROBE(LINE_END, .card = line->stream->card->id, .stream = line->stream->id,
               .event = line->graph->id, .other = runner->id);
}
