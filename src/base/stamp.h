/* SPDX-License-Identifier: Apache-2.0
 *
 * stamp.h - time for events that come by the million.
 *
 * The processor's own counter, at half of what the system's clock costs, drawn along the clock
 * every 10 ms. Used where the kernel itself trusts that counter as its clock; else a stamp is the
 * clock. [any thread, signal handlers]
 */
#ifndef BLYI_STAMP_H
#define BLYI_STAMP_H

#include <stdint.h>

/* As blyi_clock_ns(), from which it is less than 20 us away, in both directions: two stamps of one
 * thread may fall by as little. What came first is told by other means. */
uint64_t blyi_stamp_ns(void);

#endif
