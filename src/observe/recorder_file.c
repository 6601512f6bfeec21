/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_file.c - the file grows by extents, rows of chunks that are mapped together, and by
 * copies of chunks at its end. Writing a copy costs a third of what a new mapped page does.
 */
#include "observe/recorder_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"

#define EXTENT_BYTES_MIN (64 * KiB)
#define EXTENT_BYTES_MAX (16 * MiB)
#define EXTENT_BYTES     (256 * KiB)

struct blyi_recfile_extent {
    struct blyi_recfile_extent *next; /* the newest is first: chunks are taken from it alone */
    char *map;
    uint64_t offset; /* in the file */
    uint32_t n_chunks, n_taken;
};

static const char *name_of(const struct blyi_recfile *file)
{
    return file->path[0] ? file->path : "(memory)";
}

static bly_status no_room(const struct blyi_recfile *file, uint64_t more)
{
    return blyi_fail(BLY_E_IO, "the trace %s cannot grow from %llu by %llu bytes: %s",
                     name_of(file), (unsigned long long)file->size, (unsigned long long)more,
                     strerror(errno));
}

/* ── Growth ───────────────────────────────────────────────────────────────────────────────── */

/* A program may close all descriptors that it does not know, and open files of its own. */
static bool is_ours(const struct blyi_recfile *file)
{
    struct stat about;
    return file->fd >= 0 && fstat(file->fd, &about) == 0 && about.st_dev == file->device &&
           about.st_ino == file->inode;
}

static bool find_again(struct blyi_recfile *file)
{
    if (is_ours(file))
        return true;
    file->fd = file->path[0] ? blyi_sys_open(file->path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (is_ours(file))
        return true;
    if (file->fd >= 0)
        close(file->fd); /* another file of that name */
    file->fd = -1;
    errno = EBADF;
    return false;
}

/* Where the file system cannot reserve room, zeros do. */
static bool write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[BLYI_TRACE_CHUNK];
    for (; from < to; from += sizeof(zeros))
        if (blyi_sys_pwrite(fd, zeros, sizeof(zeros), (off_t)from) != (ssize_t)sizeof(zeros))
            return false;
    return true;
}

static bool take_room(struct blyi_recfile *file, uint64_t more)
{
    if (blyi_sys_fallocate(file->fd, 0, (off_t)file->size, (off_t)more) == 0)
        return true;
    return (errno == EOPNOTSUPP || errno == ENOSYS) &&
           write_zeros(file->fd, file->size, file->size + more);
}

static bool write_chunks(struct blyi_recfile *file, const struct blyi_trace_chunk *chunks,
                         uint64_t bytes)
{
    const char *from = (const char *)chunks;
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = blyi_sys_pwrite(file->fd, from + done, (size_t)(bytes - done),
                                    (off_t)(file->size + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (uint64_t)n;
    }
    return true;
}

/* The file becomes longer, by zeros or by the chunks, or stays as it was. Beyond the process's
 * limit of file sizes a signal comes that would end the program. */
static bool lengthen(struct blyi_recfile *file, const struct blyi_trace_chunk *chunks,
                     uint64_t more)
{
    sigset_t held, old;
    sigemptyset(&held);
    sigaddset(&held, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &held, &old);
    bool ok = chunks != NULL ? write_chunks(file, chunks, more) : take_room(file, more);
    int error = errno;
    if (!ok && !sigismember(&old, SIGXFSZ))
        while (sigtimedwait(&held, NULL, &(struct timespec){0, 0}) > 0)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!ok) {
        (void)!ftruncate(file->fd, (off_t)file->size); /* what came of it, where something did */
        errno = error;
    }
    return ok;
}

static void *map_at(const struct blyi_recfile *file, uint64_t offset, uint64_t size)
{
    return blyi_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file->fd,
                         (off_t)offset);
}

static bly_status grow(struct blyi_recfile *file, uint32_t n)
{
    uint32_t n_chunks = n > file->extent_chunks ? n : file->extent_chunks;
    uint64_t bytes = (uint64_t)n_chunks * BLYI_TRACE_CHUNK;
    if (!find_again(file))
        return no_room(file, bytes);
    struct blyi_recfile_extent *extent = blyi_host_calloc(1, sizeof(*extent));
    if (extent == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "the trace %s cannot grow: no host memory",
                         name_of(file));
    if (!lengthen(file, NULL, bytes)) {
        blyi_host_free(extent);
        return no_room(file, bytes);
    }
    char *map = map_at(file, file->size, bytes);
    if (map == MAP_FAILED) {
        int error = errno;
        (void)!ftruncate(file->fd, (off_t)file->size);
        errno = error;
        blyi_host_free(extent);
        return no_room(file, bytes);
    }
    *extent = (struct blyi_recfile_extent){
        .next = file->extents, .map = map, .offset = file->size, .n_chunks = n_chunks};
    file->extents = extent;
    file->size += bytes;
    return BLY_OK;
}

bly_status blyi_recfile_take(struct blyi_recfile *file, enum blyi_trace_chunk_type type, uint32_t n,
                             struct blyi_trace_chunk **chunk, uint64_t *at)
{
    struct blyi_recfile_extent *extent = file->extents;
    if (extent == NULL || extent->n_chunks - extent->n_taken < n) {
        bly_status status = grow(file, n);
        if (status != BLY_OK)
            return status;
        extent = file->extents;
    }
    uint64_t behind = (uint64_t)extent->n_taken * BLYI_TRACE_CHUNK;
    struct blyi_trace_chunk *taken = (struct blyi_trace_chunk *)(void *)(extent->map + behind);
    extent->n_taken += n;
    if (extent->offset + (uint64_t)extent->n_taken * BLYI_TRACE_CHUNK > file->used)
        file->used = extent->offset + (uint64_t)extent->n_taken * BLYI_TRACE_CHUNK;
    if (at != NULL)
        *at = extent->offset + behind;
    taken->n_chunks = n;
    __atomic_store_n(&taken->type, type, __ATOMIC_RELEASE); /* a type says that the rest is set */
    *chunk = taken;
    return BLY_OK;
}

bly_status blyi_recfile_append(struct blyi_recfile *file, const struct blyi_trace_chunk *chunks,
                               uint32_t n)
{
    uint64_t bytes = (uint64_t)n * BLYI_TRACE_CHUNK;
    if (!find_again(file) || !lengthen(file, chunks, bytes))
        return no_room(file, bytes);
    file->size += bytes;
    file->used = file->size;
    return BLY_OK;
}

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

static bly_status add_bytes(struct blyi_recfile *file, const void *bytes, size_t size)
{
    static const char padding[8];
    const char *from = bytes != NULL ? bytes : padding;
    while (size > 0) {
        if (file->meta == NULL || file->meta->used == BLYI_TRACE_CHUNK_ROOM) {
            struct blyi_trace_chunk *next;
            bly_status status = blyi_recfile_take(file, BLYI_TRACE_CHUNK_META, 1, &next, NULL);
            if (status != BLY_OK)
                return status;
            file->meta = next;
        }
        uint32_t used = file->meta->used;
        size_t room = BLYI_TRACE_CHUNK_ROOM - used, n = size < room ? size : room;
        memcpy((char *)(file->meta + 1) + used, from, n);
        /* Release: bytes that are counted are there, whenever the process dies. */
        __atomic_store_n(&file->meta->used, used + (uint32_t)n, __ATOMIC_RELEASE);
        from += n;
        size -= n;
    }
    return BLY_OK;
}

bly_status blyi_recfile_meta(struct blyi_recfile *file, enum blyi_trace_meta type, const void *head,
                             size_t head_size, const void *tail, size_t tail_size)
{
    struct blyi_trace_record record = {type, (uint32_t)(head_size + tail_size)};
    size_t padding = -(head_size + tail_size) & 7;
    bly_status status = add_bytes(file, &record, sizeof(record));
    if (status == BLY_OK)
        status = add_bytes(file, head, head_size);
    if (status == BLY_OK)
        status = add_bytes(file, tail, tail_size);
    return status == BLY_OK ? add_bytes(file, NULL, padding) : status;
}

/* ── Beginning and end ────────────────────────────────────────────────────────────────────── */

static bly_status cannot(const char *what, const char *path)
{
    return blyi_fail(BLY_E_IO, "cannot %s the trace %s: %s", what, path ? path : "(memory)",
                     strerror(errno));
}

/* For a ring of n events extents are a sixteenth of it. */
static uint32_t extent_chunks_of(uint64_t ring)
{
    uint64_t bytes = EXTENT_BYTES;
    if (ring > 0)
        bytes = blyi_align_up(ring > EXTENT_BYTES_MAX / 4 ? EXTENT_BYTES_MAX : ring * 4,
                              BLYI_TRACE_CHUNK);
    if (bytes < EXTENT_BYTES_MIN)
        bytes = EXTENT_BYTES_MIN;
    return (uint32_t)(bytes / BLYI_TRACE_CHUNK);
}

bly_status blyi_recfile_open(struct blyi_recfile *file, const char *path, int fd,
                             const struct blyi_trace_header *header)
{
    struct blyi_recfile made = {.fd = fd};
    struct stat about;
    bly_status status = BLY_OK;
    if (path == NULL)
        made.fd = blyi_sys_memfd_create("belay-trace", MFD_CLOEXEC);
    else
        snprintf(made.path, sizeof(made.path), "%s", path);
    if (made.fd < 0)
        return cannot("make", path);
    if (fstat(made.fd, &about) != 0)
        status = cannot("use", path);
    else if (!S_ISREG(about.st_mode))
        status = blyi_fail(BLY_E_IO, "cannot use the trace %s: it is not a regular file", path);
    else if (blyi_sys_ftruncate(made.fd, 0) != 0 || !lengthen(&made, NULL, BLYI_TRACE_HEADER))
        status = cannot("make", path);
    else if ((made.header = map_at(&made, 0, BLYI_TRACE_HEADER)) == MAP_FAILED)
        status = cannot("map", path);
    if (status != BLY_OK) {
        close(made.fd);
        return status;
    }
    made.device = about.st_dev;
    made.inode = about.st_ino;
    made.size = made.used = BLYI_TRACE_HEADER;
    made.extent_chunks = extent_chunks_of(header->ring);
    *made.header = *header;
    *file = made;
    return BLY_OK;
}

bly_status blyi_recfile_read(struct blyi_recfile *file, void *buf, size_t size, uint64_t at)
{
    char *to = buf;
    if (!find_again(file))
        return cannot("read", file->path);
    while (size > 0) {
        ssize_t n = pread(file->fd, to, size, (off_t)at);
        if (n <= 0)
            return cannot("read", file->path);
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return BLY_OK;
}

static void unmap_all(struct blyi_recfile *file)
{
    while (file->extents != NULL) {
        struct blyi_recfile_extent *extent = file->extents;
        file->extents = extent->next;
        blyi_sys_munmap(extent->map, (size_t)extent->n_chunks * BLYI_TRACE_CHUNK);
        blyi_host_free(extent);
    }
    blyi_sys_munmap(file->header, BLYI_TRACE_HEADER);
    file->header = NULL;
    file->meta = NULL;
}

void blyi_recfile_close(struct blyi_recfile *file, bool trim)
{
    unmap_all(file);
    if (find_again(file)) {
        if (trim)
            (void)!ftruncate(file->fd, (off_t)file->used); /* else zeros stay at the end */
        close(file->fd);
    }
    file->fd = -1;
}

void blyi_recfile_forget(struct blyi_recfile *file)
{
    unmap_all(file);
    if (is_ours(file))
        close(file->fd);
    file->fd = -1;
}
