/* SPDX-License-Identifier: Apache-2.0 */
/* A process that stands still: who waits, what is refused, and memory that goes and comes back. */
#include "card_test.h"
#include "order_test.h"

#include <errno.h>

#include <belay/card.h>
#include <belay/snapshot.h>
#include "base/compiler.h"
#include "npu/exception.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/share.h"
#include "npu/snapshot.h"
#include "npu/vmm.h"

#define FRAME (2 * MiB)

static bly_status try_alloc(uint64_t size, enum blyi_mem_policy policy, uint32_t flags,
                            void **address)
{
    struct blyi_mem_request request = {
        .asked = size, .rounded = size, .policy = policy, .flags = flags, .module = 33};
    return blyi_mem_alloc(card_here(), &request, address);
}

static void *alloc(uint64_t size, enum blyi_mem_policy policy, uint32_t flags)
{
    void *address = NULL;
    assert_ok(try_alloc(size, policy, flags, &address));
    return address;
}

static bool is_running(void)
{
    return __atomic_load_n(&blyi_snapshot_now, __ATOMIC_ACQUIRE) == BLYI_SNAPSHOT_RUNNING;
}

static void audit(void)
{
    assert_true(blyi_card_audit(card_here()));
    assert_true(blyi_vmm_audit());
}

static bly_snapshot info(void)
{
    bly_snapshot out = {.struct_size = sizeof out};
    assert_ok(bly_snapshot_info(&out));
    return out;
}

static struct blyi_mem_figures figures(void)
{
    struct blyi_mem_figures out;
    blyi_mem_figures(card_here(), &out);
    assert_int_equal(out.free + out.live + out.overhead, out.total);
    return out;
}

/* One of everything that a card's memory is made of. */
struct things {
    void *huge, *tailed, *small[6], *untouched, *contiguous, *readonly, *low, *handle, *orphan;
    uintptr_t a, b;
};

static void make(struct things *t)
{
    t->huge = alloc(4 * FRAME, BLYI_MEM_HUGE_ONLY, 0);
    t->tailed = alloc(FRAME + 64 * KiB, BLYI_MEM_NORMAL_ONLY, 0);
    for (int i = 0; i < 6; i++) {
        t->small[i] = alloc(12 * KiB, BLYI_MEM_NORMAL_ONLY, 0);
        fill(t->small[i], 12 * KiB, 0x40 + i);
    }
    t->untouched = alloc(3 * FRAME, BLYI_MEM_HUGE_ONLY, 0);
    t->contiguous = alloc(3 * FRAME + 4 * KiB, BLYI_MEM_NORMAL_ONLY, BLYI_MEM_CONTIGUOUS);
    t->readonly = alloc(FRAME, BLYI_MEM_HUGE_ONLY, BLYI_MEM_READONLY);
    t->low = alloc(8 * KiB, BLYI_MEM_NORMAL_ONLY, BLYI_MEM_LOW);
    t->handle = handle_of(2 * FRAME, false);
    t->orphan = handle_of(FRAME, true);
    t->a = map(t->handle, 2 * FRAME);
    t->b = map(t->handle, 2 * FRAME);
    fill(t->huge, 4 * FRAME, 1);
    fill(t->tailed, FRAME + 64 * KiB, 2);
    fill(t->contiguous, 3 * FRAME + 4 * KiB, 3);
    fill(t->low, 8 * KiB, 4);
    fill((void *)t->a, 2 * FRAME, 5);
}

static void check_all(const struct things *t)
{
    check(t->huge, 4 * FRAME, 1);
    check(t->tailed, FRAME + 64 * KiB, 2);
    for (int i = 0; i < 6; i++)
        check(t->small[i], 12 * KiB, 0x40 + i);
    check(t->contiguous, 3 * FRAME + 4 * KiB, 3);
    check(t->low, 8 * KiB, 4);
    check((void *)t->b, 2 * FRAME, 5);
    fill((void *)t->b, 2 * FRAME, 6);
    check((void *)t->a, 2 * FRAME, 6); /* both lead to the same frames */
    fill((void *)t->a, 2 * FRAME, 5);
    assert_status(blyi_set_now(t->readonly, 1, 8), BLY_E_FAULT);
    fill(t->untouched, 3 * FRAME, 9);
    check(t->untouched, 3 * FRAME, 9);
    audit();
}

static void unmake(struct things *t)
{
    assert_ok(blyi_mem_free(t->huge, 1));
    assert_ok(blyi_mem_free(t->tailed, 1));
    for (int i = 0; i < 6; i++)
        assert_ok(blyi_mem_free(t->small[i], 1));
    assert_ok(blyi_mem_free(t->untouched, 1));
    assert_ok(blyi_mem_free(t->contiguous, 1));
    assert_ok(blyi_mem_free(t->readonly, 1));
    assert_ok(blyi_mem_free(t->low, 1));
    assert_ok(blyi_mapping_remove(t->a, 1));
    assert_ok(blyi_mapping_remove(t->b, 1));
    assert_ok(blyi_vmm_release(t->a, 1));
    assert_ok(blyi_vmm_release(t->b, 1));
    assert_ok(blyi_physical_release(t->handle, 1));
    assert_ok(blyi_physical_release(t->orphan, 1));
}

/* 4 huge, 1 + tail, small ones in that tail's frame, 3 untouched, 3 + tail contiguous, 1 read-only,
 * low pages in a frame that is there, 2 + 1 behind handles. */
#define FRAMES_OF_THINGS (4 + 2 + 3 + 4 + 1 + 2 + 1)
#define TOUCHED          (4 + 2 + 4 + 2)

static void memory_goes_and_comes_back(void **state)
{
    (void)state;
    struct things t;
    uint64_t free_before = figures().free;
    make(&t);
    struct blyi_mem_figures before = figures();
    assert_ok(blyi_snapshot_lock());
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    assert_int_equal(figures().free, before.free);
    for (int round = 0; round < 3; round++) {
        assert_ok(blyi_snapshot_backup());
        struct blyi_mem_figures away = figures();
        assert_int_equal(info().state, BLY_SNAPSHOT_BACKED_UP);
        assert_int_equal(info().away, FRAMES_OF_THINGS * FRAME);
        if (round == 0) /* later frames come with pages of the host, touched or not */
            assert_int_equal(info().content, TOUCHED * FRAME);
        assert_int_equal(away.free, away.total); /* the overhead too */
        assert_int_equal(away.live, 0);
        assert_int_equal(away.blocks, before.blocks);
        audit();
        assert_ok(blyi_snapshot_restore());
        assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
        assert_int_equal(info().away, 0);
        assert_int_equal(figures().free, before.free);
        assert_int_equal(figures().live, before.live);
        check_all(&t); /* the keeper's calls pass */
    }
    assert_ok(blyi_snapshot_unlock());
    assert_int_equal(info().state, BLY_SNAPSHOT_RUNNING);
    check_all(&t);
    unmake(&t);
    assert_int_equal(figures().free, free_before);
    audit();
}

static void unlock_brings_memory_back(void **state)
{
    (void)state;
    struct things t;
    make(&t);
    assert_ok(blyi_snapshot_lock());
    assert_ok(blyi_snapshot_backup());
    assert_ok(blyi_snapshot_unlock());
    check_all(&t);
    unmake(&t);
}

static void states_are_kept(void **state)
{
    (void)state;
    assert_status(blyi_snapshot_backup(), BLY_E_STATE);
    assert_sentence("the process is RUNNING, not LOCKED");
    assert_status(blyi_snapshot_restore(), BLY_E_STATE);
    assert_status(blyi_snapshot_unlock(), BLY_E_STATE);
    assert_sentence("the process is RUNNING, not LOCKED or BACKED_UP");
    assert_ok(blyi_snapshot_lock());
    assert_status(blyi_snapshot_lock(), BLY_E_STATE);
    assert_sentence("the process is LOCKED, not RUNNING");
    assert_status(blyi_snapshot_restore(), BLY_E_STATE);
    assert_sentence("the process is LOCKED, not BACKED_UP");
    assert_ok(blyi_snapshot_backup());
    assert_status(blyi_snapshot_backup(), BLY_E_STATE);
    assert_sentence("the process is BACKED_UP, not LOCKED");
    assert_ok(blyi_snapshot_restore());
    assert_ok(blyi_snapshot_unlock());
    assert_ok(blyi_snapshot_lock());
    assert_ok(blyi_snapshot_unlock());
}

/* Nobody else could end the keeper's wait. */
static void the_keeper_is_refused_while_memory_is_away(void **state)
{
    (void)state;
    void *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0), *other = NULL, *made = NULL;
    void *stream = new_stream(), *event = new_event(MODERN), *handle = handle_of(FRAME, false);
    uintptr_t at = map(handle, FRAME), reserved = 0;
    char byte;
    assert_ok(blyi_snapshot_lock());
    assert_ok(blyi_snapshot_backup());
    assert_status(try_alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0, &other), BLY_E_STATE);
    assert_sentence("the card memory of this process is in host memory");
    assert_status(blyi_mem_free(block, 1), BLY_E_STATE);
    assert_status(blyi_copy_now(&byte, block, 1), BLY_E_STATE);
    assert_status(blyi_set_now(block, 1, 1), BLY_E_STATE);
    assert_status(blyi_set_async(block, 1, 1, stream, 1), BLY_E_STATE);
    assert_status(blyi_event_record(event, stream, 1), BLY_E_STATE);
    assert_status(blyi_stream_create(0, 0, 0, &made), BLY_E_STATE);
    assert_status(blyi_stream_destroy(stream, false), BLY_E_STATE);
    assert_status(blyi_event_create(PLAIN, MODERN, 0, &made), BLY_E_STATE);
    assert_status(blyi_event_destroy(event), BLY_E_STATE);
    assert_status(blyi_physical_release(handle, 1), BLY_E_STATE);
    assert_status(blyi_mapping_remove(at, 1), BLY_E_STATE);
    assert_status(blyi_mapping_grant(at, FRAME, 0), BLY_E_STATE);
    assert_status(blyi_vmm_reserve(FRAME, 0, 0, 1, &reserved), BLY_E_STATE);
    assert_status(blyi_pinned_alloc(4096, 4096, 0, 33, &made), BLY_E_STATE);
    assert_status(blyi_device_set(0, 0), BLY_E_STATE);
    assert_status(blyi_device_reset(0, true), BLY_E_STATE);
    assert_status(blyi_context_create(0, 0, &made), BLY_E_STATE);
    bly_defrag d = {.struct_size = sizeof d};
    assert_status(bly_card_defrag(&d), BLY_E_STATE);
    assert_sentence("defragmentation:");
    assert_ok(blyi_device_sync(0)); /* nothing is queued */
    blyi_runtime_finalise();        /* refused, with a line in the log */
    assert_int_equal(info().state, BLY_SNAPSHOT_BACKED_UP);
    audit();
    assert_ok(blyi_snapshot_unlock());
    assert_ok(blyi_mem_free(block, 1));
    assert_ok(blyi_mapping_remove(at, 1));
    assert_ok(blyi_physical_release(handle, 1));
    audit();
}

/* ── Other threads ────────────────────────────────────────────────────────────────────────── */

struct worker {
    void *block, *stream, *got;
    uint32_t ready, go, before, after; /* it may call; it is about to; its calls have returned */
    int what;
};

static void wait_for(const uint32_t *word)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
}

static void *works(void *arg)
{
    struct worker *w = arg;
    char byte = 0;
    require(blyi_device_set(0, 0) == BLY_OK);
    __atomic_store_n(&w->ready, 1, __ATOMIC_RELEASE);
    wait_for(&w->go);
    __atomic_store_n(&w->before, 1, __ATOMIC_RELEASE);
    switch (w->what) {
    case 0:
        require(try_alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0, &w->got) == BLY_OK);
        break;
    case 1:
        require(blyi_copy_now(&byte, w->block, 1) == BLY_OK && byte == 7);
        break;
    default:
        require(blyi_set_async(w->block, 9, FRAME, w->stream, 1) == BLY_OK);
        require(blyi_stream_sync(w->stream, 0) == BLY_OK);
        break;
    }
    __atomic_store_n(&w->after, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* They begin when the process is not RUNNING, and end after unlock: whatever they are at, none has
 * returned while memory was away, and each finds its memory. */
static void other_threads_wait(void **state)
{
    (void)state;
    void *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
    fill(block, FRAME, 7);
    for (int what = 0; what < 3; what++) {
        pthread_t thread;
        struct worker w = {.block = block, .stream = new_stream(), .what = what};
        assert_int_equal(pthread_create(&thread, NULL, works, &w), 0);
        wait_for(&w.ready);
        assert_ok(blyi_snapshot_lock());
        __atomic_store_n(&w.go, 1, __ATOMIC_RELEASE);
        wait_for(&w.before);
        assert_ok(blyi_snapshot_backup());
        assert_int_equal(__atomic_load_n(&w.after, __ATOMIC_ACQUIRE), 0);
        assert_int_equal(figures().free, figures().total);
        assert_ok(blyi_snapshot_restore());
        assert_int_equal(__atomic_load_n(&w.after, __ATOMIC_ACQUIRE), 0);
        assert_ok(blyi_snapshot_unlock());
        pthread_join(thread, NULL);
        assert_int_equal(w.after, 1);
        if (what == 2)
            check(block, FRAME, 9);
        if (w.got)
            assert_ok(blyi_mem_free(w.got, 1));
        assert_ok(blyi_stream_destroy(w.stream, false));
    }
    audit();
}

/* The lock is the process's: another thread may go on with it. */
static void *backs_up_and_unlocks(void *arg)
{
    (void)arg;
    require(blyi_snapshot_backup() == BLY_OK);
    require(blyi_snapshot_restore() == BLY_OK);
    require(blyi_snapshot_unlock() == BLY_OK);
    return NULL;
}

static void another_thread_may_unlock(void **state)
{
    (void)state;
    void *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
    fill(block, FRAME, 3);
    assert_ok(blyi_snapshot_lock());
    in_thread(backs_up_and_unlocks, NULL);
    check(block, FRAME, 3);
}

/* ── Queued work ──────────────────────────────────────────────────────────────────────────── */

static void calls_back(void *arg)
{
    struct worker *w = arg;
    while (is_running())
        sched_yield(); /* the lock is waiting for this very function */
    require(blyi_device_set(0, 0) == BLY_OK);
    require(try_alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0, &w->got) == BLY_OK);
    require(blyi_set_now(w->got, 8, FRAME) == BLY_OK);
}

/* What is queued ends before the process is LOCKED, and what it calls is part of it. */
static void queued_work_ends_first(void **state)
{
    (void)state;
    struct worker w = {.block = alloc(8 * FRAME, BLYI_MEM_HUGE_ONLY, 0), .stream = new_stream()};
    assert_ok(blyi_callback_host_func(w.stream, calls_back, &w, 1));
    for (int i = 0; i < 100; i++)
        assert_ok(blyi_set_async(w.block, (uint8_t)i, 8 * FRAME, w.stream, 1));
    assert_ok(blyi_snapshot_lock());
    assert_true(is_idle(w.stream));
    assert_ok(blyi_snapshot_backup());
    assert_ok(blyi_snapshot_unlock());
    check(w.block, 8 * FRAME, 99);
    check(w.got, FRAME, 8);
}

static void *of_exception;
static uint32_t heard_of_failure;

static void hears_of_failure(const struct blyi_exception *exception)
{
    (void)exception;
    while (is_running())
        sched_yield();
    require(blyi_device_set(0, 0) == BLY_OK);
    require(try_alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0, &of_exception) == BLY_OK);
    heard_of_failure++;
}

/* The same for callbacks that run on an engine. */
static void failures_are_told_first(void **state)
{
    (void)state;
    void *stream = new_stream(), *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
    blyi_exception_listen(hears_of_failure);
    assert_ok(blyi_mem_free(block, 1));
    assert_ok(blyi_set_async(block, 1, FRAME, stream, 1));
    assert_ok(blyi_snapshot_lock());
    assert_int_equal(heard_of_failure, 1);
    assert_ok(blyi_snapshot_backup());
    assert_ok(blyi_snapshot_unlock());
    blyi_exception_listen(NULL);
    fill(of_exception, FRAME, 1);
}

static void a_stream_that_never_ends_is_named(void **state)
{
    (void)state;
    void *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0), *stream = new_stream();
    assert_ok(blyi_option_set(BLYI_OPT_SNAPSHOT_WAIT_MS, "20"));
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_set_async(block, 1, FRAME, stream, 1));
    assert_status(blyi_snapshot_lock(), BLY_E_TIMEOUT);
    assert_sentence("1 task has not ended within 20 ms (BELAY_SNAPSHOT_WAIT_MS)");
    assert_int_equal(info().state, BLY_SNAPSHOT_RUNNING);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_option_set(BLYI_OPT_SNAPSHOT_WAIT_MS, "60000"));
    assert_ok(blyi_snapshot_lock());
    assert_ok(blyi_snapshot_unlock());
}

/* ── Listeners ────────────────────────────────────────────────────────────────────────────── */

static enum blyi_snapshot_stage told[16];
static uint32_t states_told[16];
static int n_told, refuse_at;
static bool calls_again;

static bly_status hears(enum blyi_snapshot_stage stage)
{
    told[n_told] = stage;
    states_told[n_told++] = info().state;
    if (calls_again) {
        assert_status(blyi_snapshot_unlock(), BLY_E_STATE);
        assert_sentence("another snapshot call of this process is under way");
    }
    return (int)stage == refuse_at ? blyi_fail(BLY_E_CANCELLED, "not this time") : BLY_OK;
}

static void begin_hearing(int refuse, bool again)
{
    n_told = 0;
    refuse_at = refuse;
    calls_again = again;
    blyi_snapshot_listen(hears);
}

static void listeners_hear_in_order(void **state)
{
    (void)state;
    static const uint32_t expected[] = {BLY_SNAPSHOT_RUNNING,   BLY_SNAPSHOT_LOCKED,
                                        BLY_SNAPSHOT_BACKED_UP, BLY_SNAPSHOT_BACKED_UP,
                                        BLY_SNAPSHOT_LOCKED,    BLY_SNAPSHOT_RUNNING};
    begin_hearing(-1, true);
    assert_ok(blyi_snapshot_lock());
    assert_ok(blyi_snapshot_backup());
    assert_ok(blyi_snapshot_restore());
    assert_ok(blyi_snapshot_unlock());
    assert_int_equal(n_told, BLYI_SNAPSHOT_STAGES);
    for (int i = 0; i < n_told; i++) {
        assert_int_equal(told[i], i);
        assert_int_equal(states_told[i], expected[i]);
    }
    blyi_snapshot_listen(NULL);
}

static void a_refusal_stops_what_is_under_way(void **state)
{
    (void)state;
    struct things t;
    make(&t);
    uint64_t free_now = figures().free;
    begin_hearing(BLYI_SNAPSHOT_LOCK_PRE, false);
    assert_status(blyi_snapshot_lock(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_RUNNING);
    begin_hearing(BLYI_SNAPSHOT_BACKUP_PRE, false);
    assert_ok(blyi_snapshot_lock());
    assert_status(blyi_snapshot_backup(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    begin_hearing(BLYI_SNAPSHOT_BACKUP_POST, false);
    assert_status(blyi_snapshot_backup(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    assert_int_equal(figures().free, free_now);
    check_all(&t);
    begin_hearing(BLYI_SNAPSHOT_RESTORE_PRE, false);
    assert_ok(blyi_snapshot_backup());
    assert_status(blyi_snapshot_restore(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_BACKED_UP);
    begin_hearing(BLYI_SNAPSHOT_RESTORE_POST, false);
    assert_status(blyi_snapshot_restore(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    check_all(&t);
    begin_hearing(BLYI_SNAPSHOT_UNLOCK_POST, false);
    assert_status(blyi_snapshot_unlock(), BLY_E_CANCELLED);
    assert_int_equal(info().state, BLY_SNAPSHOT_RUNNING);
    blyi_snapshot_listen(NULL);
    unmake(&t);
    audit();
}

/* ── What fails ───────────────────────────────────────────────────────────────────────────── */

static void models_without_snapshots(void **state)
{
    (void)state;
    assert_ok(blyi_option_set(BLYI_OPT_MODEL, "910"));
    assert_status(blyi_snapshot_lock(), BLY_E_UNSUPPORTED);
    assert_sentence("model 910 has no snapshots");
    assert_ok(blyi_option_set(BLYI_OPT_MODEL, "910B"));
}

static void exported_memory_is_refused(void **state)
{
    (void)state;
    char key[BLYI_KEY_TEXT_SIZE];
    void *block = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
    fill(block, FRAME, 5);
    assert_ok(blyi_ipc_export(block, FRAME, 0, 1, key));
    assert_ok(blyi_snapshot_lock());
    assert_status(blyi_snapshot_backup(), BLY_E_STATE);
    assert_sentence("2097152 B (2 MiB) are exported to other processes, made at");
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    audit();
    assert_ok(blyi_ipc_close(key, 1));
    assert_ok(blyi_snapshot_backup());
    assert_ok(blyi_snapshot_unlock());
    check(block, FRAME, 5);
}

static void the_host_must_have_room(void **state)
{
    (void)state;
    void *block = alloc(16 * FRAME, BLYI_MEM_HUGE_ONLY, 0);
    fill(block, 16 * FRAME, 5);
    assert_ok(blyi_option_set(BLYI_OPT_HOST_LIMIT, "48MiB"));
    assert_ok(blyi_snapshot_lock());
    assert_status(blyi_snapshot_backup(), BLY_E_HOST_MEMORY);
    assert_sentence("to hold the 33554432 B (32 MiB) that are on the card");
    assert_int_equal(info().state, BLY_SNAPSHOT_LOCKED);
    audit();
    assert_ok(blyi_option_set(BLYI_OPT_HOST_LIMIT, "0"));
    assert_ok(blyi_snapshot_unlock());
    check(block, 16 * FRAME, 5);
}

/* Every host allocation and system call in turn fails once, in backup or in restore. */
static void fail_at(bool system, bool in_restore, struct things *t, bool *ended)
{
    static uint64_t nth;
    nth = *ended ? 1 : nth + 1;
    bly_status status;
    assert_ok(blyi_snapshot_lock());
    if (in_restore)
        assert_ok(blyi_snapshot_backup());
    if (system)
        blyi_sys_fail_nth(nth, ENOMEM);
    else
        blyi_host_fail_nth(nth);
    status = in_restore ? blyi_snapshot_restore() : blyi_snapshot_backup();
    *ended = system ? !blyi_sys_failed() : !blyi_host_failed();
    blyi_sys_fail_nth(0, 0);
    blyi_host_fail_nth(0);
    assert_true(status == BLY_OK || status == BLY_E_SYSTEM || status == BLY_E_HOST_MEMORY);
    assert_int_equal(info().state, (status == BLY_OK) != in_restore ? BLY_SNAPSHOT_BACKED_UP
                                                                    : BLY_SNAPSHOT_LOCKED);
    audit();
    assert_ok(blyi_snapshot_unlock());
    check_all(t);
}

static void failures(void **state)
{
    (void)state;
    struct things t;
    uint64_t free_before = figures().free;
    make(&t);
    for (int system = 0; system < 2; system++)
        for (int in_restore = 0; in_restore < 2; in_restore++) {
            bool ended = true;
            int runs = 0;
            do {
                fail_at(system, in_restore, &t, &ended);
                runs++;
            } while (!ended);
            /* the lists of frames have their room from backup on */
            assert_true(runs > 1 || (!system && in_restore));
        }
    unmake(&t);
    assert_int_equal(figures().free, free_before);
    audit();
}

int main(void)
{
    keep_fault_handler();
    if (blyi_option_set(BLYI_OPT_HBM, "128MiB") != BLY_OK ||
        blyi_option_set(BLYI_OPT_CARDS, "2") != BLY_OK ||
        blyi_option_set(BLYI_OPT_VMM_WINDOW, "4GiB") != BLY_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        order_test(memory_goes_and_comes_back),
        order_test(unlock_brings_memory_back),
        order_test(states_are_kept),
        order_test(the_keeper_is_refused_while_memory_is_away),
        order_test(other_threads_wait),
        order_test(another_thread_may_unlock),
        order_test(queued_work_ends_first),
        order_test(failures_are_told_first),
        order_test(a_stream_that_never_ends_is_named),
        order_test(listeners_hear_in_order),
        order_test(a_refusal_stops_what_is_under_way),
        order_test(models_without_snapshots),
        order_test(exported_memory_is_refused),
        order_test(the_host_must_have_room),
        order_test(failures),
    };
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
