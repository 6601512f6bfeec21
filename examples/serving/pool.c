/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - Belay's pool: one for the card, in the order of each stream.
 */
#include <belay/pool.h>

#include "../acl_check.h"
#include "allocator.h"

static bly_pool *pool;

static void check(bly_status status)
{
    if (status != BLY_OK) {
        fprintf(stderr, "pool: %s\n", bly_last_error());
        exit(1);
    }
}

static void start(void)
{
    check(bly_pool_create(NULL, &pool));
}

static void *take(size_t bytes, aclrtStream stream)
{
    void *memory;
    check(bly_pool_alloc(pool, bytes, stream, &memory));
    return memory;
}

static void give(void *memory, aclrtStream stream)
{
    (void)stream; /* the one it was taken for */
    check(bly_pool_free(memory));
}

static void stop(void)
{
    check(bly_pool_destroy(pool));
}

const struct allocator allocator_pool = {"pool", true, start, take, give, stop};
