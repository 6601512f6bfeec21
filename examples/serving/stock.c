/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.c - every tensor from the card. aclrtFree does not wait for queued work, so the caller
 * must.
 */
#include "../acl_check.h"
#include "allocator.h"

static void nothing(void)
{
}

static void *take(size_t bytes, aclrtStream stream)
{
    void *memory;
    (void)stream;
    CHECK_ACL(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return memory;
}

static void give(void *memory, aclrtStream stream)
{
    (void)stream;
    CHECK_ACL(aclrtFree(memory));
}

const struct allocator allocator_stock = {"stock", false, nothing, take, give, nothing};
