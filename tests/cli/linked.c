/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as users write it: one block is freed, two leak, and a stream as well. "unused" uses
 * no card, "twice" frees what is free.
 */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *load_weights(size_t size)
{
    void *block = NULL;
    if (aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS)
        printf("refused: %s\n", aclGetRecentErrMsg() != NULL ? "with a sentence" : "without");
    return block;
}

int main(int argc, char **argv)
{
    void *workspace = NULL;
    aclrtStream stream = NULL;
    const char *how = argc > 1 ? argv[1] : "";
    size_t free_bytes = 0, total = 0;
    if (strcmp(how, "unused") == 0)
        return 0;
    if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS)
        return 1;
    aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total);
    printf("total %zu\n", total);
    aclrtMallocAlign32(&workspace, 32 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
    load_weights(2 << 20);
    load_weights(1000);
    aclrtFree(workspace);
    aclrtCreateStream(&stream);
    if (strcmp(how, "twice") == 0) {
        aclrtFree(workspace);
        aclrtFreeHost(workspace);
    }
    if (strcmp(how, "abort") == 0)
        abort();
    return atoi(how);
}
