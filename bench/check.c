/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - what the checker costs: calls of programs with it beside the same calls without. Two
 * processes of this program, one of which is checked, are asked in turn; the bound is the one that
 * is not.
 */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/bench.h"

static aclrtStream stream, other;
static aclrtEvent event;
static char *block, *pinned, host[64];

static void must(aclError code, const char *what)
{
    if (code != ACL_SUCCESS)
        bench_cannot("%s returned %d", what, code);
}

static void sets(int n)
{
    for (int i = 0; i < n; i++)
        must(aclrtMemsetAsync(block + i * 64, 64, 1, 64, stream), "aclrtMemsetAsync");
    must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
}

static void trips(int n)
{
    for (int i = 0; i < n; i++) {
        must(aclrtMemsetAsync(block, 64, 1, 64, stream), "aclrtMemsetAsync");
        must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    }
}

static void hops(int n)
{
    for (int i = 0; i < n; i++) {
        must(aclrtRecordEvent(event, stream), "aclrtRecordEvent");
        must(aclrtStreamWaitEvent(other, event), "aclrtStreamWaitEvent");
    }
    must(aclrtSynchronizeStream(other), "aclrtSynchronizeStream");
}

static void copies(int n)
{
    for (int i = 0; i < n; i++)
        must(aclrtMemcpy(host, sizeof(host), block, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST),
             "aclrtMemcpy");
}

static void uploads(int n)
{
    for (int i = 0; i < n; i++)
        must(aclrtMemcpyAsync(block, MiB, pinned, MiB, ACL_MEMCPY_HOST_TO_DEVICE, stream),
             "aclrtMemcpyAsync");
    must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
}

static void downloads(int n)
{
    for (int i = 0; i < n; i++)
        must(aclrtMemcpyAsync(pinned, MiB, block, MiB, ACL_MEMCPY_DEVICE_TO_HOST, stream),
             "aclrtMemcpyAsync");
    must(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
}

static void mallocs(int n)
{
    for (int i = 0; i < n; i++) {
        void *fresh;
        must(aclrtMallocAlign32(&fresh, 2 * MiB, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32");
        must(aclrtFree(fresh), "aclrtFree");
    }
}

static const struct {
    const char *what;
    void (*run)(int n);
    int n;
} works[] = {
    {"64 B set async, in a row", sets, 1000},
    {"64 B set async and wait", trips, 200},
    {"event recorded and waited for", hops, 500},
    {"64 B copy to the host", copies, 1000},
    {"1 MiB copy to the card, pinned", uploads, 50},
    {"1 MiB copy to the host, pinned", downloads, 50},
    {"malloc and free of 2 MiB", mallocs, 200},
};

/* ── A process that works when asked ──────────────────────────────────────────────────────── */

static void work(int in, int out)
{
    void *memory;
    int which;
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    must(aclrtCreateStream(&stream), "aclrtCreateStream");
    must(aclrtCreateStream(&other), "aclrtCreateStream");
    must(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), "aclrtCreateEventExWithFlag");
    must(aclrtMallocAlign32(&memory, 4 * MiB, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32");
    block = memory;
    must(aclrtMemset(block, 4 * MiB, 1, 4 * MiB), "aclrtMemset");
    must(aclrtMallocHost(&memory, MiB), "aclrtMallocHost");
    pinned = memory;
    memset(pinned, 1, MiB);
    while (read(in, &which, sizeof(which)) == sizeof(which)) {
        uint64_t start = bench_ns();
        works[which].run(works[which].n);
        double us = (double)(bench_ns() - start) / 1e3 / works[which].n;
        if (write(out, &us, sizeof(us)) != sizeof(us))
            break;
    }
    _exit(0);
}

struct worker {
    int to, from;
    pid_t pid;
};

static void start(struct worker *worker, const char *self, const char *check)
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        bench_cannot("no pipe");
    worker->pid = fork();
    if (worker->pid == 0) {
        setenv("BELAY_CHECK", check, 1);
        setenv("BELAY_STATE", "private", 1);
        if (dup2(to[0], 0) < 0 || dup2(from[1], 3) < 0)
            _exit(1);
        close(to[1]);
        close(from[0]);
        execl(self, self, "--worker", (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    worker->to = to[1];
    worker->from = from[0];
}

static double ask(const struct worker *worker, int which)
{
    double us;
    if (write(worker->to, &which, sizeof(which)) != sizeof(which) ||
        read(worker->from, &us, sizeof(us)) != sizeof(us))
        bench_cannot("a process to measure has ended");
    return us;
}

int main(int argc, char **argv)
{
    static struct bench_samples with, without;
    struct worker checked, plain;
    struct bench bench;
    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        work(0, 3);
    bench_begin(&bench, "check", argc, argv);
    start(&checked, "/proc/self/exe", "all");
    start(&plain, "/proc/self/exe", "off");
    bench_section(&bench, "calls with BELAY_CHECK=all; bound: without");
    for (int i = 0; i < (int)BLYI_COUNT(works); i++) {
        with.n = without.n = 0;
        (void)ask(&checked, i);
        (void)ask(&plain, i);
        for (int rep = 0; rep < (bench.quick ? 11 : 61); rep++) {
            bench_add(&without, ask(&plain, i));
            bench_add(&with, ask(&checked, i));
        }
        bench_row(&bench, &(struct bench_row){works[i].what, "us", &with, &without,
                                              BENCH_RATIO_AT_MOST, 5});
    }
    close(checked.to);
    close(plain.to);
    waitpid(checked.pid, NULL, 0);
    waitpid(plain.pid, NULL, 0);
    bench_end(&bench);
    return 0;
}
