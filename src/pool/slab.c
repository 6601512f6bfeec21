/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.c - records of slabs, their slots at home.
 */
#include "pool/slab.h"

#include <string.h>

#include "base/assert.h"
#include "base/host.h"
#include "pool/cache.h"

struct blyi_slab_page {
    struct blyi_slab_page *next;
    char bytes[];
};

static size_t record_size(unsigned n_slots)
{
    return blyi_align_up(sizeof(struct blyi_slab) + n_slots * sizeof(uint16_t), 8);
}

/* Each step doubles the bits that are right; of an odd number three are at first. */
static uint64_t inverse_of(uint64_t odd)
{
    uint64_t inverse = odd;
    for (unsigned bits = 3; bits < 64; bits *= 2)
        inverse *= 2 - odd * inverse;
    return inverse;
}

static void init(struct blyi_slab *slab, struct blyi_depot *depot, unsigned class)
{
    memset(slab, 0, sizeof(*slab));
    blyi_list_init(&slab->link);
    slab->depot = depot;
    slab->class = (uint8_t) class;
    slab->shift = (uint8_t)__builtin_ctzll(blyi_class_size(class));
    slab->inverse = inverse_of(blyi_class_size(class) >> slab->shift);
}

size_t blyi_slab_make(struct blyi_slab_page **pages, struct blyi_depot *depot, unsigned class,
                      struct blyi_list *unused)
{
    size_t size = record_size(blyi_class_slots(class)), n = (1024 + size - 1) / size;
    struct blyi_slab_page *page = blyi_host_alloc(sizeof(*page) + n * size);
    if (page == NULL)
        return 0;
    page->next = *pages;
    *pages = page;
    for (size_t i = 0; i < n; i++) {
        struct blyi_slab *slab = (struct blyi_slab *)(void *)(page->bytes + i * size);
        init(slab, depot, class);
        blyi_list_push_back(unused, &slab->link);
    }
    return sizeof(*page) + n * size;
}

void blyi_slab_drop(struct blyi_slab_page *pages)
{
    while (pages != NULL) {
        struct blyi_slab_page *next = pages->next;
        blyi_host_free(pages);
        pages = next;
    }
}

void blyi_slab_reset(struct blyi_slab *slab, bly_pool_region region, unsigned n)
{
    bly_assert(n <= blyi_class_slots(slab->class)); /* there is a state of each */
    slab->n = n;
    slab->region = (uint8_t)region;
    slab->bin = BLYI_BIN_PLACE(region == BLY_POOL_ANY ? slab->class : BLYI_CLASSES);
    slab->n_home = (uint16_t)slab->n;
    slab->home[0] = slab->n >= 64 ? UINT64_MAX : (UINT64_C(1) << slab->n) - 1;
    slab->home[1] = slab->n <= 64    ? 0
                    : slab->n == 128 ? UINT64_MAX
                                     : (UINT64_C(1) << (slab->n - 64)) - 1;
    for (uint64_t i = 0; i < slab->n; i++)
        blyi_slab_set_state(slab, i, BLYI_SLOT_FREE);
}

unsigned blyi_slab_take(struct blyi_slab *slab)
{
    unsigned word = slab->home[0] == 0;
    bly_assert(slab->n_home > 0 && slab->home[word] != 0);
    unsigned bit = (unsigned)__builtin_ctzll(slab->home[word]);
    slab->home[word] &= slab->home[word] - 1;
    slab->n_home--;
    return 64 * word + bit;
}

bool blyi_slab_put(struct blyi_slab *slab, uint64_t slot)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    bly_assert(slot < slab->n);
    if ((slab->home[slot / 64] & bit) != 0)
        return false;
    slab->home[slot / 64] |= bit;
    slab->n_home++;
    return true;
}
