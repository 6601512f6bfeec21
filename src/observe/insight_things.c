/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_things.c - what a history has besides memory: streams and their kin, refusals, marks,
 * how long calls took.
 */
#include "observe/insight_walk.h"

/* ── Streams, events and their kin ────────────────────────────────────────────────────────── */

static uint64_t thing_key(enum blyi_thing_kind kind, const struct blyi_probe *p, uint32_t id)
{
    return (uint64_t)kind << 48 | (uint64_t)(uint8_t)p->card << 32 | id;
}

void blyi_walk_thing(struct blyi_walk *w, const struct blyi_probe *p, enum blyi_thing_kind kind,
                     bool created)
{
    struct blyi_history *h = w->h;
    uint32_t id = kind == BLYI_THING_STREAM ? p->stream : p->event;
    uint64_t key = thing_key(kind, p, id);
    if (!created) {
        uintptr_t index = (uintptr_t)blyi_map_remove(&w->things, key);
        if (index == 0)
            return;
        struct blyi_thing *thing = &h->things[index - 1];
        thing->live = false;
        thing->reset = p->aux != 0;
        thing->died_ns = w->now_ns;
        w->n_live[kind]--;
        return;
    }
    if (kind == BLYI_THING_STREAM && p->aux != 0)
        return; /* the default stream is the context's, others are a graph's */
    if (!blyi_walk_grow(w, &h->things, h->n_things, &w->room_things, sizeof(*h->things)))
        return;
    bool was_there = blyi_map_get(&w->things, key) != NULL;
    if (blyi_map_put(&w->things, key, (void *)(h->n_things + 1)) != BLY_OK) {
        w->ok = false;
        return;
    }
    h->things[h->n_things++] = (struct blyi_thing){.born_ns = w->now_ns,
                                                   .id = id,
                                                   .site = p->site,
                                                   .kind = kind,
                                                   .live = true,
                                                   .card = blyi_walk_card(p->card)};
    if (!was_there && ++w->n_live[kind] > h->thing_peak[kind])
        h->thing_peak[kind] = w->n_live[kind];
}

void blyi_walk_refusal(struct blyi_walk *w, const struct blyi_trace_event *e)
{
    struct blyi_history *h = w->h;
    if (!blyi_walk_grow(w, &h->refusals, h->n_refusals, &w->room_refusals, sizeof(*h->refusals)))
        return;
    h->refusals[h->n_refusals++] = (struct blyi_refusal){.seq = e->seq,
                                                         .ns = w->now_ns,
                                                         .asked = e->probe.asked,
                                                         .free_told = e->probe.backed,
                                                         .needed = e->probe.rounded,
                                                         .largest = e->probe.other,
                                                         .at = blyi_history_end(h),
                                                         .site = e->probe.site,
                                                         .stack = e->stack,
                                                         .range = e->range,
                                                         .status = (int32_t)e->probe.aux,
                                                         .card = blyi_walk_card(e->probe.card)};
}

void blyi_walk_moment(struct blyi_walk *w, const struct blyi_trace_event *e)
{
    struct blyi_history *h = w->h;
    struct blyi_trace_range range;
    uint32_t name = e->probe.event, depth = 0;
    if (e->probe.kind == BLYI_PROBE_RANGE_PUSH) {
        if (!blyi_trace_range(h->trace, e->range, &range))
            return;
        name = range.name;
        for (uint32_t up = range.parent; depth < 64 && blyi_trace_range(h->trace, up, &range);
             up = range.parent)
            depth++;
    }
    if (!blyi_walk_grow(w, &h->moments, h->n_moments, &w->room_moments, sizeof(*h->moments)))
        return;
    h->moments[h->n_moments++] = (struct blyi_moment){w->now_ns, blyi_history_end(h), name, depth};
}

/* ── Calls ────────────────────────────────────────────────────────────────────────────────── */

static enum blyi_call_op op_of(enum blyi_probe_kind kind)
{
    switch (kind) {
    case BLYI_PROBE_ALLOC:
        return BLYI_CALL_ALLOC;
    case BLYI_PROBE_FREE:
        return BLYI_CALL_FREE;
    case BLYI_PROBE_HOST_ALLOC:
        return BLYI_CALL_HOST_ALLOC;
    case BLYI_PROBE_HOST_FREE:
        return BLYI_CALL_HOST_FREE;
    case BLYI_PROBE_PHYS_CREATE:
        return BLYI_CALL_PHYS_CREATE;
    case BLYI_PROBE_PHYS_FREE:
        return BLYI_CALL_PHYS_FREE;
    case BLYI_PROBE_ALLOC_FAIL:
        return BLYI_CALL_REFUSED;
    default:
        return BLYI_CALL_OPS;
    }
}

void blyi_walk_call(struct blyi_walk *w, const struct blyi_trace_event *e)
{
    struct blyi_history *h = w->h;
    const struct blyi_probe *p = &e->probe;
    enum blyi_call_op op = op_of(p->kind);
    if (op == BLYI_CALL_OPS || p->began_ns == 0 ||
        !blyi_walk_grow(w, &h->calls, h->n_calls, &w->room_calls, sizeof(*h->calls)))
        return;
    bool is_host = op == BLYI_CALL_HOST_ALLOC || op == BLYI_CALL_HOST_FREE;
    h->calls[h->n_calls++] =
        (struct blyi_call){.seq = e->seq,
                           .ns = w->now_ns,
                           .took_ns = p->time_ns - p->began_ns,
                           .asked = p->asked,
                           .at = blyi_history_end(h),
                           .op = (uint8_t)op,
                           .card = is_host ? BLYI_NO_CARD : blyi_walk_card(p->card)};
}
