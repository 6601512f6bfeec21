/* SPDX-License-Identifier: Apache-2.0
 *
 * own_fd.c - told by device and inode, which no other open file has while ours is open.
 */
#include "base/own_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST 400 /* programs that close the low descriptors should not meet it */

struct blyi_own_fd blyi_own_fd_adopt(int fd)
{
    struct stat st;
    struct blyi_own_fd own = BLYI_OWN_FD_NONE;
    if (fstat(fd, &st) == 0)
        own = (struct blyi_own_fd){fd, st.st_dev, st.st_ino};
    return own;
}

void blyi_own_fd_make_room(void)
{
    int fd = open("/", O_PATH | O_CLOEXEC);
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, LEAST) : -1;
    if (high >= 0)
        close(high);
    if (fd >= 0)
        close(fd);
}

struct blyi_own_fd blyi_own_fd_take(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LEAST);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    return blyi_own_fd_adopt(fd);
}

int blyi_own_fd_get(const struct blyi_own_fd *own)
{
    struct stat st;
    if (own->fd >= 0 && fstat(own->fd, &st) == 0 && st.st_dev == own->device &&
        st.st_ino == own->inode)
        return own->fd;
    errno = EBADF;
    return -1;
}

void blyi_own_fd_drop(struct blyi_own_fd *own)
{
    int fd = blyi_own_fd_get(own);
    own->fd = -1;
    if (fd >= 0)
        close(fd);
}
