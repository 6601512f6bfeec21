/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that binds a card, waits for a line, and then holds every second of its blocks until
 * its input ends: free memory in pieces of 2 MiB. Then it looks whether its data are as they were.
 */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)2 << 20)
#define MOST  64

int main(int argc, char **argv)
{
    char *blocks[MOST], *host = malloc(BLOCK);
    int n = argc > 1 ? atoi(argv[1]) : 16;
    int error = host == NULL || n > MOST || aclInit(NULL) || aclrtSetDevice(0);
    puts(error ? "failed" : "bound");
    fflush(stdout);
    error = error || getchar() == EOF;
    for (int i = 0; i < n && !error; i++) {
        error = aclrtMallocAlign32((void **)&blocks[i], BLOCK, ACL_MEM_MALLOC_HUGE_ONLY);
        if (!error && i % 4 == 1)
            error = aclrtMemset(blocks[i], BLOCK, i, BLOCK);
    }
    for (int i = 0; i < n && !error; i += 2)
        error = aclrtFree(blocks[i]);
    puts(error ? "failed" : "scattered");
    fclose(stdout);
    while (getchar() != EOF)
        ;
    for (int i = 1; i < n && !error; i += 4) {
        error = aclrtMemcpy(host, BLOCK, blocks[i], BLOCK, ACL_MEMCPY_DEVICE_TO_HOST) ||
                host[0] != (char)i || memcmp(host, host + 1, BLOCK - 1) != 0;
    }
    free(host);
    return error;
}
