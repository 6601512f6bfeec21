/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that opens the library by name, as language bindings do.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *library = dlopen("libascendcl.so", RTLD_NOW);
    int (*init)(const char *) = NULL;
    if (library != NULL)
        *(void **)&init = dlsym(library, "aclInit");
    if (init == NULL) {
        printf("not opened: %s\n", dlerror());
        return 1;
    }
    printf("aclInit %d\n", init(NULL));
    return 0;
}
