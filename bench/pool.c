/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - the pool beside allocators of host memory that are installed: pairs by size, the spread
 * of single calls, threads, frees of another thread, many blocks; host memory for each block.
 *
 * With --pair SIZE ROUNDS it does that many pairs and nothing else: scripts/bench.sh --instructions
 * counts what they take.
 */
#include <belay/pool.h>

#include <acl/acl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/peers.h"

static bly_pool *pool;
static aclrtStream stream;

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), bly_last_error());
}

static void *pool_alloc(size_t size)
{
    void *block = NULL;
    if (unlikely(bly_pool_alloc(pool, size, stream, &block) != BLY_OK))
        bench_cannot("bly_pool_alloc of %zu bytes: %s", size, bly_last_error());
    return block;
}

static void pool_free(void *block)
{
    if (unlikely(bly_pool_free(block) != BLY_OK))
        bench_cannot("bly_pool_free: %s", bly_last_error());
}

static struct peer all[PEERS_MAX + 1] = {{"pool", pool_alloc, pool_free}};
static size_t n_all;

static void pairs(const struct peer *peer, size_t size, long rounds)
{
    for (long i = 0; i < rounds; i++)
        peer->free(peer->alloc(size));
}

static void row(const struct bench *bench, const char *what, const char *unit,
                const struct bench_samples *samples, enum bench_target kind, double target)
{
    bench_row(bench, &(struct bench_row){what, unit, samples, NULL, kind, target});
}

/* One row for each allocator; the first is ours, and has the target. */
static void rows(const struct bench *bench, const char *what, const char *unit,
                 const struct bench_samples *samples, double target)
{
    for (size_t i = 0; i < n_all; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s: %s", what, all[i].name);
        row(bench, text, unit, &samples[i],
            i == 0 && target > 0 ? BENCH_OURS_AT_MOST : BENCH_NO_TARGET, target);
    }
}

static void measure_pairs(const struct bench *bench)
{
    static const struct {
        const char *what;
        size_t size;
        double target;
    } sizes[] = {{"512 B", 512, 12},         {"4 KiB", 4096, 12}, {"64 KiB", 64 * KiB, 12},
                 {"512 KiB", 512 * KiB, 12}, {"1 MiB", MiB, 100}, {"20 MiB", 20 * MiB, 100}};
    bench_section(bench, "a block is allocated and freed, over and over");
    for (size_t i = 0; i < BLYI_COUNT(sizes); i++) {
        struct bench_samples ns[PEERS_MAX + 1] = {{0}};
        for (int rep = 0; rep < (bench->quick ? 5 : 21); rep++)
            for (size_t a = 0; a < n_all; a++) {
                pairs(&all[a], sizes[i].size, 100);
                uint64_t start = bench_ns();
                pairs(&all[a], sizes[i].size, 20000);
                bench_add(&ns[a], (double)(bench_ns() - start) / 20000);
            }
        rows(bench, sizes[i].what, "ns", ns, sizes[i].target);
    }
}

/* Sizes as jobs have them: most small, few large; the same for all allocators. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t random_size(uint64_t *state, size_t most)
{
    uint64_t bits = next_random(state);
    size_t size = (size_t)512 << bits % 12;
    size += (size_t)(bits >> 32) % size;
    return size < most ? size : most;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { LIVE = 2000 };

/* Single calls in a steady state, the clock's own time taken off. */
static size_t time_calls(const struct peer *peer, double *ns, size_t n)
{
    static void *blocks[LIVE];
    uint64_t state = 88172645463325252u, clock = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t start = bench_ns(), took = bench_ns() - start;
        clock = took < clock ? took : clock;
    }
    for (size_t i = 0; i < LIVE; i++)
        blocks[i] = peer->alloc(random_size(&state, 512 * KiB));
    size_t at = 0;
    for (size_t i = 0; i < n / 2; i++) {
        void **place = &blocks[next_random(&state) % LIVE];
        size_t size = random_size(&state, 512 * KiB);
        uint64_t start = bench_ns();
        peer->free(*place);
        uint64_t middle = bench_ns();
        *place = peer->alloc(size);
        uint64_t end = bench_ns();
        ns[at++] = (double)(middle - start) - (double)clock;
        ns[at++] = (double)(end - middle) - (double)clock;
    }
    for (size_t i = 0; i < LIVE; i++)
        peer->free(blocks[i]);
    qsort(ns, at, sizeof(*ns), by_value);
    return at;
}

static void measure_spread(const struct bench *bench)
{
    static const struct {
        const char *what;
        double part, target;
    } parts[] = {{"p50", 0.5, 30}, {"p99", 0.99, 100}, {"p99.9", 0.999, 300}};
    struct bench_samples ns[3][PEERS_MAX + 1] = {{{0}}};
    size_t n = bench->quick ? 40000 : 400000;
    double *times = malloc(n * sizeof(*times));
    for (int rep = 0; times != NULL && rep < 5; rep++)
        for (size_t a = 0; a < n_all; a++) {
            size_t got = time_calls(&all[a], times, n);
            for (size_t p = 0; p < BLYI_COUNT(parts); p++)
                bench_add(&ns[p][a], times[(size_t)(parts[p].part * (double)got)]);
        }
    free(times);
    bench_section(bench, "single calls, %d blocks of 512 B to 512 KiB live, one replaced at a time",
                  LIVE);
    for (size_t p = 0; p < BLYI_COUNT(parts); p++)
        rows(bench, parts[p].what, "ns", ns[p], parts[p].target);
}

struct worker {
    const struct peer *peer;
    long rounds;
    pthread_barrier_t *start;
    uint64_t began, ended;
};

static void *churn(void *arg)
{
    struct worker *worker = arg;
    void *blocks[64] = {0};
    uint64_t state = 88172645463325252u + (uintptr_t)worker;
    pthread_barrier_wait(worker->start);
    worker->began = bench_ns();
    for (long i = 0; i < worker->rounds; i++) {
        void **place = &blocks[next_random(&state) % 64];
        if (*place != NULL)
            worker->peer->free(*place);
        *place = worker->peer->alloc((size_t)512 << next_random(&state) % 5);
    }
    worker->ended = bench_ns();
    for (size_t i = 0; i < 64; i++)
        if (blocks[i] != NULL)
            worker->peer->free(blocks[i]);
    return NULL;
}

static double churn_rate(const struct peer *peer, int n_threads, long rounds)
{
    pthread_t threads[2];
    pthread_barrier_t start;
    struct worker workers[2];
    double rate = 0;
    pthread_barrier_init(&start, NULL, (unsigned)n_threads);
    for (int i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.peer = peer, .rounds = rounds, .start = &start};
        if (pthread_create(&threads[i], NULL, churn, &workers[i]) != 0)
            bench_cannot("no thread");
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        rate += 2e3 * (double)rounds / (double)(workers[i].ended - workers[i].began);
    }
    pthread_barrier_destroy(&start);
    return rate;
}

static void measure_threads(const struct bench *bench)
{
    struct bench_samples rate[2][PEERS_MAX + 1] = {{{0}}};
    long rounds = bench->quick ? 200000 : 1000000;
    for (int rep = 0; rep < 5; rep++)
        for (size_t a = 0; a < n_all; a++)
            for (int threads = 1; threads <= 2; threads++)
                bench_add(&rate[threads - 1][a], churn_rate(&all[a], threads, rounds));
    bench_section(bench, "64 blocks of 512 B to 8 KiB live in each thread, one stream, %d CPUs",
                  bench_cpus());
    rows(bench, "one thread", "Mcalls/s", rate[0], 0);
    rows(bench, "two threads", "Mcalls/s", rate[1], 0);
    bench_note(bench, "two threads / one: pool %.2f times",
               bench_median(&rate[1][0]) / bench_median(&rate[0][0]));
}

/* One thread allocates, another frees, through a ring. */
enum { RING = 4096, BATCH = 64 };
static struct {
    void *blocks[RING];
    _Alignas(64) size_t head;
    _Alignas(64) size_t tail;
} ring;

/* The other one may not have a CPU. */
static void pause_or_yield(void)
{
    static _Thread_local unsigned n;
    if (++n % 64 == 0)
        sched_yield();
    else
        blyi_spin_pause();
}

struct consumer {
    const struct peer *peer;
    size_t n;
};

static void *consume(void *arg)
{
    const struct consumer *consumer = arg;
    for (size_t at = 0; at < consumer->n; at += BATCH) {
        while (__atomic_load_n(&ring.head, __ATOMIC_ACQUIRE) < at + BATCH)
            pause_or_yield();
        for (size_t i = at; i < at + BATCH; i++)
            consumer->peer->free(ring.blocks[i % RING]);
        __atomic_store_n(&ring.tail, at + BATCH, __ATOMIC_RELEASE);
    }
    return NULL;
}

static double cross_rate(const struct peer *peer, size_t n)
{
    struct consumer consumer = {peer, n / BATCH * BATCH};
    pthread_t thread;
    ring.head = ring.tail = 0;
    if (pthread_create(&thread, NULL, consume, &consumer) != 0)
        bench_cannot("no thread");
    uint64_t start = bench_ns();
    for (size_t at = 0; at < consumer.n; at += BATCH) {
        while (at + BATCH - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE) > RING)
            pause_or_yield();
        for (size_t i = at; i < at + BATCH; i++)
            ring.blocks[i % RING] = peer->alloc(512);
        __atomic_store_n(&ring.head, at + BATCH, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    return (double)consumer.n / (double)(bench_ns() - start) * 1e3;
}

static void measure_cross(const struct bench *bench)
{
    struct bench_samples rate[PEERS_MAX + 1] = {{0}};
    for (int rep = 0; rep < 7; rep++)
        for (size_t a = 0; a < n_all; a++)
            bench_add(&rate[a], cross_rate(&all[a], bench->quick ? 200000 : 1000000));
    bench_section(bench, "one thread allocates 512 B, another frees");
    rows(bench, "through a ring", "Mpairs/s", rate, 0);
}

static double crowd_ns(const struct peer *peer, void **blocks, size_t n, size_t rounds)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++)
        blocks[i] = peer->alloc((size_t)512 << next_random(&state) % 5);
    uint64_t start = bench_ns();
    for (size_t i = 0; i < rounds; i++) {
        void **place = &blocks[next_random(&state) % n];
        peer->free(*place);
        *place = peer->alloc((size_t)512 << next_random(&state) % 5);
    }
    double ns = (double)(bench_ns() - start) / (double)rounds;
    for (size_t i = 0; i < n; i++)
        peer->free(blocks[i]);
    return ns;
}

static void measure_crowd(const struct bench *bench)
{
    static const struct {
        const char *what;
        size_t n;
    } crowds[] = {{"1e3 blocks", 1000},
                  {"1e4 blocks", 10000},
                  {"1e5 blocks", 100000},
                  {"1e6 blocks", 1000000}};
    size_t n_crowds = BLYI_COUNT(crowds) - (bench->quick ? 1 : 0);
    void **blocks = malloc(crowds[n_crowds - 1].n * sizeof(*blocks));
    bench_section(bench, "blocks of 512 B to 8 KiB, one replaced at random: a free and an "
                         "allocation");
    for (size_t c = 0; blocks != NULL && c < n_crowds; c++) {
        struct bench_samples ns[PEERS_MAX + 1] = {{0}};
        for (int rep = 0; rep < 3; rep++)
            for (size_t a = 0; a < n_all; a++)
                bench_add(&ns[a], crowd_ns(&all[a], blocks, crowds[c].n, 200000));
        rows(bench, crowds[c].what, "ns", ns, 400);
    }
    free(blocks);
}

static void measure_metadata(const struct bench *bench)
{
    static const size_t sizes[] = {512, 64 * KiB, 2 * MiB};
    size_t n = bench->quick ? 1000 : 8000;
    void **blocks = malloc(n * sizeof(*blocks));
    bench_section(bench, "host memory that describes a block, %zu of them live", n);
    for (size_t i = 0; blocks != NULL && i < BLYI_COUNT(sizes); i++) {
        struct bench_samples bytes = {0};
        char what[32];
        bly_pool_info before = {.struct_size = sizeof(before)};
        bly_pool_info after = {.struct_size = sizeof(after)};
        must(bly_pool_get_info(pool, &before), "bly_pool_get_info");
        for (size_t b = 0; b < n; b++)
            blocks[b] = pool_alloc(sizes[i]);
        must(bly_pool_get_info(pool, &after), "bly_pool_get_info");
        bench_add(&bytes, (double)(after.metadata - before.metadata) / (double)n);
        for (size_t b = 0; b < n; b++)
            pool_free(blocks[b]);
        snprintf(what, sizeof(what), "%zu KiB", sizes[i] / KiB);
        row(bench, sizes[i] < KiB ? "512 B" : what, "bytes", &bytes,
            sizes[i] == 64 * KiB ? BENCH_OURS_AT_MOST : BENCH_NO_TARGET, 48);
    }
    free(blocks);
}

static void open_pool(void)
{
    if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS ||
        aclrtCreateStream(&stream) != ACL_SUCCESS)
        bench_cannot("no card: %s", aclGetRecentErrMsg());
    must(bly_pool_create(NULL, &pool), "bly_pool_create");
}

int main(int argc, char **argv)
{
    struct bench bench;
    if (argc == 4 && strcmp(argv[1], "--pair") == 0) {
        open_pool();
        uint64_t size = strtoull(argv[2], NULL, 0);
        void *block;
        for (long i = strtol(argv[3], NULL, 0); i > 0; i--)
            if (bly_pool_alloc(pool, size, stream, &block) != BLY_OK || bly_pool_free(block) != 0)
                bench_cannot("a pair: %s", bly_last_error());
        return 0;
    }
    bench_begin(&bench, "pool", argc, argv);
    open_pool();
    n_all = 1 + peers_find(all + 1);
    measure_metadata(&bench);
    measure_pairs(&bench);
    measure_spread(&bench);
    measure_threads(&bench);
    measure_cross(&bench);
    measure_crowd(&bench);
    must(bly_pool_destroy(pool), "bly_pool_destroy");
    bench_end(&bench);
    return 0;
}
