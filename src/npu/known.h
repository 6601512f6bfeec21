/* SPDX-License-Identifier: Apache-2.0
 *
 * known.h - which records of other streams a stream has been made to wait for: all work that is
 * given to it afterwards comes behind them. The last few are kept, and only once somebody has asked
 * for it.
 */
#ifndef BLYI_KNOWN_H
#define BLYI_KNOWN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

struct blyi_event;
struct blyi_stream;

extern bool blyi_known_wanted;
void blyi_known_want(void);

void blyi_known_add(struct blyi_stream *stream, struct blyi_event *event);
/* A wait for the event was queued on the stream. */
static inline void blyi_known_waits(struct blyi_stream *stream, struct blyi_event *event)
{
    if (unlikely(__atomic_load_n(&blyi_known_wanted, __ATOMIC_RELAXED)))
        blyi_known_add(stream, event);
}
/* The stream comes behind the task at a position of another one, by its id. [any] */
bool blyi_known_has(const struct blyi_stream *stream, uint32_t other, uint64_t position);

#endif
