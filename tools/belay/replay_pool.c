/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_pool.c - see replay_pool.h.
 */
#include "replay_pool.h"

#include <belay/pool.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend/sim.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/tree.h"
#include "pool/opts.h"
#include "pool/pool.h"
#include "replay_crew.h"

/* A card as good as without limit: pools take addresses by what a card has, and describe them. Each
 * stream keeps slabs of its own. */
#define MOST_HELD(peak_live) (4 * (peak_live) + GiB)
#define MOST_OF_STREAM       (32 * MiB)

/* A stream that also uses a block. */
struct use {
    void *stream;
    struct use *next;
};

struct block {
    struct blyi_tree_node node; /* of those that live, by address */
    void *address, *stream;
    uint64_t bytes;
    struct use *uses;
};

struct run {
    struct blyi_sim *sim; /* the pool's */
    bly_pool *pool;
    struct replay_crew *crew; /* NULL: the caller's thread does it */
    struct block *blocks;
    struct blyi_tree live;
    uint32_t n_blocks, n_streams;
    struct blyi_map streams; /* of the trace -> the device's */
    uint64_t pad;
    bool unchecked; /* the device is not told who uses what, and blocks may overlap */
};

static bly_status no_memory(void)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to replay against the pool");
}

static void *stream_of(struct run *run, int32_t number)
{
    void *stream = blyi_map_get(&run->streams, (uint32_t)number);
    if (stream != NULL)
        return stream;
    stream = blyi_sim_stream(run->n_streams);
    if (blyi_map_put(&run->streams, (uint32_t)number, stream) != BLY_OK)
        return NULL;
    run->n_streams++;
    return stream;
}

/* ---- events ------------------------------------------------------------------------------ */

static bly_status overlaps(const struct block *made, const struct block *other)
{
    return blyi_fail(BLY_E_STATE,
                     "the pool is wrong: %" PRIu64 " bytes at %p overlap the %" PRIu64
                     " bytes that live at %p",
                     made->bytes, made->address, other->bytes, other->address);
}

/* Memory is handed out once, and the first work on it is queued. */
static bly_status put_live(struct run *run, struct block *block)
{
    uint64_t from = (uintptr_t)block->address, to = from + block->bytes;
    struct block *below = BLYI_TREE_ENTRY(blyi_tree_floor(&run->live, to - 1), struct block, node);
    if (below != NULL && (uintptr_t)below->address + below->bytes > from)
        return overlaps(block, below);
    blyi_tree_insert(&run->live, &block->node, from, 0);
    blyi_sim_use(run->sim, block->stream, block->address, block->bytes);
    return BLY_OK;
}

static bly_status on_alloc(struct run *run, const struct blyi_replay_event *event)
{
    struct block *block = &run->blocks[event->block];
    block->stream = stream_of(run, event->stream);
    block->bytes = event->bytes + run->pad;
    if (block->stream == NULL)
        return no_memory();
    bly_status status = bly_pool_alloc(run->pool, block->bytes, block->stream, &block->address);
    if (status != BLY_OK)
        return status == BLY_E_CAP ? BLY_E_NO_MEMORY : status;
    return run->unchecked ? BLY_OK : put_live(run, block);
}

static bly_status on_use(struct run *run, const struct blyi_replay_event *event)
{
    struct block *block = &run->blocks[event->block];
    struct use *use = malloc(sizeof(*use));
    void *stream = stream_of(run, event->stream);
    if (use == NULL || stream == NULL) {
        free(use);
        return no_memory();
    }
    *use = (struct use){stream, block->uses};
    block->uses = use;
    return BLY_OK;
}

static void drop_uses(struct block *block)
{
    while (block->uses != NULL) {
        struct use *use = block->uses;
        block->uses = use->next;
        free(use);
    }
}

static void take_live(struct run *run, struct block *block)
{
    blyi_tree_remove(&run->live, &block->node);
    blyi_sim_use(run->sim, block->stream, block->address, block->bytes);
    for (struct use *use = block->uses; use != NULL; use = use->next)
        blyi_sim_use(run->sim, use->stream, block->address, block->bytes);
}

/* Every stream that uses the block does so up to its free. */
static bly_status on_free(struct run *run, const struct blyi_replay_event *event)
{
    struct block *block = &run->blocks[event->block];
    bly_status status = BLY_OK;
    if (!run->unchecked)
        take_live(run, block);
    for (struct use *use = block->uses; status == BLY_OK && use != NULL; use = use->next)
        status = bly_pool_use(block->address, use->stream);
    drop_uses(block);
    return status == BLY_OK ? bly_pool_free(block->address) : status;
}

static bly_status on_sync(struct run *run, const struct blyi_replay_event *event)
{
    if (event->stream >= 0) {
        void *stream = stream_of(run, event->stream);
        if (stream == NULL)
            return no_memory();
        blyi_sim_complete(run->sim, stream);
    } else {
        for (uint32_t i = 0; i < run->n_streams; i++)
            blyi_sim_complete(run->sim, blyi_sim_stream(i));
    }
    return bly_pool_poll(run->pool);
}

static bly_status handle(void *context, const void *argument)
{
    struct run *run = context;
    const struct blyi_replay_event *event = argument;
    switch (event->op) {
    case BLYI_REPLAY_ALLOC:
        return on_alloc(run, event);
    case BLYI_REPLAY_FREE:
        return on_free(run, event);
    case BLYI_REPLAY_USE:
        return on_use(run, event);
    case BLYI_REPLAY_SYNC:
        return on_sync(run, event);
    default:
        return BLY_OK;
    }
}

/* ---- the policy -------------------------------------------------------------------------- */

static bly_status step(void *state, size_t now, const struct blyi_replay_event *event)
{
    struct run *run = state;
    (void)now; /* the device counts with us */
    blyi_sim_tick(run->sim);
    return run->crew != NULL ? replay_crew_run(run->crew, event) : handle(run, event);
}

static void figures(const void *state, struct blyi_replay_figures *out)
{
    const struct run *run = state;
    struct blyi_sim_figures is;
    bly_pool_info info = {.struct_size = sizeof(info)};
    blyi_sim_figures(run->sim, &is);
    bool told = bly_pool_get_info(run->pool, &info) == BLY_OK;
    *out = (struct blyi_replay_figures){
        .reserved = is.held,
        .peak_reserved = is.held_peak,
        .ranges_mapped = is.map_runs,
        .ranges_unmapped = is.unmap_runs,
        .handles_mapped = is.maps,
        .handles_unmapped = is.unmaps,
        .pages_mapped = is.map_bytes / BLYI_REPLAY_PAGE,
        .pages_unmapped = is.unmap_bytes / BLYI_REPLAY_PAGE,
        .waits = is.waits,
        .flushes = told ? info.flushes : 0,
    };
}

static void drop(void *state)
{
    struct run *run = state;
    replay_crew_drop(run->crew);
    if (run->pool != NULL)
        (void)bly_pool_destroy(run->pool);
    for (uint32_t i = 0; run->blocks != NULL && i < run->n_blocks; i++)
        drop_uses(&run->blocks[i]);
    blyi_map_fini(&run->streams);
    free(run->blocks);
    free(run);
}

/* In the order in which they come. */
static bly_status find_streams(struct run *run, const struct blyi_replay_trace *trace)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct blyi_replay_event *event = &trace->events[i];
        bool has = event->op == BLYI_REPLAY_ALLOC || event->op == BLYI_REPLAY_USE ||
                   (event->op == BLYI_REPLAY_SYNC && event->stream >= 0);
        if (has && stream_of(run, event->stream) == NULL)
            return no_memory();
    }
    return BLY_OK;
}

static bly_status make_pool(struct run *run, const struct blyi_replay_setup *setup)
{
    bly_pool_opts opts;
    bly_status status = find_streams(run, setup->trace);
    uint64_t most = MOST_HELD(setup->trace->peak_live), streams = run->n_streams * MOST_OF_STREAM;
    most = most > streams ? most : streams;
    uint64_t total = setup->capacity < most ? setup->capacity : most;
    if (status == BLY_OK)
        status = blyi_opts_read(NULL, &opts);
    if (status == BLY_OK)
        status = blyi_sim_create(blyi_align_down(total, BLYI_REPLAY_PAGE), setup->lag, &run->sim);
    if (status != BLY_OK)
        return status;
    status = blyi_pool_make(blyi_sim_backend(run->sim), &opts, &run->pool);
    if (status != BLY_OK)
        blyi_sim_backend(run->sim)->ops->close(blyi_sim_backend(run->sim));
    return status;
}

static bly_status make(const struct blyi_replay_setup *setup, void **state)
{
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL)
        return no_memory();
    blyi_map_init(&run->streams);
    run->pad = setup->pad;
    run->unchecked = setup->unchecked;
    run->n_blocks = setup->trace->n_blocks;
    run->blocks = calloc((size_t)run->n_blocks + 1, sizeof(*run->blocks));
    bly_status status = run->blocks != NULL ? make_pool(run, setup) : no_memory();
    if (status == BLY_OK && setup->threads > 1)
        status = replay_crew_make(setup->threads, handle, run, &run->crew);
    if (status == BLY_OK)
        *state = run;
    else
        drop(run);
    return status;
}

const struct blyi_replay_policy replay_pool = {
    .name = "pool",
    .about = "Belay's pool: an arena a stream, granules of 2 MiB that wander between them",
    .tells = true,
    .make = make,
    .step = step,
    .figures = figures,
    .drop = drop,
};
