/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_threads.c - two threads at once, and frees of blocks that another thread has allocated.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "bench/pool_bench.h"

/* A thread on a CPU of its own. Its own CPU time tells what it costs where others want the CPU
 * too; lines of memory that go to and fro between the two cost CPU time. */
struct worker {
    const struct peer *peer;
    long rounds;
    int cpu;
    pthread_barrier_t *start;
    double seconds, cpu_seconds;
};

static double thread_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static void *churn(void *arg)
{
    struct worker *worker = arg;
    void *blocks[64] = {0};
    uint64_t state = POOL_SEED + (uintptr_t)worker;
    bench_pin(worker->cpu);
    pthread_barrier_wait(worker->start);
    double cpu_began = thread_seconds();
    uint64_t began = bench_ns();
    for (long i = 0; i < worker->rounds; i++) {
        void **place = &blocks[pool_random(&state) % 64];
        if (*place != NULL)
            worker->peer->free(*place);
        *place = worker->peer->alloc((size_t)512 << pool_random(&state) % 5);
    }
    worker->seconds = 1e-9 * (double)(bench_ns() - began);
    worker->cpu_seconds = thread_seconds() - cpu_began;
    for (size_t i = 0; i < 64; i++)
        if (blocks[i] != NULL)
            worker->peer->free(blocks[i]);
    return NULL;
}

struct rates {
    double calls, cpu_calls; /* a second, and a second of CPU time, in all threads; 1e6 */
};

static struct rates churn_rates(const struct peer *peer, int n_threads, long rounds)
{
    pthread_t threads[2];
    pthread_barrier_t start;
    struct worker workers[2];
    struct rates rates = {0};
    pthread_barrier_init(&start, NULL, (unsigned)n_threads);
    for (int i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.peer = peer, .rounds = rounds, .cpu = i, .start = &start};
        if (pthread_create(&threads[i], NULL, churn, &workers[i]) != 0)
            bench_cannot("no thread");
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        rates.calls += 2e-6 * (double)rounds / workers[i].seconds;
        rates.cpu_calls += 2e-6 * (double)rounds / workers[i].cpu_seconds;
    }
    pthread_barrier_destroy(&start);
    return rates;
}

static void two_rows(const struct bench *bench, const char *what,
                     struct bench_samples rates[2][PEERS_MAX + 1])
{
    for (size_t a = 0; a < pool_n_peers; a++) {
        char text[64];
        snprintf(text, sizeof(text), "%s: %s", what, pool_peers[a].name);
        bench_row(bench, &(struct bench_row){text, "M/s", &rates[1][a], &rates[0][a],
                                             a == 0 ? BENCH_RATIO_AT_LEAST : BENCH_NO_TARGET, 1.8});
    }
}

void pool_measure_threads(const struct bench *bench)
{
    static struct bench_samples calls[2][PEERS_MAX + 1], cpu_calls[2][PEERS_MAX + 1];
    long rounds = bench->quick ? 200000 : 1000000;
    for (int rep = 0; rep < (bench->quick ? 5 : 11); rep++)
        for (size_t a = 0; a < pool_n_peers; a++)
            for (int threads = 1; threads <= 2; threads++) {
                struct rates rates = churn_rates(&pool_peers[a], threads, rounds);
                bench_add(&calls[threads - 1][a], rates.calls);
                bench_add(&cpu_calls[threads - 1][a], rates.cpu_calls);
            }
    bench_section(bench,
                  "two threads, 64 blocks of 512 B to 8 KiB live in each, one stream; bound: one "
                  "thread, %d CPUs",
                  bench_cpus());
    two_rows(bench, "calls", calls);
    two_rows(bench, "by CPU time", cpu_calls);
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
    double cpu_seconds; /* of the frees alone */
};

static void *consume(void *arg)
{
    struct consumer *consumer = arg;
    bench_pin(1);
    for (size_t at = 0; at < consumer->n; at += BATCH) {
        while (__atomic_load_n(&ring.head, __ATOMIC_ACQUIRE) < at + BATCH)
            pause_or_yield();
        double start = thread_seconds();
        for (size_t i = at; i < at + BATCH; i++)
            consumer->peer->free(ring.blocks[i % RING]);
        consumer->cpu_seconds += thread_seconds() - start;
        __atomic_store_n(&ring.tail, at + BATCH, __ATOMIC_RELEASE);
    }
    return NULL;
}

static struct rates cross_rates(const struct peer *peer, size_t n)
{
    struct consumer consumer = {.peer = peer, .n = n / BATCH * BATCH};
    pthread_t thread;
    double cpu_seconds = 0;
    ring.head = ring.tail = 0;
    if (pthread_create(&thread, NULL, consume, &consumer) != 0)
        bench_cannot("no thread");
    uint64_t start = bench_ns();
    for (size_t at = 0; at < consumer.n; at += BATCH) {
        while (at + BATCH - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE) > RING)
            pause_or_yield();
        double began = thread_seconds();
        for (size_t i = at; i < at + BATCH; i++)
            ring.blocks[i % RING] = peer->alloc(512);
        cpu_seconds += thread_seconds() - began;
        __atomic_store_n(&ring.head, at + BATCH, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    double slower = cpu_seconds > consumer.cpu_seconds ? cpu_seconds : consumer.cpu_seconds;
    return (struct rates){.calls = (double)consumer.n / (double)(bench_ns() - start) * 1e3,
                          .cpu_calls = 1e-6 * (double)consumer.n / slower};
}

void pool_measure_cross(const struct bench *bench)
{
    static struct bench_samples rate[PEERS_MAX + 1], cpu_rate[PEERS_MAX + 1];
    bench_pin(0);
    for (int rep = 0; rep < (bench->quick ? 5 : 11); rep++)
        for (size_t a = 0; a < pool_n_peers; a++) {
            struct rates rates = cross_rates(&pool_peers[a], bench->quick ? 200000 : 1000000);
            bench_add(&rate[a], rates.calls);
            bench_add(&cpu_rate[a], rates.cpu_calls);
        }
    bench_section(bench,
                  "one thread allocates 512 B, another frees, through a ring; and by the CPU "
                  "time of the slower side");
    pool_rows(bench, "pairs", "M/s", rate, BENCH_OURS_AT_LEAST, 5);
    pool_rows(bench, "by CPU time", "M/s", cpu_rate, BENCH_OURS_AT_LEAST, 5);
}
