/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_traces.c - the pool's arenas over recorded programs: what is held, mapped, waited for.
 *
 *   pool_traces [--min] [--check] [--split] [--every N] [--lag N] [--slack N] [--small N]
 *               [--set FIELD=N]... FILE.tsv.zst...
 *
 * --min finds the smallest card too; --check holds the pool to what must hold every N events;
 * --split says by why what is held exceeds live bytes when most is held; --set changes a field of
 * struct blyi_policy.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend/sim.h"
#include "base/fail.h"
#include "base/map.h"
#include "pool/front_inside.h"
#include "pool/opts.h"
#include "pool/pool.h"
#include "recorded.h"

struct block {
    void *address;
    uint64_t bytes;
    uint32_t stream, until; /* until: the held stream of its uses, from its free on */
    bool used;
};

#define STREAMS     260u /* of recordings */
#define HELD_STREAM 1000u

static uint64_t lag = 32, slack = 100, small_max, every = 1000;
static bool check, splits;
static uint64_t live; /* bytes as asked for */
static struct blyi_sim *sim;
static uint32_t held_free[65536], n_held_free, n_held;

/* A stream that stands for "until the trace says so". */
static uint32_t take_held(void)
{
    if (n_held_free > 0)
        return held_free[--n_held_free];
    blyi_sim_hold(sim, blyi_sim_stream(HELD_STREAM + n_held));
    return HELD_STREAM + n_held++;
}

static const char *set[16];
static int n_set;

static void adjust(bly_pool *pool)
{
    for (int i = 0; i < n_set; i++) {
        unsigned value = (unsigned)strtoul(strchr(set[i], '=') + 1, NULL, 0);
#define FIELD(name)                                                                                \
    if (!strncmp(set[i], #name "=", strlen(#name) + 1))                                            \
    pool->policy.name = value
        FIELD(slack);
        FIELD(wait_slack);
        FIELD(share);
        FIELD(handle_most);
        FIELD(share_far);
        FIELD(share_least);
        FIELD(ahead);
        FIELD(ahead_handle);
    }
    pool->share = pool->policy.share;
}

/* What is held and was not asked for, when most is held, by why. */
struct split {
    uint64_t held;     /* all */
    uint64_t live;     /* as asked for */
    uint64_t rounding; /* of slots to their classes, of blocks to quanta */
    uint64_t home;     /* free slots of slabs */
    uint64_t cached;   /* free slots that threads keep */
    uint64_t waiting;  /* for other streams */
    uint64_t in_use;   /* free in handles in which something lies */
    uint64_t loose;    /* in others */
};

struct result {
    bool ok;
    bly_pool_info info;
    struct blyi_sim_figures is;
    struct split at_peak;
    double seconds;
};

/* Looks without changing anything; the program is one thread. */
static struct split split_of(const bly_pool *pool)
{
    const struct blyi_pool_figures *is = &pool->is;
    struct split split = {.held = is->held, .live = live, .waiting = is->waiting};
    uint64_t n, slots_waiting = 0;
    BLYI_LIST_FOR(node, &pool->front->depots)
    {
        const struct blyi_depot *depot = BLYI_CONTAINER(node, struct blyi_depot, link);
        split.home += depot->home_bytes;
        slots_waiting += depot->waiting_bytes;
    }
    BLYI_LIST_FOR(node, &pool->front->caches)
    {
        split.cached += blyi_cache_parked(BLYI_CONTAINER(node, struct blyi_cache, of_front), &n);
    }
    split.loose = is->loose + is->spare;
    split.in_use = is->held - split.loose - blyi_figures_used(is);
    split.rounding = is->live - split.home - split.cached - slots_waiting - live;
    split.waiting += slots_waiting;
    return split;
}

static void drop(bly_pool *pool, struct block *b)
{
    (void)pool;
    if (check)
        blyi_sim_use(sim, blyi_sim_stream(b->stream), b->address, b->bytes);
    if (b->used) {
        b->until = take_held();
        (void)blyi_sim_use(sim, blyi_sim_stream(b->until), b->address, b->bytes);
        (void)bly_pool_use(b->address, blyi_sim_stream(b->until));
    }
    (void)bly_pool_free(b->address);
}

static void pass(bly_pool *pool, struct block *b)
{
    blyi_sim_complete(sim, blyi_sim_stream(b->until));
    held_free[n_held_free++] = b->until;
    b->until = 0;
    (void)bly_pool_poll(pool);
}

static void sync(bly_pool *pool, uint32_t stream)
{
    for (uint32_t s = 0; s < STREAMS; s++)
        if (stream == RECORDED_ALL || stream == s)
            blyi_sim_complete(sim, blyi_sim_stream(s));
    for (uint32_t s = 0; s < n_held; s++)
        blyi_sim_complete(sim, blyi_sim_stream(HELD_STREAM + s));
    (void)bly_pool_poll(pool);
}

static bool step(bly_pool *pool, struct blyi_map *blocks, const struct recorded_event *e)
{
    struct block *b = blyi_map_get(blocks, e->id);
    bool ok = true;
    switch (e->op) {
    case 'a':
        b = calloc(1, sizeof *b);
        b->bytes = e->bytes;
        b->stream = e->stream;
        ok = bly_pool_alloc(pool, b->bytes, blyi_sim_stream(b->stream), &b->address) == BLY_OK;
        blyi_map_put(blocks, e->id, b);
        live += b->bytes;
        break;
    case 'u':
        if (b)
            b->used = true;
        break;
    case 'f':
        live -= b->bytes;
        drop(pool, b);
        if (b->until == 0)
            free(blyi_map_remove(blocks, e->id));
        break;
    case 'd':
        if (b && b->until)
            pass(pool, b);
        break;
    case 's':
        sync(pool, e->stream);
        break;
    default:
        break;
    }
    return ok;
}

static struct result replay(const struct recorded *t, uint64_t capacity)
{
    struct result r = {.ok = true, .info.struct_size = sizeof r.info};
    bly_pool_opts opts, asked = bly_pool_opts_default();
    bly_pool *pool;
    struct blyi_map blocks;
    asked.slack = (uint32_t)slack;
    asked.small = small_max;
    blyi_map_init(&blocks);
    n_held = n_held_free = 0;
    live = 0;
    if (blyi_opts_read(&asked, &opts) != BLY_OK || blyi_sim_create(capacity, lag, &sim) != BLY_OK ||
        blyi_pool_make(blyi_sim_backend(sim), &opts, &pool) != BLY_OK)
        exit(2);
    adjust(pool);
    struct timespec a, z;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (size_t i = 0; r.ok && i < t->n; i++) {
        blyi_sim_tick(sim);
        r.ok = step(pool, &blocks, &t->events[i]);
        if (splits && pool->is.held > r.at_peak.held)
            r.at_peak = split_of(pool);
        if (check && i % every == 0 && bly_pool_audit(pool) != BLY_OK) {
            printf("event %zu: audit: %s\n", i, blyi_fail_text());
            exit(3);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &z);
    r.seconds = (double)(z.tv_sec - a.tv_sec) + 1e-9 * (double)(z.tv_nsec - a.tv_nsec);
    bly_pool_get_info(pool, &r.info);
    blyi_sim_figures(sim, &r.is);
    for (uint32_t s = 0; s < n_held; s++)
        blyi_sim_complete(sim, blyi_sim_stream(HELD_STREAM + s));
    bly_pool_destroy(pool);
    blyi_map_fini(&blocks);
    return r;
}

/* ---- rows -------------------------------------------------------------------------------- */

static struct {
    double log_ratio, worst_ratio, log_card, worst_card;
    uint64_t n, ranges, handles, waits, allocs, flushes;
} sum;

/* The smallest card, by halving, over the peak of live bytes. */
static double smallest_card(const struct recorded *t, const struct result *whole, uint64_t *flushes)
{
    uint64_t low = t->peak / (2 * MiB), high = whole->is.held_peak / (2 * MiB) + 8;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        struct result r = replay(t, middle * 2 * MiB);
        if (r.ok) {
            high = middle;
            *flushes = r.info.flushes;
        } else {
            low = middle + 1;
        }
    }
    return (double)low * 2 * MiB / (double)t->peak;
}

static void add_up(const struct recorded *t, const struct result *r, double ratio, double card,
                   uint64_t flushes)
{
    sum.log_ratio += log(ratio);
    sum.worst_ratio = fmax(sum.worst_ratio, ratio);
    sum.log_card += card > 0 ? log(card) : 0;
    sum.worst_card = fmax(sum.worst_card, card);
    sum.ranges += r->info.maps + r->info.unmaps;
    sum.handles += r->info.handle_ops;
    sum.waits += r->info.waits;
    sum.allocs += t->allocs;
    sum.flushes += flushes;
    sum.n++;
}

/* In hundredths of the peak of live bytes. */
static void print_split(const struct split *at, uint64_t peak)
{
    double unit = (double)peak / 100;
    printf(
        "    rounding %.2f, free slots in slabs %.2f and in thread caches %.2f, waiting %.2f, free "
        "in handles in use %.2f, in others %.2f; alive %.2f\n",
        (double)at->rounding / unit, (double)at->home / unit, (double)at->cached / unit,
        (double)at->waiting / unit, (double)at->in_use / unit, (double)at->loose / unit,
        (double)at->live / unit);
}

static int print_row(const char *path, bool least)
{
    struct recorded t = recorded_read(path);
    if (t.n == 0) {
        printf("%s: no trace\n", path);
        return 1;
    }
    struct result r = replay(&t, 2 * t.peak);
    if (!r.ok) {
        printf("%s failed: %s\n", path, blyi_fail_text());
        free(t.events);
        return 1;
    }
    uint64_t flushes = 0;
    double ratio = (double)r.is.held_peak / (double)t.peak;
    double card = least ? smallest_card(&t, &r, &flushes) : 0;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    printf("%-28.*s %8.0f %7.4f %8.4f %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %6" PRIu64
           " %7.2f %5.0f\n",
           (int)strcspn(name, "."), name, (double)t.peak / MiB, ratio, card, r.info.maps,
           r.info.unmaps, r.info.handle_ops, r.info.waits, flushes,
           1000.0 * (double)r.info.waits / (double)t.allocs, 1e9 * r.seconds / (double)t.n);
    if (splits)
        print_split(&r.at_peak, t.peak);
    fflush(stdout);
    add_up(&t, &r, ratio, card, flushes);
    free(t.events);
    return 0;
}

static void print_sum(void)
{
    double n = (double)sum.n;
    printf("geo %.4f worst %.4f  capacity %.4f worst %.4f  ranges %" PRIu64 "  handles %" PRIu64
           "  waits %" PRIu64 " (%.2f/1000)  flushes %" PRIu64 "\n",
           exp(sum.log_ratio / n), sum.worst_ratio, exp(sum.log_card / n), sum.worst_card,
           sum.ranges, sum.handles, sum.waits, 1000.0 * (double)sum.waits / (double)sum.allocs,
           sum.flushes);
}

/* ---- arguments --------------------------------------------------------------------------- */

/* False: no option that takes this value. */
static bool take_value(const char *option, const char *value)
{
    static const struct {
        const char *name;
        uint64_t *place;
    } numbers[] = {
        {"--every", &every}, {"--lag", &lag}, {"--slack", &slack}, {"--small", &small_max}};
    if (value == NULL)
        return false;
    for (size_t i = 0; i < BLYI_COUNT(numbers); i++) {
        if (strcmp(option, numbers[i].name) == 0) {
            *numbers[i].place = strtoull(value, NULL, 0);
            return true;
        }
    }
    if (strcmp(option, "--set") != 0 || n_set == (int)BLYI_COUNT(set) || strchr(value, '=') == NULL)
        return false;
    set[n_set++] = value;
    return true;
}

int main(int argc, char **argv)
{
    bool least = false;
    int i = 1, failed = 0;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--min") == 0) {
            least = true;
        } else if (strcmp(argv[i], "--check") == 0) {
            check = true;
        } else if (strcmp(argv[i], "--split") == 0) {
            splits = true;
        } else if (strcmp(argv[i], "--quick") == 0 || strcmp(argv[i], "--json") == 0) {
            continue; /* scripts/bench.sh: for those that measure something by themselves */
        } else if (take_value(argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr, "pool_traces: what is %s?\n", argv[i]);
            return 2;
        }
    }
    if (i == argc) /* make bench runs it without traces */
        return 0;
    printf("%-28s %8s %7s %8s %8s %7s %7s %7s %6s %7s %5s\n", "trace", "peak MiB", "ratio",
           "capacity", "maps", "unmaps", "handles", "waits", "flush", "w/1000", "ns");
    for (; i < argc && failed == 0; i++)
        failed = print_row(argv[i], least);
    if (failed == 0)
        print_sum();
    return failed;
}
