/* SPDX-License-Identifier: Apache-2.0
 *
 * window_share.c - how much of a limited address space a window takes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "npu/window.h"

/* Bytes of addresses that the process has; 0: not known. */
static uint64_t in_use(void)
{
    char text[64];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t blyi_window_share(uint64_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return size;
    uint64_t used = in_use(), left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    return size < left / 3 ? size : left / 3;
}
