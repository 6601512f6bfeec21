/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that holds memory, a stream and small blocks on a card until its input ends.
 *   holder MIB          a block of so many MiB
 *   holder MIB export   prints a key to it as well
 *   holder MIB export N ... and exports N blocks more, of 2 MiB, 4 MiB, 6 MiB...
 *   holder MIB KEY      opens that key as well
 */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int share(void *block, size_t size, const char *how)
{
    char key[65];
    if (how == NULL)
        return 0;
    if (strcmp(how, "export") != 0)
        return aclrtIpcMemImportByKey(&block, how, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT);
    int error = aclrtIpcMemGetExportKey(block, size, key, sizeof key,
                                        ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
    if (error == 0)
        puts(key);
    return error;
}

static int export_more(size_t n)
{
    char key[65];
    void *block;
    int error = 0;
    for (size_t i = 1; i <= n && error == 0; i++) {
        error = aclrtMallocAlign32(&block, i << 21, ACL_MEM_MALLOC_HUGE_FIRST);
        error = error || aclrtIpcMemGetExportKey(block, i << 21, key, sizeof key,
                                                 ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT);
    }
    return error;
}

int main(int argc, char **argv)
{
    void *block, *small;
    aclrtStream stream;
    size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20;
    int error = aclInit(NULL) || aclrtSetDevice(0) ||
                aclrtMallocAlign32(&block, size, ACL_MEM_MALLOC_HUGE_FIRST);
    for (int i = 0; i < 3; i++)
        error = error || aclrtMalloc(&small, 4000, ACL_MEM_MALLOC_NORMAL_ONLY);
    error = error || aclrtCreateStream(&stream);
    error = error || share(block, size, argc > 2 ? argv[2] : NULL);
    error = error || export_more(argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
    puts(error ? aclGetRecentErrMsg() : "holding");
    fclose(stdout);
    while (getchar() != EOF)
        ;
    return error;
}
