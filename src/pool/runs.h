/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.h - mapped stretches at the ends of holes, by size: bins with a bitmap over them, so that
 * finding, adding and removing cost the same whatever their number.
 *
 * Up to 256 KiB a bin holds one size (in quanta), above that 1/32 of a doubling. Within a bin the
 * best of the first few is taken.
 */
#ifndef BLYI_RUNS_H
#define BLYI_RUNS_H

#include "base/compiler.h"
#include "pool/arena.h"

#define BLYI_RUNS_SUB   32u /* bins of a doubling */
#define BLYI_RUNS_WORDS 18u
#define BLYI_RUNS_BINS  (BLYI_RUNS_WORDS * 64u)

struct blyi_runs {
    uint64_t top; /* bit per word that is not 0 */
    uint64_t words[BLYI_RUNS_WORDS];
    struct blyi_run_link *heads[BLYI_RUNS_BINS];
};

static inline struct blyi_span *blyi_run_span(const struct blyi_run_link *link)
{
    return BLYI_CONTAINER(link - link->end, struct blyi_span, links[0]);
}

static inline uint32_t blyi_runs_bin(uint64_t size)
{
    uint64_t quanta = size / BLYI_QUANTUM;
    if (quanta < UINT64_C(2) * BLYI_RUNS_SUB)
        return (uint32_t)quanta;
    uint32_t order = 63u - (uint32_t)__builtin_clzll(quanta); /* 6 and above */
    uint32_t sub = (uint32_t)(quanta >> (order - 5)) & (BLYI_RUNS_SUB - 1);
    return (order - 4) * BLYI_RUNS_SUB + sub;
}

static inline void blyi_runs_add(struct blyi_runs *runs, struct blyi_run_link *link, uint64_t size)
{
    uint32_t bin = blyi_runs_bin(size);
    struct blyi_run_link *head = runs->heads[bin];
    link->bin = bin;
    link->prev = NULL;
    link->next = head;
    if (head != NULL) {
        head->prev = link;
    } else {
        runs->words[bin / 64] |= UINT64_C(1) << bin % 64;
        runs->top |= UINT64_C(1) << bin / 64;
    }
    runs->heads[bin] = link;
}

static inline void blyi_runs_remove(struct blyi_runs *runs, struct blyi_run_link *link)
{
    uint32_t bin = link->bin;
    if (link->next != NULL)
        link->next->prev = link->prev;
    if (link->prev != NULL) {
        link->prev->next = link->next;
        return;
    }
    runs->heads[bin] = link->next;
    if (link->next == NULL && (runs->words[bin / 64] &= ~(UINT64_C(1) << bin % 64)) == 0)
        runs->top &= ~(UINT64_C(1) << bin / 64);
}

/* The first bin from `bin` on that holds something; BLYI_RUNS_BINS: none. */
static inline uint32_t blyi_runs_up(const struct blyi_runs *runs, uint32_t bin)
{
    uint32_t word = bin / 64;
    uint64_t bits = runs->words[word] & ~UINT64_C(0) << bin % 64;
    if (bits == 0) {
        uint64_t top = word + 1 < 64 ? runs->top & ~UINT64_C(0) << (word + 1) : 0;
        if (top == 0)
            return BLYI_RUNS_BINS;
        word = (uint32_t)__builtin_ctzll(top);
        bits = runs->words[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The last bin up to `bin` that holds something; BLYI_RUNS_BINS: none. */
static inline uint32_t blyi_runs_down(const struct blyi_runs *runs, uint32_t bin)
{
    uint32_t word = bin / 64;
    uint64_t bits = runs->words[word] & ~UINT64_C(0) >> (63 - bin % 64);
    if (bits == 0) {
        uint64_t top = runs->top & ((UINT64_C(1) << word) - 1);
        if (top == 0)
            return BLYI_RUNS_BINS;
        word = 63u - (uint32_t)__builtin_clzll(top);
        bits = runs->words[word];
    }
    return word * 64 + 63u - (uint32_t)__builtin_clzll(bits);
}

#endif
