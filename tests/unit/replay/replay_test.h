/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_test.h - traces written as arrays, and what the tests of replays ask about them.
 */
#ifndef REPLAY_TEST_H
#define REPLAY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "replay/replay.h"

#define A(block_, bytes_, stream_)                                                                 \
    {                                                                                              \
        .op = BLYI_REPLAY_ALLOC, .block = (block_), .bytes = (bytes_), .stream = (stream_)         \
    }
#define F(block_)                                                                                  \
    {                                                                                              \
        .op = BLYI_REPLAY_FREE, .block = (block_)                                                  \
    }
#define F_TOLD(block_)                                                                             \
    {                                                                                              \
        .op = BLYI_REPLAY_FREE, .block = (block_), .told = true                                    \
    }
#define U(block_, stream_)                                                                         \
    {                                                                                              \
        .op = BLYI_REPLAY_USE, .block = (block_), .stream = (stream_)                              \
    }
#define D(block_)                                                                                  \
    {                                                                                              \
        .op = BLYI_REPLAY_DONE, .block = (block_)                                                  \
    }
#define S(stream_)                                                                                 \
    {                                                                                              \
        .op = BLYI_REPLAY_SYNC, .stream = (stream_)                                                \
    }
#define M                                                                                          \
    {                                                                                              \
        .op = BLYI_REPLAY_MARK                                                                     \
    }

/* Counts and peak of what `events` say; blocks are numbered from 0 without gaps. */
static inline struct blyi_replay_trace trace_of(struct blyi_replay_event *events, size_t n)
{
    struct blyi_replay_trace trace = {.events = events, .n_events = n};
    uint64_t bytes[4096], live = 0;
    for (size_t i = 0; i < n; i++) {
        if (events[i].op == BLYI_REPLAY_ALLOC) {
            assert_true(events[i].block < BLYI_COUNT(bytes));
            bytes[events[i].block] = events[i].bytes;
            live += events[i].bytes;
            trace.n_allocs++;
            trace.n_blocks++;
        } else if (events[i].op == BLYI_REPLAY_FREE) {
            live -= bytes[events[i].block];
        }
        trace.peak_live = live > trace.peak_live ? live : trace.peak_live;
    }
    return trace;
}

/* On a card of `capacity`, 0: without a limit. */
static inline bly_status run_on(const struct blyi_replay_policy *policy,
                                const struct blyi_replay_trace *trace, uint64_t capacity,
                                struct blyi_replay_result *result)
{
    struct blyi_replay_setup setup = {
        .trace = trace,
        .capacity = capacity != 0 ? capacity : BLYI_REPLAY_UNBOUNDED,
        .lag = 2,
    };
    return blyi_replay_run(policy, &setup, NULL, NULL, result);
}

#endif
