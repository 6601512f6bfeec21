/* SPDX-License-Identifier: Apache-2.0
 *
 * host_pages.c - anonymous pages over a reservation. They are touched by the kernel, which can
 * refuse, and not by us, who would be killed.
 */
#include "npu/host_pages.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE (2 * MiB)
#define PAGE 4096

static bool populate(uintptr_t address, uint64_t size)
{
    if (blyi_sys_madvise((void *)address, size, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    for (uint64_t at = 0; at < size; at += PAGE) /* before Linux 5.14; the room was checked */
        *(volatile char *)(address + at) = 0;
    return true;
}

bly_status blyi_host_pages_map(uintptr_t address, uint64_t size, bool *locked, bool *stuck)
{
    char text[BLYI_SIZE_TEXT];
    *stuck = false;
    if (blyi_sys_mmap((void *)address, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return blyi_fail(BLY_E_HOST_MEMORY, "pinned host memory: the kernel refused to map %s: %s",
                         blyi_size_text(size, text), strerror(errno));
    /* Only where whole huge pages fit, so that no more becomes resident than was asked. */
    uintptr_t first = blyi_align_up(address, HUGE), end = blyi_align_down(address + size, HUGE);
    if (end > first)
        (void)blyi_sys_madvise((void *)first, end - first, MADV_HUGEPAGE);
    if (!populate(address, size)) {
        int error = errno;
        *stuck = !blyi_host_pages_unmap(address, size);
        return blyi_fail(BLY_E_HOST_MEMORY, "pinned host memory: the host has no pages for %s: %s",
                         blyi_size_text(size, text), strerror(error));
    }
    *locked = blyi_sys_mlock((void *)address, size) == 0;
    return BLY_OK;
}

bool blyi_host_pages_unmap(uintptr_t address, uint64_t size)
{
    if (blyi_sys_mmap((void *)address, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
        return true;
    (void)blyi_sys_munlock((void *)address, size); /* else the kernel keeps locked pages */
    (void)blyi_sys_madvise((void *)address, size, MADV_DONTNEED);
    return false;
}
