/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs whose recordings are explained: argv[1] says which. Without the library's checks a
 * failing call ends the story with its number.
 */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 1000
#define MIB  ((size_t)1 << 20)

static aclError code;
#define DO(call)                                                                                   \
    do {                                                                                           \
        if ((code = (call)) != 0)                                                                  \
            return (int)code;                                                                      \
    } while (0)

/* O-14: what rounding costs. */
static int waste(void)
{
    static void *padded[MANY], *plain[MANY];
    void *more[5];
    for (int i = 0; i < MANY; i++)
        DO(aclrtMalloc(&padded[i], 512, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < MANY; i++)
        DO(aclrtMallocAlign32(&plain[i], 512, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtMalloc(&more[0], 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtMallocAlign32(&more[1], 2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtMallocAlign32(&more[2], MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtMalloc(&more[3], MIB - 32, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtMalloc(&more[4], MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < MANY; i++) {
        DO(aclrtFree(padded[i]));
        DO(aclrtFree(plain[i]));
    }
    for (int i = 0; i < 5; i++)
        DO(aclrtFree(more[i]));
    return 0;
}

/* O-21: handles that nobody frees, and a request that then fails. */
static int orphans(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle;
    void *address;
    for (int i = 0; i < 64; i++) {
        DO(aclrtMallocPhysical(&handle, 8 * MIB, &prop, 0));
        DO(aclrtReserveMemAddress(&address, 8 * MIB, 0, NULL, 1));
        DO(aclrtMapMem(address, 8 * MIB, 0, handle, 0));
        DO(aclrtUnmapMem(address));
        DO(aclrtReleaseMemAddress(address));
    }
    return aclrtMallocAlign32(&address, 640 * MIB, ACL_MEM_MALLOC_HUGE_FIRST) == 207001 ? 0 : 1;
}

/* O-19 as stock allocations, and events that pile up (O-08). */
static int growth(void)
{
    aclrtEvent event;
    void *block;
    for (size_t i = 0; i < 64; i++) {
        size_t bytes = 8 * MIB + i * 65536;
        DO(aclrtMallocAlign32(&block, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
        DO(aclrtMemset(block, bytes, 1, bytes));
        DO(aclrtFree(block));
        DO(aclrtCreateEvent(&event));
    }
    return 0;
}

/* Limits that are not the card's (O-25): a cap of 400 MiB, pinned memory of 1 MiB. */
static int limits(void)
{
    void *block[3];
    DO(aclrtMallocAlign32(&block[0], 256 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    int error = aclrtMallocAlign32(&block[1], 200 * MIB, ACL_MEM_MALLOC_HUGE_FIRST) == 0;
    error = error || aclrtMallocHost(&block[2], 4 * MIB) == 0;
    DO(aclrtFree(block[0]));
    return error;
}

/* Two streams write one block, and nothing keeps them apart. */
static int race(void)
{
    aclrtStream first, second;
    void *block;
    DO(aclrtMallocAlign32(&block, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    DO(aclrtCreateStream(&first));
    DO(aclrtCreateStream(&second));
    DO(aclrtMemsetAsync(block, 4 * MIB, 1, 4 * MIB, first));
    DO(aclrtMemsetAsync(block, 4 * MIB, 2, 4 * MIB, second));
    DO(aclrtSynchronizeStream(first));
    DO(aclrtSynchronizeStream(second));
    DO(aclrtDestroyStream(first));
    DO(aclrtDestroyStream(second));
    DO(aclrtFree(block));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*tell)(void);
    } stories[] = {{"waste", waste},
                   {"orphans", orphans},
                   {"growth", growth},
                   {"limits", limits},
                   {"race", race}};
    int status = aclInit(NULL) || aclrtSetDevice(0);
    for (size_t i = 0; argc > 1 && i < sizeof(stories) / sizeof(stories[0]); i++)
        if (strcmp(argv[1], stories[i].name) == 0)
            status = status ? status : stories[i].tell();
    if (status)
        printf("failed: %d\n", status);
    return status != 0;
}
