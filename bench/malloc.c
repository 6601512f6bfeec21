/* SPDX-License-Identifier: Apache-2.0
 *
 * malloc.c - a stock allocation, its first touch and its free, beside the system calls that they
 * cannot do without: mapping the same resident frames, touching them, mapping the reservation
 * back.
 */
#include <acl/acl.h>

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/twin.h"

enum touch { TOUCH_NONE, TOUCH_ONE, TOUCH_EACH_FRAME };

struct work {
    const char *what;
    size_t size;
    enum touch touch;
    int rounds; /* between two looks at the clock */
    double target;
};

static const struct work works[] = {
    {"2 MiB, one byte touched", 2 * MiB, TOUCH_ONE, 20, 1.5},
    {"2 MiB, untouched", 2 * MiB, TOUCH_NONE, 20, 0},
    {"1 GiB, untouched", GiB, TOUCH_NONE, 20, 2},
    {"1 GiB, one byte touched", GiB, TOUCH_ONE, 10, 2},
    {"1 GiB, each frame touched", GiB, TOUCH_EACH_FRAME, 1, 2},
};

static void must(aclError error, const char *what)
{
    if (error != ACL_SUCCESS)
        bench_cannot("%s: %d: %s", what, (int)error, aclGetRecentErrMsg());
}

/* How far apart the touched bytes lie; the size: one byte. */
static size_t stride_of(const struct work *work)
{
    return work->touch == TOUCH_EACH_FRAME ? TWIN_FRAME : work->size;
}

static void ours(const struct work *work)
{
    void *block;
    must(aclrtMallocAlign32(&block, work->size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32");
    for (size_t at = 0; work->touch != TOUCH_NONE && at < work->size; at += stride_of(work))
        must(aclrtMemset((char *)block + at, 1, 1, 1), "aclrtMemset");
    must(aclrtFree(block), "aclrtFree");
}

static void bound(const struct work *work, struct twin *twin)
{
    twin_map(twin, work->size);
    for (size_t at = 0; work->touch != TOUCH_NONE && at < work->size; at += stride_of(work))
        ((volatile char *)twin->base)[at] = 1;
    twin_unmap(twin, work->size);
}

static void measure(const struct bench *bench, const struct work *work, struct twin *twin)
{
    struct bench_samples us[2] = {0};
    ours(work);
    bound(work, twin);
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < work->rounds; i++)
            ours(work);
        uint64_t middle = bench_ns();
        for (int i = 0; i < work->rounds; i++)
            bound(work, twin);
        bench_add(&us[0], (double)(middle - start) / 1e3 / work->rounds);
        bench_add(&us[1], (double)(bench_ns() - middle) / 1e3 / work->rounds);
    }
    bench_row(bench, &(struct bench_row){work->what, "us", &us[0], &us[1],
                                         work->target > 0 ? BENCH_RATIO_AT_MOST : BENCH_NO_TARGET,
                                         work->target});
}

/* The first touch of a frame that no memory backs yet: no target, but programs feel it once. */
static void measure_fresh(const struct bench *bench)
{
    struct bench_samples us[2] = {0};
    struct twin twin;
    char *block;
    size_t size = (bench->quick ? 32 : 200) * TWIN_FRAME;
    twin_open_empty(&twin, size);
    must(aclrtMallocAlign32((void **)&block, size, ACL_MEM_MALLOC_HUGE_FIRST),
         "aclrtMallocAlign32");
    for (size_t at = 0; at < size; at += TWIN_FRAME) {
        uint64_t start = bench_ns();
        must(aclrtMemset(block + at, 1, 1, 1), "aclrtMemset");
        uint64_t middle = bench_ns();
        twin_commit(&twin, at);
        bench_add(&us[0], (double)(middle - start) / 1e3);
        bench_add(&us[1], (double)(bench_ns() - middle) / 1e3);
    }
    must(aclrtFree(block), "aclrtFree");
    twin_close(&twin);
    bench_section(bench, "aclrtMemset of a byte in a frame never used; bound: pwrite, "
                         "MADV_COLLAPSE, touch");
    bench_row(bench, &(struct bench_row){"2 MiB", "us", &us[0], &us[1], BENCH_NO_TARGET, 0});
}

/* Makes the frames resident, which is not what is measured here. */
static void warm(const struct bench *bench, const struct twin *twin)
{
    void *block;
    must(aclrtMallocAlign32(&block, GiB, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMallocAlign32");
    must(aclrtMemset(block, GiB, 1, GiB), "aclrtMemset");
    bench_note(bench, "on huge pages: card %lu MiB, twin %lu MiB of 1024 MiB",
               (unsigned long)(bench_huge_bytes(block, GiB) >> 20),
               (unsigned long)(twin->huge >> 20));
    must(aclrtFree(block), "aclrtFree");
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct twin twin;
    bench_begin(&bench, "malloc", argc, argv);
    bench_pin(0);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    measure_fresh(&bench); /* first, while no frame is resident */
    twin_open(&twin, GiB);
    warm(&bench, &twin);
    bench_section(&bench, "aclrtMallocAlign32, aclrtMemset of a byte, aclrtFree; bound: mmap, "
                          "touch, MAP_FIXED back");
    for (size_t i = 0; i < BLYI_COUNT(works); i++)
        measure(&bench, &works[i], &twin);
    twin_close(&twin);
    must(aclrtResetDevice(0), "aclrtResetDevice");
    must(aclFinalize(), "aclFinalize");
    bench_end(&bench);
    return 0;
}
