/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/pool.h - device memory in the order of streams, freed by pointer alone.
 *
 *     bly_pool *pool;
 *     bly_pool_create(NULL, &pool);
 *     bly_pool_alloc(pool, n, stream, &p);      usable by work behind this call on `stream`
 *     ... queue work on `stream` ...
 *     bly_pool_free(p);                         in the order of `stream`: nothing waits
 *
 * Memory that other streams used as well is named before the free (bly_pool_use), or freed in the
 * order of the last of them (bly_pool_free_on), or the program has ordered the streams itself.
 *
 * Units    Sizes are bytes.
 * Owner    A block is the caller's until it is freed. Blocks that live when their pool is destroyed
 *          end with it.
 * Threads  [any] for all functions here, but bly_pool_destroy(): nobody else may use the pool.
 * Errors   bly_last_error() tells what was asked, what is held and by whom. Out-parameters are
 *          written on success only. Of all functions that are given a pool: E_HANDLE (none, or one
 *          that was destroyed), E_FORKED (it is the parent's), and but for bly_pool_destroy()
 *          E_STATE (its device was reset).
 * Snapshots While the process is locked by aclrtSnapShotProcessLock(), what takes memory of the
 * card or gives it back waits until it is unlocked: allocations that the pool has no memory at hand
 * for, bly_pool_create() with prefill, bly_pool_trim(), bly_pool_destroy(), and frees of exported
 * blocks. In the thread that made the last of those calls: it passes, but for E_STATE while the
 * memory is backed up, and nothing has changed. All else is answered.
 */
#ifndef BLY_POOL_H
#define BLY_POOL_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bly_pool bly_pool;

/* AscendCL's aclrtStream. NULL: memory of no stream; a free then comes behind nothing, and the
 * caller has waited for all work on the block. */
typedef void *bly_stream;

/* What memory is for: blocks of one kind are kept together. */
typedef enum bly_pool_region {
    BLY_POOL_ANY,
    BLY_POOL_WEIGHTS,     /* lives as long as the program */
    BLY_POOL_ACTIVATIONS, /* lives for one step */
    BLY_POOL_WORKSPACE,   /* lives for one operator */
    BLY_POOL_REGIONS
} bly_pool_region;

/* For what it is tuned; each is a set of the fields of bly_pool_opts (docs/pool.md). */
typedef enum bly_pool_profile {
    BLY_POOL_BALANCED,
    BLY_POOL_TRAINING,
    BLY_POOL_SERVING,
    BLY_POOL_TIGHT, /* smallest peak, more mapping */
    BLY_POOL_PROFILES
} bly_pool_profile;

/* Across streams, where nothing was freed on the asking one. */
#define BLY_POOL_REUSE_EVENTS        1u /* what it has waited for by events */
#define BLY_POOL_REUSE_OPPORTUNISTIC 2u /* what has ended by now */
#define BLY_POOL_REUSE_DEPENDENCIES  4u /* anything: it is made to wait */

/* Start from bly_pool_opts_default(). Fields are only appended; struct_size says which exist. */
typedef struct bly_pool_opts {
    uint32_t struct_size;
    int32_t device;      /* card; -1: the current one */
    const char *name;    /* in reports; NULL: "pool" and a number. Copied */
    const char *backend; /* NULL or "npu": the software card; "cann": a vendor's AscendCL, never
                            tried on a card, whose streams live as long as the pool */
    uint64_t limit;      /* held at most; 0: the whole card */
    uint64_t threshold;  /* idle bytes kept when a stream is waited for; UINT64_MAX: all */
    uint64_t align;      /* of blocks above `small`; 0: 512. A power of two, at most 1 GiB */
    uint64_t prefill;    /* held from the start; bly_pool_trim() alone gives it back */
    uint64_t reserve;    /* of the card, left free until nothing else helps; 0: the profile's,
                            UINT64_MAX: none */
    uint64_t small;      /* largest size that slabs serve, 64 to 512 KiB; 0: BELAY_POOL_SMALL */
    uint32_t slack;      /* held above the peak of live bytes, in 1/10000; UINT32_MAX: default */
    uint32_t reuse;      /* BLY_POOL_REUSE_* */
    bly_pool_profile profile;
    uint32_t trim_ms; /* idle memory is given back after so long; 0: never */
    uint32_t flags;   /* BLY_POOL_EXPORTABLE: of all blocks above `small` */
    uint32_t unused;
    uint64_t split; /* larger blocks are not divided: idle ones serve as a whole, where less than
                       20 MiB are left over; 0: none. `slack` does not count then */
} bly_pool_opts;

/* Blocks whose memory is one handle of the device, in which nothing else lies: it can be shared
 * with other processes (bly_pool_export()). Whole granules. What is idle of them serves requests
 * of the same size on the same stream as it is, all others by being mapped anew. */
#define BLY_POOL_EXPORTABLE 1u

BLY_API bly_pool_opts bly_pool_opts_default(void);

/* opts NULL: the default. E_INVALID (which field, its range), E_DEVICE, E_UNSUPPORTED (no such
 * backend in this process), E_NO_MEMORY (prefill), E_HOST_MEMORY. */
BLY_API bly_status bly_pool_create(const bly_pool_opts *opts, bly_pool **pool);
/* Waits for the work of streams that used its memory, and gives all of it back. Blocks that are
 * live end; how many is logged. E_HANDLE. */
BLY_API bly_status bly_pool_destroy(bly_pool *pool);

/* At least `size` bytes at a multiple of 512. Size 0 counts as 1.
 * E_HANDLE       no live stream, too
 * E_INVALID      above 2^48
 * E_NO_MEMORY    the card or the pool's limit; sentence: asked, what the pool holds by rule
 * E_CAP, E_HOST_MEMORY, E_SYSTEM */
BLY_API bly_status bly_pool_alloc(bly_pool *pool, uint64_t size, bly_stream stream, void **block);

/* A block gets a name by bly_tag() (belay/trace.h). */
typedef struct bly_pool_request {
    uint32_t struct_size;
    bly_pool_region region;
    uint64_t size;
    uint64_t align; /* a power of two, at most 1 GiB; 0: the pool's */
    uint32_t flags; /* BLY_POOL_EXPORTABLE, also below `small` */
    uint32_t unused;
} bly_pool_request;

/* E_INVALID: a field of the request (which, its range); else as bly_pool_alloc(). */
BLY_API bly_status bly_pool_alloc_with(bly_pool *pool, const bly_pool_request *request,
                                       bly_stream stream, void **block);
/* n blocks, all or none. Errors as of bly_pool_alloc(). */
BLY_API bly_status bly_pool_alloc_batch(bly_pool *pool, size_t n, const uint64_t *sizes,
                                        bly_stream stream, void **blocks);

/* In the order of the stream it was allocated on. NULL is fine. E_INVALID: not the start of a live
 * block of a pool: what the address is instead (inside which block, freed, none of ours). */
BLY_API bly_status bly_pool_free(void *block);
/* In the order of `stream`. E_INVALID as above; E_HANDLE (no live stream), E_HOST_MEMORY: it lives
 * on. */
BLY_API bly_status bly_pool_free_on(void *block, bly_stream stream);
/* Each of them, also behind one that fails; the first error. */
BLY_API bly_status bly_pool_free_batch(size_t n, void *const *blocks);
/* Work queued so far on `stream` uses the block: a later free waits for it as well.
 * Errors as of bly_pool_free_on(). */
BLY_API bly_status bly_pool_use(void *block, bly_stream stream);

/* The block is about to be shared with other processes. From now on its memory leaves the pool with
 * it: freed, it is not handed out again, but released behind the work on it, and the device keeps
 * it as long as others have it open. *handle, which may be NULL: the device's handle of all its
 * memory (AscendCL: aclrtDrvMemHandle), the pool's own, there as long as the block lives; for
 * aclrtMemExportToShareableHandle(). On the software card aclrtIpcMemGetExportKey() of the block
 * and aclrtMemRetainAllocationHandle() do the same by themselves.
 * E_INVALID: no start of a live block, or not one that was made BLY_POOL_EXPORTABLE: where it lies
 * instead. E_HOST_MEMORY. */
BLY_API bly_status bly_pool_export(void *block, void **handle);

/* Gives idle memory back until at most `keep` bytes are held, as far as it can without waiting.
 * *released may be NULL. */
BLY_API bly_status bly_pool_trim(bly_pool *pool, uint64_t keep, uint64_t *released);
/* Gives back the waiting frees that are due; those of streams that were just waited for are. When
 * it returns, none of them waits any more, whichever thread gave it back. */
BLY_API bly_status bly_pool_poll(bly_pool *pool);

/* struct_size comes from the caller. live + parked + idle + waiting == reserved. */
typedef struct bly_pool_info {
    uint32_t struct_size;
    int32_t device;
    uint64_t reserved, reserved_peak; /* held of the card */
    uint64_t live, live_peak;         /* in blocks, as backed */
    uint64_t asked, asked_peak;       /* the same, as asked for */
    uint64_t parked;                  /* free slots in thread caches and slabs */
    uint64_t idle;                    /* free in arenas */
    uint64_t waiting;                 /* freed, for work of other streams */
    uint64_t releasable;              /* of idle: whole granules whose work has passed */
    uint64_t blocks, allocs, frees;
    uint64_t maps, unmaps;   /* ranges */
    uint64_t handle_ops;     /* handles mapped and unmapped */
    uint64_t waits, flushes; /* host waited for work; everything was given back */
    uint64_t largest;        /* that can be had without new memory */
    uint64_t metadata;       /* host bytes of the pool itself */
    uint64_t limit, threshold;
    uint64_t reserve, reserve_used; /* as it is; bytes that requests took of it, so far */
    uint64_t split;                 /* as it is; 0: none. Of it: */
    uint64_t split_refused, split_refused_bytes; /* requests refused an idle block, their bytes */
    uint64_t split_idle_least, split_idle_most;  /* of those blocks the smallest and the largest */
    uint64_t split_without; /* held without it: the most that was in blocks at once */
    uint64_t refused;       /* requests for which there was no room */
} bly_pool_info;
/* E_INVALID: info is NULL. */
BLY_API bly_status bly_pool_get_info(bly_pool *pool, bly_pool_info *info);

/* Of one region. Each figure, but for the peak, adds up to the pool's over all regions. Handles
 * that are mapped nowhere count as idle in BLY_POOL_ANY. */
typedef struct bly_pool_region_info {
    uint32_t struct_size; /* comes from the caller */
    bly_pool_region region;
    uint64_t reserved; /* live + parked + idle + waiting */
    uint64_t live, parked, idle, waiting;
    uint64_t asked, blocks;
    uint64_t live_peak; /* of BLY_POOL_ANY as the pool's: may be low by what threads keep */
} bly_pool_region_info;
/* E_INVALID: info is NULL, no such region. */
BLY_API bly_status bly_pool_get_region(bly_pool *pool, bly_pool_region region,
                                       bly_pool_region_info *info);

/* The figures under the names of PyTorch: of memory_stats(), as an object of JSON, or as the table
 * of memory_summary(), 77 columns wide. What is not counted here is left out of the one, and "-" in
 * the other. */
typedef enum bly_pool_form { BLY_POOL_STATS, BLY_POOL_SUMMARY } bly_pool_form;
/* Writes up to size - 1 bytes and an end; *length is what there is in all. E_INVALID, E_HANDLE,
 * E_HOST_MEMORY. */
BLY_API bly_status bly_pool_text(bly_pool *pool, bly_pool_form form, char *text, size_t size,
                                 size_t *length);

typedef struct bly_pool_block {
    uint32_t struct_size;
    bly_pool_region region;
    bly_pool *pool;
    void *address;
    uint64_t asked, size; /* as asked, and as backed */
    bly_stream stream;
} bly_pool_block;
/* Of the block around an address. E_INVALID: none of a pool's. */
BLY_API bly_status bly_pool_find(const void *address, bly_pool_block *block);

/* Whether all that must hold does; the sentence says what does not. For tests. */
BLY_API bly_status bly_pool_audit(bly_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
