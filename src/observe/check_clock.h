/* SPDX-License-Identifier: Apache-2.0
 *
 * check_clock.h - vector clocks: how far of each stream, and of the host, somebody knows.
 *
 * Component 0 is the host's accesses: all its threads together (docs/design/check.md says why).
 * Component 1 is its moments, which pass from submission to work alone. The others
 * are streams; a stream that is gone gives its component to a later one, which counts on.
 */
#ifndef BLYI_CHECK_CLOCK_H
#define BLYI_CHECK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define BLYI_SLOT_MOMENT 1u

struct blyi_vc {
    uint64_t *at; /* components behind `n` are 0 */
    uint32_t n, room;
};

static inline uint64_t blyi_vc_get(const struct blyi_vc *vc, uint32_t slot)
{
    return slot < vc->n ? vc->at[slot] : 0;
}

void blyi_vc_fini(struct blyi_vc *vc);
/* Each false without host memory; the clock may have grown in part then. */
bool blyi_vc_raise(struct blyi_vc *vc, uint32_t slot, uint64_t value);
bool blyi_vc_join(struct blyi_vc *vc, const struct blyi_vc *other);
/* What is of streams alone. True in *changed when anything was raised. */
bool blyi_vc_join_streams(struct blyi_vc *vc, const struct blyi_vc *other, bool *changed);

#endif
