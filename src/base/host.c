/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c - host memory of the library: counted, limited, and failed on purpose.
 *
 * Bytes are what the allocator says a block can hold, so no header is needed and sums are
 * exact. All counters are relaxed: they order nothing.
 */
#include "base/host.h"
#include "base/compiler.h"
#include "base/nth.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t live_bytes, live_blocks, peak_bytes, calls, limit_bytes;
static struct blyi_nth failure;

static void raise_peak(uint64_t live)
{
    uint64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(
                              &peak_bytes, &peak, live, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Counts a call and books `size` bytes before they are asked for, so that two threads cannot
 * pass the limit together. */
static bool charge(size_t size)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (unlikely(blyi_nth_hit(&failure)))
        return false;
    uint64_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);
    uint64_t live = atomic_load_explicit(&live_bytes, memory_order_relaxed);
    do {
        if (limit > 0 && size > 0 && (live > limit || size > limit - live))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&live_bytes, &live, live + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void discharge(size_t size)
{
    atomic_fetch_sub_explicit(&live_bytes, size, memory_order_relaxed);
}

/* Corrects what was booked for a block to its real size. */
static void settle(void *ptr, size_t booked)
{
    /* Unsigned wrap subtracts when the block is smaller than booked. */
    uint64_t more = (uint64_t)malloc_usable_size(ptr) - booked;
    raise_peak(atomic_fetch_add_explicit(&live_bytes, more, memory_order_relaxed) + more);
}

static void *settle_new(void *ptr, size_t booked)
{
    if (unlikely(ptr == NULL)) {
        discharge(booked);
        return NULL;
    }
    settle(ptr, booked);
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return ptr;
}

void *blyi_host_alloc(size_t size)
{
    if (size == 0)
        size = 1; /* NULL means failure and nothing else */
    return charge(size) ? settle_new(malloc(size), size) : NULL;
}

void *blyi_host_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX; /* counted, and refused by the allocator */
    if (bytes == 0)
        bytes = 1;
    return charge(bytes) ? settle_new(calloc(1, bytes), bytes) : NULL;
}

#define DENSE_MIN ((size_t)1 << 20)

static void *ask_for_huge_pages(void *ptr, size_t size)
{
    if (ptr == NULL || size < DENSE_MIN)
        return ptr;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)ptr + page - 1) / page * page,
              to = ((uintptr_t)ptr + size) / page * page;
    int saved_errno = errno;
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish: small pages do as well */
    errno = saved_errno;
    return ptr;
}

void *blyi_host_alloc_dense(size_t size)
{
    return ask_for_huge_pages(blyi_host_alloc(size), size);
}

void *blyi_host_calloc_dense(size_t count, size_t size)
{
    void *ptr = blyi_host_calloc(count, size);
    return ptr == NULL ? NULL : ask_for_huge_pages(ptr, count * size);
}

void *blyi_host_realloc(void *old, size_t size)
{
    if (old == NULL)
        return blyi_host_alloc(size);
    if (size == 0)
        size = 1;
    size_t old_size = malloc_usable_size(old), more = size > old_size ? size - old_size : 0;
    if (!charge(more))
        return NULL;
    void *ptr = realloc(old, size);
    if (ptr == NULL)
        discharge(more);
    else
        settle(ptr, old_size + more);
    return ptr;
}

char *blyi_host_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = blyi_host_alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void blyi_host_free(void *ptr)
{
    if (ptr == NULL)
        return;
    int saved_errno = errno;
    discharge(malloc_usable_size(ptr));
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free(ptr);
    errno = saved_errno;
}

void blyi_host_stats(struct blyi_host_stats *out)
{
    out->live_bytes = atomic_load_explicit(&live_bytes, memory_order_relaxed);
    out->live_blocks = atomic_load_explicit(&live_blocks, memory_order_relaxed);
    out->peak_bytes = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    out->calls = atomic_load_explicit(&calls, memory_order_relaxed);
}

void blyi_host_set_limit(uint64_t bytes)
{
    atomic_store_explicit(&limit_bytes, bytes, memory_order_relaxed);
}

void blyi_host_fail_nth(uint64_t n)
{
    blyi_nth_arm(&failure, n);
}

bool blyi_host_failed(void)
{
    return blyi_nth_fired(&failure);
}
