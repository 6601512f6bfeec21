/* SPDX-License-Identifier: Apache-2.0
 *
 * commit.c - one page of the file, then MADV_COLLAPSE over exactly that frame: 0.33 ms, where
 * fallocate() of all of it would cost 1.8 ms. Works unprivileged and where shmem_enabled is
 * "never"; needs Linux 6.1.
 *
 * A frame may have bytes before it is committed: the host writes what it has access to, and kernels
 * touch memory that they did not declare. No step here changes them, nor takes them away.
 */
#include "npu/commit.h"
#include "npu/frame.h"
#include "npu/guard.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static _Atomic int collapses = -1; /* relaxed: a hint, rediscovered at worst */

int blyi_commit_collapses(void)
{
    return atomic_load_explicit(&collapses, memory_order_relaxed);
}

static void drop_pages(int fd, uint32_t frame)
{
    /* Best effort: at worst pages stay that the next commit of this frame finds. */
    (void)blyi_sys_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             (off_t)(frame * BLYI_FRAME_SIZE), (off_t)BLYI_FRAME_SIZE);
}

/* Whether the file has pages there. */
static bool has_pages(int fd, uint32_t frame)
{
    off_t start = (off_t)(frame * BLYI_FRAME_SIZE), at = lseek(fd, start, SEEK_DATA);
    return at >= 0 && at < start + (off_t)BLYI_FRAME_SIZE;
}

/* One page, for collapsing: absent ones alone are filled in. */
static bool add_page(int fd, uint32_t frame)
{
    int refused;
    do /* interrupted before it began */
        refused = blyi_sys_fallocate(fd, 0, (off_t)(frame * BLYI_FRAME_SIZE), PAGE_BYTES);
    while (refused != 0 && errno == EINTR);
    return refused == 0;
}

static bool collapse(char *address, enum blyi_commit_pages pages)
{
    if (blyi_sys_madvise(address, BLYI_FRAME_SIZE, MADV_COLLAPSE) == 0) {
        atomic_store_explicit(&collapses, 1, memory_order_relaxed);
        return true;
    }
    int error = errno;
    /* EINVAL is a kernel without collapse, unless it worked before; the rest may pass. */
    if (error == EINVAL && blyi_commit_collapses() < 0)
        atomic_store_explicit(&collapses, 0, memory_order_relaxed);
    if (pages == BLYI_COMMIT_HUGE)
        blyi_log(BLYI_LOG_INFO, "a frame of card memory got no huge page: %s", strerror(error));
    return false;
}

/* All 4 KiB pages of a frame, without a touch that could be SIGBUS. */
static bool populate(int fd, uint32_t frame, char *address)
{
    uint32_t rights = blyi_guard_enter(); /* EFAULT without; collapsing needs none */
    int refused = blyi_sys_madvise(address, BLYI_FRAME_SIZE, MADV_POPULATE_WRITE);
    blyi_guard_leave(rights);
    if (refused == 0)
        return true;
    if (errno != EINVAL) /* EINVAL: before Linux 5.14 */
        return false;
    return blyi_sys_fallocate(fd, 0, (off_t)(frame * BLYI_FRAME_SIZE), (off_t)BLYI_FRAME_SIZE) == 0;
}

bool blyi_commit_frame(int fd, uint32_t frame, char *address, enum blyi_commit_pages pages,
                       bool *huge)
{
    bool had = has_pages(fd, frame);
    if (pages != BLYI_COMMIT_SMALL && blyi_commit_collapses() != 0) {
        if (!add_page(fd, frame))
            return false;
        if (collapse(address, pages)) {
            *huge = true;
            return true;
        }
    }
    if (populate(fd, frame, address)) {
        *huge = false;
        return true;
    }
    int error = errno;
    if (!had)
        drop_pages(fd, frame);
    errno = error;
    return false;
}
