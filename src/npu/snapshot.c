/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.c - the states of a process that stands still, and who waits in which.
 *
 * One call at a time has `busy`, without a lock: listeners are user code. What it changes is
 * `blyi_snapshot_now`; others only read it.
 */
#include "npu/snapshot.h"
#include "npu/away.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/gate.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/wait.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/pool_blocks.h"
#include "base/sys.h"
#include <belay/snapshot.h>
#include <inttypes.h>
#include <string.h>

uint32_t blyi_snapshot_now;
static uint32_t busy;
static uint64_t keeper; /* number of a thread; written by who is busy, read by who waits */
static _Thread_local bool serves, begun;
static bly_status (*listener)(enum blyi_snapshot_stage stage);

static const char *const names[] = {[BLYI_SNAPSHOT_RUNNING] = "RUNNING",
                                    [BLYI_SNAPSHOT_LOCKED] = "LOCKED",
                                    [BLYI_SNAPSHOT_BACKED_UP] = "BACKED_UP",
                                    [BLYI_SNAPSHOT_DRAINING] = "LOCKED"};

static uint64_t this_thread(void)
{
    static uint64_t n_threads;
    static _Thread_local uint64_t mine;
    if (mine == 0)
        mine = __atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED);
    return mine;
}

static uint32_t now(void)
{
    /* acquire, with change(): who goes on sees the memory as restore left it */
    return __atomic_load_n(&blyi_snapshot_now, __ATOMIC_ACQUIRE);
}

static void change(enum blyi_snapshot_state to)
{
    __atomic_store_n(&blyi_snapshot_now, to, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&blyi_snapshot_now, INT32_MAX);
}

static bly_status refuse_away(const char *what)
{
    return blyi_fail(BLY_E_STATE,
                     "%s: the card memory of this process is in host memory "
                     "(aclrtSnapShotProcessBackup); aclrtSnapShotProcessRestore or Unlock brings "
                     "it back",
                     what);
}

bly_status blyi_snapshot_wait(void)
{
    for (;;) {
        uint32_t state = now();
        bool is_keeper = __atomic_load_n(&keeper, __ATOMIC_RELAXED) == this_thread();
        if (state == BLYI_SNAPSHOT_RUNNING)
            return BLY_OK;
        if (is_keeper && state == BLYI_SNAPSHOT_BACKED_UP)
            return refuse_away("not now");
        if (begun && state != BLYI_SNAPSHOT_BACKED_UP)
            return BLY_OK;
        if (is_keeper || (state == BLYI_SNAPSHOT_DRAINING && (serves || blyi_callback_serves())))
            return BLY_OK;
        blyi_sys_futex_wait(&blyi_snapshot_now, state, 0);
    }
}

bool blyi_snapshot_passes(void)
{
    uint32_t state = now();
    bool is_keeper = __atomic_load_n(&keeper, __ATOMIC_RELAXED) == this_thread();
    return state == BLYI_SNAPSHOT_RUNNING || (is_keeper && state != BLYI_SNAPSHOT_BACKED_UP) ||
           (state == BLYI_SNAPSHOT_DRAINING && (serves || blyi_callback_serves()));
}

void blyi_snapshot_begun(bool is_begun)
{
    begun = is_begun;
}

void blyi_snapshot_serve(void)
{
    serves = true;
}

bly_status blyi_snapshot_check_present(const char *what)
{
    return now() == BLYI_SNAPSHOT_BACKED_UP ? refuse_away(what) : BLY_OK;
}

void blyi_snapshot_listen(bly_status (*fn)(enum blyi_snapshot_stage stage))
{
    __atomic_store_n(&listener, fn, __ATOMIC_RELEASE);
}

static bly_status tell(enum blyi_snapshot_stage stage)
{
    bly_status (*fn)(enum blyi_snapshot_stage) = __atomic_load_n(&listener, __ATOMIC_ACQUIRE);
    return fn ? fn(stage) : BLY_OK;
}

static bly_status check_model(void)
{
    struct blyi_model model;
    bly_status status = blyi_model_load(blyi_option_text(BLYI_OPT_MODEL), &model);
    if (status == BLY_OK && model.snapshots == 0)
        status = blyi_fail(BLY_E_UNSUPPORTED, "model %s has no snapshots of processes", model.name);
    return status;
}

static void end_call(void)
{
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* `allowed` is a bit set of states. */
static bly_status begin_call(uint32_t allowed, const char *wanted)
{
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = check_model();
    if (status != BLY_OK)
        return status;
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE) != 0)
        return blyi_fail(BLY_E_STATE, "another snapshot call of this process is under way");
    if (allowed >> now() & 1)
        return BLY_OK;
    end_call();
    return blyi_fail(BLY_E_STATE, "the process is %s, not %s", names[now()], wanted);
}

static void keep(void)
{
    __atomic_store_n(&keeper, this_thread(), __ATOMIC_RELAXED);
}

static bly_status word_wait(bly_status status, const struct blyi_stream *stream, uint64_t target,
                            uint64_t limit_ns)
{
    if (status != BLY_E_TIMEOUT)
        return status;
    uint64_t left = target - blyi_queue_completed(stream);
    return blyi_fail(status,
                     "stream %" PRIu32 " of card %d: %" PRIu64 " task%s not ended within %" PRIu64
                     " ms (BELAY_SNAPSHOT_WAIT_MS)",
                     stream->id, stream->card->id, left, left == 1 ? " has" : "s have",
                     limit_ns / 1000000);
}

static bly_status drain_context(struct blyi_context *context, uint64_t deadline, uint64_t limit_ns,
                                bool *waited)
{
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL) {
        uint64_t target = blyi_queue_issued(stream);
        if (!blyi_stream_is_waited_for(stream) || blyi_queue_completed(stream) >= target)
            continue;
        *waited = true;
        bly_status status = blyi_queue_await_until(stream, target, deadline);
        if (status != BLY_OK) {
            status = word_wait(status, stream, target, limit_ns);
            blyi_queue_unref(stream);
            return status;
        }
    }
    return BLY_OK;
}

/* All contexts; their structures are never freed. NULL and *n > 0: no host memory. */
static struct blyi_context **list_contexts(size_t *n)
{
    size_t count = 0;
    blyi_lock_take(&blyi_contexts_lock);
    BLYI_LIST_FOR(node, &blyi_contexts)
    count++;
    struct blyi_context **list =
        count > 0 ? blyi_host_alloc(count * sizeof(struct blyi_context *)) : NULL;
    *n = count;
    if (list) {
        size_t i = 0;
        BLYI_LIST_FOR(node, &blyi_contexts)
        list[i++] = BLYI_CONTAINER(node, struct blyi_context, link);
    }
    blyi_lock_drop(&blyi_contexts_lock);
    return list;
}

/* Queued work may queue more (host functions do), so until a whole look finds nothing. */
static bly_status drain(void)
{
    uint64_t limit_ns = (uint64_t)blyi_option_int(BLYI_OPT_SNAPSHOT_WAIT_MS) * 1000000;
    uint64_t deadline = blyi_wait_deadline(limit_ns);
    bly_status status = BLY_OK;
    for (bool waited = true; waited && status == BLY_OK;) {
        size_t n;
        struct blyi_context **list = list_contexts(&n);
        if (n > 0 && !list)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to list %zu contexts", n);
        waited = false;
        for (size_t i = 0; i < n && status == BLY_OK; i++)
            status = drain_context(list[i], deadline, limit_ns, &waited);
        blyi_host_free(list);
    }
    return status;
}

bly_status blyi_snapshot_lock(void)
{
    bly_status status = begin_call(1u << BLYI_SNAPSHOT_RUNNING, "RUNNING");
    if (status != BLY_OK)
        return status;
    status = tell(BLYI_SNAPSHOT_LOCK_PRE);
    if (status == BLY_OK) {
        keep();
        change(BLYI_SNAPSHOT_DRAINING);
        status = drain();
        change(status == BLY_OK ? BLYI_SNAPSHOT_LOCKED : BLYI_SNAPSHOT_RUNNING);
    }
    if (status == BLY_OK)
        blyi_pool_blocks_settle();
    end_call();
    return status;
}

/* The gate is closed from here to restore: what slipped through waits there. */
static bly_status back_up(void)
{
    change(BLYI_SNAPSHOT_DRAINING);
    bly_status status = drain();
    if (status == BLY_OK) {
        blyi_pool_blocks_settle(); /* what the drained work had begun */
        status = blyi_gate_close((uint64_t)blyi_option_int(BLYI_OPT_SNAPSHOT_WAIT_MS) * 1000000);
    }
    if (status != BLY_OK) {
        change(BLYI_SNAPSHOT_LOCKED);
        return status;
    }
    change(BLYI_SNAPSHOT_BACKED_UP);
    status = blyi_away_save();
    if (status == BLY_OK) {
        status = tell(BLYI_SNAPSHOT_BACKUP_POST);
        if (status == BLY_OK)
            blyi_away_leave();
        else
            blyi_away_forget();
    }
    if (status != BLY_OK) {
        blyi_gate_open();
        change(BLYI_SNAPSHOT_LOCKED);
    }
    return status;
}

bly_status blyi_snapshot_backup(void)
{
    bly_status status = begin_call(1u << BLYI_SNAPSHOT_LOCKED, "LOCKED");
    if (status != BLY_OK)
        return status;
    keep();
    status = tell(BLYI_SNAPSHOT_BACKUP_PRE);
    if (status == BLY_OK)
        status = back_up();
    end_call();
    return status;
}

bly_status blyi_snapshot_restore(void)
{
    bly_status status = begin_call(1u << BLYI_SNAPSHOT_BACKED_UP, "BACKED_UP");
    if (status != BLY_OK)
        return status;
    keep();
    status = tell(BLYI_SNAPSHOT_RESTORE_PRE);
    if (status == BLY_OK)
        status = blyi_away_return();
    if (status == BLY_OK) {
        blyi_gate_open();
        change(BLYI_SNAPSHOT_LOCKED);
        status = tell(BLYI_SNAPSHOT_RESTORE_POST);
    }
    end_call();
    return status;
}

bly_status blyi_snapshot_unlock(void)
{
    bly_status status = begin_call(1u << BLYI_SNAPSHOT_LOCKED | 1u << BLYI_SNAPSHOT_BACKED_UP,
                                   "LOCKED or BACKED_UP");
    if (status != BLY_OK)
        return status;
    if (now() == BLYI_SNAPSHOT_BACKED_UP) {
        status = blyi_away_return();
        if (status == BLY_OK)
            blyi_gate_open();
    }
    if (status == BLY_OK) {
        change(BLYI_SNAPSHOT_RUNNING);
        status = tell(BLYI_SNAPSHOT_UNLOCK_POST);
    }
    end_call();
    return status;
}

void blyi_snapshot_end(void)
{
    if (now() == BLYI_SNAPSHOT_LOCKED)
        change(BLYI_SNAPSHOT_RUNNING);
}

void blyi_snapshot_forget(void)
{
    __atomic_store_n(&blyi_snapshot_now, BLYI_SNAPSHOT_RUNNING, __ATOMIC_RELEASE);
    end_call();
}

bly_status bly_snapshot_info(bly_snapshot *info)
{
    if (!info || info->struct_size < 8)
        return blyi_fail(BLY_E_INVALID, "bly_snapshot_info: %s",
                         info ? "struct_size is below 8" : "info is NULL");
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    uint32_t state = now();
    bly_snapshot out = {.struct_size = info->struct_size,
                        .state = state == BLYI_SNAPSHOT_DRAINING ? BLY_SNAPSHOT_LOCKED : state};
    blyi_away_sums(&out.away, &out.content);
    memcpy(info, &out, info->struct_size < sizeof out ? info->struct_size : sizeof out);
    return BLY_OK;
}
