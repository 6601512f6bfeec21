/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.c - memory that is handed out in a row and taken back as a whole.
 *
 * Chunks are filled one after the other. Those behind the current one are empty and kept for the
 * next round; a reset that finds several asks for one of their size instead.
 */
#include <belay/pool_parts.h>

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "pool/class.h"
#include "pool/pool.h"

#define CHUNK_DEFAULT (2 * MiB)
#define CHUNK_MOST    (UINT64_C(1) << 40)
#define SIZE_MOST     (UINT64_C(1) << 48)

struct chunk {
    uintptr_t address;
    uint64_t size, used;
    bool foreign; /* other streams were told to use it since it was last empty */
};

struct bly_scratch {
    bly_pool *pool;
    bly_stream stream;
    uint64_t chunk; /* of a chunk at least, as the caller wants it */
    uint64_t least; /* the same, as experience has it */
    struct chunk *chunks;
    uint32_t n, capacity;
    uint32_t current; /* is filled now; n: there is none */
    uint64_t peak;
    struct blyi_use *uses; /* of other streams, since the last reset */
    size_t n_uses;
};

bly_status bly_scratch_create(bly_pool *pool, bly_stream stream, uint64_t chunk, bly_scratch **out)
{
    struct blyi_arena *arena;
    if (out == NULL)
        return blyi_fail(BLY_E_INVALID, "scratch is NULL");
    if (chunk > CHUNK_MOST)
        return blyi_fail(BLY_E_INVALID, "chunks of %" PRIu64 " bytes: at most 2^40", chunk);
    bly_status status = blyi_pool_check(pool);
    if (status == BLY_OK)
        status = blyi_arena_of(pool, stream, &arena);
    if (status != BLY_OK)
        return status;
    bly_scratch *scratch = blyi_host_calloc(1, sizeof(*scratch));
    if (scratch == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe scratch memory");
    scratch->pool = pool;
    scratch->stream = stream;
    scratch->least = scratch->chunk = chunk > 0 ? chunk : CHUNK_DEFAULT;
    *out = scratch;
    return BLY_OK;
}

/* Chunks from `first` on, all empty. Stops at the first that the pool does not take. */
static bly_status drop_from(bly_scratch *scratch, uint32_t first)
{
    bly_status status = BLY_OK;
    while (scratch->n > first && status == BLY_OK) {
        status = bly_pool_free((void *)scratch->chunks[scratch->n - 1].address);
        scratch->n -= status == BLY_OK;
    }
    return status;
}

bly_status bly_scratch_destroy(bly_scratch *scratch)
{
    if (scratch == NULL)
        return BLY_OK;
    bly_status status = drop_from(scratch, 0);
    if (status != BLY_OK)
        return status;
    blyi_host_free(scratch->uses);
    blyi_host_free(scratch->chunks);
    blyi_host_free(scratch);
    return BLY_OK;
}

static uint64_t used_of(const bly_scratch *scratch)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < scratch->n && i <= scratch->current; i++)
        used += scratch->chunks[i].used;
    return used;
}

/* Where a block would begin in a chunk; false: it has no room. */
static bool fits(const struct chunk *chunk, uint64_t size, uint64_t align, uint64_t *offset)
{
    uintptr_t address = blyi_align_up(chunk->address + chunk->used, align);
    *offset = address - chunk->address;
    return *offset <= chunk->size && size <= chunk->size - *offset;
}

static bly_status take_chunk(bly_scratch *scratch, uint64_t size, uint64_t align)
{
    void *address;
    bly_pool_request request = {.struct_size = sizeof(request), .size = size, .align = align};
    bly_status status = bly_pool_alloc_with(scratch->pool, &request, scratch->stream, &address);
    if (status == BLY_OK)
        scratch->chunks[scratch->n++] = (struct chunk){.address = (uintptr_t)address, .size = size};
    return status;
}

static bly_status grow(bly_scratch *scratch, uint64_t size, uint64_t align)
{
    if (scratch->n == scratch->capacity) {
        uint32_t capacity = scratch->capacity > 0 ? 2 * scratch->capacity : 4;
        struct chunk *more =
            blyi_host_realloc(scratch->chunks, capacity * sizeof(*scratch->chunks));
        if (more == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a chunk of scratch");
        scratch->chunks = more;
        scratch->capacity = capacity;
    }
    bly_status status = take_chunk(scratch, size > scratch->least ? size : scratch->least, align);
    if ((status != BLY_E_NO_MEMORY && status != BLY_E_CAP) || scratch->least == scratch->chunk)
        return status;
    /* As much as all chunks together had cannot be had in one piece. */
    scratch->least = scratch->chunk;
    return take_chunk(scratch, size > scratch->least ? size : scratch->least, align);
}

bly_status bly_scratch_alloc(bly_scratch *scratch, uint64_t size, uint64_t align, void **block)
{
    uint64_t offset = 0;
    if (scratch == NULL || block == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", scratch == NULL ? "scratch" : "block");
    align = align > 0 ? align : BLYI_SLOT_MIN;
    if (!blyi_is_pow2(align) || align > GiB)
        return blyi_fail(BLY_E_INVALID, "alignment %" PRIu64 ": a power of two, at most 1 GiB",
                         align);
    if (size > SIZE_MOST)
        return blyi_fail(BLY_E_INVALID, "a block of %" PRIu64 " bytes: at most %" PRIu64, size,
                         SIZE_MOST);
    size = size > 0 ? size : 1;
    uint32_t at = scratch->current;
    while (at < scratch->n && !fits(&scratch->chunks[at], size, align, &offset))
        at++;
    if (at == scratch->n) {
        bly_status status = grow(scratch, size, align);
        if (status != BLY_OK)
            return status;
        if (!fits(&scratch->chunks[at], size, align, &offset))
            return blyi_fail(BLY_E_SYSTEM, "a chunk of scratch memory has no room");
    }
    struct chunk *chunk = &scratch->chunks[at];
    chunk->used = offset + size;
    scratch->current = at;
    uint64_t used = used_of(scratch);
    scratch->peak = used > scratch->peak ? used : scratch->peak;
    *block = (void *)(chunk->address + offset);
    return BLY_OK;
}

static bly_status note(bly_scratch *scratch, bly_stream stream)
{
    struct blyi_arena *arena;
    size_t i = 0;
    bly_status status = blyi_arena_of(scratch->pool, stream, &arena);
    if (status != BLY_OK)
        return status;
    while (i < scratch->n_uses && scratch->uses[i].arena != arena)
        i++;
    if (i == scratch->n_uses) {
        struct blyi_use *more = blyi_host_realloc(scratch->uses, (i + 1) * sizeof(*scratch->uses));
        if (more == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to note a use of scratch memory");
        scratch->uses = more;
        scratch->n_uses++;
    }
    scratch->uses[i] = (struct blyi_use){arena, blyi_arena_mark(arena)};
    return BLY_OK;
}

bly_status bly_scratch_use(bly_scratch *scratch, bly_stream stream)
{
    if (scratch == NULL)
        return blyi_fail(BLY_E_INVALID, "scratch is NULL");
    if (stream == scratch->stream || stream == NULL)
        return BLY_OK;
    bly_status status = note(scratch, stream);
    for (uint32_t i = 0; i < scratch->n && status == BLY_OK; i++) {
        struct chunk *chunk = &scratch->chunks[i];
        if (chunk->used == 0)
            continue;
        status = bly_pool_use((void *)chunk->address, stream);
        chunk->foreign = true;
    }
    return status;
}

static bool uses_have_passed(bly_scratch *scratch)
{
    for (size_t i = 0; i < scratch->n_uses; i++)
        if (!blyi_arena_passed(scratch->uses[i].arena, scratch->uses[i].mark))
            return false;
    scratch->n_uses = 0;
    return true;
}

/* The chunks from `first` on are empty. Those that other streams still use go to the pool, which
 * waits for them. */
static bly_status clear_from(bly_scratch *scratch, uint32_t first)
{
    bool passed = uses_have_passed(scratch);
    bly_status status = BLY_OK;
    uint32_t kept = first;
    for (uint32_t i = first; i < scratch->n; i++) {
        struct chunk *chunk = &scratch->chunks[i];
        bool goes = chunk->foreign && !passed && status == BLY_OK;
        if (goes)
            status = bly_pool_free((void *)chunk->address);
        if (goes && status == BLY_OK)
            continue;
        if (status == BLY_OK) {
            chunk->used = 0;
            chunk->foreign = false;
        }
        scratch->chunks[kept++] = *chunk;
    }
    scratch->n = kept;
    return status;
}

bly_status bly_scratch_get_mark(bly_scratch *scratch, bly_scratch_mark *mark)
{
    if (scratch == NULL || mark == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", scratch == NULL ? "scratch" : "mark");
    mark->chunk = scratch->current;
    mark->offset = scratch->current < scratch->n ? scratch->chunks[scratch->current].used : 0;
    return BLY_OK;
}

bly_status bly_scratch_rewind(bly_scratch *scratch, bly_scratch_mark mark)
{
    if (scratch == NULL)
        return blyi_fail(BLY_E_INVALID, "scratch is NULL");
    uint64_t used = mark.chunk < scratch->n ? scratch->chunks[mark.chunk].used : 0;
    if (mark.chunk > scratch->current || mark.offset > used)
        return blyi_fail(BLY_E_INVALID,
                         "the mark at %" PRIu64 " of chunk %" PRIu64 " is not behind us: %" PRIu64
                         " bytes of it are in use, and %" PRIu32 " chunks",
                         mark.offset, mark.chunk, used, scratch->n > 0 ? scratch->current + 1 : 0);
    if (mark.chunk >= scratch->n)
        return BLY_OK;
    struct chunk *chunk = &scratch->chunks[mark.chunk];
    bly_status status = clear_from(scratch, (uint32_t)mark.chunk + (mark.offset > 0));
    if (status != BLY_OK)
        return status;
    /* What others still use in the chunk that stays in use is not handed out again: its rest is. */
    if (mark.offset > 0 && (!chunk->foreign || scratch->n_uses == 0))
        chunk->used = mark.offset;
    scratch->current = (uint32_t)mark.chunk;
    return BLY_OK;
}

bly_status bly_scratch_reset(bly_scratch *scratch)
{
    if (scratch == NULL)
        return blyi_fail(BLY_E_INVALID, "scratch is NULL");
    uint32_t several = scratch->n > 1 && scratch->chunks[1].used > 0;
    bly_status status = clear_from(scratch, 0);
    scratch->n_uses = status == BLY_OK ? 0 : scratch->n_uses;
    scratch->current = 0;
    if (status != BLY_OK || !several)
        return status;
    /* The next round is likely to need as much: then in one piece. */
    scratch->least = scratch->peak > scratch->least ? scratch->peak : scratch->least;
    return drop_from(scratch, 0);
}

bly_status bly_scratch_trim(bly_scratch *scratch)
{
    if (scratch == NULL)
        return blyi_fail(BLY_E_INVALID, "scratch is NULL");
    uint32_t first = scratch->current;
    if (first < scratch->n && scratch->chunks[first].used > 0)
        first++;
    return drop_from(scratch, first);
}

bly_status bly_scratch_get_info(bly_scratch *scratch, bly_scratch_info *info)
{
    if (scratch == NULL || info == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", scratch == NULL ? "scratch" : "info");
    bly_scratch_info is = {.struct_size = info->struct_size,
                           .chunks = scratch->n,
                           .used = used_of(scratch),
                           .used_peak = scratch->peak};
    for (uint32_t i = 0; i < scratch->n; i++)
        is.reserved += scratch->chunks[i].size;
    memcpy(info, &is, is.struct_size < sizeof(is) ? is.struct_size : sizeof(is));
    return BLY_OK;
}
