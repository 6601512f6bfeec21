/* SPDX-License-Identifier: Apache-2.0
 *
 * bits.h - ranges of bits in an array of 64-bit words, a word at a time. No locking.
 */
#ifndef BLYI_BITS_H
#define BLYI_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define BLYI_BITS_WORDS(n) (((uint64_t)(n) + 63) / 64)

static inline bool blyi_bits_get(const uint64_t *words, uint32_t bit)
{
    return (words[bit / 64] >> (bit % 64)) & 1;
}

/* The part of word `first / 64` that lies in [first, end), as a mask; first < end. */
static inline uint64_t blyi_bits_mask(uint32_t first, uint32_t end)
{
    uint64_t mask = ~(uint64_t)0 << (first % 64);
    if (end / 64 == first / 64)
        mask &= ((uint64_t)1 << (end % 64)) - 1;
    return mask;
}

/* Start of the next word: for (; first < end; first = blyi_bits_next(first)). */
static inline uint32_t blyi_bits_next(uint32_t first)
{
    return (first / 64 + 1) * 64;
}

static inline void blyi_bits_set(uint64_t *words, uint32_t first, uint32_t end)
{
    for (; first < end; first = blyi_bits_next(first))
        words[first / 64] |= blyi_bits_mask(first, end);
}

static inline void blyi_bits_clear(uint64_t *words, uint32_t first, uint32_t end)
{
    for (; first < end; first = blyi_bits_next(first))
        words[first / 64] &= ~blyi_bits_mask(first, end);
}

static inline uint32_t blyi_bits_count(const uint64_t *words, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    for (; first < end; first = blyi_bits_next(first))
        count += (uint32_t)__builtin_popcountll(words[first / 64] & blyi_bits_mask(first, end));
    return count;
}

/* First bit at or behind `from` that is `value`; `end` when there is none before it. */
static inline uint32_t blyi_bits_find(const uint64_t *words, uint32_t from, uint32_t end,
                                      bool value)
{
    uint64_t flip = value ? 0 : ~(uint64_t)0;
    for (; from < end; from = blyi_bits_next(from)) {
        uint64_t hits = (words[from / 64] ^ flip) & blyi_bits_mask(from, end);
        if (hits != 0)
            return from / 64 * 64 + (uint32_t)__builtin_ctzll(hits);
    }
    return end;
}

#endif
