/* SPDX-License-Identifier: Apache-2.0
 *
 * word.h - words of memory that several threads use, compared and changed in one instruction, for
 * paths of a few ns. The compilers load an atomic into a register first, and so need two or three.
 *
 * Words that decide are acquire loads; the rest is relaxed, and nobody else adds to a figure
 * meanwhile.
 */
#ifndef BLYI_WORD_H
#define BLYI_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/sanitizer.h"

#if defined(__x86_64__) && !BLYI_WITH_TSAN
#define BLYI_WORDS_IN_PLACE 1
#endif

#define BLYI_READ(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)

/* Whether a place of 8 bytes has a value, a number or a pointer. */
#if defined(BLYI_WORDS_IN_PLACE)
#define BLYI_WORD_IS(place, value)                                                                 \
    __extension__({                                                                                \
        bool is_;                                                                                  \
        _Static_assert(sizeof(__typeof__(place)) == 8, "a word");                                  \
        __asm__("cmpq %2, %1" : "=@cce"(is_) : "m"(place), "r"(value));                            \
        __atomic_signal_fence(__ATOMIC_ACQUIRE); /* the processor keeps the order of loads */      \
        is_;                                                                                       \
    })
#else
#define BLYI_WORD_IS(place, value) (__atomic_load_n(&(place), __ATOMIC_ACQUIRE) == (value))
#endif

/* Whether any of the bits is set. */
static inline bool blyi_word_has(const uint64_t *word, uint8_t bits)
{
#if defined(BLYI_WORDS_IN_PLACE)
    bool has;
    __asm__("testb %2, %1" : "=@ccnz"(has) : "m"(*(const uint8_t *)word), "qi"(bits));
    return has;
#else
    return (__atomic_load_n(word, __ATOMIC_RELAXED) & bits) != 0;
#endif
}

/* value - *word */
static inline uint64_t blyi_word_off(uint64_t value, const uint64_t *word)
{
#if defined(BLYI_WORDS_IN_PLACE)
    __asm__("subq %1, %0" : "+r"(value) : "m"(*word) : "cc");
    return value;
#else
    return value - __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

/* value & *word */
static inline uint64_t blyi_word_masked(uint64_t value, const uint64_t *word)
{
#if defined(BLYI_WORDS_IN_PLACE)
    __asm__("andq %1, %0" : "+r"(value) : "m"(*word) : "cc");
    __atomic_signal_fence(__ATOMIC_ACQUIRE); /* as above */
    return value;
#else
    return value & __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

static inline void blyi_word_add(uint64_t *figure, uint64_t n)
{
#if defined(BLYI_WORDS_IN_PLACE)
    __asm__("addq %1, %0" : "+m"(*figure) : "er"(n) : "cc");
#else
    __atomic_store_n(figure, *figure + n, __ATOMIC_RELAXED);
#endif
}

static inline void blyi_word_take(uint64_t *figure, uint64_t n)
{
#if defined(BLYI_WORDS_IN_PLACE)
    __asm__("subq %1, %0" : "+m"(*figure) : "er"(n) : "cc");
#else
    __atomic_store_n(figure, *figure - n, __ATOMIC_RELAXED);
#endif
}

#endif
