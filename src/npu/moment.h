/* SPDX-License-Identifier: Apache-2.0
 *
 * moment.h - a moment of a whole card: behind all work that its streams have queued by now.
 */
#ifndef BLYI_MOMENT_H
#define BLYI_MOMENT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_card;

struct blyi_moment {
    uint32_t n;
    struct {
        void *stream; /* handle */
        uint64_t position;
    } at[];
};

/* The streams of this process that have work queued, of any context. *out is NULL when there are
 * none; else it is freed with blyi_host_free(). E_HOST_MEMORY. [any] */
bly_status blyi_moment_take(const struct blyi_card *card, struct blyi_moment **out);
/* All of that work has ended; a stream that is gone has ended its work. NULL has passed. */
bool blyi_moment_passed(const struct blyi_moment *moment);
/* Waits for it. A failure of that work stays with its streams. */
void blyi_moment_wait(const struct blyi_moment *moment);

#endif
