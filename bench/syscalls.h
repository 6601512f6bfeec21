/* SPDX-License-Identifier: Apache-2.0
 *
 * syscalls.h - how many system calls a piece of code makes: it runs in a child that the parent
 * traces, and the child marks where counting begins and ends. Counts the child's first thread.
 */
#ifndef BENCH_SYSCALLS_H
#define BENCH_SYSCALLS_H

#include <stdbool.h>

#define SYSCALLS_WINDOWS 8

struct syscalls_window {
    long count; /* system calls between begin and end */
    long last;  /* number of the last one */
    long times; /* how often the window was opened */
};

/* Called in the child. */
void syscalls_begin(int window);
void syscalls_end(void);

/* Runs child() in a forked, traced process and fills the windows. False: not permitted here, or
 * the child died; `child` must not return an error otherwise than by _exit(1). */
bool syscalls_count(void (*child)(void), struct syscalls_window windows[SYSCALLS_WINDOWS]);

#endif
