/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_bytes.c - moving bytes as fast as the host can.
 *
 * Stores that bypass the cache spare the read of each destination line, but lose what the cache
 * would have kept. Rule: a copy bypasses when what it reads and writes together fills the
 * last-level cache, size >= L3 / 2. Measured on a 32 MiB L3 (EPYC, 2 cores, warm buffers, GB/s,
 * memcpy : streaming): 8 MiB 54 : 43, 16 MiB 37 : 40, 32 MiB 25 : 30, 64 MiB 20 : 27. With cold
 * buffers streaming leads from 1 MiB on (20 : 26), but nobody can tell from here.
 */
#include "npu/copy_inside.h"

#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/sanitizer.h"
#include "base/sys.h"
#include "npu/copy.h"

/* Under a sanitizer memcpy looks at its shadow first, and dies there when the memory is not
 * there. So it is the bare instruction then; TSan is told once the bytes have arrived. */
#if BLYI_WITH_TSAN
void __tsan_read_range(const void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
#endif

#if (BLYI_WITH_TSAN || BLYI_WITH_ASAN) && defined(__x86_64__)
#define BARE 1
#else
#define BARE 0
#endif

/* A word that lies aligned at both ends is moved by one load and one store, never in parts: streams
 * wait for such words (value.h). Relaxed: whoever waits looks with an order of its own. */
static inline bool is_word(const void *dst, const void *src, size_t size)
{
    return (size == sizeof(uint64_t) || size == sizeof(uint32_t)) &&
           ((uintptr_t)dst | (uintptr_t)src) % size == 0;
}

#if BARE
#if BLYI_WITH_TSAN
/* What was done to a word, told as the one access that it is elsewhere. */
static void tell_word(void *dst, const void *src, size_t size)
{
    if (size == sizeof(uint64_t)) {
        (void)__atomic_load_n((const uint64_t *)src, __ATOMIC_RELAXED);
        (void)__atomic_fetch_or((uint64_t *)dst, 0, __ATOMIC_RELAXED);
    } else {
        (void)__atomic_load_n((const uint32_t *)src, __ATOMIC_RELAXED);
        (void)__atomic_fetch_or((uint32_t *)dst, 0, __ATOMIC_RELAXED);
    }
}
#endif

static void copy_bare(void *dst, const void *src, size_t size)
{
    void *to = dst;
    const void *from = src;
    size_t left = size;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
#if BLYI_WITH_TSAN
    if (is_word(dst, src, size)) {
        tell_word(dst, src, size);
        return;
    }
    __tsan_read_range(src, size);
    __tsan_write_range(dst, size);
#endif
}

static void set_bare(void *dst, uint8_t value, size_t size)
{
    void *to = dst;
    size_t left = size;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(value) : "memory");
#if BLYI_WITH_TSAN
    __tsan_write_range(dst, size);
#endif
}
#elif defined(__x86_64__)
#include <immintrin.h>

#define STREAM_LEAST   ((size_t)4 << 20) /* whatever the machine says of its cache */
#define STREAM_MOST    ((size_t)64 << 20)
#define STREAM_UNKNOWN ((size_t)8 << 20)

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

/* The last-level cache as the kernel describes it. sysconf() can count it once for each core that
 * shares it (384 MiB where there are 32). 0: unknown. */
static size_t cache_size(void)
{
    char text[32] = "";
    int fd =
        blyi_sys_open("/sys/devices/system/cpu/cpu0/cache/index3/size", O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        if (blyi_sys_read(fd, text, sizeof(text) - 1) < 0)
            text[0] = '\0';
        close(fd);
    }
    size_t kib = strtoul(text, NULL, 10);
    long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return kib > 0 ? kib << 10 : told > 0 ? (size_t)told : 0;
}

/* Size from which copies bypass the cache; SIZE_MAX where the CPU cannot. */
static size_t stream_above(void)
{
    static size_t known; /* two readers store the same */
    size_t above = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (likely(above != 0))
        return above;
    size_t cache = cache_size();
    above = cache > 0 ? cache / 2 : STREAM_UNKNOWN;
    above = above < STREAM_LEAST ? STREAM_LEAST : above > STREAM_MOST ? STREAM_MOST : above;
    if (!__builtin_cpu_supports("avx2"))
        above = SIZE_MAX;
    __atomic_store_n(&known, above, __ATOMIC_RELAXED);
    return above;
}
#endif

#if !BARE
static void copy_word(void *dst, const void *src, size_t size)
{
    if (size == sizeof(uint64_t))
        __atomic_store_n((uint64_t *)dst, __atomic_load_n((const uint64_t *)src, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    else
        __atomic_store_n((uint32_t *)dst, __atomic_load_n((const uint32_t *)src, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}
#endif

void blyi_copy_bytes(void *dst, const void *src, size_t size)
{
#if BARE
    copy_bare(dst, src, size);
#else
    if (is_word(dst, src, size)) {
        copy_word(dst, src, size);
        return;
    }
#if defined(__x86_64__)
    if (unlikely(size >= STREAM_LEAST) && size >= stream_above()) {
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
