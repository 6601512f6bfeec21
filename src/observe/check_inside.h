/* SPDX-License-Identifier: Apache-2.0
 *
 * check_inside.h - what the parts of the checker share.
 *
 *   check.c          from a probe to the part that knows
 *   check_area.c     memory: what is where, what was there before
 *   check_stream.c   records of streams and events
 *   check_order.c    what puts work in an order
 *   check_work.c     tasks: what they touch, from submission to end (check_work.h)
 *   check_graph.c    runs of graphs
 *   check_free.c     frees and unmaps
 *   check_pool.c     allocations and frees in the order of streams
 *   check_found.c    findings, and what is said in them
 */
#ifndef BLYI_CHECK_INSIDE_H
#define BLYI_CHECK_INSIDE_H

#include "base/map.h"
#include "base/size.h"
#include "observe/check.h"
#include "observe/check_shadow.h"

/* ── Memory ───────────────────────────────────────────────────────────────────────────────── */

enum blyi_area_kind {
    BLYI_AREA_BLOCK,
    BLYI_AREA_PINNED,
    BLYI_AREA_REGISTERED,
    BLYI_AREA_MAP,
    BLYI_AREA_IMPORT, /* of another process */
};

#define BLYI_AREA_USES 4

/* Addresses that may be used. Referenced by the tree that it lies in and by each queued range. */
struct blyi_area {
    struct blyi_tree_node node; /* key: address */
    uint64_t size;              /* as the program asked */
    uint64_t rounded;           /* by AscendCL's rule */
    uint64_t reach;             /* up to the end of its pages, which are nobody else's */
    struct blyi_shadow *shadow; /* referenced; offsets count from the area's start */
    uint64_t handle;            /* of a MAP */
    uint32_t id;
    uint32_t refs;
    int32_t card;
    uint32_t site;
    uint8_t kind; /* enum blyi_area_kind */
    bool is_gone; /* freed or unmapped; queued ranges may still refer to it */
    uint32_t free_site;
    bool is_freed; /* pinned: by the program, while queued work holds it */
    /* User code whose argument leads there: how much runs, and when the last one returned. */
    uint32_t n_users;
    uint64_t used_until; /* a moment */
    /* Of a pool's block. */
    uint32_t born_slot, born_stream; /* allocated on a stream; 0: there for all */
    uint64_t born_clock;             /* of the last task that the stream had then */
    struct {
        uint32_t slot;
        uint64_t clock;
    } uses[BLYI_AREA_USES]; /* that the pool was told of: it waits for them */
    uint32_t n_uses;
};

struct blyi_handle_memory { /* physical memory */
    struct blyi_shadow *shadow;
    uint64_t size;
    uint64_t n_maps;
    int32_t card;
    uint32_t site;
    bool is_import;
};

/* What was freed or unmapped. */
struct blyi_was {
    uint64_t address, size, reach;
    uint32_t alloc_site, free_site;
    int32_t card;
    uint8_t kind;
};
#define BLYI_WAS_MAX 1024

/* ── Order ────────────────────────────────────────────────────────────────────────────────── */

struct blyi_host_clock { /* what the host knew at some moment; shared by tasks */
    uint32_t refs;
    struct blyi_vc vc;
};

struct blyi_mark { /* one record of an event */
    uint32_t refs;
    uint32_t stream;
    uint64_t task;
    bool has_run;
    struct blyi_vc vc;
};

#define BLYI_MARKS 4
struct blyi_check_event {
    struct blyi_mark *marks[BLYI_MARKS]; /* the last ones */
    uint32_t n_marks;
    struct blyi_vc flag; /* of all signals so far: legacy events, notifies, words */
    uint32_t site;
    int32_t card;
    bool is_pending, is_used; /* by queued work, when blyi_check_events() looked */
};

/* ── Work ─────────────────────────────────────────────────────────────────────────────────── */

struct blyi_use_range {
    struct blyi_area *area; /* referenced; NULL: no memory that is followed */
    uint64_t lo, hi;        /* addresses, within the area */
    uint64_t pitch, width;  /* rows, when pitch > width */
    uint8_t access;         /* BLYI_USE_* */
    bool is_vague;          /* not all of it may be touched: no evidence of an order */
};
#define BLYI_USE_READ  1u
#define BLYI_USE_WRITE 2u

struct blyi_check_task {
    struct blyi_check_task *next;
    uint64_t number;
    uint64_t tick;   /* of the host, at submission */
    uint64_t moment; /* of its submission; 0: of a graph's line */
    struct blyi_host_clock *host;
    struct blyi_mark *mark; /* of a record, and that a wait waits for */
    struct blyi_use_range range[2];
    struct blyi_use_range *more; /* of kernels, and of ranges over several mappings */
    uint32_t n_ranges, n_more, more_room;
    uint32_t event;
    uint32_t site;
    uint32_t waits_for;            /* stream of the mark, ... */
    uint64_t waits_task;           /* ... and its task, where that is not known yet */
    uint64_t word;                 /* address of a word that is a signal */
    uint64_t n_done, unknown_done; /* of the checker, at submission */
    uint8_t kind;                  /* enum blyi_probe_kind */
    uint8_t work;                  /* enum blyi_work */
    uint8_t places;
    uint8_t graph; /* of an INDIRECT: BLYI_INDIRECT_* */
    bool has_lines;
    bool legacy;
    bool joins_all;  /* its order is not known: behind everything that has ended */
    bool is_told;    /* all of it is known */
    bool is_dropped; /* it ends without having run */
    bool has_fault;  /* something was found at submission: no more of it */
};

struct blyi_check_stream {
    uint32_t id;
    int32_t card;
    uint32_t slot;
    uint32_t site;
    bool is_default, is_made;
    uint64_t base; /* clock of task n: base + n */
    struct blyi_vc vc;
    struct blyi_host_clock *joined; /* the last one that it knows */
    struct blyi_vc arrived;         /* lines of runs that its tasks began, as they ended */
    uint32_t graph;                 /* whose line it is, or was last */
    uint32_t depth;
    bool is_line; /* its tasks are a graph's: they know what the run's begin knew */
    uint64_t run_moment, run_done, run_unknown_done; /* of a line: as its run was submitted */
    struct blyi_check_task *first, *last;
    uint64_t n_tasks;
    struct blyi_late_free *frees; /* check_pool.c: that wait to be judged, by rising task */
};

struct blyi_slot {
    uint64_t last; /* clock */
    bool is_used;
};

struct blyi_found {
    struct blyi_finding finding;
    uint64_t key[3];
};

struct blyi_check {
    struct blyi_check_opts opts;
    const char *stopped;

    struct blyi_tree areas;      /* blocks, pinned memory, mappings */
    struct blyi_tree registered; /* pageable memory, or part of a pinned block */
    struct blyi_map handles;     /* -> blyi_handle_memory */
    struct blyi_was *was;        /* a ring of the last ones */
    uint64_t n_was;
    uint32_t last_area;
    uint64_t unknown; /* tasks that may have written anywhere, submitted */
    uint64_t unknown_done;
    uint64_t n_done;                /* tasks that have ended */
    struct blyi_kept_finding *kept; /* check_graph.c */
    uint64_t n_graphs, n_lines; /* runs that were submitted and have not ended; lines that go on */
    bool tells_lines;           /* a line has begun: tasks of graphs are told */

    struct blyi_map streams; /* id -> blyi_check_stream */
    struct blyi_map events;  /* blyi_event_key() -> blyi_check_event */
    struct blyi_slot *slots;
    uint32_t n_slots, slots_room;
    bool has_unknown_signals;         /* of work that is not told */
    struct blyi_vc host;              /* component 0: accesses of the host so far */
    uint64_t moment;                  /* submissions, and ends of user code, so far */
    struct blyi_host_clock *host_now; /* a copy of it, while nothing changes */
    struct blyi_probe last_now;       /* the last work that was done at once */
    struct blyi_check_task *spare;    /* tasks to be used again */

    struct blyi_map leaks;  /* check_leak.c: blyi_account_group, as far as known */
    struct blyi_map things; /* check_leak.c: what has an id -> where it was made */
    struct blyi_account_access accesses[BLYI_ACCOUNT_ACCESSES];
    const void *access_pcs[BLYI_ACCOUNT_ACCESSES]; /* an instruction is no site of the file */
    size_t n_accesses;

    struct blyi_found **found;
    size_t n_found, found_room;
    struct blyi_finding *list; /* as told last */
};

/* Without host memory there is no more checking: a wrong finding is worse than none. */
void blyi_check_stop(struct blyi_check *check);

/* ── check_area.c ─────────────────────────────────────────────────────────────────────────── */

/* The area that holds an address up to its reach; NULL: none. */
struct blyi_area *blyi_area_find(const struct blyi_check *check, uint64_t address);
struct blyi_area *blyi_area_at(const struct blyi_check *check, uint64_t address, bool registered);
void blyi_area_ref(struct blyi_area *area);
void blyi_area_unref(struct blyi_area *area);
/* Takes it out of its tree. */
void blyi_area_end(struct blyi_check *check, struct blyi_area *area, uint32_t free_site);
void blyi_area_made(struct blyi_check *check, const struct blyi_probe *probe, bool before);
/* Other processes may write there, which nobody tells of. */
void blyi_area_shared(struct blyi_check *check, const struct blyi_probe *probe);
/* User code whose argument leads there begins, or has returned. */
void blyi_area_reached(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_handle_made(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_handle_ended(struct blyi_check *check, uint64_t handle, bool by_reset);
const struct blyi_was *blyi_was_find(const struct blyi_check *check, uint64_t address);
const char *blyi_area_noun(enum blyi_area_kind kind); /* "block", "pinned block", ... */
void blyi_areas_fini(struct blyi_check *check);

/* ── check_stream.c ───────────────────────────────────────────────────────────────────────── */

struct blyi_check_stream *blyi_check_stream(struct blyi_check *check, uint32_t id, int32_t card);
void blyi_stream_made(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_stream_gone(struct blyi_check *check, const struct blyi_probe *probe);
struct blyi_check_event *blyi_check_event(struct blyi_check *check, uint64_t key);
void blyi_event_gone(struct blyi_check *check, uint64_t key);
void blyi_mark_unref(struct blyi_mark *mark);
/* One of the event's last records; event NULL is allowed. */
struct blyi_mark *blyi_mark_find(const struct blyi_check_event *event, uint32_t stream,
                                 uint64_t task);
/* Referenced by the event and for the caller. */
struct blyi_mark *blyi_mark_add(struct blyi_check *check, struct blyi_check_event *event,
                                uint32_t stream, uint64_t task);
void blyi_streams_fini(struct blyi_check *check);
static inline uint64_t blyi_event_key(uint32_t id)
{
    return id;
}
static inline uint64_t blyi_notify_key(uint32_t id)
{
    return (uint64_t)1 << 62 | id;
}
static inline uint64_t blyi_word_key(uint64_t address)
{
    return (uint64_t)1 << 63 | address;
}
static inline uint64_t blyi_check_graph_key(uint32_t id)
{
    return (uint64_t)1 << 61 | id;
}

/* ── check_order.c ────────────────────────────────────────────────────────────────────────── */

/* The host knows that so much of a stream has ended. */
void blyi_host_learns(struct blyi_check *check, const struct blyi_vc *vc);
struct blyi_host_clock *blyi_host_clock(struct blyi_check *check); /* referenced */
void blyi_host_clock_unref(struct blyi_host_clock *clock);
void blyi_order_submitted(struct blyi_check *check, const struct blyi_check_stream *stream,
                          struct blyi_check_task *task, const struct blyi_probe *probe);
/* The task runs, or has run: its stream knows what it knew. */
void blyi_order_runs(struct blyi_check *check, struct blyi_check_stream *stream,
                     struct blyi_check_task *task);
void blyi_order_waited(struct blyi_check *check, struct blyi_check_stream *stream,
                       struct blyi_check_task *task);
void blyi_order_ended(struct blyi_check *check, struct blyi_check_stream *stream,
                      struct blyi_check_task *task);
void blyi_order_signal(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_order_callback(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_order_stream_sync(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_order_event_sync(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_order_fini(struct blyi_check *check);

/* ── check_work.c ─────────────────────────────────────────────────────────────────────────── */

void blyi_work_submitted(struct blyi_check *check, const struct blyi_probe *probe);
/* The card has no access to memory that its task, or a call, was about to touch. */
void blyi_work_refused(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_work_source_changed(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_work_done(struct blyi_check *check, const struct blyi_probe *probe);
struct blyi_check_task *blyi_task_find(const struct blyi_check_stream *stream, uint64_t number);
void blyi_task_release(struct blyi_check *check, struct blyi_check_task *task);
/* Ranges of a task, one after the other. */
struct blyi_use_range *blyi_task_range(struct blyi_check_task *task, uint32_t i);
static inline uint32_t blyi_task_ranges(const struct blyi_check_task *task)
{
    return task->n_ranges + task->n_more;
}

/* ── check_graph.c ────────────────────────────────────────────────────────────────────────── */

void blyi_check_graph_line_begins(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_check_graph_line_ends(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_check_graph_submitted(struct blyi_check *check, struct blyi_check_task *task,
                                const struct blyi_probe *probe);
/* The task has ended, or its stream has gone. */
void blyi_check_graph_forgotten(struct blyi_check *check, const struct blyi_check_task *task);
/* Other work of graphs, whose tasks have not been told yet, may write anywhere. */
bool blyi_check_graph_may_write(const struct blyi_check *check, uint32_t stream);
/* Such work is of other lines of the stream's own run alone. */
bool blyi_check_graph_is_alone(const struct blyi_check *check, uint32_t stream);
/* A read of unwritten bytes, which is a finding when the run has ended and no race was found of it:
 * another line may be about to write there. */
void blyi_check_graph_keep(struct blyi_check *check, const struct blyi_finding *finding,
                           uint32_t site, uint32_t area_site);
void blyi_check_graph_stale(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_check_graph_fini(struct blyi_check *check);
/* Whose line the stream is or was; 0: no graph's. */
uint32_t blyi_stream_graph(const struct blyi_check *check, uint32_t stream);
/* "stream 3", or "stream 9 of graph 2". */
#define BLYI_STREAM_TEXT 48
const char *blyi_stream_text(const struct blyi_check *check, uint32_t id,
                             char buf[BLYI_STREAM_TEXT]);

/* ── check_free.c ─────────────────────────────────────────────────────────────────────────── */

void blyi_free_seen(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_free_refused(struct blyi_check *check, const struct blyi_probe *probe);

/* ── check_pool.c ─────────────────────────────────────────────────────────────────────────── */

void blyi_area_born(struct blyi_check *check, struct blyi_area *area,
                    const struct blyi_probe *probe);
/* The pool was told that another stream uses the block. */
void blyi_area_used(struct blyi_check *check, const struct blyi_probe *probe);
/* Ends the area; whether that was right is known later. */
void blyi_free_ordered(struct blyi_check *check, struct blyi_area *area,
                       const struct blyi_probe *probe);
/* The stream's tasks up to this one have ended. */
void blyi_frees_due(struct blyi_check *check, struct blyi_check_stream *stream, uint64_t task);
void blyi_frees_drop(struct blyi_check_stream *stream);
/* Whether an access comes behind the allocation. */
void blyi_born_check(struct blyi_check *check, const struct blyi_area *area,
                     const struct blyi_epoch *who, bool writes, const struct blyi_vc *known);

/* ── check_found.c ────────────────────────────────────────────────────────────────────────── */

/* Keeps a finding, or counts it to the one that has the same kind and key. */
void blyi_found(struct blyi_check *check, struct blyi_finding *finding, uint64_t key_a,
                uint64_t key_b);
void blyi_found_detail(struct blyi_finding *finding, const char *fmt, ...) BLYI_PRINTF(2, 3);
void blyi_found_stream(struct blyi_finding *finding, uint32_t stream);
/* "8 MiB block at 0x.. of card 0". */
#define BLYI_AREA_TEXT 160
const char *blyi_area_text(const struct blyi_area *area, char buf[BLYI_AREA_TEXT]);
void blyi_found_area(struct blyi_finding *finding, const struct blyi_area *area);
const char *blyi_work_text(uint8_t work);

void blyi_found_race(struct blyi_check *check, const struct blyi_area *area,
                     const struct blyi_epoch *now, bool now_writes,
                     const struct blyi_conflict *conflict);
void blyi_found_fini(struct blyi_check *check);

#endif
