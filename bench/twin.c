/* SPDX-License-Identifier: Apache-2.0
 *
 * twin.c - see twin.h.
 */
#include "bench/twin.h"
#include "bench/bench.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define RESERVED ((size_t)8 << 30)

static char *reserve(size_t size)
{
    char *start = mmap(NULL, size + TWIN_FRAME, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        bench_cannot("no reservation of %zu bytes", size);
    return (char *)(((uintptr_t)start + TWIN_FRAME - 1) & ~(uintptr_t)(TWIN_FRAME - 1));
}

void twin_map(struct twin *twin, size_t size)
{
    if (mmap(twin->base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, twin->fd, 0) ==
        MAP_FAILED)
        bench_cannot("no mapping of %zu bytes", size);
}

void twin_unmap(struct twin *twin, size_t size)
{
    if (mmap(twin->base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        bench_cannot("no reservation of %zu bytes", size);
}

void twin_open_empty(struct twin *twin, size_t size)
{
    twin->size = size;
    twin->huge = 0;
    twin->fd = memfd_create("twin", MFD_CLOEXEC);
    if (twin->fd < 0 || ftruncate(twin->fd, (off_t)size) != 0)
        bench_cannot("no memfd of %zu bytes", size);
    twin->base = reserve(RESERVED > 2 * size ? RESERVED : 2 * size);
    twin_map(twin, size);
}

void twin_commit(struct twin *twin, size_t offset)
{
    if (pwrite(twin->fd, "", 1, (off_t)offset) != 1)
        bench_cannot("no memory for a frame");
    if (madvise(twin->base + offset, TWIN_FRAME, MADV_COLLAPSE) != 0)
        memset(twin->base + offset, 0, TWIN_FRAME); /* small pages then */
    twin->base[offset] = 1;
}

void twin_open(struct twin *twin, size_t size)
{
    twin_open_empty(twin, size);
    for (size_t offset = 0; offset < size; offset += TWIN_FRAME)
        twin_commit(twin, offset);
    memset(twin->base, 1, size);
    twin->huge = bench_huge_bytes(twin->base, size);
}

void twin_close(struct twin *twin)
{
    munmap(twin->base, twin->size);
    close(twin->fd);
}
