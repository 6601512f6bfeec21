/* SPDX-License-Identifier: Apache-2.0
 *
 * own_fd.h - a descriptor of the library in a program that may close all descriptors, and open
 * files of its own under their numbers. So it has a high number, and each use looks whether it
 * still is the file that it was: else the program's files would be written to. A program that
 * closes descriptors while another thread is inside a call of ours is beyond help.
 */
#ifndef BLYI_OWN_FD_H
#define BLYI_OWN_FD_H

#include <stdbool.h>
#include <stdint.h>

struct blyi_own_fd {
    int fd; /* -1: none */
    uint64_t device, inode;
};
#define BLYI_OWN_FD_NONE                                                                           \
    {                                                                                              \
        -1, 0, 0                                                                                   \
    }

/* Makes the kernel's table of descriptors large enough now, for it may wait for all processors when
 * it grows later (early.c). */
void blyi_own_fd_make_room(void);
/* `fd` is the library's from here on, under another number where there is one. */
struct blyi_own_fd blyi_own_fd_take(int fd);
/* The same, with its number as it is. */
struct blyi_own_fd blyi_own_fd_adopt(int fd);
/* -1, errno EBADF: the program closed it. Async-signal-safe, as the next. */
int blyi_own_fd_get(const struct blyi_own_fd *own);
/* Closes it if it is ours. */
void blyi_own_fd_drop(struct blyi_own_fd *own);

#endif
