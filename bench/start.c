/* SPDX-License-Identifier: Apache-2.0
 *
 * start.c - what an untouched card of 64 GiB costs: time from exec to the first aclrtMalloc's
 * return, and host memory. The program starts itself with --child, which does the work and
 * reports through a pipe; the bound is a child that does nothing.
 */
#include <acl/acl.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/bench.h"

#define CARD    "64GiB"
#define BIG     (60 * GiB) /* of it, in one untouched block */
#define PIPE_FD 9

/* What a child tells. Times are CLOCK_MONOTONIC, which all processes share. */
struct told {
    uint64_t main_ns, init_ns, device_ns, malloc_ns;
    uint64_t at_start, card_open, all_allocated; /* bytes of host memory */
};

/* ── In the child ─────────────────────────────────────────────────────────────────────────── */

static uint64_t status_bytes(const char *field)
{
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return 0;
    for (char line[256]; fgets(line, sizeof(line), file) != NULL;) {
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtoull(line + strlen(field), NULL, 10);
    }
    fclose(file);
    return kib << 10;
}

/* Bytes behind all memfds of the process, mapped or not. */
static uint64_t memfd_bytes(void)
{
    uint64_t bytes = 0;
    DIR *fds = opendir("/proc/self/fd");
    if (fds == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(fds)) != NULL;) {
        char link[256];
        ssize_t length = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link) - 1);
        struct stat file;
        if (length < 0)
            continue;
        link[length] = '\0';
        if (strncmp(link, "/memfd:", 7) == 0 && fstat(atoi(entry->d_name), &file) == 0)
            bytes += (uint64_t)file.st_blocks * 512;
    }
    closedir(fds);
    return bytes;
}

/* Resident pages, page tables, memfds; a mapped memfd page counts twice, so it is no less than
 * the truth. */
static uint64_t host_bytes(void)
{
    return status_bytes("VmRSS:") + status_bytes("VmPTE:") + memfd_bytes();
}

static void child_must(aclError error)
{
    if (error != ACL_SUCCESS) {
        fprintf(stderr, "child: %d: %s\n", (int)error, aclGetRecentErrMsg());
        _exit(1);
    }
}

static void child_time(struct told *told)
{
    void *block;
    child_must(aclInit(NULL));
    told->init_ns = bench_ns();
    child_must(aclrtSetDevice(0));
    told->device_ns = bench_ns();
    child_must(aclrtMalloc(&block, MiB, ACL_MEM_MALLOC_HUGE_FIRST));
    told->malloc_ns = bench_ns();
}

static void *sleeps(void *arg)
{
    pause();
    return arg;
}

/* What the kernel does at once for one thread may wait for all processors where there are two. */
static void child_time_with_thread(struct told *told)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeps, NULL) != 0)
        _exit(1);
    child_time(told);
}

static void child_memory(struct told *told)
{
    void *block;
    told->at_start = host_bytes();
    child_must(aclInit(NULL));
    child_must(aclrtSetDevice(0));
    told->card_open = host_bytes();
    child_must(aclrtMalloc(&block, BIG, ACL_MEM_MALLOC_HUGE_FIRST));
    told->all_allocated = host_bytes();
}

static int child(const char *task, uint64_t main_ns)
{
    struct told told = {.main_ns = main_ns};
    if (strcmp(task, "time") == 0)
        child_time(&told);
    else if (strcmp(task, "time with a thread") == 0)
        child_time_with_thread(&told);
    else if (strcmp(task, "memory") == 0)
        child_memory(&told);
    return write(PIPE_FD, &told, sizeof(told)) == (ssize_t)sizeof(told) ? 0 : 1;
}

/* ── In the parent ────────────────────────────────────────────────────────────────────────── */

/* Runs a child; returns when it was started. */
static uint64_t run_child(const char *task, struct told *told)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"start", "--child", (char *)(uintptr_t)task, NULL};
    if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], PIPE_FD) != 0)
        bench_cannot("no pipe");
    pid_t pid;
    uint64_t start = bench_ns();
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0)
        bench_cannot("the program cannot start itself");
    close(ends[1]);
    ssize_t got = read(ends[0], told, sizeof(*told));
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    int status;
    waitpid(pid, &status, 0);
    if (got != (ssize_t)sizeof(*told))
        bench_cannot("the child ended with %d", WEXITSTATUS(status));
    return start;
}

static double ms_between(uint64_t start, uint64_t end)
{
    return (double)(end - start) / 1e6;
}

static void measure_time(const struct bench *bench)
{
    struct bench_samples whole = {0}, threaded = {0}, bare = {0}, init = {0}, device = {0},
                         first = {0};
    struct told told;
    run_child("time", &told); /* files come into the page cache */
    for (int rep = 0; rep < (bench->quick ? 5 : 20); rep++) {
        uint64_t start = run_child("time", &told);
        bench_add(&whole, ms_between(start, told.malloc_ns));
        bench_add(&init, ms_between(told.main_ns, told.init_ns));
        bench_add(&device, ms_between(told.init_ns, told.device_ns));
        bench_add(&first, ms_between(told.device_ns, told.malloc_ns));
        start = run_child("time with a thread", &told);
        bench_add(&threaded, ms_between(start, told.malloc_ns));
        start = run_child("nothing", &told);
        bench_add(&bare, ms_between(start, told.main_ns));
    }
    bench_section(bench, "start of a process; bound: the same program, which does nothing in main");
    bench_row(bench, &(struct bench_row){"exec to first aclrtMalloc returned", "ms", &whole, &bare,
                                         BENCH_OURS_AT_MOST, 20});
    bench_row(bench, &(struct bench_row){"that, behind a thread of its own", "ms", &threaded, &bare,
                                         BENCH_OURS_AT_MOST, 20});
    bench_row(bench,
              &(struct bench_row){"of the first, aclInit", "ms", &init, NULL, BENCH_NO_TARGET, 0});
    bench_row(bench,
              &(struct bench_row){"aclrtSetDevice", "ms", &device, NULL, BENCH_NO_TARGET, 0});
    bench_row(bench, &(struct bench_row){"aclrtMalloc", "ms", &first, NULL, BENCH_NO_TARGET, 0});
}

static void measure_memory(const struct bench *bench)
{
    struct bench_samples open = {0}, all = {0};
    struct told told;
    for (int rep = 0; rep < 5; rep++) {
        run_child("memory", &told);
        bench_add(&open, (double)(told.card_open - told.at_start) / (double)MiB);
        bench_add(&all, (double)(told.all_allocated - told.at_start) / (double)MiB);
    }
    bench_section(bench, "host memory of a card of " CARD
                         ": resident pages, page tables and memfds since main");
    bench_row(bench, &(struct bench_row){"card open, nothing touched", "MiB", &open, NULL,
                                         BENCH_OURS_AT_MOST, 16});
    bench_row(bench, &(struct bench_row){"60 GiB allocated, nothing touched", "MiB", &all, NULL,
                                         BENCH_OURS_AT_MOST, 16});
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], bench_ns());
    struct bench bench;
    bench_begin(&bench, "start", argc, argv);
    setenv("BELAY_HBM", CARD, 1);
    measure_time(&bench);
    measure_memory(&bench);
    bench_end(&bench);
    return 0;
}
