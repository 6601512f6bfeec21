/* SPDX-License-Identifier: Apache-2.0
 *
 * value.h - words of card memory written and waited for in stream order.
 *
 * A wait looks again whenever a write task has run, and every 200 us otherwise: kernels, copies
 * and other processes change memory without telling.
 */
#ifndef BLYI_VALUE_H
#define BLYI_VALUE_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_stream;
struct blyi_task;

enum blyi_value_condition {
    BLYI_VALUE_GREATER_EQUAL, /* (int64)(word - value) >= 0 */
    BLYI_VALUE_EQUAL,
    BLYI_VALUE_AND, /* word & value is not 0 */
    BLYI_VALUE_NOR, /* ~(word | value) is not 0 */
};

/* E_ALIGN: not a multiple of 8; E_INVALID: no card memory. stream NULL: default. [any] */
bly_status blyi_value_write(void *address, uint64_t value, void *stream, uint32_t site);
bly_status blyi_value_wait(void *address, uint64_t value, enum blyi_value_condition condition,
                           void *stream, uint32_t site);

/* Owner only; wait: false: the stream is blocked. */
void blyi_value_run_write(struct blyi_stream *stream, struct blyi_task *task, bly_status *status);
bool blyi_value_run_wait(struct blyi_stream *stream, struct blyi_task *task, bly_status *status);

#endif
