/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_test.h - what the planner's tests share: chance with a printed seed, generators of
 * buffers, and a plan by exhaustive search.
 */
#ifndef PLAN_TEST_H
#define PLAN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include <belay/plan.h>

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        bly_status status_ = (call);                                                               \
        if (status_ != BLY_OK)                                                                     \
            fail_msg("status %d: %s", status_, bly_last_error());                                  \
    } while (0)

static inline uint64_t plan_rand(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t plan_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(plan_rand(state) % (uint64_t)(high - low + 1));
}

/* TEST_SEED, or the time; printed. */
static inline uint64_t plan_seed(void)
{
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline void plan_random(uint64_t *state, bly_plan_buffer *buffers, size_t n, int64_t span,
                               int64_t most)
{
    for (size_t i = 0; i < n; i++) {
        int64_t lower = plan_between(state, 0, span - 1);
        buffers[i] = bly_plan_buffer_make(lower, plan_between(state, lower + 1, span),
                                          (uint64_t)plan_between(state, 1, most));
    }
}

/* Cuts [0, time) x [0, height) into n pieces without a hole: the optimum is the height. */
static inline void plan_planted(uint64_t *state, bly_plan_buffer *buffers, size_t n, int64_t time,
                                uint64_t height)
{
    buffers[0] = bly_plan_buffer_make(0, time, height);
    for (size_t made = 1; made < n;) {
        bly_plan_buffer *b = &buffers[plan_rand(state) % made], *c = &buffers[made];
        *c = *b;
        if (plan_rand(state) % 2 == 0 && b->upper - b->lower > 1) {
            b->upper = c->lower = plan_between(state, b->lower + 1, b->upper - 1);
            made++;
        } else if (b->size > 1) {
            b->size = (uint64_t)plan_between(state, 1, (int64_t)b->size - 1);
            c->size -= b->size;
            made++;
        }
    }
}

/* Smallest peak, by trying all orders of placing each buffer as low as the ones before allow:
 * one of them gives any plan that cannot be pushed down. For a handful of buffers. */
uint64_t plan_exhaustive(const bly_plan_buffer *buffers, size_t n);

#endif
