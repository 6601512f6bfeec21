/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - time, real or virtual. Everything that stamps or times out asks here.
 *
 * Under the virtual clock time moves only by blyi_clock_advance(), so tests give the
 * same figures in every run. [any thread]
 */
#ifndef BLYI_CLOCK_H
#define BLYI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC, or of the virtual clock. */
uint64_t blyi_clock_ns(void);
/* Nanoseconds since the epoch, always real; for people, never for order. */
uint64_t blyi_clock_wall_ns(void);

void blyi_clock_set_virtual(bool on); /* starts at 1 s */
bool blyi_clock_is_virtual(void);
void blyi_clock_advance(uint64_t ns);

#endif
