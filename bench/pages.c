/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.c - what 2 MiB pages of the host behind card memory buy: a kernel that reads words at
 * random places of a buffer, once with huge pages and once, in another process, with 4 KiB ones
 * (BELAY_PAGES). A processor remembers where some thousand pages lie; a buffer of more has to be
 * looked up, page by page.
 */
#include <acl/acl.h>
#include <belay/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/bench.h"

#define LOADS 2000000u

struct walked {
    uint64_t sum;
    double ns; /* of the engine's own CPU time, a read: others may want the CPU as well */
};

struct walk {
    const uint64_t *words;
    uint64_t mask;         /* words less one, a power of two less one */
    struct walked *walked; /* of the card */
    bool chained;          /* where a read goes depends on what the one before has read */
};

static double cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return 1e9 * (double)used.tv_sec + (double)used.tv_nsec;
}

/* Each word, which is 0, is added to where the next is read, if that shall wait for it. */
static inline __attribute__((always_inline)) uint64_t read_all(const struct walk *walk, uint64_t at,
                                                               bool chained)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOADS; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        uint64_t word = walk->words[at >> 20 & walk->mask];
        sum += word;
        at += chained ? word : 0;
    }
    return sum + at;
}

static void walk(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct walk *walk = args;
    double start = cpu_ns();
    uint64_t at = block + n_blocks;
    uint64_t sum = walk->chained ? read_all(walk, at, true) : read_all(walk, at, false);
    *walk->walked = (struct walked){sum, (cpu_ns() - start) / LOADS};
}

static void must(int code, const char *what)
{
    if (code != 0)
        bench_cannot("%s: %d %s", what, code, aclGetRecentErrMsg());
}

struct order {
    size_t bytes;
    bool chained;
};

struct answer {
    double ns; /* a read */
    uint64_t huge;
};

/* The process that has one kind of pages: for each order one walk, until nobody has any. */
static void serve(int in, int out, size_t most)
{
    aclrtStream stream;
    void *words, *result;
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    must(aclrtCreateStream(&stream), "aclrtCreateStream");
    must(aclrtMalloc(&words, most, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMalloc(&result, sizeof(struct walked), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMemset(words, most, 0, most), "aclrtMemset");
    struct order order;
    while (read(in, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
        struct walk args = {words, order.bytes / sizeof(uint64_t) - 1, result, order.chained};
        struct walked walked;
        must((int)bly_kernel_launch(walk, &args, sizeof(args), NULL, stream), "launch");
        must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
        must(
            aclrtMemcpy(&walked, sizeof(walked), result, sizeof(walked), ACL_MEMCPY_DEVICE_TO_HOST),
            "aclrtMemcpy");
        struct answer answer = {walked.ns, bench_huge_bytes(words, order.bytes)};
        if (write(out, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
            break;
    }
    _exit(0);
}

struct server {
    pid_t pid;
    int to, from;
};

static struct server start(const char *pages, size_t most)
{
    struct server server;
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0 || (server.pid = fork()) < 0)
        bench_cannot("no process");
    if (server.pid == 0) {
        close(to[1]);
        close(from[0]);
        setenv("BELAY_PAGES", pages, 1);
        serve(to[0], from[1], most);
    }
    close(to[0]);
    close(from[1]);
    server.to = to[1];
    server.from = from[0];
    return server;
}

static struct answer ask(const struct server *server, struct order order)
{
    struct answer answer;
    if (write(server->to, &order, sizeof(order)) != (ssize_t)sizeof(order) ||
        read(server->from, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        bench_cannot("a process that measures has ended");
    return answer;
}

static void end(const struct server *server)
{
    close(server->to);
    close(server->from);
    waitpid(server->pid, NULL, 0);
}

static void measure(const struct bench *bench, const struct server servers[2], struct order order)
{
    struct bench_samples ns[2] = {{0}};
    struct answer last[2];
    char what[64];
    for (int rep = 0; rep < (bench->quick ? 5 : 15); rep++)
        for (int i = 0; i < 2; i++) {
            last[i] = ask(&servers[i], order);
            bench_add(&ns[i], last[i].ns);
        }
    if (last[0].huge != order.bytes || last[1].huge != 0)
        bench_cannot("of %zu bytes %lu and %lu lie in huge pages", order.bytes,
                     (unsigned long)last[0].huge, (unsigned long)last[1].huge);
    snprintf(what, sizeof(what), "%zu MiB", order.bytes / MiB);
    bench_row(bench, &(struct bench_row){what, "ns", &ns[0], &ns[1], BENCH_NO_TARGET, 0});
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4 * MiB, 32 * MiB, 256 * MiB, GiB};
    struct bench bench;
    bench_begin(&bench, "pages", argc, argv);
    size_t n = BLYI_COUNT(sizes) - (bench.quick ? 1 : 0);
    const struct server servers[2] = {start("huge", sizes[n - 1]), start("small", sizes[n - 1])};
    for (int chained = 1; chained >= 0; chained--) {
        bench_section(&bench,
                      "a kernel reads 8 bytes at random places of a buffer of 2 MiB pages, %s; "
                      "bound: of 4 KiB pages",
                      chained ? "one after another" : "many at a time");
        for (size_t i = 0; i < n; i++)
            measure(&bench, servers, (struct order){sizes[i], chained != 0});
    }
    for (int i = 0; i < 2; i++)
        end(&servers[i]);
    bench_end(&bench);
    return 0;
}
