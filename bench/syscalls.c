/* SPDX-License-Identifier: Apache-2.0
 *
 * syscalls.c - see syscalls.h. The mark is a prctl() with an option that no kernel knows.
 */
#include "bench/syscalls.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

#define MARK_OPTION 0x62656c61u
#define MARK_END    (SYSCALLS_WINDOWS + 1u)

void syscalls_begin(int window)
{
    prctl(MARK_OPTION, (unsigned long)window, 0, 0, 0);
}

void syscalls_end(void)
{
    prctl(MARK_OPTION, (unsigned long)MARK_END, 0, 0, 0);
}

static bool is_mark(const struct __ptrace_syscall_info *info)
{
    return info->entry.nr == SYS_prctl && info->entry.args[0] == MARK_OPTION;
}

/* One stop of the child at a system call. Returns the window that is open afterwards. */
static int account(pid_t child, int open, struct syscalls_window *windows)
{
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof(info));
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return open;
    if (is_mark(&info)) {
        open = info.entry.args[1] < SYSCALLS_WINDOWS ? (int)info.entry.args[1] : -1;
        if (open >= 0)
            windows[open].times++;
        return open;
    }
    if (open >= 0) {
        windows[open].count++;
        windows[open].last = (long)info.entry.nr;
    }
    return open;
}

/* Lets the child run to its end; true when it ended well. */
static bool follow(pid_t child, struct syscalls_window *windows)
{
    int open = -1, signal_to_pass = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)signal_to_pass) != 0)
            return false;
        int status;
        while (waitpid(child, &status, 0) < 0) {
            if (errno != EINTR)
                return false;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status))
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        signal_to_pass = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            open = account(child, open, windows);
        else if (WSTOPSIG(status) != SIGTRAP)
            signal_to_pass = WSTOPSIG(status);
    }
}

bool syscalls_count(void (*child)(void), struct syscalls_window windows[SYSCALLS_WINDOWS])
{
    memset(windows, 0, SYSCALLS_WINDOWS * sizeof(windows[0]));
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        child();
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return false;
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    bool ended = follow(pid, windows);
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return ended;
}
