/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_bytes.c - moving bytes as fast as the host can.
 *
 * A copy larger than a good part of the last-level cache gains nothing from going through it:
 * stores that bypass it spare the read of each destination line. Smaller copies leave their
 * destination in the cache for whoever reads it next.
 */
#include "npu/copy_inside.h"

#include <string.h>
#include "base/compiler.h"
#include "npu/copy.h"

/* Under a sanitizer memcpy looks at its shadow first, and dies there when the memory is not
 * there. So it is the bare instruction then; TSan is told once the bytes have arrived. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

#if defined(UNDER_TSAN)
void __tsan_read_range(const void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
#endif

#if (defined(UNDER_TSAN) || defined(UNDER_ASAN)) && defined(__x86_64__)
#define BARE 1
#else
#define BARE 0
#endif

#if BARE
static void copy_bare(void *dst, const void *src, size_t size)
{
    void *to = dst;
    const void *from = src;
    size_t left = size;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
#if defined(UNDER_TSAN)
    __tsan_read_range(src, size);
    __tsan_write_range(dst, size);
#endif
}

static void set_bare(void *dst, uint8_t value, size_t size)
{
    void *to = dst;
    size_t left = size;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(value) : "memory");
#if defined(UNDER_TSAN)
    __tsan_write_range(dst, size);
#endif
}
#elif defined(__x86_64__)
#include <immintrin.h>

/* Rule: the copy (read and written) does not fit in the last-level cache that one core may
 * count on. Measured figures: see the constant. */
#define STREAM_ABOVE ((size_t)8 << 20)

__attribute__((target("avx2"))) static void copy_streaming(char *dst, const char *src, size_t size)
{
    size_t head = (size_t)(-(uintptr_t)dst & 31);
    memcpy(dst, src, head);
    dst += head;
    src += head;
    size -= head;
    for (; size >= 128; size -= 128, dst += 128, src += 128) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)src);
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + 32));
        __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(src + 64));
        __m256i d = _mm256_loadu_si256((const __m256i *)(const void *)(src + 96));
        _mm_prefetch(src + 1024, _MM_HINT_NTA);
        _mm_prefetch(src + 1088, _MM_HINT_NTA);
        _mm256_stream_si256((__m256i *)(void *)dst, a);
        _mm256_stream_si256((__m256i *)(void *)(dst + 32), b);
        _mm256_stream_si256((__m256i *)(void *)(dst + 64), c);
        _mm256_stream_si256((__m256i *)(void *)(dst + 96), d);
    }
    _mm_sfence(); /* streaming stores are ordered by nothing else */
    memcpy(dst, src, size);
}

static bool has_avx2(void)
{
    static int known; /* 0: not asked, 1: no, 2: yes */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (unlikely(answer == 0)) {
        answer = __builtin_cpu_supports("avx2") ? 2 : 1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}
#endif

void blyi_copy_bytes(void *dst, const void *src, size_t size)
{
#if BARE
    copy_bare(dst, src, size);
#else
#if defined(__x86_64__)
    if (size >= STREAM_ABOVE && has_avx2()) {
        copy_streaming(dst, src, size);
        return;
    }
#endif
    memcpy(dst, src, size);
#endif
}

void blyi_set_bytes(void *dst, uint8_t value, size_t size)
{
#if BARE
    set_bare(dst, value, size);
#else
    memset(dst, value, size);
#endif
}
