/* SPDX-License-Identifier: Apache-2.0
 *
 * cap.h - BELAY_CAP: bytes of this process on all cards, live blocks as backed and the
 * runtime's overhead. Takes no lock. [any]
 */
#ifndef BLYI_CAP_H
#define BLYI_CAP_H

#include <stdbool.h>
#include <stdint.h>

/* Books bytes; false, and nothing booked, when the cap would be passed. */
bool blyi_cap_take(uint64_t bytes);
void blyi_cap_give(uint64_t bytes);

#endif
