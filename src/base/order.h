/* SPDX-License-Identifier: Apache-2.0
 *
 * order.h - what our atomics order, told to ThreadSanitizer.
 *
 * A program that is built with it meets a library that is not: it sees our copies and the user
 * code that we call, and the order of our mutexes, but no atomic of ours. So the atomics that
 * order memory of the program say so here: release before the store, acquire behind the load.
 * Without it the two functions do not exist, and a call costs one test. In a library that is
 * built with it the atomics speak for themselves, and a word more could hide a race of ours.
 */
#ifndef BLYI_ORDER_H
#define BLYI_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/sanitizer.h"

#if BLYI_WITH_TSAN
static inline void blyi_order_release(const void *at)
{
    (void)at;
}

static inline void blyi_order_acquire(const void *at)
{
    (void)at;
}
#else
/* Visible: a hidden weak symbol would be nothing for ever. */
__attribute__((weak, visibility("default"))) void __tsan_release(void *at);
__attribute__((weak, visibility("default"))) void __tsan_acquire(void *at);

static inline void blyi_order_release(const void *at)
{
    if (unlikely(__tsan_release != 0))
        __tsan_release((void *)(uintptr_t)at);
}

static inline void blyi_order_acquire(const void *at)
{
    if (unlikely(__tsan_acquire != 0))
        __tsan_acquire((void *)(uintptr_t)at);
}
#endif

/* Gives back a reference; true: it was the last, and the caller is alone. Release: our uses come
 * before; acquire: the last one sees all of them before it frees. */
static inline bool blyi_ref_drop(uint32_t *refs)
{
    blyi_order_release(refs);
    if (__atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) != 0)
        return false;
    blyi_order_acquire(refs);
    return true;
}

#endif
