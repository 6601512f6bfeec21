/* SPDX-License-Identifier: Apache-2.0
 *
 * card.c - opening and closing cards, the runtime's overhead, limits of streams and events.
 */
#include "npu/card.h"
#include "npu/away.h"
#include "npu/cap.h"
#include "npu/freed.h"
#include "npu/ledger.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/physical.h"
#include "npu/runtime.h"
#include "npu/share.h"
#include "npu/service.h"
#include "npu/shortage.h"
#include "npu/tally.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/size.h"
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>

#define YIELDS 1000 /* some hundred microseconds at most */

/* Written under open_lock. Release/acquire: who gets a card sees it whole. */
static _Atomic(struct blyi_card *) cards[BLYI_CARD_MAX];
static struct blyi_lock open_lock = BLYI_LOCK_INIT(BLYI_RANK_CARDS);

int blyi_card_count(void)
{
    return (int)blyi_option_int(BLYI_OPT_CARDS);
}

struct blyi_card *blyi_card_get(int id)
{
    if (id < 0 || id >= BLYI_CARD_MAX)
        return NULL;
    return atomic_load_explicit(&cards[id], memory_order_acquire);
}

/* The model with the options applied, and what programs see of it. */
static bly_status load_model(int id, struct blyi_model *model, uint64_t *total)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    bly_status status = blyi_model_load(blyi_option_text(BLYI_OPT_MODEL), model);
    if (status != BLY_OK)
        return status;
    uint64_t hbm = (uint64_t)blyi_option_int(BLYI_OPT_HBM);
    if (hbm > 0)
        model->memory = hbm + model->reserve;
    uint64_t seen = model->memory - model->reserve;
    *total = blyi_align_down(seen, BLYI_FRAME_SIZE);
    if (*total < model->overhead + BLYI_FRAME_SIZE)
        return blyi_fail(BLY_E_INVALID,
                         "card %d: memory of %s leaves no frame of 2 MiB beside the runtime's "
                         "overhead of %s",
                         id, blyi_size_text(seen, a), blyi_size_text(model->overhead, b));
    if (*total != seen)
        blyi_log(BLYI_LOG_INFO, "card %d: memory %s rounded down to whole frames of 2 MiB: %s", id,
                 blyi_size_text(seen, a), blyi_size_text(*total, b));
    if (blyi_option_int(BLYI_OPT_STREAMS) > 0)
        model->streams = (uint64_t)blyi_option_int(BLYI_OPT_STREAMS);
    if (blyi_option_int(BLYI_OPT_EVENTS) > 0)
        model->events = (uint64_t)blyi_option_int(BLYI_OPT_EVENTS);
    return BLY_OK;
}

/* A process whose address space is limited (ulimit -v) gets a window smaller than the card, and
 * is told when that is what ran out. */
#define WINDOW_LEAST GiB

static uint64_t overhead_of(const struct blyi_model *model)
{
    return blyi_align_up(model->overhead, BLYI_FRAME_SIZE);
}

bly_status blyi_card_check_options(void)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    struct blyi_model model;
    uint64_t total, cap = (uint64_t)blyi_option_int(BLYI_OPT_CAP);
    bly_status status = load_model(0, &model, &total);
    if (status == BLY_OK && cap > 0 && cap < overhead_of(&model))
        status = blyi_fail(BLY_E_CAP,
                           "BELAY_CAP %s is less than the %s that the runtime takes on a card",
                           blyi_size_text(cap, a), blyi_size_text(overhead_of(&model), b));
    return status;
}

static uint64_t window_size(uint64_t total)
{
    uint64_t size = (uint64_t)blyi_option_int(BLYI_OPT_WINDOW);
    if (size > 0)
        return size;
    return blyi_window_share(2 * total > 64 * GiB ? blyi_align_up(2 * total, GiB) : 64 * GiB);
}

static void release(struct blyi_card *card)
{
    blyi_window_destroy(card->window);
    blyi_stock_close(card->stock); /* before its memory is closed: others may look for that */
    blyi_backing_destroy(card->backing);
    blyi_partials_destroy(card->partials);
    blyi_host_free(card->freed);
    blyi_host_free(card);
}

static bly_status open_locked(int id, struct blyi_card **out)
{
    struct blyi_model model;
    uint64_t total;
    bly_status status = load_model(id, &model, &total);
    if (status != BLY_OK)
        return status;
    uint32_t n_frames = (uint32_t)(total / BLYI_FRAME_SIZE);
    struct blyi_card *card = blyi_host_calloc(1, sizeof *card);
    if (!card)
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for its state", id);
    card->id = id;
    card->model = model;
    card->total = total;
    card->partials = blyi_partials_create(n_frames);
    card->freed = blyi_host_calloc(1, sizeof *card->freed);
    if (!card->partials || !card->freed) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for the state of %u frames",
                           id, n_frames);
        goto release;
    }
    status = blyi_stock_open(id, n_frames, model.name, &card->stock, &card->backing);
    if (status != BLY_OK)
        goto release;
    status = blyi_window_create(id, window_size(total), total < WINDOW_LEAST ? total : WINDOW_LEAST,
                                &card->window);
    if (status != BLY_OK)
        goto release;
    blyi_lock_init(&card->lock, BLYI_RANK_CARD);
    blyi_list_init(&card->physicals);
    blyi_list_init(&card->import_ages);
    blyi_list_init(&card->tails);
    BLYI_PROBE(CARD_OPEN, .card = id, .size = total, .aux = (int64_t)model.overhead);
    *out = card;
    return BLY_OK;

release:
    release(card);
    return status;
}

bly_status blyi_card_open(int id, struct blyi_card **out)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    struct blyi_card *card = blyi_card_get(id);
    if (likely(card)) {
        *out = card;
        return BLY_OK;
    }
    if (id < 0 || id >= blyi_card_count())
        return blyi_fail(BLY_E_DEVICE, "no card %d: there are %d (BELAY_CARDS), numbered from 0",
                         id, blyi_card_count());
    bly_status status = BLY_OK;
    blyi_lock_take(&open_lock);
    card = blyi_card_get(id);
    if (!card) {
        status = open_locked(id, &card);
        if (status == BLY_OK)
            atomic_store_explicit(&cards[id], card, memory_order_release);
    }
    blyi_lock_drop(&open_lock);
    if (status == BLY_OK)
        *out = card;
    return status;
}

void blyi_card_close(struct blyi_card *card)
{
    blyi_import_close_all(card);
    blyi_physical_free_all(card);
    blyi_mem_free_all(card);
    while (card->n_bound > 0)
        blyi_card_unbind(card);
    BLYI_PROBE(CARD_CLOSE, .card = card->id);
    blyi_lock_take(&open_lock);
    atomic_store_explicit(&cards[card->id], NULL, memory_order_release);
    blyi_lock_fini(&card->lock);
    release(card);
    blyi_lock_drop(&open_lock);
}

void blyi_card_lock(struct blyi_card *card)
{
    /* relaxed, here and below: a hint about who waits; the lock orders everything else */
    __atomic_fetch_add(&card->n_waiting, 1, __ATOMIC_RELAXED);
    blyi_lock_take(&card->lock);
    __atomic_fetch_sub(&card->n_waiting, 1, __ATOMIC_RELAXED);
}

void blyi_card_unlock(struct blyi_card *card)
{
    blyi_tally_card_locked(card);
    blyi_lock_drop(&card->lock);
}

void blyi_card_yield(struct blyi_card *card)
{
    blyi_card_unlock(card);
    for (int i = 0; i < YIELDS && __atomic_load_n(&card->n_waiting, __ATOMIC_RELAXED) > 0; i++)
        sched_yield();
    blyi_card_lock(card);
}

void blyi_card_give_overhead_locked(struct blyi_card *card)
{
    while (card->n_overhead_runs > 0)
        blyi_run_give(card, card->overhead_runs[--card->n_overhead_runs]);
    card->overhead_frames = 0;
}

static bool take_overhead_frames_locked(struct blyi_card *card, uint32_t n)
{
    while (card->overhead_frames < n) {
        struct blyi_run *run = &card->overhead_runs[card->n_overhead_runs];
        if (card->n_overhead_runs == BLYI_OVERHEAD_RUNS ||
            !blyi_run_take(card, BLYI_SHORT_HUGE, n - card->overhead_frames, run)) {
            blyi_card_give_overhead_locked(card);
            return false;
        }
        card->n_overhead_runs++;
        card->overhead_frames += run->count;
    }
    return true;
}

bool blyi_card_take_overhead_locked(struct blyi_card *card)
{
    return take_overhead_frames_locked(card, (uint32_t)(card->overhead / BLYI_FRAME_SIZE));
}

static bly_status take_overhead_locked(struct blyi_card *card)
{
    uint64_t bytes = overhead_of(&card->model);
    uint32_t n = (uint32_t)(bytes / BLYI_FRAME_SIZE);
    if (!blyi_cap_take(bytes))
        return blyi_shortage_cap_locked(card, bytes, bytes, "the runtime's overhead");
    if (!take_overhead_frames_locked(card, n)) {
        blyi_cap_give(bytes);
        return blyi_shortage_card_locked(card, bytes, bytes, BLYI_SHORT_HUGE,
                                         "the runtime's overhead");
    }
    __atomic_store_n(&card->overhead, bytes, __ATOMIC_RELAXED); /* shortage.c reads it */
    card->modules[BLYI_MODULE_RUNTIME].live += bytes;
    if (card->modules[BLYI_MODULE_RUNTIME].peak < card->modules[BLYI_MODULE_RUNTIME].live)
        card->modules[BLYI_MODULE_RUNTIME].peak = card->modules[BLYI_MODULE_RUNTIME].live;
    return BLY_OK;
}

bly_status blyi_card_bind(struct blyi_card *card)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    bly_status status = blyi_service_need();
    if (status != BLY_OK)
        return status;
    (void)blyi_ledger_reap();
    blyi_cap_join();
    status = blyi_card_lock_present(card);
    if (status != BLY_OK)
        return status;
    if (card->n_bound == 0)
        status = take_overhead_locked(card);
    if (status == BLY_OK)
        card->n_bound++;
    blyi_card_unlock(card);
    return status;
}

void blyi_card_unbind(struct blyi_card *card)
{
    if (blyi_runtime_is_forked())
        return;
    blyi_card_lock_teardown(card);
    bly_check(card->n_bound > 0);
    if (--card->n_bound == 0) {
        blyi_card_give_overhead_locked(card);
        blyi_cap_give(card->overhead);
        card->modules[BLYI_MODULE_RUNTIME].live -= card->overhead;
        __atomic_store_n(&card->overhead, 0, __ATOMIC_RELAXED);
    }
    blyi_card_unlock(card);
}

bool blyi_card_take_stream(struct blyi_card *card)
{
    return blyi_tally_take(card->id, BLYI_LIMIT_STREAMS, card->model.streams);
}

void blyi_card_give_stream(struct blyi_card *card)
{
    blyi_tally_give(card->id, BLYI_LIMIT_STREAMS);
}

bool blyi_card_take_event(struct blyi_card *card)
{
    return blyi_tally_take(card->id, BLYI_LIMIT_EVENTS, card->model.events);
}

void blyi_card_give_event(struct blyi_card *card)
{
    blyi_tally_give(card->id, BLYI_LIMIT_EVENTS);
}

bool blyi_card_take_notify(struct blyi_card *card)
{
    return blyi_tally_take(card->id, BLYI_LIMIT_NOTIFIES, card->model.notifies);
}

void blyi_card_give_notify(struct blyi_card *card)
{
    blyi_tally_give(card->id, BLYI_LIMIT_NOTIFIES);
}

bool blyi_card_audit(struct blyi_card *card)
{
    return blyi_backing_audit(card->backing) && blyi_mem_audit(card);
}
