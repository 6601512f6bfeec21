/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - what the guard of card memory costs in a copy in the caller's thread and in an
 * allocation, in each mode that the machine has. A mode is for a process's life, so each is
 * measured in a child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "bench/bench.h"
#include "npu/context.h"
#include "npu/copy.h"
#include "npu/guard.h"
#include "npu/memory.h"

#define ROUNDS 20000

static void must(bly_status status)
{
    if (status != BLY_OK)
        bench_cannot("%s", blyi_fail_text());
}

static void *allocate(uint64_t size)
{
    struct blyi_card *card;
    void *block = NULL;
    must(blyi_context_here_card(&card));
    must(blyi_mem_alloc(
        card, &(struct blyi_mem_request){.asked = size, .rounded = size, .module = 33}, &block));
    return block;
}

static double ns_of(uint64_t start, int rounds)
{
    return (double)(bench_ns() - start) / rounds;
}

/* The rights of a thread, switched and switched back. */
static void measure_switch(const struct bench *bench)
{
    struct bench_samples ns = {0};
    if (blyi_guard.deny == 0) {
        bench_note(bench, "no protection keys in use: a copy pays two predictable branches");
        return;
    }
    for (int rep = 0; rep < 101; rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < ROUNDS; i++)
            blyi_guard_leave(blyi_guard_enter());
        bench_add(&ns, ns_of(start, ROUNDS));
    }
    bench_row(bench, &(struct bench_row){"take the right and give it back", "ns", &ns, NULL,
                                         BENCH_OURS_AT_MOST, 80});
}

static void measure_copy(const struct bench *bench, char *block, size_t size, const char *what)
{
    struct bench_samples ns = {0};
    char *host = malloc(size);
    memset(host, 1, size);
    int rounds = size > 4096 ? 200 : ROUNDS;
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < rounds; i++)
            must(blyi_copy_now(block, host, size));
        bench_add(&ns, ns_of(start, rounds));
    }
    bench_row(bench, &(struct bench_row){what, "ns", &ns, NULL, BENCH_NO_TARGET, 0});
    free(host);
}

static void measure_malloc(const struct bench *bench)
{
    struct bench_samples us = {0};
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < 100; i++) {
            void *block = allocate(2 * MiB);
            must(blyi_set_now(block, 1, 1));
            must(blyi_mem_free(block, 0));
        }
        bench_add(&us, ns_of(start, 100) / 1e3);
    }
    bench_row(bench, &(struct bench_row){"malloc 2 MiB, a byte set, free", "us", &us, NULL,
                                         BENCH_NO_TARGET, 0});
}

static void measure_mode(const struct bench *bench, const char *mode)
{
    static const char *const names[] = {"off", "protection keys", "second mapping"};
    setenv("BELAY_GUARD", mode, 1);
    must(blyi_device_set(0, 0));
    char *block = allocate(16 * MiB);
    must(blyi_set_now(block, 1, 16 * MiB));
    bench_section(bench, "guard: %s", names[blyi_guard.mode]);
    measure_switch(bench);
    measure_copy(bench, block, 1, "copy of 1 B to the card");
    measure_copy(bench, block, 4096, "copy of 4 KiB to the card");
    measure_copy(bench, block, 8 * MiB, "copy of 8 MiB to the card");
    measure_malloc(bench);
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"off", "on", "alias"};
    struct bench bench;
    bench_begin(&bench, "guard", argc, argv);
    bench_pin(0);
    for (size_t i = 0; i < BLYI_COUNT(modes); i++) {
        if (i == 1 && !blyi_guard_has_keys())
            continue; /* "on" would be the same as "alias" */
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            measure_mode(&bench, modes[i]);
            exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    bench_end(&bench);
    return 0;
}
