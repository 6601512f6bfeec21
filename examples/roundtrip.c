/* SPDX-License-Identifier: Apache-2.0
 *
 * roundtrip.c - bytes go to the card and back: pinned host memory, one stream, one check.
 *
 * Shows: pinned memory makes a copy truly asynchronous; nothing may be assumed of the
 * destination before the stream is synchronised; a copy larger than its destination is refused.
 */
#include "acl_check.h"
#include <string.h>

enum { SIZE = 8 << 20 };

int main(void)
{
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    aclrtStream stream;
    CHECK_ACL(aclrtCreateStream(&stream));

    void *sent, *received, *on_card;
    CHECK_ACL(aclrtMallocHost(&sent, SIZE));
    CHECK_ACL(aclrtMallocHost(&received, SIZE));
    CHECK_ACL(aclrtMalloc(&on_card, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));

    for (size_t i = 0; i < SIZE; i++)
        ((unsigned char *)sent)[i] = (unsigned char)(i * 31 + i / 4096);
    memset(received, 0, SIZE);

    CHECK_ACL(aclrtMemcpyAsync(on_card, SIZE, sent, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_ACL(aclrtMemcpyAsync(received, SIZE, on_card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));
    printf("%d bytes to the card and back: %s\n", SIZE,
           memcmp(sent, received, SIZE) == 0 ? "equal" : "DIFFERENT");

    aclError error = aclrtMemcpy(received, 10, on_card, 11, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("11 bytes into a destination of 10: refused with %d\n  %s\n", error,
           aclGetRecentErrMsg());

    int failed = memcmp(sent, received, SIZE) != 0 || error == ACL_SUCCESS;
    CHECK_ACL(aclrtFree(on_card));
    CHECK_ACL(aclrtFreeHost(received));
    CHECK_ACL(aclrtFreeHost(sent));
    CHECK_ACL(aclrtDestroyStream(stream));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return failed;
}
