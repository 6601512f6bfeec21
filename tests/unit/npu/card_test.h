/* SPDX-License-Identifier: Apache-2.0
 *
 * card_test.h - memory of the thread's card, filled and looked at, for tests of what moves it:
 * handles, mappings.
 */
#ifndef BLYI_CARD_TEST_H
#define BLYI_CARD_TEST_H

#include "base/compiler.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/vmm.h"
#include "order_test.h"

static inline struct blyi_card *card_here(void)
{
    struct blyi_card *card;
    assert_ok(blyi_context_here_card(&card));
    return card;
}

static inline void fill(void *address, uint64_t size, int mark)
{
    assert_ok(blyi_set_now(address, (uint8_t)mark, size));
}

static inline void check(const void *address, uint64_t size, int mark)
{
    unsigned char *seen = malloc(size);
    assert_non_null(seen);
    assert_ok(blyi_copy_now(seen, address, size));
    for (uint64_t i = 0; i < size; i += 4093)
        assert_int_equal(seen[i], mark);
    assert_int_equal(seen[size - 1], mark);
    free(seen);
}

static inline void *handle_of(uint64_t size, bool contiguous)
{
    struct blyi_physical_request request = {
        .card = card_here(), .size = size, .page_kind = BLYI_PAGE_HUGE, .contiguous = contiguous};
    void *handle = NULL;
    assert_ok(blyi_physical_create(&request, &handle));
    return handle;
}

static inline uintptr_t map(void *handle, uint64_t size)
{
    uintptr_t address;
    assert_ok(blyi_vmm_reserve(size, 0, 0, 1, &address));
    assert_ok(blyi_mapping_make(address, size, 0, handle, true, 1));
    return address;
}

#endif
