/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_dump.c - a copy of the file as it is now. The lock keeps chunks from being used again
 * meanwhile; events that come during the copy have numbers above the one that the copy ends at.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <errno.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/sys.h"
#include "observe/recorder_inside.h"

#define PIECE         MiB
#define OOM_DUMPS_MAX 4
#define QUIET_WAIT_NS 1000000 /* for events that have a number and are being written */

static bly_status cannot_write(const char *path)
{
    return blyi_fail(BLY_E_IO, "cannot write the dump %s: %s", path, strerror(errno));
}

static bool write_all(int fd, const char *bytes, size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t n = blyi_sys_pwrite(fd, bytes, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

static bly_status copy_range(int fd, const char *path, uint64_t from, uint64_t to)
{
    char *piece = blyi_host_alloc(PIECE);
    bly_status status = BLY_OK;
    if (piece == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the dump %s", path);
    while (from < to && status == BLY_OK) {
        size_t n = to - from < PIECE ? (size_t)(to - from) : PIECE;
        status = blyi_recfile_read(&blyi_rec.file, piece, n, from);
        if (status == BLY_OK && !write_all(fd, piece, n, from))
            status = cannot_write(path);
        from += n;
    }
    blyi_host_free(piece);
    return status;
}

/* The caller may be inside the sink itself. */
static void wait_for_writers_locked(void)
{
    uint64_t end = blyi_clock_wall_ns() + QUIET_WAIT_NS;
    while (!blyi_rec_quiet_locked() && blyi_clock_wall_ns() < end)
        sched_yield();
}

static bly_status copy_locked(int fd, const char *path)
{
    struct blyi_trace_header header;
    const struct blyi_trace_header *from = blyi_rec.file.header;
    size_t before = offsetof(struct blyi_trace_header, n_events);
    size_t behind = before + sizeof(header.n_events);
    memcpy(&header, from, before);
    header.n_events = __atomic_load_n(&from->n_events, __ATOMIC_SEQ_CST);
    memcpy((char *)&header + behind, (const char *)from + behind, sizeof(header) - behind);
    header.end_ns = blyi_clock_ns();
    if (header.state == BLYI_TRACE_RUNNING)
        header.state = BLYI_TRACE_DUMPED;
    wait_for_writers_locked();
    bly_status status = copy_range(fd, path, sizeof(header), blyi_rec.file.size);
    if (status == BLY_OK && !write_all(fd, (const char *)&header, sizeof(header), 0))
        status = cannot_write(path);
    return status;
}

/* The recording itself, under whatever name, must not lose its bytes: they are mapped. */
static bly_status open_dump(const char *name, int *fd)
{
    struct stat about;
    int made = blyi_sys_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (made < 0)
        return cannot_write(name);
    if (fstat(made, &about) == 0 && about.st_dev == blyi_rec.file.device &&
        about.st_ino == blyi_rec.file.inode) {
        close(made);
        return blyi_fail(BLY_E_INVALID, "the dump %s would replace the recording itself", name);
    }
    if (blyi_sys_ftruncate(made, 0) != 0) {
        bly_status status = cannot_write(name);
        close(made);
        return status;
    }
    *fd = made;
    return BLY_OK;
}

bly_status blyi_rec_dump(const char *path, uint32_t gen)
{
    char name[PATH_MAX];
    bly_status status;
    if (!blyi_recpath_expand(path, name))
        return blyi_fail(BLY_E_INVALID, "the dump %.80s...: the path is too long", path);
    blyi_lock_take(&blyi_rec.lock);
    if (!blyi_rec_is_on(gen) && !blyi_rec.stopped) {
        blyi_lock_drop(&blyi_rec.lock);
        return blyi_fail(BLY_E_STATE, "nothing is recorded");
    }
    int fd = -1;
    status = open_dump(name, &fd);
    if (status == BLY_OK)
        status = copy_locked(fd, name);
    blyi_lock_drop(&blyi_rec.lock);
    if (fd >= 0 && close(fd) != 0 && status == BLY_OK)
        status = cannot_write(name);
    if (fd >= 0 && status != BLY_OK)
        (void)unlink(name); /* half a dump explains nothing */
    return status;
}

/* What led to it would soon be dropped from the ring. */
void blyi_rec_dump_at_oom(uint32_t gen)
{
    struct blyi_recsaved saved;
    char name[PATH_MAX + 16];
    blyi_rec_save(&saved);
    blyi_lock_take(&blyi_rec.lock);
    uint32_t n = 0;
    if (blyi_rec_is_on(gen) && blyi_rec.file.path[0] != '\0' && blyi_rec.n_dumps < OOM_DUMPS_MAX)
        n = ++blyi_rec.n_dumps;
    if (n > 0)
        snprintf(name, sizeof(name), n == 1 ? "%s.oom" : "%s.oom%u", blyi_rec.file.path, n);
    blyi_lock_drop(&blyi_rec.lock);
    if (n > 0)
        (void)blyi_rec_dump(name, gen); /* the program has an error of its own to look at */
    blyi_rec_restore(&saved);
}
