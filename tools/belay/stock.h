/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.h - what the caching allocator of PyTorch for Ascend would reserve: a simulation.
 */
#ifndef BELAY_STOCK_H
#define BELAY_STOCK_H

#include <belay/plan.h>
#include <stdbool.h>

struct stock {
    uint64_t reserved; /* bytes of segments */
    uint64_t live;     /* most bytes asked for that were live at once */
};

/* What has come about before time `until`. Rules: 32 bytes more, rounded up to 512; up to 1 MiB
 * from segments of 2 MiB, below 10 MiB from segments of 20 MiB, else from one of its own in
 * multiples of 2 MiB; pools per stream, best fit; the rest of a block is kept apart when it is at
 * least 512 bytes (small) or above 1 MiB; neighbours that are free join; segments are kept; no
 * limit of memory. False: out of host memory. */
bool stock_simulate(const bly_plan_input *input, int64_t until, struct stock *stock);

#endif
