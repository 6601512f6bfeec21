/* SPDX-License-Identifier: Apache-2.0
 *
 * fullest.c - two levels of block maxima: at most 4 * 64 + n / 4096 values are read.
 */
#include "plan/fullest.h"

#include "base/fail.h"
#include "base/host.h"

#define BLOCK ((size_t)64)

static void fold(const int64_t *values, size_t n, int64_t *blocks)
{
    for (size_t b = 0; b * BLOCK < n; b++) {
        int64_t most = values[b * BLOCK];
        for (size_t x = b * BLOCK; x < n && x < (b + 1) * BLOCK; x++)
            most = values[x] > most ? values[x] : most;
        blocks[b] = most;
    }
}

bly_status blyi_fullest_init(struct blyi_fullest *f, const int64_t *values, size_t n)
{
    size_t n_blocks = n / BLOCK + 1;
    f->values = values;
    f->blocks = blyi_host_calloc(n_blocks, sizeof(int64_t));
    f->super = blyi_host_calloc(n_blocks / BLOCK + 1, sizeof(int64_t));
    if (f->blocks == NULL || f->super == NULL) {
        blyi_fullest_fini(f);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the maxima of %zu values", n);
    }
    fold(values, n, f->blocks);
    fold(f->blocks, n_blocks, f->super);
    return BLY_OK;
}

void blyi_fullest_fini(struct blyi_fullest *f)
{
    blyi_host_free(f->blocks);
    blyi_host_free(f->super);
    f->blocks = f->super = NULL;
}

int64_t blyi_fullest_of(const struct blyi_fullest *f, size_t first, size_t last)
{
    int64_t most = f->values[first];
    for (size_t x = first; x <= last;) {
        size_t step = 1;
        int64_t value = f->values[x];
        if (x % (BLOCK * BLOCK) == 0 && x + BLOCK * BLOCK - 1 <= last) {
            step = BLOCK * BLOCK;
            value = f->super[x / step];
        } else if (x % BLOCK == 0 && x + BLOCK - 1 <= last) {
            step = BLOCK;
            value = f->blocks[x / step];
        }
        most = value > most ? value : most;
        x += step;
    }
    return most;
}
