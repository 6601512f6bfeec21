/* SPDX-License-Identifier: Apache-2.0
 *
 * maps.h - the budget of host mappings. The kernel allows a process about 65,000; when they are
 * used up the program's own malloc fails, so Belay stops at three quarters and says why. [any]
 */
#ifndef BLYI_MAPS_H
#define BLYI_MAPS_H

#include <belay/base.h>
#include <stdbool.h>

void blyi_maps_add(int64_t n);
uint64_t blyi_maps_used(void);
uint64_t blyi_maps_budget(void);

/* Whether `more` mappings stay within the budget. */
bool blyi_maps_allow(int64_t more);
/* E_SYSTEM with a sentence: they do not. */
bly_status blyi_maps_spent(const char *owner, int64_t more);
/* E_SYSTEM with a sentence: the kernel refused to map `bytes` with `error`. */
bly_status blyi_maps_refused(const char *owner, uint64_t bytes, int error);

#endif
