/* SPDX-License-Identifier: Apache-2.0
 *
 * live_pages.c - bits of pages, a word at a time.
 */
#include "npu/live_pages.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/host.h"

bly_status blyi_live_pages_make(struct blyi_window *window)
{
    uint64_t words = window->size / BLYI_LIVE_PAGE / 64; /* the window is whole granules */
    uint64_t *live = blyi_host_calloc(words, sizeof(*live));
    if (live == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "pinned host memory: no host memory for the table of pages (%" PRIu64
                         " bytes)",
                         words * sizeof(*live));
    __atomic_store_n(&window->live, live, __ATOMIC_RELEASE);
    return BLY_OK;
}

void blyi_live_pages_set(struct blyi_window *window, uintptr_t address, uint64_t size, bool live)
{
    uint64_t page = (address - window->base) / BLYI_LIVE_PAGE;
    uint64_t end = page + size / BLYI_LIVE_PAGE;
    while (page < end) {
        uint64_t bit = page % 64, n = end - page < 64 - bit ? end - page : 64 - bit;
        uint64_t mask = (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << bit;
        uint64_t *word = &window->live[page / 64];
        __atomic_store_n(word, live ? *word | mask : *word & ~mask, __ATOMIC_RELEASE);
        page += n;
    }
}

uint64_t blyi_live_pages_count(const struct blyi_window *window)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < window->size / BLYI_LIVE_PAGE / 64; i++)
        n += (uint64_t)__builtin_popcountll(window->live[i]);
    return n;
}
