/* SPDX-License-Identifier: Apache-2.0
 *
 * report_disk.c - locks and replacement of a file of reports.
 */
#include "observe/report_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"

#define BYTE_WATCH  0
#define BYTE_ADD    1
#define ADD_WAIT_MS 2000
#define BESIDE_MAX  (PATH_MAX + 8)

static bly_status cannot(const char *what, const char *path)
{
    return blyi_fail(BLY_E_IO, "cannot %s the report %s: %s", what, path, strerror(errno));
}

static bool expand_path(const char *pattern, pid_t self, char path[PATH_MAX])
{
    size_t used = 0;
    for (const char *p = pattern; *p != '\0'; p++) {
        bool pid = p[0] == '%' && p[1] == 'p';
        int n = pid ? snprintf(path + used, PATH_MAX - used, "%d", (int)self)
                    : snprintf(path + used, PATH_MAX - used, "%c", *p);
        used += (size_t)n;
        if (used >= PATH_MAX)
            return false;
        p += pid;
    }
    return true;
}

static const char *beside(const struct blyi_report_disk *disk, const char *end,
                          char path[BESIDE_MAX])
{
    snprintf(path, BESIDE_MAX, "%s%s", disk->path, end);
    return path;
}

static bool lock_byte(int fd, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock) == 0;
}

/* ---- opening ---- */

static int open_lock(const struct blyi_report_disk *disk)
{
    char path[BESIDE_MAX];
    return open(beside(disk, ".lock", path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
}

/* Another process may have removed the lock file between our open() and our lock. */
static bool is_current(const struct blyi_report_disk *disk)
{
    char path[BESIDE_MAX];
    struct stat ours, there;
    return !disk->beside ||
           (fstat(disk->lock_fd, &ours) == 0 && stat(beside(disk, ".lock", path), &there) == 0 &&
            ours.st_ino == there.st_ino && ours.st_dev == there.st_dev);
}

/* Whether a file of ours can take its place without a loss for anybody. */
static bool can_replace(const struct blyi_report_disk *disk, const struct stat *status)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", disk->path);
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        slash[slash == path] = '\0';
    return status->st_nlink == 1 && status->st_uid == geteuid() && access(path, W_OK | X_OK) == 0;
}

static bly_status open_regular(struct blyi_report_disk *disk, const struct stat *status,
                               bool shared)
{
    disk->mode = status->st_mode & 0777;
    disk->beside = can_replace(disk, status);
    if (shared && disk->beside)
        disk->lock_fd = open_lock(disk);
    if (shared && disk->lock_fd < 0) {
        disk->beside = false;
        disk->lock_fd = disk->fd;
    }
    if (disk->beside) {
        close(disk->fd);
        disk->fd = -1;
    }
    return BLY_OK;
}

bly_status blyi_report_disk_open(const char *pattern, pid_t self, bool shared,
                                 struct blyi_report_disk *out)
{
    char named[PATH_MAX];
    struct stat status;
    *out = (struct blyi_report_disk){.fd = -1, .lock_fd = -1};
    if (!expand_path(pattern, self, named))
        return blyi_fail(BLY_E_INVALID, "the path of the report is too long: %s", pattern);
    out->fd = open(named, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (out->fd < 0)
        return cannot("open", named);
    if (realpath(named, out->path) == NULL) /* a pipe of ours, or gone again */
        snprintf(out->path, sizeof(out->path), "%s", named);
    out->is_regular = fstat(out->fd, &status) == 0 && S_ISREG(status.st_mode);
    return out->is_regular ? open_regular(out, &status, shared) : BLY_OK;
}

void blyi_report_disk_close(struct blyi_report_disk *disk)
{
    if (disk->lock_fd >= 0 && disk->lock_fd != disk->fd)
        close(disk->lock_fd);
    if (disk->fd >= 0)
        close(disk->fd);
}

/* ---- locks ---- */

/* True: the lock is ours, or there are none here. */
static bool take(struct blyi_report_disk *disk, off_t byte, short type)
{
    for (;;) {
        if (!lock_byte(disk->lock_fd, byte, type))
            return errno != EAGAIN && errno != EACCES;
        if (is_current(disk))
            return true;
        close(disk->lock_fd);
        disk->lock_fd = open_lock(disk);
    }
}

bool blyi_report_disk_watch(struct blyi_report_disk *disk)
{
    return take(disk, BYTE_WATCH, F_WRLCK);
}

void blyi_report_disk_keep(struct blyi_report_disk *disk)
{
    (void)take(disk, BYTE_WATCH, F_RDLCK);
    (void)lock_byte(disk->lock_fd, BYTE_ADD, F_UNLCK);
}

bool blyi_report_disk_turn(struct blyi_report_disk *disk)
{
    for (int i = 0; disk->lock_fd >= 0 && i < ADD_WAIT_MS; i++) {
        if (take(disk, BYTE_ADD, F_WRLCK))
            return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return disk->lock_fd < 0;
}

void blyi_report_disk_leave(struct blyi_report_disk *disk)
{
    char path[BESIDE_MAX];
    if (disk->beside && disk->lock_fd >= 0 && lock_byte(disk->lock_fd, BYTE_WATCH, F_WRLCK) &&
        is_current(disk))
        unlink(beside(disk, ".lock", path));
    blyi_report_disk_close(disk);
}

/* ---- content ---- */

static bool write_all(int fd, struct blyi_slice slice)
{
    while (slice.length > 0) {
        ssize_t n = write(fd, slice.text, slice.length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        slice.text += n;
        slice.length -= (size_t)n;
    }
    return true;
}

static bool write_slices(int fd, const struct blyi_slice *slices, size_t n)
{
    off_t size = 0;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!write_all(fd, slices[i]))
            return false;
        size += (off_t)slices[i].length;
    }
    return ftruncate(fd, size) == 0;
}

static bool replace_beside(const struct blyi_report_disk *disk, const struct blyi_slice *slices,
                           size_t n)
{
    char path[BESIDE_MAX];
    beside(disk, ".new", path);
    unlink(path); /* of one that was killed; whose turn it is is alone here */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, disk->mode);
    if (fd < 0)
        return false;
    (void)fchmod(fd, disk->mode); /* in spite of the umask, as far as we may */
    bool done = write_slices(fd, slices, n);
    int error = errno;
    if (close(fd) != 0 && done) {
        done = false;
        error = errno;
    }
    if (done && rename(path, disk->path) == 0)
        return true;
    error = done ? errno : error;
    unlink(path);
    errno = error;
    return false;
}

bly_status blyi_report_disk_replace(const struct blyi_report_disk *disk,
                                    const struct blyi_slice *slices, size_t n)
{
    bool done = disk->beside ? replace_beside(disk, slices, n) : write_slices(disk->fd, slices, n);
    return done ? BLY_OK : cannot("write", disk->path);
}

static int open_again(const struct blyi_report_disk *disk, int flags)
{
    return disk->beside ? open(disk->path, flags | O_CREAT | O_CLOEXEC | O_NOCTTY, disk->mode)
                        : disk->fd;
}

static void close_again(const struct blyi_report_disk *disk, int fd)
{
    if (fd != disk->fd)
        close(fd);
}

bly_status blyi_report_disk_append(const struct blyi_report_disk *disk, struct blyi_slice text)
{
    int fd = open_again(disk, O_WRONLY | O_APPEND);
    if (fd < 0)
        return cannot("open", disk->path);
    if (disk->is_regular)
        (void)lseek(fd, 0, SEEK_END);
    bool done = write_all(fd, text);
    int error = errno;
    close_again(disk, fd);
    errno = error;
    return done ? BLY_OK : cannot("write", disk->path);
}

bly_status blyi_report_disk_stderr(struct blyi_slice text)
{
    return write_all(STDERR_FILENO, text) ? BLY_OK : cannot("write", "to stderr");
}

bly_status blyi_report_disk_read(const struct blyi_report_disk *disk, struct blyi_slice *out)
{
    struct stat status;
    int fd = open_again(disk, O_RDONLY);
    if (fd < 0)
        return cannot("open", disk->path);
    size_t size = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0, got = 0;
    char *text = blyi_host_alloc(size + 1);
    ssize_t n = 1;
    while (text != NULL && got < size && (n = pread(fd, text + got, size - got, (off_t)got)) > 0)
        got += (size_t)n;
    bly_status result = BLY_OK;
    if (text == NULL)
        result = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to add to %s", disk->path);
    else if (n <= 0)
        result = cannot("read", disk->path);
    close_again(disk, fd);
    if (result == BLY_OK)
        *out = (struct blyi_slice){text, got};
    else
        blyi_host_free(text);
    return result;
}
