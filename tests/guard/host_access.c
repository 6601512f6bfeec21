/* SPDX-License-Identifier: Apache-2.0
 *
 * host_access.c CASE - a program whose host code touches card memory, for test_guard.sh.
 *   write, read, freed, handled (own handler, goes on), thread, callback
 */
#include <acl/acl.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 1000000

static sigjmp_buf on_fault;

static void must(aclError error)
{
    if (error == ACL_SUCCESS)
        return;
    fprintf(stderr, "%d: %s\n", (int)error, aclGetRecentErrMsg());
    exit(3);
}

__attribute__((noinline)) static char *make_block(void)
{
    void *block;
    must(aclrtMalloc(&block, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    must(aclrtMemset(block, SIZE, 7, SIZE));
    return block;
}

__attribute__((noinline)) static void write_host(volatile char *at)
{
    at[40] = 1;
}

__attribute__((noinline)) static int read_host(const volatile char *at)
{
    return at[40];
}

static void *in_thread(void *block)
{
    write_host(block);
    return NULL;
}

static void go_on(int signal)
{
    (void)signal;
    siglongjmp(on_fault, 1);
}

/* Twice at the same place: what was switched for the handler must be as before. */
static void handled(char *block)
{
    volatile int faults = 0;
    char byte = 0;
    for (volatile int i = 0; i < 2; i++) {
        if (sigsetjmp(on_fault, 1) == 0)
            write_host(block);
        else
            faults++;
        must(aclrtMemcpy(&byte, 1, block + 40, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    }
    printf("faults %d, byte %d\n", faults, byte);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (strcmp(name, "handled") == 0)
        signal(SIGSEGV, go_on);
    must(aclInit(NULL));
    must(aclrtSetDevice(0));
    char *block = make_block();
    if (strcmp(name, "write") == 0)
        write_host(block);
    else if (strcmp(name, "handled") == 0)
        handled(block);
    else if (strcmp(name, "read") == 0)
        printf("%d\n", read_host(block));
    else if (strcmp(name, "freed") == 0) {
        must(aclrtFree(block));
        write_host(block);
    } else if (strcmp(name, "thread") == 0) {
        pthread_create(&thread, NULL, in_thread, block);
        pthread_join(thread, NULL);
    } else if (strcmp(name, "callback") == 0) {
        must(aclrtLaunchHostFunc(NULL, (aclrtHostFunc)write_host, block));
        must(aclrtSynchronizeDevice());
    }
    must(aclrtFree(block));
    must(aclrtResetDevice(0));
    return 0;
}
