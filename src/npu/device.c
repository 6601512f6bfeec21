/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - primary contexts: retained by aclrtSetDevice, dropped by aclrtResetDevice.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/log.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/sys.h"
#include "npu/abort.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/graph.h"
#include "npu/memory.h"
#include "npu/notify.h"
#include "npu/physical.h"
#include "npu/share.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/stream.h"
#include "npu/wait.h"

/* Under blyi_contexts_lock, but for `turn`. */
struct device {
    struct blyi_context *primary; /* alive, or NULL */
    uint64_t refs;
    bool busy;     /* the primary context is being made or torn down: others wait */
    uint32_t turn; /* futex: moves when `busy` ends */
};

static struct device devices[BLYI_CARD_MAX];
static int default_card = -1;
static void (*listener)(int card);

void blyi_device_listen(void (*fn)(int card))
{
    __atomic_store_n(&listener, fn, __ATOMIC_RELEASE);
}

static void take_back_memory(struct blyi_card *card)
{
    void (*fn)(int) = __atomic_load_n(&listener, __ATOMIC_ACQUIRE);
    if (fn != NULL)
        fn(card->id);
    blyi_import_close_all(card);
    blyi_physical_free_all(card);
    blyi_mem_free_all(card);
}

static bly_status check_card(int card)
{
    int count = blyi_card_count();
    if (card >= 0 && card < count)
        return BLY_OK;
    return blyi_fail(BLY_E_DEVICE, "no card %d: there are %d, numbered from 0", card, count);
}

/* The lock, with the device not busy. */
static void take_quiet(struct device *device)
{
    blyi_lock_take(&blyi_contexts_lock);
    while (device->busy) {
        uint32_t turn = __atomic_load_n(&device->turn, __ATOMIC_ACQUIRE);
        blyi_lock_drop(&blyi_contexts_lock);
        blyi_sys_futex_wait(&device->turn, turn, 0);
        blyi_lock_take(&blyi_contexts_lock);
    }
}

static void end_busy_locked(struct device *device)
{
    device->busy = false;
    __atomic_fetch_add(&device->turn, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&device->turn, INT32_MAX);
}

static bly_status retain(int card, uint32_t site, struct blyi_context **out)
{
    bly_status status = check_card(card);
    if (status != BLY_OK)
        return status;
    struct device *device = &devices[card];
    take_quiet(device);
    if (device->primary == NULL) {
        struct blyi_context *context = NULL;
        device->busy = true;
        blyi_lock_drop(&blyi_contexts_lock);
        status = blyi_context_make(card, true, site, &context);
        blyi_lock_take(&blyi_contexts_lock);
        end_busy_locked(device);
        if (status == BLY_OK) {
            device->primary = context;
            device->refs = 0;
            blyi_list_push_back(&blyi_contexts, &context->link);
        }
    }
    if (status == BLY_OK) {
        device->refs++;
        *out = device->primary;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    return status;
}

bly_status blyi_device_set(int card, uint32_t site)
{
    struct blyi_context *context;
    bly_status status = blyi_snapshot_enter();
    if (status == BLY_OK)
        status = retain(card, site, &context);
    if (status != BLY_OK)
        return status;
    blyi_thread_set_primary(context);
    blyi_thread_set_explicit(NULL);
    return BLY_OK;
}

/* One warning per site; those beyond the last word share one. */
static bool warned_before(uint32_t site)
{
    static uint64_t warned[64];
    uint32_t bit = site < 64 * 64 ? site : 64 * 64 - 1;
    uint64_t mask = (uint64_t)1 << (bit % 64);
    return (__atomic_fetch_or(&warned[bit / 64], mask, __ATOMIC_RELAXED) & mask) != 0;
}

bly_status blyi_device_set_implicit(int card, uint32_t site)
{
    struct blyi_context *context;
    bly_status status = retain(card, site, &context);
    if (status != BLY_OK)
        return status;
    blyi_thread_set_primary(context);
    if (default_card < 0 && !warned_before(site)) {
        char text[BLYI_SITE_TEXT];
        blyi_log(BLYI_LOG_WARN, "a thread without a device uses card %d, first at %s", card,
                 blyi_site_text(site, text));
    }
    return BLY_OK;
}

int blyi_device_default(void)
{
    int card = __atomic_load_n(&default_card, __ATOMIC_RELAXED);
    if (card < 0 && !blyi_option_int(BLYI_OPT_STRICT_DEVICE))
        return 0;
    return card;
}

void blyi_device_set_default(int card)
{
    __atomic_store_n(&default_card, card, __ATOMIC_RELAXED);
}

/* Explicit contexts on the card outlive its reset. */
static void warn_explicit(int card)
{
    unsigned n = 0;
    blyi_lock_take(&blyi_contexts_lock);
    BLYI_LIST_FOR(node, &blyi_contexts)
    {
        const struct blyi_context *context = BLYI_CONTAINER(node, struct blyi_context, link);
        if (!context->primary && context->card->id == card && blyi_context_is_alive(context))
            n++;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (n > 0)
        blyi_log(BLYI_LOG_WARN,
                 "card %d was reset; explicit contexts that stay on it, without its memory: %u",
                 card, n);
}

/* Tears the primary context down; the device is busy meanwhile, so a set waits. */
static void tear_down(int card, struct blyi_context *context, bool force)
{
    struct blyi_card *open = context->card; /* the context may be used again once it is dead */
    __atomic_store_n(&context->state, BLYI_CONTEXT_DYING, __ATOMIC_RELEASE);
    warn_explicit(card);
    blyi_context_teardown(context, true, force);
    blyi_notify_end_all(open);
    take_back_memory(open);
    blyi_lock_take(&blyi_contexts_lock);
    end_busy_locked(&devices[card]);
    blyi_lock_drop(&blyi_contexts_lock);
}

static bly_status release(int card, bool force)
{
    struct device *device = &devices[card];
    struct blyi_context *last = NULL;
    take_quiet(device);
    bool held = device->primary != NULL;
    if (held && (force || --device->refs == 0)) {
        last = device->primary;
        device->primary = NULL;
        device->refs = 0;
        device->busy = true;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (!held)
        return blyi_fail(BLY_E_RELEASED, "card %d was reset more often than set", card);
    if (last != NULL) {
        uint64_t generation = last->generation;
        tear_down(card, last, force);
        if (blyi_thread_state.primary_context == last &&
            blyi_thread_state.primary_generation == generation)
            blyi_thread_set_primary(NULL);
        if (blyi_thread_state.explicit_context == last &&
            blyi_thread_state.explicit_generation == generation)
            blyi_thread_set_explicit(NULL);
    }
    return BLY_OK;
}

bly_status blyi_device_reset(int card, bool force)
{
    bly_status status = blyi_snapshot_enter();
    if (status == BLY_OK)
        status = check_card(card);
    return status == BLY_OK ? release(card, force) : status;
}

bly_status blyi_device_get(int *card)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status == BLY_OK)
        *card = here.card->id;
    return status;
}

bly_status blyi_device_active(int card, bool *active)
{
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = check_card(card);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_contexts_lock);
    *active = devices[card].primary != NULL;
    blyi_lock_drop(&blyi_contexts_lock);
    return BLY_OK;
}

bly_status blyi_device_sync(uint64_t timeout_ns)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0), failure = BLY_OK;
    if (status != BLY_OK)
        return status;
    struct blyi_context *context = here.context;
    status = blyi_capture_none(context);
    if (status != BLY_OK)
        return status;
    uint64_t deadline = blyi_wait_deadline(timeout_ns);
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL) {
        if (!blyi_stream_is_waited_for(stream))
            continue;
        struct blyi_abort_mark mark = blyi_abort_mark(stream);
        uint64_t target = blyi_queue_issued(stream);
        status = blyi_queue_await_until(stream, target, deadline);
        if (status != BLY_OK) {
            if (status == BLY_E_TIMEOUT)
                blyi_fail(status,
                          "card %d: %" PRIu64 " tasks of stream %" PRIu32
                          " have not ended within %" PRIu64 " ms",
                          here.card->id, target - blyi_queue_completed(stream), stream->id,
                          timeout_ns / 1000000);
            blyi_queue_unref(stream);
            return status;
        }
        BLYI_PROBE(STREAM_SYNC, .card = stream->card->id, .stream = stream->id);
        status = blyi_abort_since(stream, mark);
        if (status != BLY_OK) {
            blyi_queue_unref(stream);
            return status;
        }
        /* The first failure is told; those of other streams wait for their own turn. */
        if (failure == BLY_OK)
            failure = blyi_queue_take_failure(stream);
    }
    BLYI_PROBE(CARD_SYNC, .card = here.card->id);
    return failure != BLY_OK ? failure : blyi_context_failure(context);
}

void blyi_device_finalise(void)
{
    for (int card = 0; card < BLYI_CARD_MAX; card++) {
        blyi_lock_take(&blyi_contexts_lock);
        bool held = devices[card].primary != NULL;
        blyi_lock_drop(&blyi_contexts_lock);
        struct blyi_card *open = blyi_card_get(card);
        if (held && release(card, true) != BLY_OK)
            blyi_fail_clear();          /* another thread reset it meanwhile */
        else if (!held && open != NULL) /* what explicit contexts left */
            take_back_memory(open);
    }
    blyi_device_set_default(-1);
}
