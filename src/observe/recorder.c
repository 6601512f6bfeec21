/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.c - start, stop, and what is told in between. Where the kernel cannot make all
 * processors agree that a recording has stopped, its file stays mapped.
 */
#include <assert.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/frame.h"
#include "base/log.h"
#include "base/option.h"
#include "base/site.h"
#include "observe/module.h"
#include "observe/check.h"
#include "observe/recorder_inside.h"

#define QUIET_WAIT_MS  2000
#define FINISH_WAIT_MS 2000

struct blyi_recorder blyi_rec = {.lock = BLYI_LOCK_INIT(BLYI_RANK_OBSERVE)};

/* One start, stop or dump at a time. */
static struct blyi_lock control = BLYI_LOCK_INIT(BLYI_RANK_RECORD);

/* ── What is there when recording begins ──────────────────────────────────────────────────── */

struct told {
    uint32_t gen;
    uint32_t n_cards;
};

static bly_status tell_locked(const struct blyi_probe *probe, int class_)
{
    struct blyi_trace_block block;
    blyi_trace_block_make(&block, probe, class_, 0, 0);
    block.site = 0; /* where it was made is not part of what was recorded */
    block.flags = BLYI_TRACE_BEFORE;
    bly_status status =
        blyi_recfile_meta(&blyi_rec.file, BLYI_TRACE_META_BLOCK, &block, sizeof(block), NULL, 0);
    if (status == BLY_OK && blyi_rec.ring > 0)
        status = blyi_rec_live_add_locked(&block);
    return status;
}

static void on_told(void *arg, const struct blyi_probe *probe)
{
    struct told *told = arg;
    bool makes;
    int class_ = blyi_trace_class_of(probe->kind, &makes);
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_rec.lock);
    if (blyi_rec_is_on(told->gen)) {
        if (probe->kind == BLYI_PROBE_CARD_OPEN) {
            told->n_cards++;
            blyi_rec.file.header->flags |= BLYI_TRACE_LATE;
            status = blyi_rec_card_locked(probe->card, probe->size, (uint64_t)probe->aux);
        } else if (class_ >= 0 && makes) {
            status = tell_locked(probe, class_);
        }
        if (status != BLY_OK)
            blyi_rec_fail_locked(status);
    }
    blyi_lock_drop(&blyi_rec.lock);
}

/* ── Start ────────────────────────────────────────────────────────────────────────────────── */

static void fill_header(struct blyi_trace_header *header, const struct blyi_recorder_opts *opts,
                        uint32_t flags)
{
    char program[PATH_MAX];
    *header = (struct blyi_trace_header){.version = BLYI_TRACE_VERSION,
                                         .order = BLYI_TRACE_ORDER,
                                         .header_size = BLYI_TRACE_HEADER,
                                         .chunk_size = BLYI_TRACE_CHUNK,
                                         .ring = opts->ring,
                                         .first_seq = 1,
                                         .start_ns = blyi_clock_ns(),
                                         .start_wall_ns = blyi_clock_wall_ns(),
                                         .pid = (uint32_t)getpid(),
                                         .flags = flags,
                                         .stack_depth = opts->stack_depth,
                                         .kinds = BLYI_PROBE_COUNT};
    memcpy(header->magic, BLYI_TRACE_MAGIC, sizeof(header->magic));
    if (blyi_clock_is_virtual())
        header->flags |= BLYI_TRACE_VIRTUAL;
    blyi_module_program(program);
    snprintf(header->program, sizeof(header->program), "%.1023s", program);
    snprintf(header->writer, sizeof(header->writer), "%s", bly_version());
}

static void on_fork_child(void)
{
    atomic_store(&blyi_rec.gen, 0);
    blyi_rec_handlers_forget();
    blyi_lock_init(&blyi_rec.lock, BLYI_RANK_OBSERVE);
    blyi_lock_init(&control, BLYI_RANK_RECORD);
    if (blyi_rec.file.header != NULL) {
        atomic_store(&blyi_rec.header, NULL);
        blyi_recfile_forget(&blyi_rec.file);
    }
    blyi_probe_silence(&blyi_rec_sink);
    blyi_rec_forget_threads();
    blyi_rec.stopped = false;
}

static void first_start(void)
{
    void *pc;
    blyi_map_init(&blyi_rec.modules);
    blyi_map_init(&blyi_rec.stacks);
    pthread_atfork(NULL, NULL, on_fork_child);
    (void)backtrace(&pc, 1); /* loads what it needs, which must not happen under locks */
    blyi_probe_add_sink(&blyi_rec_sink);
}

static void prepare_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, first_start);
    (void)blyi_barrier_ready(); /* where it fails, stopping keeps the file mapped */
}

static bly_status check_opts(const struct blyi_recorder_opts *opts)
{
    if (opts->ring > BLYI_TRACE_RING_MAX)
        return blyi_fail(BLY_E_INVALID, "a ring of %llu events; at most %llu can be kept",
                         (unsigned long long)opts->ring, (unsigned long long)BLYI_TRACE_RING_MAX);
    if (opts->stack_depth > BLYI_TRACE_STACK_MAX)
        return blyi_fail(BLY_E_INVALID, "stacks of %u frames; at most %u can be kept",
                         opts->stack_depth, BLYI_TRACE_STACK_MAX);
    return BLY_OK;
}

static bly_status begin_file_locked(void)
{
    bly_status status = blyi_rec_begin_names_locked();
    if (status == BLY_OK && blyi_rec.ring > 0)
        status = blyi_rec_live_begin_locked();
    if (status == BLY_OK)
        status = blyi_rec_handlers_begin_locked(blyi_rec.last_gen + 1);
    return status;
}

static bly_status open_locked(const struct blyi_recorder_opts *opts, uint32_t flags)
{
    struct blyi_trace_header header;
    bly_status status = check_opts(opts);
    if (status != BLY_OK)
        return status;
    fill_header(&header, opts, flags);
    status = blyi_recpath_open(&blyi_rec.file, opts->path, opts->spare, &header);
    if (status != BLY_OK)
        return status;
    blyi_rec.ring = opts->ring;
    blyi_rec.stack_depth = opts->stack_depth;
    blyi_rec.stopped = false;
    blyi_rec.n_dumps = 0;
    atomic_store(&blyi_rec.n_lost, 0);
    blyi_rec.table = NULL;
    blyi_rec_chunks_reset_locked();
    blyi_rec_names_reset_locked();
    status = begin_file_locked();
    if (status != BLY_OK) {
        blyi_recfile_close(&blyi_rec.file, true);
        return status;
    }
    atomic_store_explicit(&blyi_rec.header, blyi_rec.file.header, memory_order_release);
    blyi_rec.last_gen++;
    if (blyi_rec.last_gen == 0)
        blyi_rec.last_gen = 1;
    blyi_frames_want(opts->stack_depth);
    return BLY_OK;
}

/* All kinds but the one that comes from a copy of a dying process. That sources change is found out
 * at some cost, so only where it is checked for. */
static blyi_kinds all_kinds(void)
{
    blyi_kinds kinds = BLYI_KINDS_ALL & ~BLYI_KIND(DYING);
    uint32_t groups;
    if (blyi_check_parse(blyi_option_text(BLYI_OPT_CHECK), &groups) != BLY_OK) {
        blyi_fail_clear();
        groups = 0;
    }
    if ((groups & 1u << BLYI_CHECK_AT_PINNED) == 0)
        kinds &= ~(BLYI_KIND(SOURCE_CHANGED) | BLYI_KIND(CALLBACK_REACH));
    return kinds;
}

static void tell_what_is_live(void)
{
    struct told told = {.gen = blyi_rec.last_gen};
    struct blyi_sink telling = {.probe = on_told, .arg = &told};
    blyi_probe_tell(&telling);
}

bly_status blyi_recorder_start(const struct blyi_recorder_opts *opts)
{
    bly_status status;
    prepare_process();
    blyi_lock_take(&control);
    blyi_lock_take(&blyi_rec.lock);
    if (blyi_rec.file.header != NULL)
        status = blyi_fail(BLY_E_STATE, "a recording is under way: %s",
                           blyi_rec.file.path[0] ? blyi_rec.file.path : "into memory");
    else
        status = open_locked(opts, 0);
    if (status == BLY_OK)
        atomic_store_explicit(&blyi_rec.gen, blyi_rec.last_gen, memory_order_release);
    blyi_lock_drop(&blyi_rec.lock);
    if (status == BLY_OK) {
        /* Events first: what is made while the rest is told must not fall between. */
        blyi_probe_set_kinds(&blyi_rec_sink, all_kinds());
        tell_what_is_live();
    }
    blyi_lock_drop(&control);
    return status;
}

/* ── Stop ─────────────────────────────────────────────────────────────────────────────────── */

/* True when no other thread can be inside the sink any more. */
static bool wait_until_quiet(void)
{
    if (!blyi_barrier_all())
        return false;
    uint64_t end = blyi_clock_wall_ns() + (uint64_t)QUIET_WAIT_MS * 1000000;
    for (;;) {
        blyi_lock_take(&blyi_rec.lock);
        bool quiet = blyi_rec_quiet_locked();
        blyi_lock_drop(&blyi_rec.lock);
        if (quiet && blyi_rec_handlers_quiet())
            return true;
        if (blyi_clock_wall_ns() > end)
            return false;
        sched_yield();
    }
}

static void mark_end_locked(enum blyi_trace_state state)
{
    struct blyi_trace_header *header = blyi_rec.file.header;
    blyi_rec_number_lost_locked();
    if (blyi_rec.stopped)
        return;
    header->end_ns = blyi_clock_ns();
    __atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

static void close_file(void)
{
    blyi_lock_take(&blyi_rec.lock);
    mark_end_locked(BLYI_TRACE_ENDED);
    atomic_store_explicit(&blyi_rec.gen, 0, memory_order_release);
    blyi_lock_drop(&blyi_rec.lock);
    blyi_probe_set_kinds(&blyi_rec_sink, 0);
    blyi_frames_want(0);
    bool quiet = wait_until_quiet();
    blyi_lock_take(&blyi_rec.lock);
    if (quiet) {
        atomic_store(&blyi_rec.header, NULL);
        blyi_recfile_close(&blyi_rec.file, true);
    } else { /* somebody may still write: the mapping stays */
        close(blyi_rec.file.fd);
        blyi_rec.file.header = NULL;
        blyi_rec.file.extents = NULL;
        blyi_rec.file.meta = NULL;
    }
    blyi_rec.table = NULL;
    blyi_lock_drop(&blyi_rec.lock);
}

static bly_status stop_with_control(void)
{
    if (blyi_rec.file.header == NULL)
        return blyi_fail(BLY_E_STATE, "nothing is recorded");
    if (blyi_rec.file.path[0] != '\0')
        blyi_rec_write_sources(atomic_load(&blyi_rec.gen));
    close_file();
    return blyi_rec.stopped ? blyi_fail(blyi_rec.why_code, "%s", blyi_rec.why) : BLY_OK;
}

bly_status blyi_recorder_stop(void)
{
    blyi_lock_take(&control);
    bly_status status = stop_with_control();
    blyi_lock_drop(&control);
    return status;
}

/* Nothing was recorded: a file that has the state alone. */
static bly_status dump_state(const char *path)
{
    struct blyi_recorder_opts opts = {.path = path};
    blyi_lock_take(&blyi_rec.lock);
    bly_status status = open_locked(&opts, BLYI_TRACE_NO_HISTORY);
    if (status == BLY_OK)
        atomic_store_explicit(&blyi_rec.gen, blyi_rec.last_gen, memory_order_release);
    blyi_lock_drop(&blyi_rec.lock);
    if (status != BLY_OK)
        return status;
    tell_what_is_live(); /* the sink listens to nothing meanwhile */
    blyi_lock_take(&blyi_rec.lock);
    mark_end_locked(BLYI_TRACE_ENDED);
    blyi_lock_drop(&blyi_rec.lock);
    return stop_with_control();
}

bly_status blyi_recorder_dump(const char *path)
{
    bly_status status;
    if (path == NULL)
        return blyi_fail(BLY_E_INVALID, "a dump needs the path of a file");
    prepare_process();
    blyi_lock_take(&control);
    if (blyi_rec.file.header != NULL)
        status = blyi_rec_dump(path, atomic_load(&blyi_rec.gen));
    else
        status = dump_state(path);
    blyi_lock_drop(&control);
    return status;
}

/* ── The process ──────────────────────────────────────────────────────────────────────────── */

const char *blyi_recorder_path(void)
{
    return blyi_rec.file.path;
}

bly_status blyi_recorder_attach(const char *folder)
{
    const char *where = blyi_option_text(BLYI_OPT_TRACE);
    char path[PATH_MAX];
    if (where[0] == '\0')
        return BLY_OK;
    bool is_relative = folder != NULL && where[0] != '/';
    int n = snprintf(path, sizeof(path), "%s%s%s", is_relative ? folder : "",
                     is_relative ? "/" : "", where);
    if (n >= PATH_MAX)
        return blyi_fail(BLY_E_INVALID, "BELAY_TRACE \"%.80s...\": the path is too long", where);
    struct blyi_recorder_opts opts = {
        .path = path,
        .ring = (uint64_t)blyi_option_int(BLYI_OPT_TRACE_RING),
        .stack_depth = (uint32_t)blyi_option_int(BLYI_OPT_STACKS),
        .spare = blyi_option_int(BLYI_OPT_TRACE_KEEP) ? BLYI_SPARE_ALL : BLYI_SPARE_OWN,
    };
    return blyi_recorder_start(&opts);
}

/* Another thread may hold it for ever, now that the process ends. */
static bool take_patiently(struct blyi_lock *lock)
{
    for (int i = 0; i < FINISH_WAIT_MS; i++) {
        if (blyi_lock_try(lock))
            return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

void blyi_recorder_finish(void)
{
    if (atomic_load(&blyi_rec.header) == NULL || !take_patiently(&control))
        return;
    if (take_patiently(&blyi_rec.lock)) {
        blyi_lock_drop(&blyi_rec.lock);
        if (blyi_rec.file.header != NULL && stop_with_control() != BLY_OK)
            blyi_log(BLYI_LOG_WARN, "recording ended early: %s", blyi_rec.why);
    }
    blyi_lock_drop(&control);
}

bool blyi_recorder_audit(void)
{
    blyi_lock_take(&blyi_rec.lock);
    bool sound = blyi_rec.ring == 0 || blyi_rec_live_audit_locked();
    blyi_lock_drop(&blyi_rec.lock);
    return sound;
}
