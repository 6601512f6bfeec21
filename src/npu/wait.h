/* SPDX-License-Identifier: Apache-2.0
 *
 * wait.h - how threads of the host wait: awake for a moment, then on a futex; with a deadline on
 * the clock of clock.h.
 */
#ifndef BLYI_WAIT_H
#define BLYI_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Real nanoseconds, also under the virtual clock: how long we have been awake. */
uint64_t blyi_wait_real_ns(void);
/* Option SPIN_US in nanoseconds, read once. */
uint64_t blyi_wait_spin_ns(void);

/* Called now and then by who has been spinning for BLYI_WAIT_ALONE_NS: whoever we wait for may
 * need this very core. Not earlier: threads that yield often look busy and cache-hot to the
 * scheduler, which then leaves both on one core. False: sleep instead. Where other work wants the
 * CPUs a yield costs their whole slice, milliseconds, and a futex only the wake. */
#define BLYI_WAIT_ALONE_NS 10000u
bool blyi_wait_yield(void);

/* Deadline for a timeout (0: none) from now; UINT64_MAX: never. */
uint64_t blyi_wait_deadline(uint64_t timeout_ns);
/* Sleeps while *word is `expected`, at most until the deadline. False: the deadline has passed.
 * Under the virtual clock it looks every millisecond whether time has moved. */
bool blyi_wait_on(const uint32_t *word, uint32_t expected, uint64_t deadline);

#endif
