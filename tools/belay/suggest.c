/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <string.h>

#define MAX_WORD 40

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace) from one word to the other; MAX_WORD when one is too long. */
static size_t distance(const char *from, const char *to)
{
    size_t row[MAX_WORD + 1], n = strlen(to);
    if (strlen(from) > MAX_WORD || n > MAX_WORD)
        return MAX_WORD;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; from[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t replaced = diagonal + (from[i] != to[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(replaced, least(row[j], row[j + 1]) + 1);
        }
    }
    return row[n];
}

const char *suggest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2; /* further away is another word */
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, candidates[i]);
        if (d < best_distance) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}
