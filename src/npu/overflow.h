/* SPDX-License-Identifier: Apache-2.0
 *
 * overflow.h - whether a kernel of a context left the range of floating point numbers: a result
 * that is infinite or none, or a division by zero. The processor remembers it for the thread; a
 * launch that asks (blyi_kernel_call.tell_overflow) has it looked at, and the context keeps it
 * until it is cleared.
 */
#ifndef BLYI_OVERFLOW_H
#define BLYI_OVERFLOW_H

#include <belay/base.h>
#include <stdbool.h>

/* In the order of the stream: `size` bytes of card memory are zeroed but for a 1 in the first
 * four, when there was an overflow. E_INVALID: size below 4. stream NULL: default. [any] */
bly_status blyi_overflow_read_async(void *out, uint64_t size, void *stream, uint32_t site);
bly_status blyi_overflow_clear_async(void *stream, uint32_t site);

/* Of the calling thread. */
static inline void blyi_overflow_forget(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x3fu);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpsr, %0" ::"r"(UINT64_C(0)));
#endif
}

static inline bool blyi_overflow_happened(void)
{
#if defined(__x86_64__)
    return (__builtin_ia32_stmxcsr() & 0x0du) != 0; /* invalid, division by zero, overflow */
#elif defined(__aarch64__)
    uint64_t flags;
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return (flags & 7u) != 0;
#else
    return false;
#endif
}

#endif
