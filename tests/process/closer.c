/* SPDX-License-Identifier: Apache-2.0
 *
 * closer LIBRARY MODE - opens the library, makes a stream busy, and closes the library: 0: then
 * returns, 1: finalises first, 2: opens it once more and goes on.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <acl/acl.h>

#define BLOCK ((size_t)16 << 20)

static atomic_bool began;

static void slow(void *arg)
{
    (void)arg;
    atomic_store(&began, true);
    usleep(20000);
}

/* Calls NAME of the library. */
#define CALL(name) ((__typeof__(&(name)))dlsym(library, #name))

int main(int argc, char **argv)
{
    int mode = argc > 2 ? atoi(argv[2]) : 0, error;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, *block = NULL;
    aclrtStream stream = NULL;
    if (library == NULL)
        return 2;
    error = CALL(aclInit)(NULL) || CALL(aclrtSetDevice)(0) ||
            CALL(aclrtMallocAlign32)(&block, BLOCK, ACL_MEM_MALLOC_HUGE_FIRST) ||
            CALL(aclrtCreateStream)(&stream) || CALL(aclrtLaunchHostFunc)(stream, slow, NULL);
    for (int i = 0; i < 50 && !error; i++)
        error = CALL(aclrtMemsetAsync)(block, BLOCK, i, BLOCK, stream);
    while (!error && !atomic_load(&began))
        usleep(50);
    if (mode == 1)
        error = error || CALL(aclFinalize)();
    error = error || dlclose(library);
    if (mode != 2 || error)
        return error;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 3;
    return CALL(aclrtSynchronizeStream)(stream) || CALL(aclrtFree)(block) || CALL(aclFinalize)();
}
