/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_sink.c - writes one event.
 *
 * A thread that records says so by a flag of its own (busy) and then looks whether recording is
 * still on. It orders the two for the compiler alone; whoever stops a recording makes all
 * processors agree (membarrier) before he waits for the flags.
 */
#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/frame.h"
#include "observe/range.h"
#include "observe/recorder_inside.h"

struct blyi_sink blyi_rec_sink = {.probe = blyi_rec_probe, .wants_began = true};

/* For probes in signal handlers, which take no lock: whoever finds it taken loses the event. */
static struct blyi_recwriter handler_writer;
static atomic_flag handler_busy = ATOMIC_FLAG_INIT;

bool blyi_rec_is_on(uint32_t gen)
{
    return gen != 0 && atomic_load_explicit(&blyi_rec.gen, memory_order_acquire) == gen;
}

void blyi_rec_save(struct blyi_recsaved *saved)
{
    saved->error = errno;
    saved->code = blyi_fail_code();
    if (saved->code != BLY_OK)
        snprintf(saved->text, sizeof(saved->text), "%s", blyi_fail_text());
}

void blyi_rec_restore(const struct blyi_recsaved *saved)
{
    if (saved->code != BLY_OK)
        blyi_fail_put(saved->code, "%s", saved->text);
    else
        blyi_fail_clear();
    errno = saved->error;
}

void blyi_rec_fail_locked(bly_status status)
{
    if (atomic_load(&blyi_rec.gen) == 0)
        return;
    struct blyi_trace_header *header = blyi_rec.file.header;
    snprintf(blyi_rec.why, sizeof(blyi_rec.why), "%s", blyi_fail_text());
    blyi_rec.why_code = status;
    blyi_rec.stopped = true;
    memcpy(header->stop_text, blyi_rec.why, sizeof(header->stop_text));
    header->end_ns = blyi_clock_ns();
    __atomic_store_n(&header->state, BLYI_TRACE_STOPPED, __ATOMIC_RELEASE);
    atomic_store_explicit(&blyi_rec.gen, 0, memory_order_release);
    blyi_probe_set_kinds(&blyi_rec_sink, 0);
}

/* ── The sink ─────────────────────────────────────────────────────────────────────────────── */

/* The event's number or time is too far from what it is counted from. */
BLYI_COLD static void put_context(struct blyi_recwriter *writer, uint64_t seq, uint64_t time_ns)
{
    writer->context.seq = seq;
    writer->context.time_ns = time_ns;
    blyi_trace_put_context(writer->at, &writer->context);
    writer->at += BLYI_TRACE_CONTEXT_WORDS;
}

static inline void put(struct blyi_recwriter *writer, const struct blyi_probe *probe,
                       uint32_t stack)
{
    struct blyi_trace_header *header = atomic_load_explicit(&blyi_rec.header, memory_order_relaxed);
    /* One order of all events of the process; that it is also a fence costs nothing on x86. */
    uint64_t seq = __atomic_add_fetch(&header->n_events, 1, __ATOMIC_SEQ_CST);
    uint64_t seq_behind = seq - writer->context.seq;
    uint64_t ns_behind = probe->time_ns - writer->context.time_ns;
    if (unlikely(probe->time_ns < writer->context.time_ns || ns_behind > UINT32_MAX ||
                 seq_behind > UINT32_MAX)) {
        put_context(writer, seq, probe->time_ns);
        seq_behind = ns_behind = 0;
    }
    writer->at +=
        blyi_trace_put_event(writer->at, probe, stack, (uint32_t)seq_behind, (uint32_t)ns_behind);
    writer->last_seq = seq;
    /* Release: what is counted is there, whenever the process dies. */
    __atomic_store_n(&writer->chunk->used,
                     (uint32_t)((char *)writer->at - (char *)(writer->chunk + 1)),
                     __ATOMIC_RELEASE);
}

/* An event that happened and is not written. */
static void lose(void)
{
    atomic_fetch_add_explicit(&blyi_rec.n_lost, 1, memory_order_relaxed);
}

/* Those that were lost get numbers, which are missing in the file then. */
void blyi_rec_number_lost_locked(void)
{
    uint64_t n = atomic_exchange_explicit(&blyi_rec.n_lost, 0, memory_order_relaxed);
    if (n > 0)
        __atomic_add_fetch(&blyi_rec.file.header->n_events, n, __ATOMIC_RELAXED);
}

static bool has_name(enum blyi_probe_kind kind)
{
    return kind == BLYI_PROBE_MARK || kind == BLYI_PROBE_TAG || kind == BLYI_PROBE_RANGE_START ||
           kind == BLYI_PROBE_RANGE_STOP;
}

static bool has_path(enum blyi_probe_kind kind)
{
    return kind == BLYI_PROBE_RANGE_PUSH || kind == BLYI_PROBE_RANGE_POP;
}

/* Kinds that take more than their own fields to write. */
static bool is_special(enum blyi_probe_kind kind)
{
    return has_name(kind) || has_path(kind) || kind == BLYI_PROBE_CARD_OPEN;
}

/* The file knows all ids of the event. */
static bool is_prepared(const struct blyi_recwriter *writer, const struct blyi_probe *probe,
                        uint32_t range)
{
    if (probe->site != 0 && !blyi_idset_has(&blyi_rec.sites, probe->site))
        return false;
    if (likely(range == writer->context.range && !is_special(probe->kind)))
        return true;
    if (range != writer->context.range && range != 0 && !blyi_idset_has(&blyi_rec.paths, range))
        return false;
    if (has_name(probe->kind))
        return blyi_idset_has(&blyi_rec.names, probe->event);
    if (has_path(probe->kind))
        return blyi_idset_has(&blyi_rec.paths, probe->event);
    return probe->kind != BLYI_PROBE_CARD_OPEN; /* whose card is written with it */
}

/* The handlers' chunk is full: they cannot take another one themselves. */
static bly_status refill_handlers_locked(uint32_t gen)
{
    bly_status status = BLY_OK;
    if (handler_writer.at < handler_writer.end ||
        atomic_flag_test_and_set_explicit(&handler_busy, memory_order_acquire))
        return BLY_OK;
    if (handler_writer.at >= handler_writer.end)
        status = blyi_rec_chunk_locked(&handler_writer, gen);
    atomic_flag_clear_explicit(&handler_busy, memory_order_release);
    return status;
}

static bly_status prepare_locked(struct blyi_recthread *thread, uint32_t gen,
                                 const struct blyi_probe *probe)
{
    struct blyi_recwriter *writer = &thread->writer;
    bly_status status = BLY_OK;
    blyi_rec_number_lost_locked();
    if (writer->gen != gen)
        status = blyi_rec_name_thread_locked(thread);
    if (status == BLY_OK)
        status = refill_handlers_locked(gen);
    if (status == BLY_OK)
        status = blyi_rec_path_locked(blyi_range_current());
    if (status == BLY_OK && (writer->gen != gen || writer->at >= writer->end))
        status = blyi_rec_chunk_locked(writer, gen);
    writer->context.thread = thread->number;
    if (status == BLY_OK)
        status = blyi_rec_site_locked(probe->site);
    if (status == BLY_OK && has_name(probe->kind))
        status = blyi_rec_name_locked(probe->event);
    if (status == BLY_OK && has_path(probe->kind))
        status = blyi_rec_path_locked(probe->event);
    if (probe->kind == BLYI_PROBE_CARD_OPEN && status == BLY_OK)
        status = blyi_rec_card_locked(probe->card, probe->size, (uint64_t)probe->aux);
    return status;
}

/* Frames of the machine cost most, and lines of a script may fill the stack. */
static bool wants_frames(uint32_t site)
{
    struct blyi_frames_here here;
    return blyi_rec.stack_depth > 0 && site != 0 &&
           (!blyi_frames_here(site, &here) || here.frames->n < blyi_rec.stack_depth);
}

BLYI_COLD static bool prepare(struct blyi_recthread *thread, uint32_t gen,
                              const struct blyi_probe *probe, uint32_t *stack)
{
    struct blyi_recsaved saved;
    void *pcs[BLYI_TRACE_STACK_MAX + 16];
    int n = 0;
    blyi_rec_save(&saved);
    if (wants_frames(probe->site))
        n = backtrace(pcs, (int)blyi_rec.stack_depth + 16);
    blyi_lock_take(&blyi_rec.lock);
    bool on = blyi_rec_is_on(gen);
    if (on) {
        bly_status status = prepare_locked(thread, gen, probe);
        if (status == BLY_OK && blyi_rec.stack_depth > 0)
            status = blyi_rec_stack_locked(pcs, (size_t)n, probe->site, stack);
        if (status != BLY_OK)
            blyi_rec_fail_locked(status);
        on = status == BLY_OK;
    }
    blyi_lock_drop(&blyi_rec.lock);
    blyi_rec_restore(&saved);
    return on;
}

/* A block's event and its entry in the table go together. False: it is not of a block. */
static bool put_block(struct blyi_recthread *thread, uint32_t gen, const struct blyi_probe *probe,
                      uint32_t stack)
{
    bool makes;
    int class_ = blyi_trace_class_of(probe->kind, &makes);
    if (class_ < 0)
        return false;
    struct blyi_recsaved saved;
    blyi_rec_save(&saved);
    blyi_lock_take(&blyi_rec.lock);
    if (blyi_rec_is_on(gen)) {
        struct blyi_trace_block block;
        bly_status status = BLY_OK;
        put(&thread->writer, probe, stack);
        if (makes) {
            blyi_trace_block_make(&block, probe, class_, thread->writer.last_seq, stack);
            status = blyi_rec_live_add_locked(&block);
        } else {
            blyi_rec_live_remove_locked(probe->address, class_);
        }
        if (status != BLY_OK)
            blyi_rec_fail_locked(status);
    }
    blyi_lock_drop(&blyi_rec.lock);
    blyi_rec_restore(&saved);
    return true;
}

/* Ranges follow from the events that begin and end them; what else changed needs a context. */
static void follow_range(struct blyi_recwriter *writer, const struct blyi_probe *probe,
                         uint32_t range)
{
    if (likely(range == writer->context.range))
        return;
    if (probe->kind == BLYI_PROBE_RANGE_PUSH &&
        blyi_path_get(range).parent == writer->context.range)
        return;
    writer->context.range = range;
    writer->context.time_ns = UINT64_MAX;
}

static void record(struct blyi_recthread *thread, uint32_t gen, const struct blyi_probe *probe)
{
    struct blyi_recwriter *writer = &thread->writer;
    uint32_t stack = 0, range = blyi_range_current();
    if (unlikely(writer->gen != gen || blyi_rec.stack_depth > 0 || writer->at >= writer->end ||
                 !is_prepared(writer, probe, range)) &&
        !prepare(thread, gen, probe, &stack))
        return;
    follow_range(writer, probe, range);
    if (blyi_rec.ring == 0 || !put_block(thread, gen, probe, stack))
        put(writer, probe, stack);
    if (probe->kind == BLYI_PROBE_RANGE_PUSH)
        writer->context.range = probe->event;
    else if (probe->kind == BLYI_PROBE_RANGE_POP)
        writer->context.range = blyi_path_get(probe->event).parent;
}

/* In a signal handler: no lock, no memory, no thread-local storage that may not be there yet. */
BLYI_COLD static void record_in_handler(const struct blyi_probe *probe, uint32_t gen)
{
    if (atomic_flag_test_and_set_explicit(&handler_busy, memory_order_acquire)) {
        lose();
        return;
    }
    struct blyi_recwriter *writer = &handler_writer;
    if (!blyi_rec_is_on(gen))
        ;
    else if (writer->gen != gen || writer->at >= writer->end ||
             (probe->site != 0 && !blyi_idset_has(&blyi_rec.sites, probe->site)))
        lose();
    else
        put(writer, probe, 0);
    atomic_flag_clear_explicit(&handler_busy, memory_order_release);
}

static bool is_oom(const struct blyi_probe *probe)
{
    return probe->kind == BLYI_PROBE_ALLOC_FAIL &&
           (probe->aux == BLY_E_NO_MEMORY || probe->aux == BLY_E_CAP);
}

void blyi_rec_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    uint32_t gen = atomic_load_explicit(&blyi_rec.gen, memory_order_acquire);
    if (gen == 0)
        return;
    if (unlikely(probe->kind == BLYI_PROBE_HOST_ACCESS)) {
        record_in_handler(probe, gen);
        return;
    }
    struct blyi_recthread *thread = blyi_rec_thread();
    if (unlikely(thread == NULL || atomic_load_explicit(&thread->busy, memory_order_relaxed))) {
        lose(); /* no host memory, or a signal handler that uses a card within the recorder */
        return;
    }
    atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* see above */
    if (likely(blyi_rec_is_on(gen)))
        record(thread, gen, probe);
    atomic_store_explicit(&thread->busy, false, memory_order_release);
    if (unlikely(is_oom(probe)) && blyi_rec.ring > 0)
        blyi_rec_dump_at_oom(gen);
}

bly_status blyi_rec_handlers_begin_locked(uint32_t gen)
{
    handler_writer.gen = 0;
    handler_writer.context = (struct blyi_trace_context){0};
    return blyi_rec_chunk_locked(&handler_writer, gen);
}

bool blyi_rec_handlers_quiet(void)
{
    if (atomic_flag_test_and_set(&handler_busy))
        return false;
    atomic_flag_clear(&handler_busy);
    return true;
}

void blyi_rec_handlers_forget(void)
{
    atomic_flag_clear(&handler_busy);
}
