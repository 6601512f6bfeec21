/* SPDX-License-Identifier: Apache-2.0
 *
 * victims.c - the handles that an idle hole can give.
 */
#include "pool/victims.h"

blyi_mark blyi_chunk_mark(const struct blyi_chunk *chunk)
{
    blyi_mark mark = 0;
    for (uint32_t i = 0; i < chunk->count; i++)
        if (chunk->extent->marks[chunk->first + i] > mark)
            mark = chunk->extent->marks[chunk->first + i];
    return mark;
}

struct blyi_victims blyi_victims_of(struct blyi_span *hole, const struct blyi_need *need)
{
    const struct blyi_extent *extent = hole->extent;
    uint64_t granule = hole->arena->pool->granule;
    struct blyi_victims v = {.hole = hole};
    uintptr_t end = hole->address + hole->size;
    if (need->hole == hole) { /* it is being mapped: its ends are not known */
        v.from = need->from;
        v.to = need->to;
    } else if (hole->ends[1] == 0 && hole->mapped == hole->ends[0]) {
        end = hole->address + hole->ends[0]; /* nothing is mapped beyond */
    }
    v.low = (blyi_align_up(hole->address, granule) - extent->base) / granule;
    v.at = (blyi_align_down(end, granule) - extent->base) / granule;
    return v;
}

struct blyi_chunk *blyi_victims_next(struct blyi_victims *v)
{
    const struct blyi_extent *extent = v->hole->extent;
    uint64_t granule = v->hole->arena->pool->granule;
    while (v->at > v->low) {
        struct blyi_chunk *chunk = extent->chunks[v->at - 1];
        if (chunk == NULL) {
            v->at--;
            continue;
        }
        uintptr_t from = extent->base + chunk->first * granule;
        uintptr_t to = from + chunk->count * granule;
        bool inside = chunk->first >= v->low && chunk->first + chunk->count <= v->at;
        v->at = chunk->first > v->low ? chunk->first : v->low;
        if (inside && (to <= v->from || from >= v->to))
            return chunk;
    }
    return NULL;
}
