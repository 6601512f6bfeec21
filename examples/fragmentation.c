/* SPDX-License-Identifier: Apache-2.0
 *
 * fragmentation.c - total free is enough, the largest block is not.
 *
 * A service with dynamic shapes keeps some results alive between requests. Huge pages of 2 MiB
 * can be taken from anywhere, so ordinary blocks still fit; a block of 1 GiB pages needs a
 * gibibyte in one piece, and the survivors lie in the way of every one.
 */
#include "acl_check.h"

enum { MAX_BLOCKS = 4096 };
static const size_t SHAPES[] = {38u << 20, 50u << 20, 26u << 20, 62u << 20, 14u << 20};
static const size_t GIANT = (size_t)1 << 30;

static size_t free_bytes(void)
{
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    return free;
}

int main(void)
{
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));

    void *blocks[MAX_BLOCKS];
    int n = 0;
    while (n < MAX_BLOCKS) {
        size_t size = SHAPES[(size_t)n % (sizeof(SHAPES) / sizeof(SHAPES[0]))];
        if (aclrtMallocAlign32(&blocks[n], size, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS)
            break;
        n++;
    }
    (void)aclGetRecentErrMsg();
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (i % 10 == 0)
            kept++;
        else
            CHECK_ACL(aclrtFree(blocks[i]));
    }
    printf("%d blocks of 5 shapes filled the card; %d of them stay\n", n, kept);
    printf("free now: %zu MiB\n", free_bytes() >> 20);

    void *block;
    aclError error = aclrtMallocAlign32(&block, GIANT, ACL_MEM_MALLOC_HUGE_FIRST);
    printf("1 GiB of 2 MiB pages: %s\n", error == ACL_SUCCESS ? "fits" : "refused");
    if (error == ACL_SUCCESS)
        CHECK_ACL(aclrtFree(block));

    aclError giant = aclrtMallocAlign32(&block, GIANT, ACL_MEM_MALLOC_HUGE1G_ONLY);
    printf("1 GiB in one page:    %s\n", giant == ACL_SUCCESS ? "fits" : "refused");
    if (giant != ACL_SUCCESS)
        printf("  %s\n", aclGetRecentErrMsg());

    for (int i = 0; i < n; i += 10)
        CHECK_ACL(aclrtFree(blocks[i]));
    error = aclrtMallocAlign32(&block, GIANT, ACL_MEM_MALLOC_HUGE1G_ONLY);
    printf("... and after the %d survivors are freed: %s\n", kept,
           error == ACL_SUCCESS ? "fits" : "refused");
    if (error == ACL_SUCCESS)
        CHECK_ACL(aclrtFree(block));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return giant == ACL_SUCCESS || error != ACL_SUCCESS;
}
