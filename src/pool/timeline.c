/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.c - the last flushes of a pool: a ring of them, one entry for those of a kind in a row.
 */
#include "pool/timeline.h"

#include "base/clock.h"

static struct blyi_flush *add(bly_pool *pool, enum blyi_flush_kind kind, uint64_t began_ns)
{
    struct blyi_flush *flush = &pool->flushes[pool->n_flushes++ % BLYI_FLUSHES];
    *flush = (struct blyi_flush){.kind = kind, .at_ns = began_ns - pool->made_ns, .times = 1};
    return flush;
}

struct blyi_effort blyi_effort_begin(const bly_pool *pool)
{
    const struct blyi_pool_figures *is = &pool->is;
    return (struct blyi_effort){.held = is->held,
                                .unmaps = is->unmaps,
                                .moved = is->unmapped,
                                .waits = is->waits,
                                .began_ns = blyi_clock_ns()};
}

void blyi_timeline_request(bly_pool *pool, const struct blyi_effort *effort, uint64_t asked,
                           bool pressed, bool served)
{
    const struct blyi_pool_figures *is = &pool->is;
    struct blyi_backend_info info;
    if (likely(!pressed && is->unmaps == effort->unmaps && is->waits == effort->waits))
        return;
    pool->backend->ops->describe(pool->backend, &info);
    uint64_t free = info.free + is->held - effort->held;
    if (!pressed && is->waits == effort->waits && free >= asked)
        return; /* moved to keep within the budget: nothing was short */
    struct blyi_flush *flush = add(pool, BLYI_FLUSH_REQUEST, effort->began_ns);
    flush->took_ns = blyi_clock_ns() - effort->began_ns;
    flush->asked = asked;
    flush->card_free = free;
    flush->bytes = is->unmapped - effort->moved;
    flush->pieces = is->unmaps - effort->unmaps;
    flush->waits = is->waits - effort->waits;
    flush->failed = !served;
}

void blyi_timeline_give(bly_pool *pool, enum blyi_flush_kind kind, uint64_t began_ns,
                        uint64_t bytes, uint64_t pieces)
{
    struct blyi_flush *last = &pool->flushes[(pool->n_flushes - 1) % BLYI_FLUSHES];
    if (bytes == 0 ||
        (kind == BLYI_FLUSH_RECLAIM && pool->n_relieved > 0)) /* told of the request */
        return;
    if (pool->n_flushes == 0 || last->kind != kind)
        last = add(pool, kind, began_ns);
    else
        last->times++;
    last->at_ns = began_ns - pool->made_ns;
    last->took_ns += blyi_clock_ns() - began_ns;
    last->bytes += bytes;
    last->pieces += pieces;
}
