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
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "npu/guard.h"
#include "npu/ledger.h"

#define RED_ZONE 128 /* below the stack pointer of x86-64: the interrupted function's own */
/* Addresses at or above fault without telling where (x86-64), and are nobody's memory. */
#define USER_END ((uintptr_t)1 << 47)

struct attempt {
    jmp_buf back;
    const struct blyi_fault_range *ranges;
    uintptr_t address;
    struct blyi_fault_kernel *kernel; /* user code that may fault anywhere; NULL: a copy */
};

/* The thread's attempt. A key and not a thread-local variable: the handler may read it without a
 * call that allocates. */
static pthread_key_t current_key;

static struct attempt *current(void)
{
    return pthread_getspecific(current_key);
}

/* Those of copies first: the others are installed by the first kernel alone. */
static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define COPY_SIGNALS 2u
static struct sigaction previous[BLYI_COUNT(signals)];

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_OPTION); /* installation; innermost */
static blyi_fault_watcher *watcher;                              /* atomic */
static bool has_key;
static size_t n_installed;

#define STOP_ERRNO 0x424c59 /* si_errno of the signal that stops a kernel: "BLY" */

static struct sigaction *previous_of(int signal)
{
    for (size_t i = 0; i + 1 < BLYI_COUNT(signals); i++)
        if (signals[i] == signal)
            return &previous[i];
    return &previous[BLYI_COUNT(signals) - 1];
}

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

/* stack 0: goes on below where the thread was; else there, because a kernel may have used up or
 * lost its stack. */
static void redirect(ucontext_t *context, uintptr_t stack)
{
#if defined(__x86_64__)
    greg_t *regs = context->uc_mcontext.gregs;
    if (stack == 0)
        stack = (uintptr_t)regs[REG_RSP] - RED_ZONE;
    /* As behind a call: 8 below a multiple of 16. */
    regs[REG_RSP] = (greg_t)((stack & ~(uintptr_t)15) - 8);
    regs[REG_RIP] = (greg_t)(uintptr_t)leave_try;
    regs[REG_EFL] &= ~(greg_t)0x400; /* direction flag: clear at calls */
#elif defined(__aarch64__)
    if (stack == 0)
        stack = context->uc_mcontext.sp;
    context->uc_mcontext.sp = stack & ~(uintptr_t)15;
    context->uc_mcontext.pc = (uint64_t)(uintptr_t)leave_try;
#else
#error "fault.c: tell how to leave a handler on this machine"
#endif
}

/* The action that was there before us, as if it were still there. */
static void chain(int signal, siginfo_t *info, void *context)
{
    struct sigaction *before_us = previous_of(signal);
    struct sigaction action = *before_us;
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
        memset(before_us, 0, sizeof(*before_us));
        before_us->sa_handler = SIG_DFL;
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

static uintptr_t instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static bool is_stop(const siginfo_t *info)
{
    return info->si_code == SI_QUEUE && info->si_errno == STOP_ERRNO && info->si_pid == getpid();
}

/* Whether the kernel that runs in this thread ends here, and why. A stop that comes too late
 * names a run that is over. */
static bool ends_kernel(struct blyi_fault_kernel *kernel, int signal, const siginfo_t *info,
                        const ucontext_t *context)
{
    if (kernel == NULL || (info->si_code <= 0 && !is_stop(info)))
        return false;
    bool stopped = info->si_code <= 0;
    if (stopped && (uintptr_t)info->si_value.sival_ptr != kernel->token)
        return false;
    kernel->stopped = stopped;
    kernel->signal = signal;
    kernel->address = (uintptr_t)info->si_addr;
    kernel->has_address = (signal == SIGSEGV || signal == SIGBUS) && info->si_code != SI_KERNEL;
    kernel->instruction = instruction_of(context);
    return true;
}

static bool is_watched(int signal, const siginfo_t *info, ucontext_t *context)
{
    const struct sigaction *before = previous_of(signal);
    blyi_fault_watcher *watch = __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);
    bool fatal = !(before->sa_flags & SA_SIGINFO) &&
                 (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN);
    return watch != NULL && (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 &&
           watch(info, context, fatal);
}

void blyi_fault_watch(blyi_fault_watcher *watch)
{
    __atomic_store_n(&watcher, watch, __ATOMIC_RELEASE);
}

static void handler(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    struct attempt *attempt = current();
    if (attempt != NULL && ends_kernel(attempt->kernel, signal, info, context))
        redirect(context, attempt->kernel->stack);
    else if (is_stop(info))
        ; /* too late, or inside one of our own calls: whoever wants it asks again */
    else if (attempt != NULL && attempt->kernel == NULL && is_ours(attempt, info))
        redirect(context, 0);
    else if (signal == SIGBUS && info->si_code > 0 && blyi_ledger_mend((uintptr_t)info->si_addr))
        ; /* the files of the shared state were cut short */
    else if (!is_watched(signal, info, context))
        chain(signal, info, context);
    errno = saved;
}

static bly_status install_one(int signal)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = handler;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, NULL, previous_of(signal)) != 0 || sigaction(signal, &action, NULL) != 0)
        return blyi_fail(BLY_E_SYSTEM, "the handler of %s cannot be installed: %s",
                         strsignal(signal), strerror(errno));
    return BLY_OK;
}

/* The first n signals. What is installed stays: it chains. */
static bly_status install(size_t n)
{
    bly_status status = BLY_OK;
    if (__atomic_load_n(&n_installed, __ATOMIC_ACQUIRE) >= n)
        return BLY_OK;
    blyi_lock_take(&lock);
    if (!has_key && pthread_key_create(&current_key, NULL) != 0)
        status = blyi_fail(BLY_E_SYSTEM, "the process has no thread key left (%d are the limit)",
                           PTHREAD_KEYS_MAX);
    else
        has_key = true;
    while (status == BLY_OK && n_installed < n &&
           (status = install_one(signals[n_installed])) == BLY_OK)
        __atomic_store_n(&n_installed, n_installed + 1, __ATOMIC_RELEASE);
    blyi_lock_drop(&lock);
    return status;
}

bly_status blyi_fault_install(void)
{
    return install(COPY_SIGNALS);
}

bly_status blyi_fault_install_kernel(void)
{
    return install(BLYI_COUNT(signals));
}

/* Behind _setjmp(attempt->back). */
static void run_inside(struct attempt *attempt, struct attempt *outer, void (*fn)(void *arg),
                       void *arg)
{
    /* The handler runs in this thread: the compiler alone must keep the order. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Fails only when 32 other keys are in use and the host has no memory: then a fault ends the
     * process, as it would without us. */
    (void)pthread_setspecific(current_key, attempt);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    fn(arg);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    (void)pthread_setspecific(current_key, outer);
}

bool blyi_fault_try(void (*fn)(void *arg), void *arg, const struct blyi_fault_range ranges[2],
                    uintptr_t *address)
{
    struct attempt attempt;
    struct attempt *volatile outer = current();
    attempt.ranges = ranges;
    attempt.kernel = NULL;
    if (_setjmp(attempt.back) != 0) {
        *address = attempt.address;
        (void)pthread_setspecific(current_key, outer);
        return false;
    }
    run_inside(&attempt, outer, fn, arg);
    return true;
}

/* ── Kernels ──────────────────────────────────────────────────────────────────────────────── */

#define SIGNAL_STACK    ((size_t)64 << 10)
#define BELOW_OUR_FRAME 8192 /* the frame of blyi_fault_run() is smaller */

static _Thread_local void *signal_stack;

/* A kernel that overflows its stack leaves no room there for the handler. */
static void need_signal_stack(void)
{
    stack_t now;
    if (signal_stack != NULL || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    void *memory = mmap(NULL, SIGNAL_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return; /* an overflow ends the process then, as it would without us */
    stack_t ours = {.ss_sp = memory, .ss_size = SIGNAL_STACK};
    if (sigaltstack(&ours, NULL) == 0)
        signal_stack = memory;
    else
        munmap(memory, SIGNAL_STACK);
}

void blyi_fault_thread_end(void)
{
    if (signal_stack == NULL)
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(signal_stack, SIGNAL_STACK);
    signal_stack = NULL;
}

bool blyi_fault_run(void (*fn)(void *arg), void *arg, struct blyi_fault_kernel *kernel)
{
    struct attempt attempt;
    struct attempt *volatile outer = current();
    if (unlikely(signal_stack == NULL))
        need_signal_stack();
    attempt.ranges = NULL;
    attempt.kernel = kernel;
    kernel->stack = (uintptr_t)__builtin_frame_address(0) - BELOW_OUR_FRAME;
    if (_setjmp(attempt.back) != 0) {
        (void)pthread_setspecific(current_key, outer);
        return false;
    }
    run_inside(&attempt, outer, fn, arg);
    return true;
}

void blyi_fault_stop(int32_t tid, uintptr_t token)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = SIGSEGV;
    info.si_errno = STOP_ERRNO;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)token;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGSEGV, &info);
}
