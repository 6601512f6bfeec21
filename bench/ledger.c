/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - what sharing a card costs: one change to the ledger alone and beside three other busy
 * processes, and how long a process takes to join them.
 */
#include "bench/bench.h"
#include "base/compiler.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/ledger.h"
#include "npu/memory.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4
#define ROUNDS    20000
#define BUCKETS   400 /* of 0.1 us; the last is for all that is longer */

/* What the processes share; memory of this benchmark alone. */
struct board {
    uint32_t ready, go, stop;
    uint32_t counts[BUCKETS];
    double worst_us;
    double joined_ms;
};
static struct board *board;

static struct blyi_stock *open_card(void)
{
    struct blyi_card *card;
    if (blyi_device_set(0, 0) != BLY_OK || blyi_card_open(0, &card) != BLY_OK)
        bench_cannot("card 0: %s", bly_last_error());
    return card->stock;
}

static void change(struct blyi_stock *stock)
{
    uint32_t first;
    if (blyi_stock_take(stock, 1, &first) == 0)
        bench_cannot("the card is full");
    blyi_stock_give(stock, first, 1);
}

static void alone(const struct bench *bench, struct blyi_stock *stock)
{
    struct bench_samples ns = {0}, bound = {0};
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int rounds = bench->quick ? 2000 : ROUNDS;
    for (int rep = 0; rep < 51; rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < rounds; i++)
            change(stock);
        uint64_t middle = bench_ns();
        for (int i = 0; i < 2 * rounds; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        bench_add(&ns, (double)(middle - start) / 2 / rounds);
        bench_add(&bound, (double)(bench_ns() - middle) / 2 / rounds);
    }
    bench_section(bench, "one process: a frame taken or given; bound: a mutex of the process");
    bench_row(bench, &(struct bench_row){"one change", "ns", &ns, &bound, BENCH_OURS_AT_MOST, 500});
}

static void busy(bool measure, int rounds)
{
    struct blyi_stock *stock = open_card();
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_ACQ_REL);
    while (!__atomic_load_n(&board->go, __ATOMIC_ACQUIRE))
        usleep(100);
    for (int i = 0; i < rounds && !__atomic_load_n(&board->stop, __ATOMIC_RELAXED); i++) {
        uint32_t first;
        for (int half = 0; half < 2; half++) {
            uint64_t start = bench_ns();
            if (half == 0 && blyi_stock_take(stock, 1, &first) == 0)
                bench_cannot("the card is full");
            if (half == 1)
                blyi_stock_give(stock, first, 1);
            if (!measure)
                continue;
            double us = (double)(bench_ns() - start) / 1e3;
            uint64_t bucket = (uint64_t)(us * 10);
            __atomic_fetch_add(&board->counts[bucket < BUCKETS ? bucket : BUCKETS - 1], 1,
                               __ATOMIC_RELAXED);
        }
    }
    _exit(0);
}

static double percentile(double part)
{
    uint64_t all = 0, below = 0;
    for (int i = 0; i < BUCKETS; i++)
        all += board->counts[i];
    for (int i = 0; i < BUCKETS; i++) {
        below += board->counts[i];
        if ((double)below >= part * (double)all)
            return (i + 1) / 10.0;
    }
    return BUCKETS / 10.0;
}

static void start_all(pid_t *pids, int n, bool measure, int rounds)
{
    memset(board, 0, sizeof *board);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            busy(measure, rounds);
    }
    while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) < (uint32_t)n)
        usleep(100);
    __atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
}

static void end_all(pid_t *pids, int n)
{
    __atomic_store_n(&board->stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < n; i++)
        waitpid(pids[i], NULL, 0);
}

static void together(const struct bench *bench)
{
    pid_t pids[PROCESSES];
    struct bench_samples median = {0}, high = {0};
    for (int rep = 0; rep < (bench->quick ? 2 : 7); rep++) {
        start_all(pids, PROCESSES, true, bench->quick ? 5000 : 50000);
        for (int i = 0; i < PROCESSES; i++)
            waitpid(pids[i], NULL, 0);
        bench_add(&median, percentile(0.5));
        bench_add(&high, percentile(0.99));
    }
    bench_section(bench, "%d processes that do nothing else, on %d CPUs", PROCESSES, bench_cpus());
    bench_row(bench,
              &(struct bench_row){"one change, median", "us", &median, NULL, BENCH_NO_TARGET, 0});
    bench_row(bench, &(struct bench_row){"one change, 99th of 100", "us", &high, NULL,
                                         BENCH_OURS_AT_MOST, 10});
}

static void join(void)
{
    uint64_t start = bench_ns();
    struct blyi_card *card;
    open_card();
    void *block;
    struct blyi_mem_request request = {.asked = 2 * MiB, .rounded = 2 * MiB};
    if (blyi_card_open(0, &card) != BLY_OK || blyi_mem_alloc(card, &request, &block) != BLY_OK)
        bench_cannot("%s", bly_last_error());
    board->joined_ms = (double)(bench_ns() - start) / 1e6;
    _exit(0);
}

static void joining(const struct bench *bench)
{
    pid_t pids[PROCESSES - 1];
    struct bench_samples ms = {0};
    start_all(pids, PROCESSES - 1, false, INT32_MAX);
    for (int rep = 0; rep < (bench->quick ? 5 : 31); rep++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            join();
        waitpid(pid, NULL, 0);
        bench_add(&ms, board->joined_ms);
    }
    end_all(pids, PROCESSES - 1);
    bench_row(bench, &(struct bench_row){"a process joins: bind and allocate", "ms", &ms, NULL,
                                         BENCH_OURS_AT_MOST, 20});
}

int main(int argc, char **argv)
{
    struct bench bench;
    char folder[] = "/tmp/belay-bench-XXXXXX", command[64];
    bench_begin(&bench, "ledger", argc, argv);
    if (mkdtemp(folder) == NULL)
        bench_cannot("no folder in /tmp");
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "4GiB", 1);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        bench_cannot("no shared memory");
    together(&bench);
    joining(&bench);
    alone(&bench, open_card());
    bench_end(&bench);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : 1;
}
