/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - what happened to memory and order, told upwards to whoever listens.
 *
 * With no sink for a kind an emit costs one predictable branch. Sinks run in the thread
 * that emits, under whatever locks it holds (rank below OBSERVE), so they must be quick,
 * may take locks of rank OBSERVE and above only, and must not call back into the card.
 */
#ifndef BLYI_PROBE_H
#define BLYI_PROBE_H

#include <assert.h>
#include <belay/base.h>
#include <stdbool.h>
#include "base/compiler.h"
#include "base/stamp.h"

/* X(name, key for files). Fields used by a kind are listed behind it. */
#define BLYI_PROBES(X)                                                                             \
    X(CARD_OPEN, "card-open")         /* card, size total, aux overhead */                         \
    X(CARD_CLOSE, "card-close")       /* card */                                                   \
    X(ALLOC, "alloc")                 /* card address size asked rounded backed page_kind site;    \
                                         stream: there for work behind what that has been given;   \
                                         other: number of its pool, 0: none;                       \
                                         aux: what would be backed without the +32, 0: not told;   \
                                         event: name, where another tool told one */               \
    X(FREE, "free")                   /* card address size asked rounded backed site; aux 1: other \
                                         streams use it until USE_DONE; stream: in its order, 0:   \
                                         at once; other as ALLOC */                                \
    X(RESET_FREE, "reset-free")       /* as FREE: taken back by a device reset, not by the user */ \
    X(ALLOC_FAIL, "alloc-fail")       /* card size asked site, aux status; of a card that is full  \
                                         rounded(what it needs in pages, 0: not told) backed(free) \
                                         other(largest request of its kind with room) */           \
    X(HOST_ALLOC, "host-alloc")       /* address size asked rounded backed site: pinned memory */  \
    X(HOST_FREE, "host-free")         /* address size asked rounded backed site: once no queued    \
                                         work holds it */                                          \
    X(HOST_REGISTER, "host-register") /* address size asked rounded backed (0: of a pinned block,  \
                                         counted there) site */                                    \
    X(HOST_UNREGISTER, "host-unregister") /* as HOST_REGISTER */                                   \
    X(PHYS_CREATE, "phys-create")         /* card (-1: host) address(handle) asked size rounded    \
                                             backed page_kind site */                              \
    X(PHYS_FREE, "phys-free")             /* as PHYS_CREATE, when the memory is given back; aux 1: \
                                             by reset; address as at creation */                   \
    X(VA_RESERVE, "va-reserve")           /* address size site */                                  \
    X(VA_RELEASE, "va-release")           /* address size site; aux 1: by finalise */              \
    X(MAP, "map")                         /* card (-1: host) address other(handle) size site */    \
    X(UNMAP, "unmap")                     /* as MAP; aux 1: by reset */                            \
    X(STREAM_CREATE, "stream-create")     /* card stream site; aux 1: a default stream, 2: a       \
                                             graph's own */                                        \
    X(STREAM_DESTROY, "stream-destroy")   /* card stream site; aux 1: by reset */                  \
    X(EVENT_CREATE, "event-create")       /* card event site */                                    \
    X(EVENT_DESTROY, "event-destroy")     /* card event site; aux 1: by reset */                   \
    X(COPY, "copy")     /* card stream task address(dst) other(src) size site, at submission; of   \
                           rows: asked(of a row) rounded, backed (pitches); page_kind: where, see  \
                           below; aux 1: a reduction, which reads dst as well; task 0: by the      \
                           calling thread, behind what `stream` was given before */                \
    X(SET, "set")       /* card stream task address size site page_kind */                         \
    X(RECORD, "record") /* card stream task event site */                                          \
    X(WAIT, "wait") /* card stream task event site; aux 1: for the event's flag; 2: of an event    \
                       that processes share; else other (stream, 0: none) and asked(task): the     \
                       record that is waited for */                                                \
    X(EVENT_RESET, "event-reset")                                                                  \
    X(CALLBACK, "callback")             /* card stream task site */                                \
    X(NOTIFY_CREATE, "notify-create")   /* card event(notify) site; as events, other numbers */    \
    X(NOTIFY_DESTROY, "notify-destroy") /* aux 1: by reset */                                      \
    X(NOTIFY_RECORD, "notify-record")   /* card stream task event(notify) site */                  \
    X(NOTIFY_WAIT, "notify-wait")                                                                  \
    X(KERNEL, "kernel")             /* card stream task address(code) size(arguments) site, aux    \
                                       engine; its ranges come first */                            \
    X(KERNEL_RANGE, "kernel-range") /* card stream task address size site, aux access */           \
    X(VALUE_WRITE, "value-write")   /* card stream task address size site */                       \
    X(VALUE_WAIT, "value-wait")                                                                    \
    X(INDIRECT, "indirect") /* card stream task site: a copy by addresses on the card; aux: see    \
                               BLYI_INDIRECT_* */                                                  \
    X(SIGNAL, "signal")     /* card stream task: what others wait for is about to change */        \
    X(CALLBACK_RUN, "callback-run")   /* card stream task (0: the stream goes on meanwhile): user  \
                                         code begins */                                            \
    X(GRAPH_CREATE, "graph-create")   /* card event(graph) site; as events, other numbers */       \
    X(GRAPH_DESTROY, "graph-destroy") /* aux 1: by reset */                                        \
    X(GRAPH_RUN, "graph-run")         /* card stream event(graph) site, at submission */           \
    X(STREAM_SYNC, "stream-sync") /* card stream: the host knows that its work has ended; aux 1:   \
                                     by asking */                                                  \
    X(EVENT_SYNC, "event-sync")   /* card event other(stream) asked(task): of the record that has  \
                                     run; aux 1: by asking, 2: its waits have passed */            \
    X(CARD_SYNC, "card-sync")                                                                      \
    X(TASK_DONE, "task-done") /* card stream task, aux status; page_kind 1: without having run;    \
                                 told before anybody can know */                                   \
    X(SOURCE_CHANGED, "source-changed") /* card stream task address(first) other(behind the last)  \
                                           size(bytes that changed) asked(range) site: of a pinned \
                                           source, between submission and end */                   \
    X(PEER_FAIL, "peer-fail") /* card address size, aux card of the memory: no access to it */     \
    X(EXPORT, "export") /* address(or handle) other(handle, 0: none) size site: other processes    \
                           may use it from now on */                                               \
    X(HOST_FREE_HELD, "host-free-held") /* address asked site: freed while queued work holds it;   \
                                           HOST_FREE follows when that has ended */                \
    X(HOST_ACCESS, "host-access") /* card address site (of the block, 0: none) size asked backed   \
                                     (block, from other) aux (1: a write) pc: in a signal handler, \
                                     its sinks take no lock and no memory */                       \
    X(DYING, "dying")   /* aux pid: a signal ends that process; told in a forked copy of it, with  \
                           its figures, which ends when the sinks return */                        \
    X(IMPORT, "import") /* card address(or handle) other(handle, 0: none) size backed page_kind    \
                           site, aux pid of exporter */                                            \
    X(IMPORT_CLOSE, "import-close") /* as IMPORT, site of the close; aux 1: by reset */            \
    X(FREE_FAIL,                                                                                   \
      "free-fail") /* card (-1: none) address site, aux status: of card or pinned memory */        \
    X(RANGE_PUSH, "range-push")     /* event(path, range.h) site: the thread's range from here */  \
    X(RANGE_POP, "range-pop")       /* event(path) site: the range that ended */                   \
    X(RANGE_START, "range-start")   /* event(name) other(number) site: seen by all threads */      \
    X(RANGE_STOP, "range-stop")     /* other(number) site */                                       \
    X(MARK, "mark")                 /* event(name) stream (0: none) site */                        \
    X(TAG, "tag")                   /* event(name) address (in a block) site */                    \
    X(USE, "use")                   /* address stream: the block is used there as well */          \
    X(USE_DONE, "use-done")         /* address (of a freed block): those uses are over */          \
    X(SEGMENT, "segment")           /* card address size stream: a pool took memory; aux 1: which  \
                                       joins its neighbours, and goes back in any parts */         \
    X(SEGMENT_FREE, "segment-free") /* card address size stream aux: a pool gave it back */        \
    X(CONTEXT_CREATE, "context-create")   /* card event(context) site; not a primary one */        \
    X(CONTEXT_DESTROY, "context-destroy") /* aux 1: by finalise */                                 \
    X(QUEUE_CREATE, "queue-create")       /* card event(queue) site */                             \
    X(QUEUE_DESTROY, "queue-destroy")                                                              \
    X(LINE_BEGIN, "line-begin") /* card stream event(graph) other(stream) asked(task): that task   \
                                   has the stream do tasks of a graph, from here to LINE_END */    \
    X(LINE_END, "line-end")     /* card stream event(graph) other(stream that runs the graph) */   \
    X(CALLBACK_REACH, "callback-reach") /* card stream address: a pinned block that the argument   \
                                           of user code leads to, before it begins; aux 1: behind  \
                                           it */                                                   \
    X(STALE_USE, "stale-use") /* card stream task address site, aux kind of work, page_kind 1: a   \
                                 reduction: a graph's task did not run, as the memory was freed    \
                                 since its capture */

enum blyi_probe_kind {
#define BLYI_PROBE_ENUM(name, key) BLYI_PROBE_##name,
    BLYI_PROBES(BLYI_PROBE_ENUM)
#undef BLYI_PROBE_ENUM
        BLYI_PROBE_COUNT
};

/* A set of kinds, bits of 1 << kind: constants and what is made of them. */
__extension__ typedef unsigned __int128 blyi_kinds;
#define BLYI_KIND(name)           ((blyi_kinds)1 << BLYI_PROBE_##name)
#define BLYI_KINDS_ALL            (((blyi_kinds)1 << BLYI_PROBE_COUNT) - 1)
#define BLYI_KINDS_WORDS          2
#define BLYI_KINDS_WORD(kinds, i) ((uint64_t)((kinds) >> (64 * (i))))
static_assert(BLYI_PROBE_COUNT < 64 * BLYI_KINDS_WORDS, "one more than there are is shifted");

/* Where the two sides of a COPY lie, or a SET's, in `page_kind`; no bit: pageable host memory. */
#define BLYI_DST_CARD   1u
#define BLYI_SRC_CARD   2u
#define BLYI_DST_PINNED 4u
#define BLYI_SRC_PINNED 8u

/* What an INDIRECT is, in `aux`. Of older recordings, a graph whose tasks are not told is 1. */
#define BLYI_INDIRECT_GRAPH 2 /* a run of a graph: LINE_BEGIN and its tasks follow */
#define BLYI_INDIRECT_BODY  3 /* the same, of a body by a graph's own task */
#define BLYI_INDIRECT_NONE  4 /* of a graph, and touches no memory that anybody follows */

enum blyi_page_kind { BLYI_PAGE_NORMAL, BLYI_PAGE_HUGE, BLYI_PAGE_GIANT, BLYI_PAGE_KIND_COUNT };

struct blyi_probe {
    enum blyi_probe_kind kind;
    int32_t card; /* -1: none */
    uint32_t site;
    uint32_t stream; /* id, 0: none */
    uint32_t event;  /* id, 0: none */
    uint32_t page_kind;
    uint64_t address; /* start of the block or range */
    uint64_t other;
    uint64_t size;    /* bytes of the range; for ALLOC the same as asked */
    uint64_t asked;   /* as the program wrote it */
    uint64_t rounded; /* by AscendCL's rule */
    uint64_t backed;  /* pages really taken, bytes */
    uint64_t time_ns; /* set before a sink sees it when 0 */
    int64_t aux;
    uint64_t began_ns; /* when the call began that did it; 0: not told. Of ALLOC, FREE, HOST_ALLOC,
                          HOST_FREE, PHYS_CREATE, PHYS_FREE and ALLOC_FAIL */
    uint64_t task;     /* number in its stream, from 1; 0: none */
    const void *pc;    /* of HOST_ACCESS: the instruction */
};

struct blyi_sink {
    blyi_kinds kinds; /* wanted when it is added; later it is blyi_probe_set_kinds() that counts */
    void (*probe)(void *arg, const struct blyi_probe *probe);
    void *arg;
    struct blyi_sink *next;
    bool timeless;                     /* it does not look at time_ns, which may be 0 then */
    bool wants_began;                  /* it looks at began_ns; set once added */
    uint64_t wanted[BLYI_KINDS_WORDS]; /* the kinds it gets, for blyi_probe_emit_slow() alone */
};

/* Sinks are added at start and stay; the structure belongs to the caller and must live on. */
void blyi_probe_add_sink(struct blyi_sink *sink);
/* What an added sink listens to from now on, 64 kinds at a time. A probe under way may still reach
 * it. [any] */
void blyi_probe_set_kinds(struct blyi_sink *sink, blyi_kinds kinds);
/* In a child of fork(), where a lock may have stayed behind: the sink gets nothing any more. */
void blyi_probe_silence(struct blyi_sink *sink);

/* Somebody who knows what is there already. tell() calls to->probe() for each live thing, as when
 * it was made (CARD_OPEN, ALLOC, HOST_ALLOC, PHYS_CREATE), under locks that guard it. */
struct blyi_teller {
    void (*tell)(const struct blyi_sink *to);
    struct blyi_teller *next;
};
/* Tellers are asked in the order in which they were added. */
void blyi_probe_add_teller(struct blyi_teller *teller);
/* Asks all of them; the caller holds no lock. */
void blyi_probe_tell(const struct blyi_sink *to);

BLYI_HOT_EXTERN uint64_t blyi_probe_wanted[BLYI_KINDS_WORDS]; /* by any sink; read without a lock */
extern uint64_t blyi_probe_begun[BLYI_KINDS_WORDS]; /* likewise, of the sinks that want began_ns */
void blyi_probe_emit_slow(struct blyi_probe *probe);
const char *blyi_probe_key(enum blyi_probe_kind kind);

static inline bool blyi_kinds_has(const uint64_t words[BLYI_KINDS_WORDS], enum blyi_probe_kind kind)
{
    return (__atomic_load_n(&words[kind / 64], __ATOMIC_RELAXED) >> (kind % 64)) & 1;
}

static inline bool blyi_probe_on(enum blyi_probe_kind kind)
{
    return unlikely(blyi_kinds_has(blyi_probe_wanted, kind));
}

/* Whether any of them is on: of a constant, a word that has none of them is not looked at. */
static inline bool blyi_probe_any_on(blyi_kinds kinds)
{
    uint64_t on = 0;
    for (int i = 0; i < BLYI_KINDS_WORDS; i++)
        if (BLYI_KINDS_WORD(kinds, i) != 0)
            on |= __atomic_load_n(&blyi_probe_wanted[i], __ATOMIC_RELAXED) &
                  BLYI_KINDS_WORD(kinds, i);
    return unlikely(on != 0);
}

/* At the beginning of a call that may emit `kind`: for its began_ns. Costs a branch when nobody
 * wants it. The event's own time is then left to be a stamp as well, so that both are of one
 * line and their difference is right. */
static inline uint64_t blyi_probe_began(enum blyi_probe_kind kind)
{
    if (likely(!blyi_kinds_has(blyi_probe_begun, kind)))
        return 0;
    return blyi_stamp_ns();
}

/* BLYI_PROBE(ALLOC, .card = c, .address = a, ...): evaluates the fields only when wanted. */
#define BLYI_PROBE(kind_, ...)                                                                     \
    do {                                                                                           \
        if (blyi_probe_on(BLYI_PROBE_##kind_)) {                                                   \
            struct blyi_probe probe_ = {.kind = BLYI_PROBE_##kind_, __VA_ARGS__};                  \
            blyi_probe_emit_slow(&probe_);                                                         \
        }                                                                                          \
    } while (0)

#endif
