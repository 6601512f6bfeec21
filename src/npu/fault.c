/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.c - the handler of SIGSEGV and SIGBUS, and the way out of a faulting copy.
 *
 * The handler only edits the saved context: the thread returns from the signal into
 * leave_try(), with the mask and the protection keys it had, and jumps from there to
 * blyi_fault_try() as any code might.
 *
 * SA_ONSTACK: a fault may come with a program's own alternate stack in use, or in a thread
 * whose stack is nearly used up. Not SA_NODEFER: a fault inside the handler must end the
 * process, not recurse; the saved mask comes back by the return. Handlers we chain to get what
 * they asked for (mask, SA_NODEFER, SA_RESETHAND) as far as a caller can give it.
 */
#include "npu/fault.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>
#include "base/fail.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "npu/guard.h"

#define RED_ZONE 128 /* below the stack pointer of x86-64: the interrupted function's own */
/* Addresses at or above fault without telling where (x86-64), and are nobody's memory. */
#define USER_END ((uintptr_t)1 << 47)

struct attempt {
    jmp_buf back;
    const struct blyi_fault_range *ranges;
    uintptr_t address;
};

/* The thread's attempt. A key and not a thread-local variable: the handler may read it without a
 * call that allocates, which in a library opened by dlopen a variable allows with the
 * initial-exec model alone; and one variable of that model puts all of the library's into the
 * loader's small static reserve, so that dlopen("libascendcl.so") would fail. */
static pthread_key_t current_key;

static struct attempt *current(void)
{
    return pthread_getspecific(current_key);
}

static struct sigaction previous_segv, previous_bus;
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_OPTION); /* installation; innermost */
static bool installed;
static blyi_fault_watcher *watcher; /* atomic */

static bool inside(const struct blyi_fault_range *range, uintptr_t address)
{
    return address - range->start < range->size;
}

/* Whether the fault belongs to the attempt, and where it was. */
static bool is_ours(struct attempt *attempt, const siginfo_t *info)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    if (info->si_code <= 0)
        return false; /* sent by somebody, not a fault */
    if (blyi_guard_is_denied(info))
        return false; /* an attempt has the right: it is a signal handler that interrupted one */
    for (int i = 0; i < 2; i++) {
        const struct blyi_fault_range *range = &attempt->ranges[i];
        bool hit = inside(range, address);
        if (info->si_code == SI_KERNEL && address == 0 && range->size > 0 &&
            range->start + (range->size - 1) >= USER_END) {
            hit = true; /* outside the canonical half: the CPU does not say where */
            address = range->start >= USER_END ? range->start : USER_END;
        }
        if (hit) {
            attempt->address = address;
            return true;
        }
    }
    return false;
}

static _Noreturn void leave_try(void)
{
    _longjmp(current()->back, 1);
}

static void redirect(ucontext_t *context)
{
#if defined(__x86_64__)
    greg_t *regs = context->uc_mcontext.gregs;
    /* As behind a call: 8 below a multiple of 16. */
    regs[REG_RSP] = (greg_t)((((uintptr_t)regs[REG_RSP] - RED_ZONE) & ~(uintptr_t)15) - 8);
    regs[REG_RIP] = (greg_t)(uintptr_t)leave_try;
    regs[REG_EFL] &= ~(greg_t)0x400; /* direction flag: clear at calls */
#elif defined(__aarch64__)
    context->uc_mcontext.sp &= ~(uint64_t)15;
    context->uc_mcontext.pc = (uint64_t)(uintptr_t)leave_try;
#else
#error "fault.c: tell how to leave a handler on this machine"
#endif
}

/* The action that was there before us, as if it were still there. */
static void chain(int signal, siginfo_t *info, void *context)
{
    struct sigaction *previous = signal == SIGSEGV ? &previous_segv : &previous_bus;
    struct sigaction action = *previous;
    bool is_fault = info->si_code > 0;
    if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && !is_fault)
        return;
    if (!(action.sa_flags & SA_SIGINFO) &&
        (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
        /* The kernel ends the process at an ignored fault as well. A fault happens again when
         * we return, with its true address; a sent signal has to be sent again. */
        struct sigaction fallback = {.sa_handler = SIG_DFL};
        sigaction(signal, &fallback, NULL);
        if (!is_fault)
            raise(signal);
        return;
    }
    if ((unsigned)action.sa_flags & (unsigned)SA_RESETHAND) {
        memset(previous, 0, sizeof(*previous));
        previous->sa_handler = SIG_DFL;
    }
    sigset_t mask, before;
    mask = action.sa_mask;
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&mask, signal);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    if (action.sa_flags & SA_NODEFER) {
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, signal);
        pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    }
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_watched(int signal, const siginfo_t *info, ucontext_t *context)
{
    const struct sigaction *previous = signal == SIGSEGV ? &previous_segv : &previous_bus;
    blyi_fault_watcher *watch = __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);
    bool fatal = !(previous->sa_flags & SA_SIGINFO) &&
                 (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN);
    return watch != NULL && info->si_code > 0 && watch(info, context, fatal);
}

void blyi_fault_watch(blyi_fault_watcher *watch)
{
    __atomic_store_n(&watcher, watch, __ATOMIC_RELEASE);
}

static void handler(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    struct attempt *attempt = current();
    if (attempt != NULL && is_ours(attempt, info))
        redirect(context);
    else if (!is_watched(signal, info, context))
        chain(signal, info, context);
    errno = saved;
}

static bly_status install_one(int signal, struct sigaction *previous)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = handler;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, NULL, previous) != 0 || sigaction(signal, &action, NULL) != 0)
        return blyi_fail(BLY_E_SYSTEM, "the handler of %s cannot be installed: %s",
                         strsignal(signal), strerror(errno));
    return BLY_OK;
}

bly_status blyi_fault_install(void)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    if (!installed && pthread_key_create(&current_key, NULL) != 0) {
        status = blyi_fail(BLY_E_SYSTEM, "the process has no thread key left (%d are the limit)",
                           PTHREAD_KEYS_MAX);
    } else if (!installed) {
        status = install_one(SIGSEGV, &previous_segv);
        if (status == BLY_OK) {
            status = install_one(SIGBUS, &previous_bus);
            if (status != BLY_OK)
                sigaction(SIGSEGV, &previous_segv, NULL);
        }
        installed = status == BLY_OK;
        if (!installed)
            pthread_key_delete(current_key);
    }
    blyi_lock_drop(&lock);
    return status;
}

bool blyi_fault_try(void (*fn)(void *arg), void *arg, const struct blyi_fault_range ranges[2],
                    uintptr_t *address)
{
    struct attempt attempt;
    struct attempt *volatile outer = current();
    attempt.ranges = ranges;
    if (_setjmp(attempt.back) != 0) {
        *address = attempt.address;
        (void)pthread_setspecific(current_key, outer);
        return false;
    }
    /* The handler runs in this thread: the compiler alone must keep the order. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Fails only when 32 other keys are in use and the host has no memory: then a fault ends the
     * process, as it would without us. */
    (void)pthread_setspecific(current_key, &attempt);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    fn(arg);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    (void)pthread_setspecific(current_key, outer);
    return true;
}
