/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose memory comes from a pool that it made itself. */
#include <acl/acl.h>
#include <belay/pool.h>

int main(void)
{
    const bly_pool_opts opts = {.struct_size = sizeof opts};
    bly_pool *pool;
    void *block;
    if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0 || bly_pool_create(&opts, &pool) != BLY_OK ||
        bly_pool_alloc(pool, (uint64_t)64 << 20, NULL, &block) != BLY_OK ||
        bly_pool_free(block) != BLY_OK || bly_pool_destroy(pool) != BLY_OK)
        return 1;
    return aclrtResetDevice(0) != 0 || aclFinalize() != 0;
}
