/* SPDX-License-Identifier: Apache-2.0
 *
 * told.h - what happens to a pool's blocks, told to probes. Whoever serves the program calls these,
 * where it knows what the program asked for; only when probes are wanted (blyi_pool_told()). [any]
 */
#ifndef BLYI_POOL_TOLD_H
#define BLYI_POOL_TOLD_H

#include <belay/pool.h>
#include <stdbool.h>
#include "base/probe.h"
#include "base/word.h"

/* One look, for fast paths. ALLOC, FREE and USE are wanted together or not at all. */
static inline bool blyi_pool_told(void)
{
    _Static_assert(BLYI_PROBE_ALLOC < 8 && BLYI_PROBE_FREE < 8, "bits of the first byte");
    return unlikely(
        blyi_word_has(&blyi_probe_wanted[0], 1u << BLYI_PROBE_ALLOC | 1u << BLYI_PROBE_FREE));
}

/* A block that was just handed out; `rounded` by the rule of whoever asked. */
void blyi_told_alloc(const void *block, uint64_t asked, uint64_t rounded, const void *pc);
void blyi_told_refused(const bly_pool *pool, uint64_t asked, const void *pc, bly_status status);

enum blyi_told_order {
    BLYI_TOLD_OWN, /* in the order of the stream that it was allocated on */
    BLYI_TOLD_ON,  /* of another */
    BLYI_TOLD_NOW, /* at once, whatever still uses it */
};
/* A block that is about to be freed; what is no live block is told as a refused free, before it is
 * refused. `stream`: of ON. */
void blyi_told_free(const void *block, enum blyi_told_order order, bly_stream stream,
                    const void *pc);
/* A free that is about to be refused. */
void blyi_told_free_refused(const void *address, const void *pc);
/* A handle is mapped, or about to be unmapped; under the pool's lock. */
struct blyi_chunk;
void blyi_told_chunk(const bly_pool *pool, const struct blyi_chunk *chunk, bool mapped);
/* The pool ends, with what lives in it. */
void blyi_told_end(bly_pool *pool);
/* The card was reset: the same, as nobody's free. */
void blyi_told_reset(bly_pool *pool);
/* From the first pool on: sinks that come late are told what lives in pools. */
void blyi_told_offer(void);
/* Another stream uses it as well. */
void blyi_told_use(const void *block, bly_stream stream);

#endif
