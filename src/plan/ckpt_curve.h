/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_curve.h - the trade-off between memory and time of one part of a chain: a staircase,
 * kept as its corners. With memory m the part takes the time of the last corner at or below m.
 */
#ifndef BLYI_CKPT_CURVE_H
#define BLYI_CKPT_CURVE_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_ckpt_corner {
    uint64_t memory, time;
};

struct blyi_ckpt_curve {
    uint32_t n;                       /* 0: not possible with any memory looked at */
    struct blyi_ckpt_corner *corners; /* memory rises, time falls */
};

/* The last corner at or below `memory`, NULL when there is none. */
const struct blyi_ckpt_corner *blyi_ckpt_curve_at(const struct blyi_ckpt_curve *curve,
                                                  uint64_t memory);

/* One way to do a part: from `threshold` on it takes `time`, plus what `first` takes with
 * `held` less than what there is, plus what `second` takes with all. NULL: nothing there. */
struct blyi_ckpt_way {
    uint64_t threshold, time, held;
    const struct blyi_ckpt_curve *first, *second;
};

/* What the way takes with `memory`; UINT64_MAX: not possible. */
uint64_t blyi_ckpt_way_time(const struct blyi_ckpt_way *way, uint64_t memory);

/* The best of all ways added, for memory up to `limit`, which is at most 2^62. */
struct blyi_ckpt_envelope {
    uint64_t limit;
    uint32_t max_corners; /* of a curve taken */
    bool thinned;         /* some curve had more */
    size_t n, capacity;
    struct blyi_ckpt_corner *corners, *spare; /* capacity values each */
};

void blyi_ckpt_envelope_fini(struct blyi_ckpt_envelope *envelope);
bly_status blyi_ckpt_envelope_add(struct blyi_ckpt_envelope *envelope,
                                  const struct blyi_ckpt_way *way);
/* Makes a curve of it and empties it. */
bly_status blyi_ckpt_envelope_take(struct blyi_ckpt_envelope *envelope,
                                   struct blyi_ckpt_curve *curve);

#endif
