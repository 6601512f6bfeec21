/* SPDX-License-Identifier: Apache-2.0
 *
 * ipc.c - sharing a block with another process: making its key, importing by it, closing, beside
 * mapping a memfd of that size a second time, which no sharing can do without. The other process
 * answers over a pipe; the times are of the calls alone.
 */
#include <acl/acl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/bench.h"

#define KEY_SIZE  65
#define TARGET_US 100

static void must(aclError error, const char *what)
{
    if (error != ACL_SUCCESS)
        bench_cannot("%s: %d: %s", what, (int)error, aclGetRecentErrMsg());
}

struct times {
    uint64_t import_ns, close_ns;
};

/* The other process: imports and closes what it is told. */
static void importer(int in, int out)
{
    char key[KEY_SIZE];
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    while (read(in, key, sizeof key) == (ssize_t)sizeof key) {
        struct times times;
        void *address;
        uint64_t start = bench_ns();
        must(aclrtIpcMemImportByKey(&address, key, 0), "aclrtIpcMemImportByKey");
        uint64_t middle = bench_ns();
        must(aclrtIpcMemClose(key), "aclrtIpcMemClose");
        times = (struct times){middle - start, bench_ns() - middle};
        if (write(out, &times, sizeof times) != (ssize_t)sizeof times)
            break;
    }
    _exit(0);
}

/* A memfd mapped once more, as whoever opens shared memory must. */
static double bound_us(int fd, size_t size)
{
    uint64_t start = bench_ns();
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint64_t ns = bench_ns() - start;
    if (at == MAP_FAILED)
        bench_cannot("mmap");
    munmap(at, size);
    return (double)ns / 1e3;
}

static void measure(const struct bench *bench, const char *what, size_t size, bool touched, int in,
                    int out)
{
    struct bench_samples both = {0}, export = {0}, import = {0}, close_us = {0}, bound = {0};
    void *block;
    char key[KEY_SIZE], label[64];
    int fd = memfd_create("bench", 0);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        bench_cannot("memfd_create");
    must(aclrtMalloc(&block, size - 32, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (touched)
        must(aclrtMemset(block, size, 1, size), "aclrtMemset");
    for (int rep = 0; rep < (bench->quick ? 21 : 201); rep++) {
        struct times times;
        uint64_t start = bench_ns();
        must(aclrtIpcMemGetExportKey(block, size, key, sizeof key, 1), "aclrtIpcMemGetExportKey");
        uint64_t export_ns = bench_ns() - start;
        if (write(out, key, sizeof key) != (ssize_t)sizeof key ||
            read(in, &times, sizeof times) != (ssize_t)sizeof times)
            bench_cannot("the other process ended");
        must(aclrtIpcMemClose(key), "aclrtIpcMemClose");
        bench_add(&export, (double)export_ns / 1e3);
        bench_add(&import, (double)times.import_ns / 1e3);
        bench_add(&both, (double)(export_ns + times.import_ns) / 1e3);
        bench_add(&close_us, (double)times.close_ns / 1e3);
        bench_add(&bound, bound_us(fd, size));
    }
    must(aclrtFree(block), "aclrtFree");
    close(fd);
    snprintf(label, sizeof label, "%s: export + import", what);
    bench_row(bench,
              &(struct bench_row){label, "us", &both, &bound, BENCH_OURS_AT_MOST, TARGET_US});
    bench_row(bench,
              &(struct bench_row){"  of it, export", "us", &export, NULL, BENCH_NO_TARGET, 0});
    bench_row(bench,
              &(struct bench_row){"  of it, import", "us", &import, NULL, BENCH_NO_TARGET, 0});
    bench_row(bench, &(struct bench_row){"  close by the importer", "us", &close_us, NULL,
                                         BENCH_NO_TARGET, 0});
}

int main(int argc, char **argv)
{
    struct bench bench;
    char folder[] = "/dev/shm/belay-bench-XXXXXX", command[64];
    int to[2], from[2];
    bench_begin(&bench, "ipc", argc, argv);
    if (mkdtemp(folder) == NULL || pipe(to) != 0 || pipe(from) != 0)
        bench_cannot("no state folder, or no pipe");
    setenv("BELAY_STATE", folder, 1);
    setenv("BELAY_HBM", "8GiB", 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(to[1]);
        importer(to[0], from[1]);
    }
    close(to[0]);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    bench_section(&bench, "a block shared with another process; bound: mmap of a memfd");
    measure(&bench, "2 MiB", 2 * MiB, true, from[0], to[1]);
    measure(&bench, "64 MiB", 64 * MiB, true, from[0], to[1]);
    measure(&bench, "1 GiB", GiB, true, from[0], to[1]);
    measure(&bench, "1 GiB, never touched", GiB, false, from[0], to[1]);
    measure(&bench, "6 GiB, never touched", 6 * GiB, false, from[0], to[1]);
    close(to[1]);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    bench_end(&bench);
    return system(command) != 0;
}
