/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_inside.h - what the parts of the recorder share.
 *
 *   recorder.c          start and stop
 *   recorder_sink.c     one event
 *   recorder_thread.c   the chunk that each thread writes to
 *   recorder_names.c    what ids mean: sites, names
 *   recorder_stacks.c   what numbers of stacks mean
 *   recorder_live.c     live blocks, while recording into a ring
 *   recorder_dump.c     copies of what is known
 */
#ifndef BLYI_RECORDER_INSIDE_H
#define BLYI_RECORDER_INSIDE_H

#include <stdatomic.h>
#include "base/fail.h"
#include "base/lock.h"
#include "base/map.h"
#include "observe/recorder.h"
#include "observe/recorder_file.h"

/* ── A writer of one chunk: a thread's own, and one for signal handlers ───────────────────── */

struct blyi_recwriter {
    uint32_t gen; /* of the recording that the chunk belongs to */
    struct blyi_trace_chunk *chunk;
    uint64_t *at;  /* next word */
    uint64_t *end; /* an event with its context fits before it */
    struct blyi_trace_context context;
    uint64_t last_seq;
};

struct blyi_recthread {
    struct blyi_recthread *next, **link;
    atomic_bool busy; /* the thread is inside the sink */
    struct blyi_recwriter writer;
    uint32_t number;
};

/* A set of ids up to a million; asking takes no lock. */
#define BLYI_IDSET_PAGE 1024u
struct blyi_idset {
    _Atomic(_Atomic(uint8_t) *) pages[1024];
};

struct blyi_recfull { /* a chunk that may be used again */
    struct blyi_trace_chunk *chunk;
    uint64_t last_seq;
};

struct blyi_recorder {
    struct blyi_lock lock; /* guards all but the atomics */
    _Atomic uint32_t gen;  /* of the recording under way; 0: none. Release after all is set up */
    _Atomic(struct blyi_trace_header *) header;
    _Atomic uint64_t n_lost; /* events that could not be written, not yet numbered */
    uint64_t ring;
    uint32_t stack_depth;
    uint32_t last_gen;
    struct blyi_recfile file;
    bool stopped; /* by itself: `why` */
    bly_status why_code;
    char why[BLYI_TRACE_STOP_TEXT];
    uint32_t n_dumps; /* at out-of-memory */

    struct blyi_recthread *threads; /* of all recordings */
    uint32_t n_threads;             /* numbers given */
    struct blyi_recfull *full;      /* a queue, from first to first + n */
    size_t full_first, n_full, full_room;
    size_t n_spilled; /* of those, the first: empty again, their copies stand in the file */
    struct blyi_recwriter *partly; /* chunks that threads left with room in them */
    size_t n_partly, partly_room;

    struct blyi_idset sites, names, paths;
    struct blyi_map modules; /* hash of path and build id -> module */
    uint32_t n_modules;
    struct blyi_map stacks; /* hash -> stack */
    uint32_t n_stacks;

    struct blyi_trace_chunk *table; /* of live blocks, in the file */
    uint64_t n_live;
    bool live_lost; /* a block could not be entered */
};
extern struct blyi_recorder blyi_rec;

/* The thread's sentence and errno stay what the program left. */
struct blyi_recsaved {
    int error;
    bly_status code;
    char text[BLYI_FAIL_MAX];
};
void blyi_rec_save(struct blyi_recsaved *saved);
void blyi_rec_restore(const struct blyi_recsaved *saved);

/* Ends the recording for the reason that the thread's sentence gives. The lock is held. */
void blyi_rec_fail_locked(bly_status status);
bool blyi_rec_is_on(uint32_t gen);

/* recorder_sink.c */
extern struct blyi_sink blyi_rec_sink;
void blyi_rec_probe(void *arg, const struct blyi_probe *probe);
void blyi_rec_number_lost_locked(void); /* those that were lost get numbers */
bly_status blyi_rec_handlers_begin_locked(uint32_t gen);
bool blyi_rec_handlers_quiet(void); /* no signal handler is inside the sink */
void blyi_rec_handlers_forget(void);

/* recorder_thread.c */
BLYI_HOT_EXTERN BLYI_HOT_THREAD_LOCAL struct blyi_recthread *blyi_rec_self;
struct blyi_recthread *blyi_rec_make_thread(void);
static inline struct blyi_recthread *blyi_rec_thread(void) /* the caller's; NULL: no host memory */
{
    return likely(blyi_rec_self != NULL) ? blyi_rec_self : blyi_rec_make_thread();
}
void blyi_rec_forget_threads(void); /* in the child of a fork */
bool blyi_rec_quiet_locked(void);   /* no thread but the caller is inside the sink */
bly_status blyi_rec_chunk_locked(struct blyi_recwriter *writer, uint32_t gen);
void blyi_rec_chunk_full_locked(struct blyi_recwriter *writer);
void blyi_rec_chunks_reset_locked(void);
bly_status blyi_rec_name_thread_locked(struct blyi_recthread *thread);

static inline bool blyi_idset_has(const struct blyi_idset *set, uint32_t id)
{
    if (unlikely(id >= BLYI_IDSET_PAGE * BLYI_COUNT(set->pages)))
        return true; /* such ids are not described */
    _Atomic(uint8_t) *page =
        atomic_load_explicit(&set->pages[id / BLYI_IDSET_PAGE], memory_order_acquire);
    /* Acquire: whoever finds the id finds its record before his event. */
    return page != NULL &&
           atomic_load_explicit(&page[id % BLYI_IDSET_PAGE], memory_order_acquire) != 0;
}

/* recorder_names.c: each makes sure that the file says what the id means. */
bly_status blyi_rec_begin_names_locked(void);
bly_status blyi_rec_site_locked(uint32_t site);
bly_status blyi_rec_name_locked(uint32_t name);
bly_status blyi_rec_path_locked(uint32_t path);
bly_status blyi_rec_card_locked(int32_t card, uint64_t total, uint64_t overhead);
void blyi_rec_names_reset_locked(void);
/* Function, file and line of all sites written; takes seconds, and the lock when it must. */
void blyi_rec_write_sources(uint32_t gen);

/* recorder_stacks.c: of what backtrace() found, and of the script that the thread runs. *id 0 when
 * nothing is known but the site. */
bly_status blyi_rec_stack_locked(void *const *pcs, size_t n, uint32_t site, uint32_t *id);
void blyi_rec_stacks_reset_locked(void);

/* recorder_live.c */
bly_status blyi_rec_live_begin_locked(void);
bly_status blyi_rec_live_add_locked(const struct blyi_trace_block *block);
void blyi_rec_live_remove_locked(uint64_t address, int class_);
bool blyi_rec_live_audit_locked(void);

/* recorder_dump.c */
bly_status blyi_rec_dump(const char *path, uint32_t gen);
void blyi_rec_dump_at_oom(uint32_t gen);

#endif
