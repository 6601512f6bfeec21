/* SPDX-License-Identifier: Apache-2.0
 *
 * sys.c - wrapped system calls: each is counted, and may be failed on purpose.
 */
#include "base/sys.h"
#include "base/assert.h"
#include "base/nth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Relaxed counters: they order nothing. */
static _Atomic uint64_t counts[BLYI_SYS_COUNT];
static _Atomic uint64_t failable;
static struct blyi_nth failure;
static atomic_int failure_error;

static void count(enum blyi_sys_call call)
{
    atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
}

/* Counts a call that could fail; 0, or the error to fail it with instead of making it. */
static int injected(enum blyi_sys_call call)
{
    count(call);
    atomic_fetch_add_explicit(&failable, 1, memory_order_relaxed);
    return unlikely(blyi_nth_hit(&failure)) ? atomic_load(&failure_error) : 0;
}

/* As injected(), for calls that report through errno. */
static bool refused(enum blyi_sys_call call)
{
    int error = injected(call);
    if (error != 0)
        errno = error;
    return error != 0;
}

void *blyi_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    return refused(BLYI_SYS_mmap) ? MAP_FAILED : mmap(addr, len, prot, flags, fd, offset);
}

int blyi_sys_munmap(void *addr, size_t len)
{
    count(BLYI_SYS_munmap);
    return munmap(addr, len);
}

int blyi_sys_mprotect(void *addr, size_t len, int prot)
{
    return refused(BLYI_SYS_mprotect) ? -1 : mprotect(addr, len, prot);
}

int blyi_sys_pkey_alloc(unsigned rights)
{
    return refused(BLYI_SYS_pkey_alloc) ? -1 : (int)syscall(SYS_pkey_alloc, 0, rights);
}

void blyi_sys_pkey_free(int key)
{
    (void)syscall(SYS_pkey_free, key);
}

int blyi_sys_pkey_mprotect(void *addr, size_t len, int prot, int key)
{
    return refused(BLYI_SYS_pkey_mprotect) ? -1
                                           : (int)syscall(SYS_pkey_mprotect, addr, len, prot, key);
}

int blyi_sys_madvise(void *addr, size_t len, int advice)
{
    return refused(BLYI_SYS_madvise) ? -1 : madvise(addr, len, advice);
}

int blyi_sys_mlock(const void *addr, size_t len)
{
    return refused(BLYI_SYS_mlock) ? -1 : mlock(addr, len);
}

int blyi_sys_munlock(const void *addr, size_t len)
{
    count(BLYI_SYS_munlock);
    return munlock(addr, len);
}

int blyi_sys_memfd_create(const char *name, unsigned flags)
{
    return refused(BLYI_SYS_memfd_create) ? -1 : memfd_create(name, flags);
}

/* Beyond the limit of file size the kernel would send SIGXFSZ, which ends a program that does not
 * know about our files. */
static bool is_too_long(off_t end)
{
    struct rlimit limit;
    bool too_long = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                    (uint64_t)end > limit.rlim_cur;
    if (too_long)
        errno = EFBIG;
    return too_long;
}

int blyi_sys_ftruncate(int fd, off_t length)
{
    return refused(BLYI_SYS_ftruncate) || is_too_long(length) ? -1 : ftruncate(fd, length);
}

int blyi_sys_fallocate(int fd, int mode, off_t offset, off_t len)
{
    bool grows = (mode & FALLOC_FL_KEEP_SIZE) == 0;
    return refused(BLYI_SYS_fallocate) || (grows && is_too_long(offset + len))
               ? -1
               : fallocate(fd, mode, offset, len);
}

ssize_t blyi_sys_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return refused(BLYI_SYS_pwrite) || is_too_long(offset + (off_t)n) ? -1
                                                                      : pwrite(fd, buf, n, offset);
}

int blyi_sys_open(const char *path, int flags, mode_t mode)
{
    return refused(BLYI_SYS_open) ? -1 : open(path, flags, mode);
}

ssize_t blyi_sys_read(int fd, void *buf, size_t n)
{
    return refused(BLYI_SYS_read) ? -1 : read(fd, buf, n);
}

int blyi_sys_thread_create(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
    bly_assert(strlen(name) < 16);
    int error = injected(BLYI_SYS_thread_create);
    if (error != 0)
        return error;
    /* The program's handlers belong on the program's threads. Signals that a thread raises by
     * its own instructions stay open: the guard lives on SIGSEGV and SIGBUS. */
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < BLYI_COUNT(synchronous); i++)
        sigdelset(&blocked, synchronous[i]);
    error = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (error != 0)
        return error;
    error = pthread_create(thread, NULL, fn, arg); /* inherits the mask */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(*thread, name); /* for people only; a thread without a name works */
    return error;
}

static int futex_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns, int operation)
{
    count(BLYI_SYS_futex);
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                               .tv_nsec = (long)(timeout_ns % 1000000000)};
    int saved_errno = errno, result = 0;
    if (syscall(SYS_futex, word, operation, expected, timeout_ns ? &timeout : NULL, NULL, 0) != 0)
        result = errno;
    errno = saved_errno;
    if (result == EAGAIN)
        result = 0; /* the word differs */
    bly_check_msg(result == 0 || result == ETIMEDOUT || result == EINTR, "futex error %d", result);
    return result;
}

static void futex_wake(const uint32_t *word, int n_threads, int operation)
{
    count(BLYI_SYS_futex);
    int saved_errno = errno;
    syscall(SYS_futex, word, operation, n_threads, NULL, NULL, 0);
    errno = saved_errno;
}

int blyi_sys_futex_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    return futex_wait(word, expected, timeout_ns, FUTEX_WAIT_PRIVATE);
}

void blyi_sys_futex_wake(const uint32_t *word, int n_threads)
{
    futex_wake(word, n_threads, FUTEX_WAKE_PRIVATE);
}

int blyi_sys_futex_wait_shared(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    return futex_wait(word, expected, timeout_ns, FUTEX_WAIT);
}

void blyi_sys_futex_wake_shared(const uint32_t *word, int n_threads)
{
    futex_wake(word, n_threads, FUTEX_WAKE);
}

uint64_t blyi_sys_count(enum blyi_sys_call call)
{
    bly_assert(call < BLYI_SYS_COUNT);
    return atomic_load_explicit(&counts[call], memory_order_relaxed);
}

const char *blyi_sys_name(enum blyi_sys_call call)
{
    static const char *const names[] = {
#define CALL_NAME(name) #name,
        BLYI_SYS_CALLS(CALL_NAME)
#undef CALL_NAME
    };
    return call < BLYI_SYS_COUNT ? names[call] : "?";
}

void blyi_sys_fail_nth(uint64_t n, int error)
{
    blyi_nth_arm(&failure, 0); /* so that no call pairs the old count with the new error */
    atomic_store(&failure_error, error);
    blyi_nth_arm(&failure, n);
}

bool blyi_sys_failed(void)
{
    return blyi_nth_fired(&failure);
}

uint64_t blyi_sys_failable(void)
{
    return atomic_load_explicit(&failable, memory_order_relaxed);
}
