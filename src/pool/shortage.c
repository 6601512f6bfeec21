/* SPDX-License-Identifier: Apache-2.0
 *
 * shortage.c - the sentence of a request that found no memory: what was asked, what the pool holds
 * and why that did not serve, what the card has.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/site.h"
#include "base/size.h"
#include "pool/pool.h"
#include "pool/waiting.h"

static void append_size(const char *what, uint64_t bytes)
{
    char text[BLYI_SIZE_TEXT];
    if (bytes > 0)
        blyi_fail_append(", %s %s", what, blyi_size_text(bytes, text));
}

#define STREAMS_TOLD 4
#define WHAT         (BLYI_SITE_TEXT + 64)

/* "stream 3 until its task 2 (queued at main+0x1c (prog)) has ended". */
static void text_of(const bly_pool *pool, const struct blyi_awaited *row, char what[WHAT])
{
    char task[WHAT - 32] = "";
    if (row->arena->lane != NULL)
        pool->backend->ops->awaited(pool->backend, row->arena->lane, row->mark - row->arena->base,
                                    task, sizeof task);
    snprintf(what, WHAT, "stream %" PRIu32 ", %s", row->arena->number, task);
}

/* "314572800 B (300 MiB) waiting for stream 3 to end task 2 (queued at ...), for 12 ms". */
static void append_waiting(bly_pool *pool)
{
    struct blyi_awaited rows[STREAMS_TOLD];
    char size[BLYI_SIZE_TEXT], what[WHAT];
    size_t n = blyi_waiting_by_stream(pool, rows, STREAMS_TOLD);
    for (size_t i = 0; i < n; i++) {
        text_of(pool, &rows[i], what);
        blyi_fail_append(", %s waiting for %s in %" PRIu64 " block%s, for %" PRIu64 " ms",
                         blyi_size_text(rows[i].bytes, size), what, rows[i].blocks,
                         rows[i].blocks == 1 ? "" : "s",
                         (blyi_clock_ns() - rows[i].since_ns) / 1000000);
    }
}

/* Whether the request fits when the streams have gone on. */
static void append_hope(bly_pool *pool, const bly_pool_info *info, const struct blyi_want *want)
{
    struct blyi_awaited rows[STREAMS_TOLD];
    struct blyi_backend_info device;
    char what[WHAT];
    pool->backend->ops->describe(pool->backend, &device);
    uint64_t room = pool->limit > info->reserved ? pool->limit - info->reserved : 0;
    room = (room < device.free ? room : device.free) + info->releasable;
    size_t n = blyi_waiting_by_stream(pool, rows, STREAMS_TOLD);
    for (size_t i = 0; i < n; i++) {
        room += rows[i].bytes;
        text_of(pool, &rows[i], what);
        blyi_fail_append("%s %s", i == 0 ? "; there is room behind" : " and", what);
        if (room >= want->size)
            return;
    }
    if (n > 0)
        blyi_fail_append(" for %" PRIu64 " B, which is not enough", room);
}

bly_status blyi_shortage(struct blyi_arena *arena, const struct blyi_want *want, bly_status status)
{
    bly_pool *pool = arena->pool;
    bly_pool_info info = {.struct_size = sizeof info};
    char asked[BLYI_SIZE_TEXT], held[BLYI_SIZE_TEXT], limit[BLYI_SIZE_TEXT];
    blyi_lock_take(&pool->lock);
    pool->is.refused++;
    blyi_lock_drop(&pool->lock);
    bly_status known = bly_pool_get_info(pool, &info);
    if (known != BLY_OK)
        return known;
    bool limited = pool->limit != UINT64_MAX && info.reserved + want->size > pool->limit;
    blyi_fail(status, "pool %s on card %d: no room for %s: held %s", pool->name, pool->device,
              blyi_size_text(want->asked, asked), blyi_size_text(info.reserved, held));
    if (pool->limit != UINT64_MAX)
        blyi_fail_append("%s limit %s", limited ? " of its" : ",",
                         blyi_size_text(pool->limit, limit));
    append_size("live", info.live);
    append_size("parked in thread caches", info.parked);
    append_waiting(pool);
    append_size("idle", info.idle);
    append_size("the largest idle piece", info.largest);
    if (info.idle > info.releasable)
        append_size("of the idle still used by queued work or shared with blocks",
                    info.idle - info.releasable);
    /* What is idle and can go is room for it, too. */
    pool->backend->ops->shortage(
        pool->backend, want->size > info.releasable ? want->size - info.releasable : want->size);
    append_hope(pool, &info, want);
    return status;
}
