/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.h - the life of the software NPU in this process: first use, fork, finalise.
 */
#ifndef BLYI_RUNTIME_H
#define BLYI_RUNTIME_H

#include <belay/base.h>
#include <stdbool.h>

/* First use: options, log level, fault handler, fork handler. Cheap afterwards (one load).
 * E_FORKED: this process was forked after the runtime was up; the sentence names the parent and
 * says what to do. Every entry into the card calls it. [any] */
bly_status blyi_runtime_enter(void);
/* E_FORKED as above; starts nothing, so for what can be asked before the first use. Whatever takes
 * a lock or changes memory calls one of the two first: in the child of a fork the threads that hold
 * the locks do not exist, and what is shared is the parent's. */
bly_status blyi_runtime_check(void);
/* The same without a sentence. */
bool blyi_runtime_is_forked(void);

/* Everything that the process made on the cards becomes invalid: contexts, streams, events,
 * card memory. Waits for queued work. Pinned host memory stays valid until it is freed, since
 * host code may still hold it. Engines stop. [any] */
void blyi_runtime_finalise(void);

#endif
