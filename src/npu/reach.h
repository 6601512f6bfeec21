/* SPDX-License-Identifier: Apache-2.0
 *
 * reach.h - the pinned block that the argument of user code leads to, told before and behind that
 * code while somebody listens (CALLBACK_REACH): what changes there meanwhile may be its doing.
 *
 * Leads to: the argument lies in the block, or the word that it points to does, or the word that
 * this one points to. Further words are not looked at: of an object on a stack nobody knows the
 * end, and behind it lie variables that are not its own.
 */
#ifndef BLYI_REACH_H
#define BLYI_REACH_H

#include <stdint.h>

struct blyi_stream;

struct blyi_reach {
    uintptr_t block; /* 0: none */
};

/* Without locks. The argument need not be an address. */
void blyi_reach_begin(struct blyi_reach *reach, const struct blyi_stream *stream, const void *arg);
void blyi_reach_end(const struct blyi_reach *reach, const struct blyi_stream *stream);

#endif
