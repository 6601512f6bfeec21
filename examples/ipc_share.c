/* SPDX-License-Identifier: Apache-2.0
 *
 * ipc_share.c - one block of card memory in two processes, without a copy.
 *
 *   producer   makes a block, exports it, admits the consumer by its pid, sends the key
 *   consumer   imports the key, adds one to every byte in place, closes it
 *
 * The key is text: a pipe, a file or a socket will do. The processes are started before either has
 * touched AscendCL: what a fork inherits of it is of no use to the child.
 */
#include "acl_check.h"

#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE     ((size_t)64 << 20)
#define KEY_SIZE 65

static void tell(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size)
        exit(1);
}

static void hear(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)bytes + done, size - done);
        if (n <= 0)
            exit(1);
        done += (size_t)n;
    }
}

static uint8_t *host_copy(const void *card, size_t size)
{
    void *host;
    CHECK_ACL(aclrtMallocHost(&host, size));
    CHECK_ACL(aclrtMemcpy(host, size, card, size, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
}

static int consumer(int in, int out)
{
    char key[KEY_SIZE];
    int32_t pid;
    void *block;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtDeviceGetBareTgid(&pid)); /* what the producer admits us by */
    tell(out, &pid, sizeof(pid));
    hear(in, key, sizeof(key));
    CHECK_ACL(aclrtIpcMemImportByKey(&block, key, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT));
    uint8_t *host = host_copy(block, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        host[i]++;
    CHECK_ACL(aclrtMemcpy(block, SIZE, host, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtIpcMemClose(key));
    tell(out, "done", 4);
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return 0;
}

static int producer(int in, int out)
{
    char key[KEY_SIZE], done[4];
    int32_t pid;
    void *block;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtMalloc(&block, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMemset(block, SIZE, 41, SIZE));
    CHECK_ACL(
        aclrtIpcMemGetExportKey(block, SIZE, key, sizeof(key), ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
    hear(in, &pid, sizeof(pid));
    CHECK_ACL(aclrtIpcMemSetImportPid(key, &pid, 1));
    tell(out, key, sizeof(key));
    hear(in, done, sizeof(done));
    uint8_t *host = host_copy(block, SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        if (host[i] != 42) {
            fprintf(stderr, "byte %zu is %d, not 42\n", i, host[i]);
            return 1;
        }
    }
    printf("%zu MiB of card memory were written by process %d and read by process %d\n", SIZE >> 20,
           pid, (int)getpid());
    CHECK_ACL(aclrtFreeHost(host));
    CHECK_ACL(aclrtIpcMemClose(key));
    CHECK_ACL(aclrtFree(block));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return 0;
}

int main(void)
{
    int to[2], from[2], status = 1;
    if (pipe(to) != 0 || pipe(from) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0)
        return consumer(to[0], from[1]);
    close(from[1]);
    if (producer(from[0], to[1]) != 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return status != 0;
}
