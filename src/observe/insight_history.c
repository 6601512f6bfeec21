/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_history.c - see insight_history.h.
 */
#include "observe/insight_history.h"

#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "observe/insight_walk.h"

static struct blyi_walk_node *walk_node(struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_walk_node, node);
}

bool blyi_walk_grow(struct blyi_walk *w, void *array, size_t n, size_t *room, size_t size)
{
    void *old, *bigger;
    if (n < *room)
        return true;
    size_t more = *room < 64 ? 64 : *room + *room / 2;
    memcpy(&old, array, sizeof(old));
    bigger = more > SIZE_MAX / size ? NULL : blyi_host_realloc(old, more * size);
    if (bigger == NULL)
        return w->ok = false;
    memcpy(array, &bigger, sizeof(bigger));
    *room = more;
    return true;
}

void blyi_walk_free_nodes(struct blyi_tree *tree)
{
    struct blyi_tree_node *node;
    while ((node = blyi_tree_first(tree)) != NULL) {
        blyi_tree_remove(tree, node);
        blyi_host_free(walk_node(node));
    }
}

void blyi_walk_change(struct blyi_walk *w, enum blyi_change_kind kind, size_t index)
{
    struct blyi_history *h = w->h;
    if (!blyi_walk_grow(w, &h->changes, h->n_changes, &w->room_changes, sizeof(*h->changes)) ||
        !blyi_walk_grow(w, &h->change_ns, h->n_changes, &w->room_ns, sizeof(*h->change_ns)))
        return;
    h->change_ns[h->n_changes] = w->now_ns;
    h->changes[h->n_changes++] =
        (struct blyi_change){(uint32_t)kind & 7u, (uint32_t)index & (2 * BLYI_LIVES_MAX - 1)};
}

/* ── Blocks ───────────────────────────────────────────────────────────────────────────────── */

static uint8_t card_of(int card, int class_)
{
    return class_ == BLYI_TRACE_PINNED_BLOCK ? BLYI_NO_CARD : blyi_walk_card(card);
}

/* What the 32 bytes cost, as the account tells it. Programs of other tools ask a pool. */
static uint64_t saving_of(const struct blyi_walk *w, const struct blyi_probe *p)
{
    static const uint64_t page[BLYI_PAGE_KIND_COUNT] = {4 * KiB, 2 * MiB, GiB};
    if (blyi_trace_info(w->h->trace)->flags & BLYI_TRACE_IMPORTED)
        return 0;
    uint64_t plain = blyi_align_up(p->asked, 32);
    if (p->rounded <= plain || p->page_kind >= BLYI_PAGE_KIND_COUNT || p->card < 0)
        return 0;
    uint64_t twin = p->aux > 0 ? (uint64_t)p->aux : blyi_align_up(plain, page[p->page_kind]);
    return p->backed > twin ? p->backed - twin : 0;
}

static void end_life(struct blyi_walk *w, struct blyi_walk_node *node, bool reset)
{
    struct blyi_life *life = &w->h->lives[node->index];
    blyi_walk_change(w, BLYI_CHANGE_DIED, node->index);
    life->died_at = life->done_at = blyi_history_end(w->h);
    life->died_ns = life->done_ns = w->now_ns;
    life->reset = reset;
    /* On a stream of its own nothing tells when it passed; on another one DONE does. */
    if (life->foreign) {
        life->done_at = BLYI_STILL;
        if (blyi_walk_grow(w, &w->waiting, w->n_waiting, &w->room_waiting, sizeof(*w->waiting)))
            w->waiting[w->n_waiting++] = node->index;
    }
    if (blyi_map_put(&w->dead, life->address, (void *)((uintptr_t)node->index + 1)) != BLY_OK)
        w->ok = false;
    blyi_tree_remove(&w->blocks, &node->node);
    blyi_host_free(node);
}

static void add_life(struct blyi_walk *w, const struct blyi_life *life)
{
    struct blyi_history *h = w->h;
    struct blyi_tree_node *old = blyi_tree_find(&w->blocks, life->address, life->class_);
    if (old != NULL) {
        end_life(w, walk_node(old), false);
        h->counts.lost_frees++;
    }
    struct blyi_walk_node *node = blyi_host_alloc(sizeof(*node));
    if (node == NULL ||
        !blyi_walk_grow(w, &h->lives, h->n_lives, &w->room_lives, sizeof(*h->lives))) {
        blyi_host_free(node);
        w->ok = false;
        return;
    }
    node->index = (uint32_t)h->n_lives;
    h->lives[h->n_lives] = *life;
    if (life->seq > 0) /* else it was there at position 0 */
        blyi_walk_change(w, BLYI_CHANGE_BORN, h->n_lives);
    h->lives[h->n_lives].born_at = life->seq > 0 ? blyi_history_end(h) : 0;
    h->lives[h->n_lives].died_at = h->lives[h->n_lives].done_at = BLYI_STILL;
    h->n_lives++;
    blyi_tree_insert(&w->blocks, &node->node, life->address, life->class_);
}

static void add_start(struct blyi_walk *w, const struct blyi_trace_block *b)
{
    add_life(w, &(struct blyi_life){.address = b->address,
                                    .asked = b->asked,
                                    .rounded = b->rounded,
                                    .backed = b->backed,
                                    .site = b->site,
                                    .stack = b->stack,
                                    .stream = b->stream,
                                    .card = card_of(b->card == 0xff ? -1 : b->card, b->class_),
                                    .class_ = b->class_,
                                    .page_kind = b->page_kind,
                                    .before = (b->flags & BLYI_TRACE_BEFORE) != 0});
}

static void on_made(struct blyi_walk *w, const struct blyi_trace_event *e, int class_)
{
    const struct blyi_probe *p = &e->probe;
    if (w->h->n_lives >= BLYI_LIVES_MAX) {
        w->ok = false;
        return;
    }
    w->h->counts.made++;
    add_life(w, &(struct blyi_life){.address = p->address,
                                    .asked = p->asked,
                                    .rounded = p->rounded,
                                    .backed = p->backed,
                                    .saving = saving_of(w, p),
                                    .born_ns = w->now_ns,
                                    .seq = e->seq,
                                    .site = p->site,
                                    .stack = e->stack,
                                    .range = e->range,
                                    .name = p->event,
                                    .stream = p->stream,
                                    .card = card_of(p->card, class_),
                                    .class_ = (uint8_t)class_,
                                    .page_kind = (uint8_t)p->page_kind});
}

static void on_ended(struct blyi_walk *w, const struct blyi_probe *p, int class_)
{
    struct blyi_tree_node *node = blyi_tree_find(&w->blocks, p->address, (uint64_t)class_);
    bool reset = p->kind == BLYI_PROBE_RESET_FREE || (p->kind == BLYI_PROBE_PHYS_FREE && p->aux);
    w->h->counts.frees += !reset;
    w->h->counts.resets += reset;
    if (node == NULL) {
        w->h->counts.unknown_frees++;
        return;
    }
    if (p->kind == BLYI_PROBE_FREE && p->aux != 0)
        w->h->lives[walk_node(node)->index].foreign = true;
    end_life(w, walk_node(node), reset);
}

/* The block that the address lies in; NULL: none. Handles are numbers, not addresses. */
static struct blyi_life *life_around(struct blyi_walk *w, uint64_t address)
{
    struct blyi_tree_node *node = blyi_tree_floor(&w->blocks, address);
    while (node != NULL && node->sub == BLYI_TRACE_HANDLE)
        node = blyi_tree_prev(node);
    struct blyi_life *life = node == NULL ? NULL : &w->h->lives[walk_node(node)->index];
    bool inside = life && (address == life->address || address - life->address < life->asked);
    return inside ? life : NULL;
}

static void on_use(struct blyi_walk *w, struct blyi_life *life)
{
    if (life == NULL)
        return;
    if (life->n_uses == 0)
        life->first_use_ns = w->now_ns;
    else if (w->now_ns - life->last_use_ns > life->idle_ns)
        life->idle_ns = w->now_ns - life->last_use_ns;
    life->last_use_ns = w->h->uses_ns = w->now_ns;
    life->n_uses++;
}

static void end_uses(struct blyi_walk *w, size_t index)
{
    struct blyi_life *life = &w->h->lives[index];
    if (life->done_at != life->died_at && life->done_at != BLYI_STILL)
        return; /* told before */
    blyi_walk_change(w, BLYI_CHANGE_DONE, index);
    life->done_at = blyi_history_end(w->h);
    life->done_ns = w->now_ns;
}

static void on_done(struct blyi_walk *w, uint64_t address)
{
    uintptr_t index = (uintptr_t)blyi_map_get(&w->dead, address);
    if (index > 0)
        end_uses(w, index - 1);
}

/* Whoever waited for the card waited for all uses. */
static void on_sync(struct blyi_walk *w, enum blyi_probe_kind kind)
{
    w->h->n_syncs++;
    for (size_t i = 0; kind == BLYI_PROBE_CARD_SYNC && i < w->n_waiting; i++)
        end_uses(w, w->waiting[i]);
    if (kind == BLYI_PROBE_CARD_SYNC)
        w->n_waiting = 0;
}

static void on_map(struct blyi_walk *w, const struct blyi_probe *p)
{
    struct blyi_tree_node *node = blyi_tree_find(&w->blocks, p->other, BLYI_TRACE_HANDLE);
    struct blyi_life *life = node ? &w->h->lives[walk_node(node)->index] : NULL;
    if (life != NULL && p->kind == BLYI_PROBE_MAP)
        life->n_maps++;
    else if (life != NULL && life->n_maps > 0)
        life->n_maps--;
}

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

static void on_touch(struct blyi_walk *w, const struct blyi_probe *p)
{
    struct blyi_life *life = life_around(w, p->address);
    if (p->kind == BLYI_PROBE_TAG) {
        if (life != NULL)
            life->tag = p->event;
        return;
    }
    if (p->kind == BLYI_PROBE_COPY)
        on_use(w, life_around(w, p->other));
    on_use(w, life);
    if (p->kind == BLYI_PROBE_USE && life != NULL)
        life->foreign = true;
    w->h->n_copies += p->kind == BLYI_PROBE_COPY;
    w->h->n_sets += p->kind == BLYI_PROBE_SET;
}

static void on_event(struct blyi_walk *w, const struct blyi_trace_event *e)
{
    const struct blyi_probe *p = &e->probe;
    bool makes;
    int class_ = blyi_trace_class_of(p->kind, &makes);
    if (class_ >= 0) {
        if (p->address != 0 && makes)
            on_made(w, e, class_);
        else if (p->address != 0)
            on_ended(w, p, class_);
        return;
    }
    switch (p->kind) {
    case BLYI_PROBE_COPY:
    case BLYI_PROBE_SET:
    case BLYI_PROBE_USE:
    case BLYI_PROBE_TAG:
        on_touch(w, p);
        break;
    case BLYI_PROBE_USE_DONE:
        on_done(w, p->address);
        break;
    case BLYI_PROBE_MAP:
    case BLYI_PROBE_UNMAP:
        on_map(w, p);
        break;
    case BLYI_PROBE_SEGMENT:
        blyi_walk_piece(w, e);
        break;
    case BLYI_PROBE_SEGMENT_FREE:
        blyi_walk_piece_gone(w, e);
        break;
    case BLYI_PROBE_ALLOC_FAIL:
        blyi_walk_refusal(w, e);
        break;
#define HISTORY_THING(name, one, many)                                                             \
    case BLYI_PROBE_##name##_CREATE:                                                               \
    case BLYI_PROBE_##name##_DESTROY:                                                              \
        blyi_walk_thing(w, p, BLYI_THING_##name, p->kind == BLYI_PROBE_##name##_CREATE);           \
        break;
        BLYI_THINGS(HISTORY_THING)
#undef HISTORY_THING
    case BLYI_PROBE_MARK:
    case BLYI_PROBE_RANGE_PUSH:
        blyi_walk_moment(w, e);
        break;
    case BLYI_PROBE_KERNEL:
        w->h->n_kernels++;
        break;
    case BLYI_PROBE_STREAM_SYNC:
    case BLYI_PROBE_EVENT_SYNC:
    case BLYI_PROBE_CARD_SYNC:
        on_sync(w, p->kind);
        break;
    default:
        break;
    }
}

static bool walk(struct blyi_walk *w, struct blyi_trace *trace)
{
    struct blyi_trace_event event;
    size_t n;
    const struct blyi_trace_block *start = blyi_trace_start_blocks(trace, &n);
    for (size_t i = 0; i < n && w->ok; i++)
        add_start(w, &start[i]);
    w->h->n_start = w->h->n_lives;
    while (w->ok && blyi_trace_next(trace, &event)) {
        uint64_t time = event.probe.time_ns;
        if (time > w->start_ns && time - w->start_ns > w->now_ns)
            w->now_ns = time - w->start_ns;
        on_event(w, &event);
        blyi_walk_call(w, &event);
    }
    w->h->end_ns = w->now_ns;
    return w->ok;
}

static void fini(struct blyi_walk *w)
{
    blyi_walk_free_nodes(&w->blocks);
    for (size_t i = 0; i < BLYI_COUNT(w->pieces); i++)
        blyi_walk_free_nodes(&w->pieces[i]);
    blyi_map_fini(&w->dead);
    blyi_map_fini(&w->things);
    blyi_map_fini(&w->seen);
    blyi_host_free(w->waiting);
    blyi_host_free(w);
}

bly_status blyi_history_make(struct blyi_trace *trace, struct blyi_history *out)
{
    struct blyi_history h = {.trace = trace};
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct blyi_walk *w = blyi_host_calloc(1, sizeof(*w));
    if (w == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to look at it", info->name);
    w->h = &h;
    w->ok = true;
    w->start_ns = info->start_ns;
    blyi_map_init(&w->dead);
    blyi_map_init(&w->things);
    blyi_map_init(&w->seen);
    bly_status status = blyi_trace_rewind(trace);
    if (status == BLY_OK && !walk(w, trace))
        status = blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to look at its %llu events",
                           info->name, (unsigned long long)info->kept);
    fini(w);
    if (status == BLY_OK)
        status = blyi_trace_status(trace);
    if (status == BLY_OK)
        status = blyi_trace_rewind(trace);
    if (status == BLY_OK)
        *out = h;
    else
        blyi_history_fini(&h);
    return status;
}

void blyi_history_fini(struct blyi_history *h)
{
    blyi_host_free(h->lives);
    blyi_host_free(h->pieces);
    blyi_host_free(h->changes);
    blyi_host_free(h->change_ns);
    blyi_host_free(h->refusals);
    blyi_host_free(h->things);
    blyi_host_free(h->moments);
    blyi_host_free(h->calls);
}
