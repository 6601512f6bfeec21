/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.h - the life of the software NPU in this process: first use, fork, finalise.
 */
#ifndef BLYI_RUNTIME_H
#define BLYI_RUNTIME_H

#include <belay/base.h>

/* First use: options, log level, fault handler, fork handler. Cheap afterwards (one load).
 * E_FORKED: this process was forked after the runtime was up; the sentence names the parent and
 * says what to do. Every entry into the card calls it. [any] */
bly_status blyi_runtime_enter(void);

/* Everything that the process made on the cards becomes invalid: contexts, streams, events,
 * card memory. Waits for queued work. Pinned host memory stays valid until it is freed, since
 * host code may still hold it. Engines stop. [any] */
void blyi_runtime_finalise(void);

#endif
