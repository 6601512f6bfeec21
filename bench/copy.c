/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.c - aclrtMemcpy between host and card, beside memcpy and a non-temporal copy.
 *
 * All ways use the same host buffer; each bound has a twin of its own of the card's memory, backed
 * alike, so that none finds in the caches what another left there. Order and place change from
 * repetition to repetition (which frames share cache sets is luck), one untimed copy comes before
 * each timed block, and a block in which a thread lost its CPU is taken again a few times.
 */
#include <acl/acl.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/stream_copy.h"
#include "bench/twin.h"

#define LANES       2
#define BLOCK_BYTES ((size_t)64 << 20) /* copied between two looks at the clock, at least once */
#define BLOCK_MAX   5000
#define RETRIES     2
#define LARGE       MiB       /* from here on speed counts */
#define SMALL       (4 * KiB) /* up to here the cost of a call does */

enum way { OURS, CACHED, STREAMED, N_WAYS };

/* One thread's memory. */
struct lane {
    char *pageable, *pinned;
    char *far[N_WAYS]; /* the card's memory and its twins */
    struct twin twins[N_WAYS];
};

struct job {
    enum way way;
    bool to_card, pinned;
    size_t size, at; /* where in the far memory */
    int rounds;
};

static struct lane lanes[LANES];
static size_t far_size; /* of each lane's card memory, a power of two */

static void must(aclError error, const char *what)
{
    if (error != ACL_SUCCESS)
        bench_cannot("%s: %d: %s", what, (int)error, aclGetRecentErrMsg());
}

static void run_job(const struct job *job, int rounds, struct lane *lane)
{
    char *host = job->pinned ? lane->pinned : lane->pageable;
    char *far = lane->far[job->way] + job->at;
    char *dst = job->to_card ? far : host, *src = job->to_card ? host : far;
    aclrtMemcpyKind kind = job->to_card ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST;
    for (int i = 0; i < rounds; i++) {
        switch (job->way) {
        case OURS:
            must(aclrtMemcpy(dst, job->size, src, job->size, kind), "aclrtMemcpy");
            break;
        case CACHED:
            memcpy(dst, src, job->size);
            break;
        default:
            stream_copy(dst, src, job->size);
            break;
        }
        __asm__ volatile("" ::: "memory"); /* each copy is made */
    }
}

/* ── The second thread ────────────────────────────────────────────────────────────────────── */

static struct {
    const struct job *job;
    uint32_t asked; /* jobs given out; the helper starts at each rise */
    uint32_t ended;
    bool ready; /* the helper has warmed up and waits for `go` */
    bool go;
} helper;

static void *help(void *arg)
{
    uint32_t seen = 0;
    bench_pin(1);
    must(aclrtSetDevice(0), "aclrtSetDevice");
    for (;;) {
        while (__atomic_load_n(&helper.asked, __ATOMIC_ACQUIRE) == seen)
            bench_sleep_ms(1);
        seen++;
        if (helper.job == NULL)
            return arg;
        run_job(helper.job, 1, &lanes[1]);
        __atomic_store_n(&helper.ready, true, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&helper.go, __ATOMIC_ACQUIRE))
            blyi_spin_pause();
        run_job(helper.job, helper.job->rounds, &lanes[1]);
        __atomic_store_n(&helper.ended, seen, __ATOMIC_RELEASE);
    }
}

static void give_job(const struct job *job)
{
    helper.job = job;
    __atomic_store_n(&helper.ready, false, __ATOMIC_RELAXED);
    __atomic_store_n(&helper.go, false, __ATOMIC_RELAXED);
    __atomic_store_n(&helper.asked, helper.asked + 1, __ATOMIC_RELEASE);
}

/* ns of one copy, with both threads at it when n_lanes is 2. */
static double time_once(const struct job *job, int n_lanes)
{
    if (n_lanes == 2)
        give_job(job);
    run_job(job, 1, &lanes[0]);
    while (n_lanes == 2 && !__atomic_load_n(&helper.ready, __ATOMIC_ACQUIRE))
        blyi_spin_pause();
    uint64_t start = bench_ns();
    __atomic_store_n(&helper.go, true, __ATOMIC_RELEASE);
    run_job(job, job->rounds, &lanes[0]);
    while (n_lanes == 2 && __atomic_load_n(&helper.ended, __ATOMIC_ACQUIRE) != helper.asked)
        blyi_spin_pause();
    return (double)(bench_ns() - start) / job->rounds;
}

static double time_job(const struct job *job, int n_lanes)
{
    for (int left = RETRIES;; left--) {
        long before = bench_preempted();
        double ns = time_once(job, n_lanes);
        if (bench_preempted() == before || left == 0)
            return ns;
    }
}

/* ── Rows ─────────────────────────────────────────────────────────────────────────────────── */

static const char *size_name(size_t size, char buf[32])
{
    if (size >= MiB)
        snprintf(buf, 32, "%zu MiB", size >> 20);
    else if (size >= KiB)
        snprintf(buf, 32, "%zu KiB", size >> 10);
    else
        snprintf(buf, 32, "%zu B", size);
    return buf;
}

/* Small sizes in ns over memcpy, others as a rate beside the better bound. */
static void print_size(const struct bench *bench, size_t size, int n_lanes,
                       const struct bench_samples ns[N_WAYS])
{
    static struct bench_samples rate[N_WAYS];
    char name[32], what[64];
    size_name(size, name);
    if (size <= SMALL) {
        bench_row(bench,
                  &(struct bench_row){name, "ns", &ns[OURS], &ns[CACHED],
                                      n_lanes == 1 ? BENCH_OVER_AT_MOST : BENCH_NO_TARGET, 300});
        return;
    }
    for (int way = 0; way < N_WAYS; way++) {
        rate[way].n = 0;
        for (int i = 0; i < ns[way].n; i++)
            bench_add(&rate[way], (double)size * n_lanes / ns[way].value[i]);
    }
    bool streamed =
        stream_copy_available() && bench_median(&rate[STREAMED]) > bench_median(&rate[CACHED]);
    snprintf(what, sizeof(what), "%-8s (%s)", name, streamed ? "non-temporal" : "memcpy");
    bench_row(bench,
              &(struct bench_row){what, "GB/s", &rate[OURS], &rate[streamed ? STREAMED : CACHED],
                                  size >= LARGE ? BENCH_RATIO_AT_LEAST : BENCH_NO_TARGET, 0.95});
}

static int rounds_for(size_t size)
{
    size_t rounds = BLOCK_BYTES / size;
    return rounds < 1 ? 1 : rounds > BLOCK_MAX ? BLOCK_MAX : (int)rounds;
}

static void measure_size(const struct bench *bench, struct job job, int n_lanes)
{
    static const enum way orders[6][N_WAYS] = {
        {OURS, CACHED, STREAMED}, {STREAMED, CACHED, OURS}, {CACHED, OURS, STREAMED},
        {STREAMED, OURS, CACHED}, {CACHED, STREAMED, OURS}, {OURS, STREAMED, CACHED},
    };
    static struct bench_samples ns[N_WAYS];
    memset(ns, 0, sizeof(ns));
    job.rounds = rounds_for(job.size);
    for (int rep = 0; rep < (bench->quick ? 6 : 18); rep++) {
        job.at = (size_t)rep * job.size % far_size;
        for (int turn = 0; turn < N_WAYS; turn++) {
            job.way = orders[rep % 6][turn];
            bench_add(&ns[job.way], time_job(&job, n_lanes));
        }
    }
    print_size(bench, job.size, n_lanes, ns);
}

static void open_lane(struct lane *lane, size_t size)
{
    lane->pageable = malloc(size);
    if (lane->pageable == NULL)
        bench_cannot("no host memory of %zu bytes", size);
    memset(lane->pageable, 2, size);
    must(aclrtMallocHost((void **)&lane->pinned, size), "aclrtMallocHost");
    memset(lane->pinned, 2, size);
    must(aclrtMallocAlign32((void **)&lane->far[OURS], size, ACL_MEM_MALLOC_HUGE_FIRST),
         "aclrtMallocAlign32");
    must(aclrtMemset(lane->far[OURS], size, 1, size), "aclrtMemset");
    for (int way = CACHED; way <= STREAMED; way++) {
        twin_open(&lane->twins[way], size);
        lane->far[way] = lane->twins[way].base;
    }
}

static void close_lane(struct lane *lane)
{
    free(lane->pageable);
    must(aclrtFreeHost(lane->pinned), "aclrtFreeHost");
    must(aclrtFree(lane->far[OURS]), "aclrtFree");
    for (int way = CACHED; way <= STREAMED; way++)
        twin_close(&lane->twins[way]);
}

static void measure(const struct bench *bench, int n_lanes, size_t largest)
{
    for (int pinned = 0; pinned < 2; pinned++) {
        for (int to_card = 1; to_card >= 0; to_card--) {
            bench_section(bench,
                          "%s, %s host memory, %d thread%s; bound: the better of memcpy "
                          "and non-temporal",
                          to_card ? "host to card" : "card to host", pinned ? "pinned" : "pageable",
                          n_lanes, n_lanes == 1 ? "" : "s");
            for (size_t size = n_lanes == 1 ? 64 : MiB; size <= largest; size *= 4)
                measure_size(bench,
                             (struct job){.to_card = to_card, .pinned = pinned, .size = size},
                             n_lanes);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "copy", argc, argv);
    size_t largest = far_size = (bench.quick ? 16 : 256) * MiB;
    bench_pin(0);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    for (int i = 0; i < LANES; i++)
        open_lane(&lanes[i], largest);
    bench_note(&bench, "on huge pages: card %lu MiB, twin %lu MiB of %zu MiB each",
               (unsigned long)(bench_huge_bytes(lanes[0].far[OURS], largest) >> 20),
               (unsigned long)(lanes[0].twins[CACHED].huge >> 20), largest >> 20);

    measure(&bench, 1, largest);
    if (bench_cpus() >= 2) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, NULL) != 0)
            bench_cannot("no second thread");
        measure(&bench, 2, largest);
        give_job(NULL);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < LANES; i++)
        close_lane(&lanes[i]);
    must(aclrtResetDevice(0), "aclrtResetDevice");
    must(aclFinalize(), "aclFinalize");
    bench_end(&bench);
    return 0;
}
