/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_copy.c - see stream_copy.h.
 */
#include "bench/stream_copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

bool stream_copy_available(void)
{
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"))) static void stream_lines(char *dst, const char *src, size_t lines)
{
    for (; lines > 0; lines--, dst += 128, src += 128) {
        _mm_prefetch(src + 1024, _MM_HINT_NTA);
        _mm_prefetch(src + 1088, _MM_HINT_NTA);
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)src);
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + 32));
        __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(src + 64));
        __m256i d = _mm256_loadu_si256((const __m256i *)(const void *)(src + 96));
        _mm256_stream_si256((__m256i *)(void *)dst, a);
        _mm256_stream_si256((__m256i *)(void *)(dst + 32), b);
        _mm256_stream_si256((__m256i *)(void *)(dst + 64), c);
        _mm256_stream_si256((__m256i *)(void *)(dst + 96), d);
    }
    _mm_sfence();
}

void stream_copy(void *dst, const void *src, size_t size)
{
    size_t head = (size_t)(-(uintptr_t)dst & 127);
    if (head > size)
        head = size;
    memcpy(dst, src, head);
    size_t lines = (size - head) / 128;
    stream_lines((char *)dst + head, (const char *)src + head, lines);
    size_t done = head + lines * 128;
    memcpy((char *)dst + done, (const char *)src + done, size - done);
}

#else

bool stream_copy_available(void)
{
    return false;
}

void stream_copy(void *dst, const void *src, size_t size)
{
    memcpy(dst, src, size);
}

#endif
