/* SPDX-License-Identifier: Apache-2.0
 *
 * sys.h - the system calls that can fail in the life of a card, behind one door, so
 * that each can be made to fail on purpose and counted.
 *
 * Each wrapper has the contract of the call it wraps, errno included; but a file beyond the limit
 * of file size is EFBIG alone, without SIGXFSZ. Injection: the
 * nth wrapped call from now fails with `error` and is not made.
 */
#ifndef BLYI_SYS_H
#define BLYI_SYS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* X(name): counted calls, in the order of blyi_sys_count(). */
#define BLYI_SYS_CALLS(X)                                                                          \
    X(mmap)                                                                                        \
    X(munmap)                                                                                      \
    X(mprotect)                                                                                    \
    X(pkey_alloc)                                                                                  \
    X(pkey_mprotect)                                                                               \
    X(madvise)                                                                                     \
    X(mlock)                                                                                       \
    X(munlock)                                                                                     \
    X(memfd_create)                                                                                \
    X(ftruncate)                                                                                   \
    X(fallocate)                                                                                   \
    X(pwrite)                                                                                      \
    X(open)                                                                                        \
    X(read)                                                                                        \
    X(thread_create)                                                                               \
    X(futex)

enum blyi_sys_call {
#define BLYI_SYS_ENUM(name) BLYI_SYS_##name,
    BLYI_SYS_CALLS(BLYI_SYS_ENUM)
#undef BLYI_SYS_ENUM
        BLYI_SYS_COUNT
};

void *blyi_sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int blyi_sys_munmap(void *addr, size_t len);
int blyi_sys_mprotect(void *addr, size_t len, int prot);
/* Protection keys by their numbers in the kernel: no header of libc needed. `rights` of the
 * calling thread: 1 denies access. */
int blyi_sys_pkey_alloc(unsigned rights);
void blyi_sys_pkey_free(int key);
int blyi_sys_pkey_mprotect(void *addr, size_t len, int prot, int key);
int blyi_sys_madvise(void *addr, size_t len, int advice);
int blyi_sys_mlock(const void *addr, size_t len);
int blyi_sys_munlock(const void *addr, size_t len);
int blyi_sys_memfd_create(const char *name, unsigned flags);
int blyi_sys_ftruncate(int fd, off_t length);
int blyi_sys_fallocate(int fd, int mode, off_t offset, off_t len);
ssize_t blyi_sys_pwrite(int fd, const void *buf, size_t count, off_t offset);
int blyi_sys_open(const char *path, int flags, mode_t mode);
ssize_t blyi_sys_read(int fd, void *buf, size_t count);
/* Returns an error number as pthread_create does. The new thread blocks all
 * asynchronous signals; `name` is at most 15 characters. It must not detach itself. */
int blyi_sys_thread_create(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg);
/* Waits while *word is `expected`, at most timeout_ns (0: no limit). Returns 0 when woken or
 * when the word differs, ETIMEDOUT, or EINTR; never fails otherwise. Wakes cannot be injected. */
int blyi_sys_futex_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void blyi_sys_futex_wake(const uint32_t *word, int n_threads);
/* The same for a word in memory that several processes map. */
int blyi_sys_futex_wait_shared(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void blyi_sys_futex_wake_shared(const uint32_t *word, int n_threads);

uint64_t blyi_sys_count(enum blyi_sys_call call);
const char *blyi_sys_name(enum blyi_sys_call call);

/* The nth wrapped call from now (1 = the next one) fails once with `error`; 0 switches it off.
 * munmap, munlock and futex are never failed: they have no failure that a caller could meet. */
void blyi_sys_fail_nth(uint64_t n, int error);
bool blyi_sys_failed(void);
/* Wrapped calls that could have been failed, since the process began. */
uint64_t blyi_sys_failable(void);

#endif
