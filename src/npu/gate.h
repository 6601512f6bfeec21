/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.h - whoever touches card memory through its mappings goes through here, so that frames
 * can be moved under them: copies and sets in any thread, and kernels.
 *
 *   open:    enter, touch, leave      two uncontended atomics
 *   closed:  those inside finish, others wait outside
 *
 * Not recursive. Inside, a thread may wait for locks of the card, and must not for other tasks.
 */
#ifndef BLYI_GATE_H
#define BLYI_GATE_H

#include <belay/base.h>

/* What leave wants to be told. Waits while the gate is closed. [any] */
uint32_t blyi_gate_enter(void);
void blyi_gate_leave(uint32_t stripe);

/* Waits until nobody is inside; the caller holds no lock that somebody inside may want. One at a
 * time: others wait. timeout_ns 0: no limit. E_TIMEOUT, with a sentence; as it was then. */
bly_status blyi_gate_close(uint64_t timeout_ns);
void blyi_gate_open(void);

#endif
