/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/pool_parts.h - two small allocators over a pool that programs tend to write by hand: blocks
 * of one size, and scratch memory that is reset as a whole. Both know the order of streams.
 *
 *     bly_blocks_create(pool, 1 << 20, 64, stream, &blocks);
 *     bly_blocks_take(blocks, stream, BLY_WAIT_FOREVER, &block);
 *     ... queue work on `stream` ...
 *     bly_blocks_give_on(blocks, block, stream);     nothing waits
 *
 *     bly_scratch_create(pool, stream, 0, &scratch);
 *     bly_scratch_alloc(scratch, size, 0, &a); ... queue work on `stream` ...
 *     bly_scratch_reset(scratch);                    nothing waits; the memory is used again
 *
 * Units    Sizes are bytes, times nanoseconds.
 * Owner    The pool must outlive both. Memory that is handed out is theirs.
 * Threads  Functions of blocks: [any], but bly_blocks_destroy(). Functions of scratch memory: one
 *          thread at a time.
 * Errors   E_INVALID for NULL, where it is not allowed; out-parameters are written on success only.
 */
#ifndef BLY_POOL_PARTS_H
#define BLY_POOL_PARTS_H

#include <belay/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BLY_WAIT_FOREVER UINT64_MAX

typedef struct bly_blocks bly_blocks;

/* n blocks of `size` bytes, which is rounded up to a multiple of 512, in one allocation on
 * `stream`, behind whose work so far they are. E_HANDLE; E_INVALID: size or n is 0, or all
 * together more than 2^48; else as bly_pool_alloc(). */
BLY_API bly_status bly_blocks_create(bly_pool *pool, uint64_t size, uint32_t n, bly_stream stream,
                                     bly_blocks **blocks);
/* Gives the memory back behind the streams on which blocks were given. E_STATE: some are taken (how
 * many); nothing has changed. */
BLY_API bly_status bly_blocks_destroy(bly_blocks *blocks);

/* For work behind this call on `stream`: a block that was given on that stream, which needs no
 * waiting; else one that is free for everybody, or whose stream has passed the point where it was
 * given. Waits for one so long; 0: not at all.
 * E_TIMEOUT (how many are taken, how many wait for which work), E_HANDLE (no live stream). */
BLY_API bly_status bly_blocks_take(bly_blocks *blocks, bly_stream stream, uint64_t timeout_ns,
                                   void **block);
/* All work on the block has ended; give_on: ends where `stream` stands now. NULL is fine.
 * E_INVALID: not the start of one of these blocks, or it is not taken. E_HANDLE. */
BLY_API bly_status bly_blocks_give(bly_blocks *blocks, void *block);
BLY_API bly_status bly_blocks_give_on(bly_blocks *blocks, void *block, bly_stream stream);

/* struct_size comes from the caller. free + behind + taken == n. */
typedef struct bly_blocks_info {
    uint32_t struct_size;
    uint32_t n;
    uint64_t size;
    uint32_t free;   /* for everybody */
    uint32_t behind; /* given on streams that have not been seen to pass there */
    uint32_t taken, taken_peak;
    uint64_t takes, waits; /* of those, how often the caller had to wait */
} bly_blocks_info;
BLY_API bly_status bly_blocks_get_info(bly_blocks *blocks, bly_blocks_info *info);

typedef struct bly_scratch bly_scratch;

/* For work on `stream`. Takes memory from the pool in chunks of at least `chunk` bytes; 0: 2 MiB.
 * Nothing is taken before the first allocation. E_HANDLE, E_INVALID (chunk above 2^40). */
BLY_API bly_status bly_scratch_create(bly_pool *pool, bly_stream stream, uint64_t chunk,
                                      bly_scratch **scratch);
/* In the order of the stream, as bly_pool_free(). */
BLY_API bly_status bly_scratch_destroy(bly_scratch *scratch);

/* `align` is a power of two up to 1 GiB; 0: 512. Size 0 counts as 1. E_INVALID, else as
 * bly_pool_alloc(). */
BLY_API bly_status bly_scratch_alloc(bly_scratch *scratch, uint64_t size, uint64_t align,
                                     void **block);
/* Work queued so far on `stream` uses what has been allocated and not been reset. */
BLY_API bly_status bly_scratch_use(bly_scratch *scratch, bly_stream stream);

/* Where the scratch memory stands. Good until it is reset or rewound to an older mark. */
typedef struct bly_scratch_mark {
    uint64_t chunk, offset;
} bly_scratch_mark;
BLY_API bly_status bly_scratch_get_mark(bly_scratch *scratch, bly_scratch_mark *mark);
/* What was allocated since the mark is free, for work on the stream from here on. Chunks that other
 * streams still use go back to the pool, which waits for them. E_INVALID: a mark that is not behind
 * us. */
BLY_API bly_status bly_scratch_rewind(bly_scratch *scratch, bly_scratch_mark mark);
/* All of it. Where several chunks were needed, one of their size takes their place at the next
 * allocation. */
BLY_API bly_status bly_scratch_reset(bly_scratch *scratch);
/* Gives chunks back that nothing is allocated in. */
BLY_API bly_status bly_scratch_trim(bly_scratch *scratch);

/* struct_size comes from the caller. */
typedef struct bly_scratch_info {
    uint32_t struct_size;
    uint32_t chunks;
    uint64_t used, used_peak; /* alignment included */
    uint64_t reserved;        /* of the pool */
} bly_scratch_info;
BLY_API bly_status bly_scratch_get_info(bly_scratch *scratch, bly_scratch_info *info);

#ifdef __cplusplus
}
#endif
#endif
