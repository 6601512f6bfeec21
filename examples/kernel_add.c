/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_add - a kernel from a shared object: loaded, given its arguments, launched on eight
 * blocks, checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <acl/acl.h>
#include "acl_check.h"

enum { N = 1 << 20, BLOCKS = 8 };

/* kernels/add.so beside this program, unless a path is given. */
static const char *binary_path(int argc, char **argv)
{
    static char path[4096];
    if (argc > 1)
        return argv[1];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
    if (length < 0)
        return "kernels/add.so";
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, "kernels/add.so");
    return path;
}

int main(int argc, char **argv)
{
    const size_t bytes = N * sizeof(float);
    const char *path = binary_path(argc, argv);
    aclrtBinHandle binary;
    aclrtFuncHandle add;
    aclrtArgsHandle args;
    aclrtParamHandle param, length;
    aclrtStream stream;
    void *host, *a, *b, *sum, *buffer;
    float scale = 0.5f;

    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtMallocHost(&host, bytes));
    CHECK_ACL(aclrtMalloc(&a, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMalloc(&b, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMalloc(&sum, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    float *values = host;
    for (int i = 0; i < N; i++)
        values[i] = (float)i;
    CHECK_ACL(aclrtMemcpy(a, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclrtMemcpy(b, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));

    CHECK_ACL(aclrtBinaryLoadFromFile(path, NULL, &binary));
    CHECK_ACL(aclrtBinaryGetFunction(binary, "add_custom", &add));
    CHECK_ACL(aclrtKernelArgsInit(add, &args));
    CHECK_ACL(aclrtKernelArgsAppend(args, &a, sizeof(a), &param));
    CHECK_ACL(aclrtKernelArgsAppend(args, &b, sizeof(b), &param));
    CHECK_ACL(aclrtKernelArgsAppend(args, &sum, sizeof(sum), &param));
    CHECK_ACL(aclrtKernelArgsAppendPlaceHolder(args, &length));
    CHECK_ACL(aclrtKernelArgsAppend(args, &scale, sizeof(scale), &param));
    CHECK_ACL(aclrtKernelArgsGetPlaceHolderBuffer(args, length, sizeof(uint32_t), &buffer));
    memcpy(buffer, &(uint32_t){N}, sizeof(uint32_t));
    CHECK_ACL(aclrtKernelArgsFinalize(args));
    CHECK_ACL(aclrtLaunchKernelWithConfig(add, BLOCKS, stream, NULL, args, NULL));
    CHECK_ACL(aclrtSynchronizeStream(stream));

    CHECK_ACL(aclrtMemcpy(host, bytes, sum, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += values[i] != scale * ((float)i + (float)i);
    printf("add_custom on %d blocks: %d sums, %d wrong\n", BLOCKS, N, wrong);

    CHECK_ACL(aclrtBinaryUnLoad(binary));
    CHECK_ACL(aclrtFree(sum));
    CHECK_ACL(aclrtFree(b));
    CHECK_ACL(aclrtFree(a));
    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtDestroyStream(stream));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return wrong == 0 ? 0 : 1;
}
