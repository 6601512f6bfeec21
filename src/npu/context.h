/* SPDX-License-Identifier: Apache-2.0
 *
 * context.h - contexts and devices as AscendCL knows them: which card a thread works on.
 *
 * A context belongs to one card and has one default stream and created streams. A thread's
 * current context is its explicit one, else the primary context of its last blyi_device_set(),
 * else (option STRICT_DEVICE off, or a configured default device) that of the default card,
 * else none: E_NO_CONTEXT, with a sentence that names the thread and the cards that the process
 * uses. Context objects are never freed, only dead, so a thread may keep a pointer to one.
 */
#ifndef BLYI_CONTEXT_H
#define BLYI_CONTEXT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_card;
struct blyi_context;

/* Retains the card's primary context (made with its default stream at the first call) and makes
 * it current; the explicit context of the thread is dropped. E_DEVICE, E_NO_MEMORY (overhead),
 * E_HOST_MEMORY, E_SYSTEM, E_FORKED. [any] */
bly_status blyi_device_set(int card, uint32_t site);
/* Drops one reference (all of them with `force`). At zero: waits for queued work, destroys the
 * primary context with its streams, frees all card memory of the process on it. The thread's
 * reference is cleared. E_DEVICE; E_RELEASED: none left. [any] */
bly_status blyi_device_reset(int card, bool force);
/* Card of the current context. E_NO_CONTEXT. */
bly_status blyi_device_get(int *card);
/* One listener hears that all memory of a card is about to be taken back, by a reset or the end of
 * the runtime: its work has ended, no lock is held. NULL: nobody. */
void blyi_device_listen(void (*fn)(int card));
/* The device used by threads without a context; -1: none (aclInit's configuration). */
void blyi_device_set_default(int card);
/* Waits for all streams of the current context. timeout_ns 0: no limit. E_TIMEOUT,
 * E_NO_CONTEXT, or the first pending error of a stream. */
bly_status blyi_device_sync(uint64_t timeout_ns);
/* Whether the card's primary context is alive. E_DEVICE. */
bly_status blyi_device_active(int card, bool *active);

/* New explicit context, current for the thread. E_DEVICE, E_NO_MEMORY, E_HOST_MEMORY. */
bly_status blyi_context_create(int card, uint32_t site, void **handle);
/* E_NO_CONTEXT: a primary context, or one destroyed already; E_RELEASED: being destroyed. Waits
 * for the streams. */
bly_status blyi_context_destroy(void *handle);
/* E_NO_CONTEXT: destroyed or reset. */
bly_status blyi_context_set(void *handle);
bly_status blyi_context_get(void **handle);

/* The current context, for every call that needs one. E_NO_CONTEXT, E_FORKED. */
bly_status blyi_context_here(struct blyi_context **context);
/* The same for calls that know their site: a warning about a missing device names it. */
bly_status blyi_context_here_site(struct blyi_context **context, uint32_t site);
/* Its card, for calls that need no more. As all that is asked of a context, it is read in one look:
 * right even if the context ends meanwhile, and its structure is used again. */
bly_status blyi_context_here_card(struct blyi_card **card);
/* The handle of its default stream, usable like any, and its card (may be NULL). */
bly_status blyi_context_here_default(void **stream, struct blyi_card **card);

/* System parameters of a context; *value written when set. E_STATE: never set. */
bly_status blyi_context_set_param(int option, int64_t value);
bly_status blyi_context_get_param(int option, int64_t *value);

#endif
