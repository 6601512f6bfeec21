/* SPDX-License-Identifier: Apache-2.0
 *
 * host_pool.c - pinned host memory by nodes, and the order of its frees.
 *
 * One lock (rank PARTS) for all of a host pool: pinned memory is asked for now and then, and
 * pinning takes longer than any wait for it.
 */
#include "pool/host_pool.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/map.h"
#include "pool/pinned_spans.h"
#include "pool/pool.h"

#define PAGE      UINT64_C(4096)
#define SIZE_MOST (UINT64_C(1) << 48)
#define COMMON    (64 * MiB) /* above this the node does not matter */
#define NODES     64u

struct bly_host_pool {
    struct blyi_lock lock; /* rank PARTS */
    bly_pool *pool;
    bly_host_pool_opts opts;
    bly_host_pool_info is;
    struct blyi_map spans;     /* live and waiting ones, by address */
    struct blyi_list waiting;  /* oldest first */
    unsigned (*node_of)(void); /* where the calling thread runs */
    unsigned n_nodes;
    struct blyi_pinned_node nodes[]; /* and one for large blocks */
};

unsigned blyi_host_nodes(const char *path)
{
    char text[256];
    unsigned first, last, most = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 1;
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    /* "0-1,3": what counts is the highest number. */
    for (const char *at = text; *at != '\0'; at += strcspn(at, ",\n"), at += *at != '\0') {
        int fields = sscanf(at, "%u-%u", &first, &last);
        if (fields >= 1)
            most = fields == 2 ? last : first;
    }
    return most < NODES ? most + 1 : NODES;
}

static unsigned node_here(void)
{
    unsigned cpu, node;
    return getcpu(&cpu, &node) == 0 ? node : 0;
}

bly_host_pool_opts bly_host_pool_opts_default(void)
{
    return (bly_host_pool_opts){.struct_size = sizeof(bly_host_pool_opts), .keep = UINT64_MAX};
}

static bly_status read_opts(const bly_host_pool_opts *from, bly_host_pool_opts *to)
{
    *to = bly_host_pool_opts_default();
    if (from != NULL && (from->struct_size < sizeof(*to) || from->struct_size > 4096))
        return blyi_fail(BLY_E_INVALID,
                         "struct_size is %" PRIu32 ": begin with bly_host_pool_opts_default()",
                         from->struct_size);
    if (from != NULL)
        memcpy(to, from, sizeof(*to));
    return BLY_OK;
}

bly_status blyi_host_pool_make(bly_pool *pool, const bly_host_pool_opts *opts, unsigned n_nodes,
                               unsigned (*node_of)(void), bly_host_pool **out)
{
    bly_host_pool *host = blyi_host_calloc(1, sizeof(*host) + (n_nodes + 1) * sizeof(*host->nodes));
    if (host == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a host pool");
    blyi_lock_init(&host->lock, BLYI_RANK_PARTS);
    host->pool = pool;
    host->opts = *opts;
    host->is.nodes = n_nodes;
    host->n_nodes = n_nodes;
    host->node_of = node_of;
    blyi_map_init(&host->spans);
    blyi_list_init(&host->waiting);
    for (unsigned i = 0; i <= n_nodes; i++)
        blyi_pinned_node_init(&host->nodes[i], blyi_pool_backend(pool), &host->is, opts->limit);
    *out = host;
    return BLY_OK;
}

bly_status bly_host_pool_create(bly_pool *pool, const bly_host_pool_opts *asked,
                                bly_host_pool **host)
{
    bly_host_pool_opts opts;
    bly_status status = read_opts(asked, &opts);
    if (status == BLY_OK && host == NULL)
        status = blyi_fail(BLY_E_INVALID, "host is NULL");
    if (status == BLY_OK)
        status = blyi_pool_check(pool);
    if (status != BLY_OK)
        return status;
    return blyi_host_pool_make(pool, &opts, blyi_host_nodes("/sys/devices/system/node/online"),
                               node_here, host);
}

/* A span that was live or waiting is free. */
static void free_locked(bly_host_pool *host, struct blyi_pinned_span *span)
{
    struct blyi_pinned_node *node = span->segment->node;
    blyi_map_remove(&host->spans, span->address);
    *(span->state == BLYI_PINNED_LIVE ? &host->is.live : &host->is.waiting) -= span->size;
    (void)blyi_pinned_give(span);
    uint64_t idle = host->is.pinned - host->is.live - host->is.waiting;
    if (idle > host->opts.keep)
        (void)blyi_pinned_trim(node, host->is.pinned - (idle - host->opts.keep));
}

static void poll_locked(bly_host_pool *host)
{
    BLYI_LIST_FOR_SAFE(link, &host->waiting)
    {
        struct blyi_pinned_span *span = BLYI_CONTAINER(link, struct blyi_pinned_span, link);
        if (blyi_arena_passed(span->use.arena, span->use.mark))
            free_locked(host, span);
    }
}

bly_status bly_host_pool_destroy(bly_host_pool *host)
{
    size_t cursor = 0;
    uint64_t address;
    void *value;
    if (host == NULL)
        return BLY_OK;
    BLYI_LIST_FOR(link, &host->waiting)
    {
        const struct blyi_use *use = &BLYI_CONTAINER(link, struct blyi_pinned_span, link)->use;
        if (blyi_arena_wait(use->arena, use->mark, 0) != BLY_OK)
            blyi_log(BLYI_LOG_WARN, "a host pool is destroyed: %s", blyi_fail_text());
    }
    if (host->is.blocks > 0)
        blyi_log(BLYI_LOG_INFO,
                 "a host pool is destroyed with %" PRIu64 " live blocks of %" PRIu64 " bytes",
                 host->is.blocks, host->is.live);
    host->opts.keep = UINT64_MAX;
    while (blyi_map_next(&host->spans, &cursor, &address, &value))
        free_locked(host, value);
    for (unsigned i = 0; i <= host->n_nodes; i++)
        (void)blyi_pinned_trim(&host->nodes[i], 0);
    bly_check_msg(host->is.pinned == 0, "%" PRIu64 " bytes stay pinned", host->is.pinned);
    blyi_map_fini(&host->spans);
    blyi_lock_fini(&host->lock);
    blyi_host_free(host);
    return BLY_OK;
}

static struct blyi_pinned_node *node_for(bly_host_pool *host, uint64_t size)
{
    unsigned node = size > COMMON ? host->n_nodes : host->n_nodes > 1 ? host->node_of() : 0;
    return &host->nodes[node <= host->n_nodes ? node : 0];
}

/* What is idle elsewhere makes room where the limit is in the way. */
static bly_status take_locked(bly_host_pool *host, uint64_t size, bool pages,
                              struct blyi_pinned_span **span)
{
    struct blyi_pinned_node *node = node_for(host, size);
    *span = blyi_pinned_take(node, size, pages);
    if (*span != NULL)
        return BLY_OK;
    poll_locked(host);
    *span = blyi_pinned_take(node, size, pages);
    if (*span != NULL)
        return BLY_OK;
    bly_status status = blyi_pinned_grow(node, size, pages, span);
    if (status != BLY_E_PIN_LIMIT && status != BLY_E_HOST_MEMORY)
        return status;
    uint64_t released = 0;
    for (unsigned i = 0; i <= host->n_nodes; i++)
        released += blyi_pinned_trim(&host->nodes[i], 0);
    return released > 0 ? blyi_pinned_grow(node, size, pages, span) : status;
}

bly_status bly_host_pool_alloc(bly_host_pool *host, uint64_t size, void **block)
{
    struct blyi_pinned_span *span;
    if (host == NULL || block == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", host == NULL ? "host" : "block");
    if (size > SIZE_MOST)
        return blyi_fail(BLY_E_INVALID, "a pinned block of %" PRIu64 " bytes: at most %" PRIu64,
                         size, SIZE_MOST);
    uint64_t asked = size > 0 ? size : 1;
    blyi_lock_take(&host->lock);
    bly_status status =
        take_locked(host, blyi_align_up(asked, BLYI_PINNED_ALIGN), asked >= PAGE, &span);
    if (status == BLY_OK) {
        status = blyi_map_put(&host->spans, span->address, span);
        if (status != BLY_OK)
            (void)blyi_pinned_give(span);
    }
    if (status == BLY_OK) {
        span->asked = asked;
        host->is.live += span->size;
        host->is.asked += asked;
        host->is.blocks++;
        host->is.allocs++;
        *block = (void *)span->address;
    }
    blyi_lock_drop(&host->lock);
    return status;
}

static bly_status find_locked(const bly_host_pool *host, const void *block,
                              struct blyi_pinned_span **span)
{
    *span = blyi_map_get(&host->spans, (uintptr_t)block);
    if (*span == NULL)
        return blyi_fail(
            BLY_E_INVALID,
            "cannot free %p: no block of the host pool begins there (freed already, or "
            "never allocated)",
            block);
    if ((*span)->state == BLYI_PINNED_WAITING)
        return blyi_fail(BLY_E_INVALID,
                         "cannot free %p: the block of %" PRIu64
                         " bytes was freed already and waits for work of a stream",
                         block, (*span)->asked);
    return BLY_OK;
}

static bly_status free_at(bly_host_pool *host, void *block, struct blyi_arena *arena)
{
    struct blyi_pinned_span *span;
    blyi_lock_take(&host->lock);
    bly_status status = find_locked(host, block, &span);
    if (status == BLY_OK) {
        host->is.blocks--;
        host->is.frees++;
        host->is.asked -= span->asked;
    }
    if (status == BLY_OK && arena != NULL) {
        host->is.live -= span->size;
        host->is.waiting += span->size;
        span->state = BLYI_PINNED_WAITING;
        span->use = (struct blyi_use){arena, blyi_arena_mark(arena)};
        blyi_list_push_back(&host->waiting, &span->link);
        poll_locked(host);
    } else if (status == BLY_OK) {
        free_locked(host, span);
    }
    blyi_lock_drop(&host->lock);
    return status;
}

bly_status bly_host_pool_free(bly_host_pool *host, void *block)
{
    if (host == NULL)
        return blyi_fail(BLY_E_INVALID, "host is NULL");
    return block == NULL ? BLY_OK : free_at(host, block, NULL);
}

bly_status bly_host_pool_free_on(bly_host_pool *host, void *block, bly_stream stream)
{
    struct blyi_arena *arena = NULL;
    if (host == NULL)
        return blyi_fail(BLY_E_INVALID, "host is NULL");
    if (block == NULL)
        return BLY_OK;
    bly_status status = stream == NULL ? BLY_OK : blyi_arena_of(host->pool, stream, &arena);
    return status == BLY_OK ? free_at(host, block, arena) : status;
}

bly_status bly_host_pool_trim(bly_host_pool *host, uint64_t keep, uint64_t *released)
{
    uint64_t bytes = 0;
    if (host == NULL)
        return blyi_fail(BLY_E_INVALID, "host is NULL");
    blyi_lock_take(&host->lock);
    poll_locked(host);
    for (unsigned i = 0; i <= host->n_nodes; i++)
        bytes += blyi_pinned_trim(&host->nodes[i], keep);
    blyi_lock_drop(&host->lock);
    if (released != NULL)
        *released = bytes;
    return BLY_OK;
}

bly_status bly_host_pool_get_info(bly_host_pool *host, bly_host_pool_info *info)
{
    if (host == NULL || info == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", host == NULL ? "host" : "info");
    uint32_t size = info->struct_size;
    blyi_lock_take(&host->lock);
    poll_locked(host);
    bly_host_pool_info is = host->is;
    blyi_lock_drop(&host->lock);
    is.struct_size = size;
    is.idle = is.pinned - is.live - is.waiting;
    memcpy(info, &is, size < sizeof(is) ? size : sizeof(is));
    return BLY_OK;
}
