/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_queue.c - queues of messages: order, room, and threads that wait for either.
 */
#include "npu/mem_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/sys.h"
#include "npu/mem_queue_inside.h"
#include "npu/runtime.h"
#include "npu/wait.h"

#define NOT_AT_ALL 0u /* a deadline */

static struct blyi_list queues = BLYI_LIST_INIT(queues); /* under blyi_queues_lock */
static uint32_t next_id;

struct blyi_mem_queue *blyi_mem_queue_find_locked(struct blyi_queue_ref ref)
{
    BLYI_LIST_FOR(node, &queues)
    {
        struct blyi_mem_queue *queue = BLYI_CONTAINER(node, struct blyi_mem_queue, link);
        if (queue->ref.id == ref.id && queue->ref.card == ref.card &&
            queue->ref.channel == ref.channel)
            return queue;
    }
    (void)blyi_fail(BLY_E_INVALID, "card %d has no %s %" PRIu32, ref.card,
                    ref.channel ? "channel" : "queue", ref.id);
    return NULL;
}

static bool is_taken_locked(uint32_t id)
{
    BLYI_LIST_FOR(node, &queues)
    {
        if (BLYI_CONTAINER(node, struct blyi_mem_queue, link)->ref.id == id)
            return true;
    }
    return false;
}

bly_status blyi_mem_queue_create(int card, const char *name, uint32_t depth, bool channel,
                                 uint32_t site, uint32_t *id)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    size_t length = name == NULL ? 0 : strnlen(name, BLYI_QUEUE_NAME_SIZE);
    if (length == BLYI_QUEUE_NAME_SIZE)
        return blyi_fail(BLY_E_INVALID, "the name of a queue has at most %u bytes",
                         BLYI_QUEUE_NAME_SIZE - 1);
    if (depth < BLYI_QUEUE_DEPTH_MIN || depth > BLYI_QUEUE_DEPTH_MAX)
        return blyi_fail(BLY_E_INVALID, "a queue of %" PRIu32 " messages: there can be %u .. %u",
                         depth, BLYI_QUEUE_DEPTH_MIN, BLYI_QUEUE_DEPTH_MAX);
    struct blyi_mem_queue *queue = blyi_host_calloc(1, sizeof(*queue));
    if (queue == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a queue");
    if (length > 0)
        memcpy(queue->name, name, length);
    queue->depth = depth;
    queue->ref.card = card;
    queue->ref.channel = channel;
    blyi_lock_take(&blyi_queues_lock);
    while (is_taken_locked(next_id))
        next_id++;
    *id = queue->ref.id = next_id++; /* not reused soon: a stale id stays one */
    BLYI_PROBE(QUEUE_CREATE, .card = card, .event = *id, .site = site);
    blyi_list_push_back(&queues, &queue->link);
    blyi_lock_drop(&blyi_queues_lock);
    return BLY_OK;
}

static void poke_locked(struct blyi_mem_queue *queue)
{
    __atomic_fetch_add(&queue->word, 1, __ATOMIC_RELEASE);
    if (queue->users > 0)
        blyi_sys_futex_wake(&queue->word, INT32_MAX);
}

void blyi_mem_queue_push_locked(struct blyi_mem_queue *queue, struct blyi_mbuf *chain)
{
    chain->queued = NULL;
    if (queue->first == NULL)
        queue->first = chain;
    else
        queue->last->queued = chain;
    queue->last = chain;
    queue->n++;
    poke_locked(queue);
}

struct blyi_mbuf *blyi_mem_queue_pop_locked(struct blyi_mem_queue *queue)
{
    struct blyi_mbuf *chain = queue->first;
    queue->first = chain->queued;
    chain->queued = NULL;
    queue->n--;
    poke_locked(queue);
    return chain;
}

static void drop_messages(struct blyi_mbuf *first)
{
    while (first != NULL) {
        struct blyi_mbuf *next = first->queued;
        blyi_mbuf_drop(first);
        first = next;
    }
}

bly_status blyi_mem_queue_destroy(struct blyi_queue_ref ref)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mbuf *messages = NULL;
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    if (queue == NULL)
        status = BLY_E_INVALID;
    else if (queue->n_out + queue->n_in > 0)
        status = blyi_fail(BLY_E_STATE,
                           "queue %" PRIu32 " has %" PRIu32 " routes: they are unbound first",
                           ref.id, queue->n_out + queue->n_in);
    bool unused = false;
    if (status == BLY_OK) {
        blyi_list_remove(&queue->link);
        messages = queue->first;
        queue->dead = true;
        BLYI_PROBE(QUEUE_DESTROY, .card = ref.card, .event = ref.id);
        poke_locked(queue);
        unused = queue->users == 0;
    }
    blyi_lock_drop(&blyi_queues_lock);
    drop_messages(messages);
    if (unused)
        blyi_host_free(queue);
    return status;
}

/* ── Waiting ──────────────────────────────────────────────────────────────────────────────── */

bool blyi_mem_queue_deadline(int32_t timeout_ms, uint64_t *deadline)
{
    if (timeout_ms < -1)
        return false;
    *deadline = timeout_ms == 0
                    ? NOT_AT_ALL
                    : blyi_wait_deadline(timeout_ms == -1 ? 0 : (uint64_t)timeout_ms * 1000000u);
    return true;
}

enum want { WANT_ROOM, WANT_MESSAGE };

static bool has_locked(const struct blyi_mem_queue *queue, enum want want)
{
    return want == WANT_ROOM ? queue->n < queue->depth : queue->n > 0;
}

static bly_status tell_none(const struct blyi_mem_queue *queue, enum want want)
{
    if (want == WANT_ROOM)
        return blyi_fail(BLY_E_QUEUE_FULL, "%s %" PRIu32 " is full: %" PRIu32 " messages",
                         queue->ref.channel ? "channel" : "queue", queue->ref.id, queue->depth);
    return blyi_fail(BLY_E_QUEUE_EMPTY, "%s %" PRIu32 " is empty",
                     queue->ref.channel ? "channel" : "queue", queue->ref.id);
}

/* Sleeps once, without the lock. */
static bly_status sleep_locked(struct blyi_mem_queue *queue, enum want want, uint64_t deadline)
{
    if (deadline == NOT_AT_ALL)
        return tell_none(queue, want);
    uint32_t word = __atomic_load_n(&queue->word, __ATOMIC_ACQUIRE), stops = queue->stops;
    queue->users++;
    blyi_lock_drop(&blyi_queues_lock);
    bool in_time = blyi_wait_on(&queue->word, word, deadline);
    blyi_lock_take(&blyi_queues_lock);
    queue->users--;
    if (queue->dead) {
        struct blyi_queue_ref ref = queue->ref;
        if (queue->users == 0)
            blyi_host_free(queue);
        return blyi_fail(BLY_E_INVALID, "%s %" PRIu32 " of card %d was destroyed meanwhile",
                         ref.channel ? "channel" : "queue", ref.id, ref.card);
    }
    if (has_locked(queue, want) || (in_time && queue->stops == stops))
        return BLY_OK;
    return tell_none(queue, want);
}

/* The queue, once it has what is wanted. */
static bly_status await_locked(struct blyi_queue_ref ref, enum want want, uint64_t deadline,
                               struct blyi_mem_queue **out)
{
    struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    bly_status status = queue == NULL ? BLY_E_INVALID : BLY_OK;
    while (status == BLY_OK && !has_locked(queue, want)) {
        if (want == WANT_MESSAGE && queue->n_in > 0)
            status = blyi_routes_feed_locked(queue);
        if (status == BLY_OK && !has_locked(queue, want))
            status = sleep_locked(queue, want, deadline);
    }
    *out = queue;
    return status;
}

/* ── Messages ─────────────────────────────────────────────────────────────────────────────── */

static void put_locked(struct blyi_mem_queue *queue, struct blyi_mbuf *chain)
{
    blyi_mem_queue_push_locked(queue, chain);
    if (queue->n_out > 0 && blyi_routes_drain_locked(queue) != BLY_OK)
        blyi_fail_clear(); /* it stays here; who takes it at the other end hears of it */
}

static void took_locked(struct blyi_mem_queue *queue)
{
    if (queue->n_in > 0 && blyi_routes_feed_locked(queue) != BLY_OK)
        blyi_fail_clear();
}

bly_status blyi_mem_queue_put(struct blyi_queue_ref ref, struct blyi_mbuf *chain, uint64_t deadline)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mem_queue *queue;
    blyi_lock_take(&blyi_queues_lock);
    status = await_locked(ref, WANT_ROOM, deadline, &queue);
    if (status == BLY_OK)
        put_locked(queue, chain);
    blyi_lock_drop(&blyi_queues_lock);
    return status;
}

bly_status blyi_mem_queue_put_buffer(struct blyi_queue_ref ref, void *handle, uint64_t deadline)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mem_queue *queue;
    struct blyi_mbuf *chain;
    blyi_lock_take(&blyi_queues_lock);
    status = blyi_mbuf_check_locked(handle); /* a bad one shall not wait */
    if (status == BLY_OK)
        status = await_locked(ref, WANT_ROOM, deadline, &queue);
    if (status == BLY_OK)
        status = blyi_mbuf_take_locked(handle, &chain);
    if (status == BLY_OK)
        put_locked(queue, chain);
    blyi_lock_drop(&blyi_queues_lock);
    return status;
}

bly_status blyi_mem_queue_take(struct blyi_queue_ref ref, struct blyi_mbuf **chain,
                               uint64_t deadline)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mem_queue *queue;
    blyi_lock_take(&blyi_queues_lock);
    status = await_locked(ref, WANT_MESSAGE, deadline, &queue);
    if (status == BLY_OK) {
        *chain = blyi_mem_queue_pop_locked(queue);
        took_locked(queue);
    }
    blyi_lock_drop(&blyi_queues_lock);
    return status;
}

/* Whoever waits at the other end of a route looked while the message was out. The caller's sentence
 * stays. */
static void drain_again_locked(struct blyi_mem_queue *queue)
{
    char text[BLYI_FAIL_MAX];
    bly_status status = blyi_fail_code();
    snprintf(text, sizeof(text), "%s", blyi_fail_text());
    if (queue->n_out > 0 && blyi_routes_drain_locked(queue) != BLY_OK)
        (void)blyi_fail(status, "%s", text);
}

bly_status blyi_mem_queue_untake(struct blyi_queue_ref ref, struct blyi_mbuf *chain)
{
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    if (queue != NULL) {
        chain->queued = queue->first;
        if (queue->first == NULL)
            queue->last = chain;
        queue->first = chain;
        queue->n++;
        poke_locked(queue);
        drain_again_locked(queue);
    }
    blyi_lock_drop(&blyi_queues_lock);
    return queue == NULL ? BLY_E_INVALID : BLY_OK;
}

bly_status blyi_mem_queue_take_buffer(struct blyi_queue_ref ref, void **handle, uint64_t deadline)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mem_queue *queue;
    blyi_lock_take(&blyi_queues_lock);
    status = await_locked(ref, WANT_MESSAGE, deadline, &queue);
    if (status == BLY_OK)
        status = blyi_mbuf_hand_out_locked(queue->first);
    if (status == BLY_OK) {
        *handle = blyi_mem_queue_pop_locked(queue)->handle;
        took_locked(queue);
    }
    blyi_lock_drop(&blyi_queues_lock);
    return status;
}

/* ── The rest ─────────────────────────────────────────────────────────────────────────────── */

bly_status blyi_mem_queue_size(struct blyi_queue_ref ref, uint32_t *n)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_queues_lock);
    const struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    if (queue != NULL)
        *n = queue->n;
    blyi_lock_drop(&blyi_queues_lock);
    return queue == NULL ? BLY_E_INVALID : BLY_OK;
}

bly_status blyi_mem_queue_clean(struct blyi_queue_ref ref)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mbuf *messages = NULL;
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    if (queue != NULL) {
        messages = queue->first;
        queue->first = NULL;
        queue->n = 0;
        poke_locked(queue);
        took_locked(queue);
    }
    blyi_lock_drop(&blyi_queues_lock);
    drop_messages(messages);
    return queue == NULL ? BLY_E_INVALID : BLY_OK;
}

bly_status blyi_mem_queue_wake(struct blyi_queue_ref ref)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mem_queue *queue = blyi_mem_queue_find_locked(ref);
    if (queue != NULL) {
        queue->stops++;
        poke_locked(queue);
    }
    blyi_lock_drop(&blyi_queues_lock);
    return queue == NULL ? BLY_E_INVALID : BLY_OK;
}
