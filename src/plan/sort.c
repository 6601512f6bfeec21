/* SPDX-License-Identifier: Apache-2.0
 *
 * sort.c - radix sort, 11 bits a pass, or 8 where there are few keys; passes in which all keys
 * agree are skipped.
 */
#include "plan/sort.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 11
#define FEW        1024 /* keys: counting 2^11 digits would take longer than moving them */
#define FEW_BITS   8

static void insertion_sort(struct blyi_sort_key *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct blyi_sort_key key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1].key > key.key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

void blyi_sort_keys(struct blyi_sort_key *keys, struct blyi_sort_key *spare, size_t n)
{
    if (n < 48) {
        insertion_sort(keys, n);
        return;
    }
    uint64_t all_or = 0, all_and = UINT64_MAX;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        all_or |= keys[i].key;
        all_and &= keys[i].key;
        sorted &= keys[i > 0 ? i - 1 : 0].key <= keys[i].key;
    }
    if (sorted)
        return; /* the rule for births, which come in order of time */
    uint64_t differ = all_or ^ all_and;
    unsigned bits = n < FEW ? FEW_BITS : DIGIT_BITS, mask = (1u << bits) - 1;
    struct blyi_sort_key *from = keys, *to = spare;
    for (unsigned shift = 0; shift < 64; shift += bits) {
        if (((differ >> shift) & mask) == 0)
            continue;
        uint32_t at[1u << DIGIT_BITS];
        memset(at, 0, (mask + (size_t)1) * sizeof(*at));
        for (size_t i = 0; i < n; i++)
            at[(from[i].key >> shift) & mask]++;
        uint32_t sum = 0;
        for (unsigned d = 0; d <= mask; d++) {
            uint32_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[(from[i].key >> shift) & mask]++] = from[i];
        struct blyi_sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof(*keys));
}
