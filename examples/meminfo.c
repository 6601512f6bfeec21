/* SPDX-License-Identifier: Apache-2.0
 *
 * meminfo.c - what aclrtGetMemInfo's "free" means, and how sizes turn into pages.
 *
 * Each line allocates once and shows by how much `free` fell: a small block costs a 4 KiB page,
 * a block above 1 MiB costs 2 MiB pages, and aclrtMalloc's 32 bytes of padding can cost a whole
 * page more than aclrtMallocAlign32. `huge free` counts whole 2 MiB pages only.
 */
#include "acl_check.h"

enum call { PADDED, ALIGN32 };

static size_t free_bytes(aclrtMemAttr attr)
{
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(attr, &free, &total));
    return free;
}

static void show(const char *what, size_t size, enum call call, aclrtMemMallocPolicy policy)
{
    size_t before = free_bytes(ACL_HBM_MEM), huge_before = free_bytes(ACL_HBM_MEM_HUGE);
    void *block;
    if (call == PADDED)
        CHECK_ACL(aclrtMalloc(&block, size, policy));
    else
        CHECK_ACL(aclrtMallocAlign32(&block, size, policy));
    printf("%-44s asked %9zu   free fell by %9zu   huge free by %9zu\n", what, size,
           before - free_bytes(ACL_HBM_MEM), huge_before - free_bytes(ACL_HBM_MEM_HUGE));
    CHECK_ACL(aclrtFree(block));
}

int main(void)
{
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    printf("%s: total %zu, free %zu: the runtime itself holds %zu\n\n", aclrtGetSocName(), total,
           free, total - free);

    show("aclrtMalloc 512 B", 512, PADDED, ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMalloc 4096 B: 32 more make two pages", 4096, PADDED, ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMallocAlign32 4096 B", 4096, ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMallocAlign32 1 MiB: still small pages", 1 << 20, ALIGN32,
         ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMalloc 1 MiB: 32 more make it huge", 1 << 20, PADDED, ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMalloc 2 MiB: 32 more, two huge pages", 2 << 20, PADDED, ACL_MEM_MALLOC_HUGE_FIRST);
    show("aclrtMallocAlign32 2 MiB", 2 << 20, ALIGN32, ACL_MEM_MALLOC_HUGE_FIRST);

    void *block;
    aclError error = aclrtMalloc(&block, total, ACL_MEM_MALLOC_HUGE_FIRST);
    printf("\nthe whole card at once: refused with %d\n  %s\n", error, aclGetRecentErrMsg());

    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return error == ACL_SUCCESS;
}
