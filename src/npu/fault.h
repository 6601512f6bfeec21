/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.h - touching memory that may not be there, without dying of it.
 *
 * One SIGSEGV/SIGBUS handler per process, installed at first use and chained to whatever was
 * there. It acts only while the thread is inside blyi_fault_try() and the address is in one of
 * the two ranges named there; else the previous handler runs. It leaves by editing the saved
 * context (never siglongjmp out of the handler), so that the signal mask and protection keys
 * come back as they were.
 */
#ifndef BLYI_FAULT_H
#define BLYI_FAULT_H

#include <belay/base.h>
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

struct blyi_fault_range {
    uintptr_t start;
    uint64_t size;
};

/* E_SYSTEM: the handler could not be installed. */
bly_status blyi_fault_install(void);

/* Sees every fault that no attempt claims, before the handler that was there before ours. `fatal`:
 * there was none, and the process will end. True: the watch has edited the context and goes on
 * there. Runs in the signal handler. */
typedef bool blyi_fault_watcher(const siginfo_t *info, ucontext_t *context, bool fatal);
void blyi_fault_watch(blyi_fault_watcher *watcher);

/* Runs fn(arg). False, with *address the place, when it touched a missing page of the ranges; fn
 * was left in the middle then, so it may hold no lock and own nothing. About 10 ns. */
bool blyi_fault_try(void (*fn)(void *arg), void *arg, const struct blyi_fault_range ranges[2],
                    uintptr_t *address);

/* User code that may fault anywhere: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP of its own
 * instructions end it, and so does blyi_fault_stop(). */
struct blyi_fault_kernel {
    uintptr_t token; /* of this run; never of another */
    /* Why it was left. */
    bool stopped;
    bool has_address;
    int signal;
    uintptr_t address;
    uintptr_t instruction;
    /* fault.c */
    uintptr_t stack;
};

/* Handlers of the further signals, at the first kernel. E_SYSTEM. */
bly_status blyi_fault_install_kernel(void);
/* False: fn was left in the middle and may hold locks of other libraries: the thread does
 * nothing more than hand over what it has. */
bool blyi_fault_run(void (*fn)(void *arg), void *arg, struct blyi_fault_kernel *kernel);
/* Asks the run with this token in that thread to end. It may miss (the code is inside a call of
 * ours): repeat until the run is over. [any] */
void blyi_fault_stop(int32_t tid, uintptr_t token);
/* A thread that ran kernels ends. */
void blyi_fault_thread_end(void);

#endif
