/* SPDX-License-Identifier: Apache-2.0
 *
 * vmm.c - mapping a handle, giving access, touching and unmapping, beside the system calls that
 * they cannot do without; what an address is; gathering scattered frames beside copying them.
 */
#include <acl/acl.h>
#include <belay/card.h>

#include <stdlib.h>

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/twin.h"

static void must(aclError error, const char *what)
{
    if (error != ACL_SUCCESS)
        bench_cannot("%s: %d: %s", what, (int)error, aclGetRecentErrMsg());
}

static aclrtDrvMemHandle handle_of(size_t size)
{
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle = NULL;
    must(aclrtMallocPhysical(&handle, size, &prop, 0), "aclrtMallocPhysical");
    return handle;
}

static char *range_of(size_t size)
{
    void *range = NULL;
    must(aclrtReserveMemAddress(&range, size, 0, NULL, 0), "aclrtReserveMemAddress");
    return range;
}

static void ours(char *range, aclrtDrvMemHandle handle, size_t size, size_t stride)
{
    aclrtMemAccessDesc desc = {
        ACL_RT_MEM_ACCESS_FLAGS_READWRITE, {0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0}};
    must(aclrtMapMem(range, size, 0, handle, 0), "aclrtMapMem");
    must(aclrtMemSetAccess(range, size, &desc, 1), "aclrtMemSetAccess");
    for (size_t at = 0; at < size; at += stride)
        must(aclrtMemset(range + at, 1, 1, 1), "aclrtMemset");
    must(aclrtUnmapMem(range), "aclrtUnmapMem");
}

static void bound(struct twin *twin, size_t size, size_t stride)
{
    twin_map(twin, size);
    for (size_t at = 0; at < size; at += stride)
        ((volatile char *)twin->base)[at] = 1;
    twin_unmap(twin, size);
}

static void measure(const struct bench *bench, const char *what, struct twin *twin, size_t size,
                    size_t stride, int rounds, double target)
{
    struct bench_samples us[2] = {0};
    aclrtDrvMemHandle handle = handle_of(size);
    char *range = range_of(size);
    ours(range, handle, size, TWIN_FRAME); /* resident from here on */
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < rounds; i++)
            ours(range, handle, size, stride);
        uint64_t middle = bench_ns();
        for (int i = 0; i < rounds; i++)
            bound(twin, size, stride);
        bench_add(&us[0], (double)(middle - start) / 1e3 / rounds);
        bench_add(&us[1], (double)(bench_ns() - middle) / 1e3 / rounds);
    }
    must(aclrtReleaseMemAddress(range), "aclrtReleaseMemAddress");
    must(aclrtFreePhysical(handle), "aclrtFreePhysical");
    bench_row(bench, &(struct bench_row){what, "us", &us[0], &us[1], BENCH_RATIO_AT_MOST, target});
}

static void measure_query(const struct bench *bench, const char *what, const void *address,
                          double target)
{
    struct bench_samples ns = {0};
    aclrtPtrAttributes attributes;
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < 10000; i++)
            must(aclrtPointerGetAttributes(address, &attributes), "aclrtPointerGetAttributes");
        bench_add(&ns, (double)(bench_ns() - start) / 10000);
    }
    bench_row(bench,
              &(struct bench_row){what, "ns", &ns, NULL,
                                  target > 0 ? BENCH_OURS_AT_MOST : BENCH_NO_TARGET, target});
}

static void measure_queries(const struct bench *bench)
{
    void *huge, *small, *pinned;
    char plain[64];
    char *range = range_of(TWIN_FRAME);
    aclrtDrvMemHandle handle = handle_of(TWIN_FRAME);
    must(aclrtMapMem(range, TWIN_FRAME, 0, handle, 0), "aclrtMapMem");
    must(aclrtMalloc(&huge, 4 * MiB, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMalloc(&small, 4096, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMallocHost(&pinned, MiB), "aclrtMallocHost");
    bench_section(bench, "aclrtPointerGetAttributes of one address");
    measure_query(bench, "huge pages", (char *)huge + 4096, 30);
    measure_query(bench, "mapped", range + 4096, 30);
    measure_query(bench, "normal pages", (char *)small + 64, 0);
    measure_query(bench, "pinned host memory", (char *)pinned + 64, 30);
    measure_query(bench, "plain host memory", plain, 30);
}

#define SCATTERED 512

/* Every other frame of a row is freed; the rest is gathered, onto frames that are resident. */
static void measure_defrag(const struct bench *bench)
{
    static void *blocks[SCATTERED];
    struct bench_samples rate[2] = {0};
    bly_defrag d = {.struct_size = sizeof d};
    for (int rep = 0; rep < (bench->quick ? 5 : 21); rep++) {
        for (int i = 0; i < SCATTERED; i++) {
            must(aclrtMallocAlign32(&blocks[i], TWIN_FRAME, ACL_MEM_MALLOC_HUGE_ONLY), "malloc");
            must(aclrtMemset(blocks[i], TWIN_FRAME, i, TWIN_FRAME), "aclrtMemset");
        }
        for (int i = 0; i < SCATTERED; i += 2)
            must(aclrtFree(blocks[i]), "aclrtFree");
        if (bly_card_defrag(&d) != BLY_OK)
            bench_cannot("bly_card_defrag: %s", bly_last_error());
        uint64_t start = bench_ns();
        size_t copied = 0;
        for (int i = 1; i + 2 < SCATTERED && copied < d.copied; i += 4, copied += TWIN_FRAME)
            must(aclrtMemcpy(blocks[i], TWIN_FRAME, blocks[i + 2], TWIN_FRAME,
                             ACL_MEMCPY_DEVICE_TO_DEVICE),
                 "aclrtMemcpy");
        double ns = (double)(bench_ns() - start);
        if (rep > 0 && d.copied > 0) {
            bench_add(&rate[0], (double)d.copied / (double)d.time_ns);
            bench_add(&rate[1], (double)copied / ns);
        }
        for (int i = 1; i < SCATTERED; i += 2)
            must(aclrtFree(blocks[i]), "aclrtFree");
    }
    bench_section(bench,
                  "bly_card_defrag, every other frame of %d free; bound: aclrtMemcpy of as "
                  "many bytes by frames",
                  SCATTERED);
    bench_row(bench,
              &(struct bench_row){"moved", "GB/s", &rate[0], &rate[1], BENCH_RATIO_AT_LEAST, 0.5});
    bench_note(bench, "longest free run before %lu MiB, after %lu MiB; moved %lu MiB",
               (unsigned long)(d.run_before >> 20), (unsigned long)(d.run_after >> 20),
               (unsigned long)(d.moved >> 20));
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct twin twin;
    bench_begin(&bench, "vmm", argc, argv);
    setenv("BELAY_HBM", "4GiB", 0);
    bench_pin(0);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    twin_open(&twin, GiB);
    bench_section(&bench, "aclrtMapMem, aclrtMemSetAccess, aclrtMemset, aclrtUnmapMem of resident "
                          "memory; bound: mmap, touch, MAP_FIXED back");
    measure(&bench, "2 MiB, one byte", &twin, TWIN_FRAME, TWIN_FRAME, 20, 1.5);
    measure(&bench, "1 GiB in one handle, one byte", &twin, GiB, GiB, 10, 2);
    measure(&bench, "1 GiB, each frame", &twin, GiB, TWIN_FRAME, 1, 2);
    twin_close(&twin);
    measure_queries(&bench);
    measure_defrag(&bench);
    must(aclrtResetDevice(0), "aclrtResetDevice");
    must(aclFinalize(), "aclFinalize");
    bench_end(&bench);
    return 0;
}
