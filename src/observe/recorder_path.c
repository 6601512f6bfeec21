/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_path.c - whoever records holds a record lock on the first byte of his file: it goes
 * away with the process, and a forked child does not have it.
 */
#include "observe/recorder_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/sys.h"

#define NAMES_MAX 1000

bool blyi_recpath_expand(const char *path, char out[PATH_MAX])
{
    size_t used = 0;
    for (; *path != '\0'; path++) {
        char pid[16];
        const char *piece = path;
        size_t n = 1;
        if (path[0] == '%' && path[1] == 'p') {
            n = (size_t)snprintf(pid, sizeof(pid), "%d", (int)getpid());
            piece = pid;
            path++;
        }
        if (used + n >= PATH_MAX)
            return false;
        memcpy(out + used, piece, n);
        used += n;
    }
    out[used] = '\0';
    return true;
}

static bool is_to_spare(int fd, enum blyi_recspare spare)
{
    struct blyi_trace_header header;
    if (spare == BLYI_SPARE_NOTHING ||
        pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.magic, BLYI_TRACE_MAGIC, sizeof(header.magic)) != 0)
        return false;
    return spare == BLYI_SPARE_ALL || header.pid == (uint32_t)getpid();
}

static bool lock_first_byte(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    /* Where a file system knows no locks, names are the user's care. */
    return fcntl(fd, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

bly_status blyi_recpath_open(struct blyi_recfile *file, const char *path, enum blyi_recspare spare,
                             const struct blyi_trace_header *header)
{
    char base[PATH_MAX], name[PATH_MAX + 8];
    if (path == NULL)
        return blyi_recfile_open(file, NULL, -1, header);
    if (!blyi_recpath_expand(path, base) || strlen(base) + 5 >= PATH_MAX)
        return blyi_fail(BLY_E_INVALID, "the trace %.80s...: the path is too long", path);
    for (int i = 0; i < NAMES_MAX; i++) {
        snprintf(name, sizeof(name), i == 0 ? "%s" : "%s.%d", base, i);
        int fd = blyi_sys_open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
        if (fd < 0)
            return blyi_fail(BLY_E_IO, "cannot make the trace %s: %s", name, strerror(errno));
        if (lock_first_byte(fd) && !is_to_spare(fd, spare))
            return blyi_recfile_open(file, name, fd, header);
        close(fd);
    }
    return blyi_fail(BLY_E_IO, "cannot make the trace %s: it and %d names like it are in use", base,
                     NAMES_MAX - 1);
}
