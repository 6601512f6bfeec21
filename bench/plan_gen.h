/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_gen.h - families of buffers of any number, equal on every machine for a seed.
 */
#ifndef BENCH_PLAN_GEN_H
#define BENCH_PLAN_GEN_H

#include <belay/plan.h>

/* mixed  a birth per tick; short lives and a few long ones, sizes log-uniform
 * serve  caches that live the longer the larger they are
 * train  pipelined training steps: activations live from forward to backward
 * NULL: out of memory or no such family. Freed by free(). */
bly_plan_buffer *plan_gen(const char *family, size_t n, uint64_t seed);

#endif
