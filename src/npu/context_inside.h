/* SPDX-License-Identifier: Apache-2.0
 *
 * context_inside.h - the inside of a context, and the steps by which contexts come and go.
 */
#ifndef BLYI_CONTEXT_INSIDE_H
#define BLYI_CONTEXT_INSIDE_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/fail.h"
#include "base/list.h"
#include "base/lock.h"

struct blyi_card;
struct blyi_host_thread;
struct blyi_stream;

enum blyi_context_state { BLYI_CONTEXT_ALIVE, BLYI_CONTEXT_DYING, BLYI_CONTEXT_DEAD };

#define BLYI_CONTEXT_PARAMS 8 /* options 0 .. 7 */

struct blyi_context {
    /* Written at creation, behind the new generation. Atomic: a thread whose context has ended
     * may read them while the structure is used again; see struct blyi_context_here. */
    struct blyi_card *card;
    void *handle;
    void *default_handle; /* of the default stream */
    uint32_t site;
    uint32_t id;
    bool primary;

    uint32_t state;        /* enum blyi_context_state */
    uint64_t generation;   /* how often the structure was used: threads remember it */
    struct blyi_list link; /* among the live or the dead, under the runtime's lock */

    uint32_t captures[3];        /* atomic: captures that go on, by mode (graph.h) */
    uint32_t overflow;           /* atomic: a kernel left the range of numbers (overflow.h) */
    uint32_t stops;              /* a stream of it stops on failure, hence all do (abort.c) */
    bly_status failed;           /* atomic: what it stopped on, or BLY_OK */
    char failure[BLYI_FAIL_MAX]; /* its sentence, written once before `failed` */

    struct blyi_lock lock;                /* rank CONTEXT; guards what follows */
    struct blyi_list streams;             /* by rising id */
    struct blyi_host_thread *host_thread; /* made at the first host function */
    uint32_t params_set;                  /* bit set of options */
    int64_t params[BLYI_CONTEXT_PARAMS];
};

/* Rank RUNTIME: the lists of contexts and the devices' primary contexts. */
extern struct blyi_lock blyi_contexts_lock;
extern struct blyi_list blyi_contexts; /* made and not yet torn down */

/* What this thread works on. */
struct blyi_thread_state {
    struct blyi_context *explicit_context; /* of context_set and context_create */
    struct blyi_context *primary_context;  /* of the last device_set */
    uint64_t explicit_generation, primary_generation;
};
extern _Thread_local struct blyi_thread_state blyi_thread_state;

/* A context as one look found it. It may end at any moment, and its structure be used again, so
 * what belongs to it was read before its generation was looked at. */
struct blyi_context_here {
    struct blyi_context *context;
    struct blyi_card *card;
    void *default_handle;
    uint64_t generation;
};

/* The current context as a whole. E_NO_CONTEXT, E_FORKED. */
bly_status blyi_context_look(struct blyi_context_here *here, uint32_t site);
/* Under the lock of the context: it is alive and still the one that was found. What is added to
 * it before the lock is dropped is met by its teardown. E_NO_CONTEXT. */
bly_status blyi_context_still_locked(const struct blyi_context_here *here);

/* Opens the card, charges its overhead, makes context and default stream; not in the list yet.
 * E_DEVICE, E_NO_MEMORY, E_HOST_MEMORY, E_SYSTEM. */
bly_status blyi_context_make(int card, bool primary, uint32_t site, struct blyi_context **out);
/* The context is DYING: waits for its work (or drops it), destroys streams and events, leaves
 * the card and the list. It is DEAD then, and its structure waits to be used again: structures
 * are never freed, since threads may point to them. `by_reset` tells the probes; `force`: work that
 * makes no progress for BELAY_FORCE_WAIT_MS is ended or left behind. */
void blyi_context_teardown(struct blyi_context *context, bool by_reset, bool force);
/* Retains the primary context of a card for a thread that set none (device.c). */
bly_status blyi_device_set_implicit(int card, uint32_t site);
/* The default of threads without a context; -1: none. */
int blyi_device_default(void);
/* All explicit contexts end, then all devices are reset (blyi_runtime_finalise). */
void blyi_context_finalise(void);
void blyi_device_finalise(void);

/* What the thread works on from now on; NULL: nothing. */
void blyi_thread_set_explicit(struct blyi_context *context);
void blyi_thread_set_primary(struct blyi_context *context);

static inline uint64_t blyi_context_generation(const struct blyi_context *context)
{
    return __atomic_load_n(&context->generation, __ATOMIC_RELAXED);
}

static inline bool blyi_context_is_alive(const struct blyi_context *context)
{
    return __atomic_load_n(&context->state, __ATOMIC_ACQUIRE) == BLYI_CONTEXT_ALIVE;
}

/* The context's next stream after `stream` (NULL: its first), referenced; the reference to
 * `stream` is dropped. NULL: none left. */
struct blyi_stream *blyi_context_next_stream(struct blyi_context *context,
                                             struct blyi_stream *stream);

/* The stream leaves its context's list. */
void blyi_context_forget(struct blyi_context *context, struct blyi_stream *stream);

#endif
