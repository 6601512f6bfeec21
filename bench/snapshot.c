/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.c - a process backed up and restored; bound: a copy of as many bytes to host memory that
 * is fresh (backup), or from host memory to card memory that is there (restore).
 */
#include <acl/acl.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bench/bench.h"

static void must(aclError error, const char *what)
{
    if (error != ACL_SUCCESS)
        bench_cannot("%s: %d: %s", what, (int)error, aclGetRecentErrMsg());
}

static double ms_since(uint64_t start)
{
    return (double)(bench_ns() - start) / 1e6;
}

/* A copy to memory that nobody has touched, and back. */
static void bound(void *card, size_t size, struct bench_samples *out, struct bench_samples *back)
{
    void *host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        bench_cannot("mmap");
    uint64_t start = bench_ns();
    must(aclrtMemcpy(host, size, card, size, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    bench_add(out, ms_since(start));
    start = bench_ns();
    must(aclrtMemcpy(card, size, host, size, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    bench_add(back, ms_since(start));
    munmap(host, size);
}

static void measure(const struct bench *bench, const char *what, size_t size, bool touched)
{
    struct bench_samples lock = {0}, backup = {0}, restore = {0}, out = {0}, back = {0};
    void *card;
    char label[64];
    int me = (int)getpid();
    must(aclrtMalloc(&card, size - 32, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (touched)
        must(aclrtMemset(card, size, 1, size), "aclrtMemset");
    for (int rep = 0; rep < (bench->quick ? 5 : 21); rep++) {
        if (touched)
            bound(card, size, &out, &back);
        uint64_t start = bench_ns();
        must(aclrtSnapShotProcessLock(me, NULL), "aclrtSnapShotProcessLock");
        bench_add(&lock, ms_since(start));
        start = bench_ns();
        must(aclrtSnapShotProcessBackup(me, NULL), "aclrtSnapShotProcessBackup");
        bench_add(&backup, ms_since(start));
        start = bench_ns();
        must(aclrtSnapShotProcessRestore(me, NULL), "aclrtSnapShotProcessRestore");
        bench_add(&restore, ms_since(start));
        must(aclrtSnapShotProcessUnlock(me, NULL), "aclrtSnapShotProcessUnlock");
    }
    must(aclrtFree(card), "aclrtFree");
    snprintf(label, sizeof label, "%s: backup", what);
    bench_row(bench,
              &(struct bench_row){label, "ms", &backup, touched ? &out : NULL, BENCH_NO_TARGET, 0});
    snprintf(label, sizeof label, "%s: restore", what);
    bench_row(bench, &(struct bench_row){label, "ms", &restore, touched ? &back : NULL,
                                         BENCH_NO_TARGET, 0});
    bench_row(bench,
              &(struct bench_row){"  lock, nothing queued", "ms", &lock, NULL, BENCH_NO_TARGET, 0});
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "snapshot", argc, argv);
    setenv("BELAY_STATE", "private", 0);
    setenv("BELAY_HBM", "8GiB", 1);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    bench_section(&bench, "a process that is backed up and restored; bound: a copy of its bytes");
    measure(&bench, "2 MiB", 2 * MiB, true);
    measure(&bench, "64 MiB", 64 * MiB, true);
    if (!bench.quick)
        measure(&bench, "1 GiB", GiB, true);
    measure(&bench, "6 GiB, never touched", 6 * GiB, false);
    bench_end(&bench);
    return 0;
}
