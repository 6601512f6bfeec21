/* SPDX-License-Identifier: Apache-2.0
 *
 * compiler.h - the few things that C11 does not spell portably. Includes nothing of ours.
 */
#ifndef BLYI_COMPILER_H
#define BLYI_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define BLYI_CACHE_LINE                   64
#define BLYI_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))

/* The structure that holds `member` at `ptr`. */
#define BLYI_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define BLYI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KiB ((uint64_t)1 << 10)
#define MiB ((uint64_t)1 << 20)
#define GiB ((uint64_t)1 << 30)

/* `align` is a power of two. */
static inline uint64_t blyi_align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static inline uint64_t blyi_align_down(uint64_t value, uint64_t align)
{
    return value & ~(align - 1);
}

static inline int blyi_is_pow2(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* A pause inside a spin loop. */
static inline void blyi_spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Out of the way of a caller that nearly never calls it, and need not save registers for it. */
#define BLYI_COLD __attribute__((noinline, cold))

/* Of variables of paths of a few ns that other files define: read where they are, rather than
 * through the table of what other libraries may define instead. */
#define BLYI_HOT_EXTERN extern __attribute__((visibility("hidden")))

/* Of paths of a few ns: read without a call. Then all thread-local memory of the library comes out
 * of the loader's static reserve, so it is kept small (base/fail.c, scripts/check_exports.sh). */
#define BLYI_HOT_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local

#endif
