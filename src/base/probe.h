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

#include <belay/base.h>
#include <stdbool.h>
#include "base/compiler.h"

/* X(name, key for files). Fields used by a kind are listed behind it. */
#define BLYI_PROBES(X)                                                                             \
    X(CARD_OPEN, "card-open")         /* card, size total, aux overhead */                         \
    X(CARD_CLOSE, "card-close")       /* card */                                                   \
    X(ALLOC, "alloc")                 /* card address size asked rounded backed page_kind site;    \
                                         aux: what would be backed without the +32, 0: not told */ \
    X(FREE, "free")                   /* card address size asked rounded backed site */            \
    X(RESET_FREE, "reset-free")       /* as FREE: taken back by a device reset, not by the user */ \
    X(ALLOC_FAIL, "alloc-fail")       /* card size asked site, aux status */                       \
    X(HOST_ALLOC, "host-alloc")       /* address size asked rounded backed site: pinned memory */  \
    X(HOST_FREE, "host-free")         /* address size asked rounded backed site: once no queued    \
                                         work holds it */                                          \
    X(HOST_REGISTER, "host-register") /* address size site */                                      \
    X(HOST_UNREGISTER, "host-unregister")                                                          \
    X(PHYS_CREATE, "phys-create")       /* card (-1: host) address(handle) asked size rounded      \
                                           backed page_kind site */                                \
    X(PHYS_FREE, "phys-free")           /* as PHYS_CREATE, when the memory is given back; aux 1:   \
                                           by reset; address as at creation */                     \
    X(VA_RESERVE, "va-reserve")         /* address size site */                                    \
    X(VA_RELEASE, "va-release")         /* address size site; aux 1: by finalise */                \
    X(MAP, "map")                       /* card (-1: host) address other(handle) size site */      \
    X(UNMAP, "unmap")                   /* as MAP; aux 1: by reset */                              \
    X(STREAM_CREATE, "stream-create")   /* card stream site; aux 1: a default stream */            \
    X(STREAM_DESTROY, "stream-destroy") /* card stream site; aux 1: by reset */                    \
    X(EVENT_CREATE, "event-create")     /* card event site */                                      \
    X(EVENT_DESTROY, "event-destroy")   /* card event site; aux 1: by reset */                     \
    X(COPY, "copy")     /* card stream address(dst) other(src) size site, at submission */         \
    X(SET, "set")       /* card stream address size site */                                        \
    X(RECORD, "record") /* card stream event site */                                               \
    X(WAIT, "wait")     /* card stream event site */                                               \
    X(EVENT_RESET, "event-reset")                                                                  \
    X(CALLBACK, "callback")           /* card stream site */                                       \
    X(NOTIFY_CREATE, "notify-create") /* card event(notify) site; as events, other numbers */      \
    X(NOTIFY_DESTROY, "notify-destroy")                                                            \
    X(NOTIFY_RECORD, "notify-record") /* card stream event(notify) site */                         \
    X(NOTIFY_WAIT, "notify-wait")                                                                  \
    X(KERNEL, "kernel") /* card stream address(code) size(arguments) site, aux engine */           \
    X(STREAM_SYNC, "stream-sync")                                                                  \
    X(EVENT_SYNC, "event-sync")                                                                    \
    X(CARD_SYNC, "card-sync")                                                                      \
    X(TASK_DONE, "task-done")     /* card stream, aux status */                                    \
    X(HOST_ACCESS, "host-access") /* card address site (of the block, 0: none) size asked backed   \
                                     (block, from other) aux (1: a write) pc: in a signal handler, \
                                     its sinks take no lock and no memory */                       \
    X(DYING, "dying") /* aux pid: a signal ends that process; told in a forked copy of it, with    \
                         its figures, which ends when the sinks return */                          \
    X(FREE_FAIL,                                                                                   \
      "free-fail") /* card (-1: none) address site, aux status: of card or pinned memory */

enum blyi_probe_kind {
#define BLYI_PROBE_ENUM(name, key) BLYI_PROBE_##name,
    BLYI_PROBES(BLYI_PROBE_ENUM)
#undef BLYI_PROBE_ENUM
        BLYI_PROBE_COUNT
};

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
    uint64_t time_ns; /* set by blyi_probe_emit() when 0 */
    int64_t aux;
    const void *pc; /* of HOST_ACCESS: the instruction */
};

struct blyi_sink {
    uint64_t kinds; /* bit set of 1 << kind */
    void (*probe)(void *arg, const struct blyi_probe *probe);
    void *arg;
    struct blyi_sink *next;
};

/* Sinks are added at start and stay; the structure belongs to the caller and must live on. */
void blyi_probe_add_sink(struct blyi_sink *sink);

extern uint64_t blyi_probe_wanted; /* union of all sinks' kinds; read without a lock */
void blyi_probe_emit_slow(struct blyi_probe *probe);
const char *blyi_probe_key(enum blyi_probe_kind kind);

static inline bool blyi_probe_on(enum blyi_probe_kind kind)
{
    return unlikely((__atomic_load_n(&blyi_probe_wanted, __ATOMIC_RELAXED) >> kind) & 1);
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
