/* SPDX-License-Identifier: Apache-2.0
 *
 * cann_library.c - loading a vendor's library.
 */
#include "backend/cann_library.h"

#include <dlfcn.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"

bool blyi_cann_own_is_fine;

struct symbol {
    const char *name;
    size_t offset;
};

static const struct symbol symbols[] = {
#define SYMBOL(type, name, parameters) {#name, offsetof(struct blyi_cann_library, name)},
    BLYI_CANN_SYMBOLS(SYMBOL)
#undef SYMBOL
};

/* Ours brings libbelay.so along, whatever it is called and wherever it lies. */
static bool is_own(void *handle)
{
    return dlsym(handle, "bly_version") != NULL;
}

static const char *file_of(const void *address, const char *otherwise)
{
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : otherwise;
}

static bly_status find_all(struct blyi_cann_library *library, const char *path)
{
    for (size_t i = 0; i < BLYI_COUNT(symbols); i++) {
        void *address = dlsym(library->handle, symbols[i].name);
        if (address == NULL)
            return blyi_fail(BLY_E_UNSUPPORTED, "%s has no function %s", path, symbols[i].name);
        memcpy((char *)library + symbols[i].offset, &address, sizeof address);
    }
    return BLY_OK;
}

bly_status blyi_cann_load(const char *path, struct blyi_cann_library *library)
{
    const char *name = path != NULL ? path : "libascendcl.so";
    if (path != NULL && path[0] != '/')
        return blyi_fail(BLY_E_INVALID, "%s: a vendor's library is named by its absolute path",
                         path);
    *library = (struct blyi_cann_library){.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (library->handle == NULL)
        return blyi_fail(BLY_E_UNSUPPORTED, "no vendor's AscendCL: %s", dlerror());
    bly_status status = BLY_OK;
    if (!blyi_cann_own_is_fine && is_own(library->handle))
        status = blyi_fail(BLY_E_UNSUPPORTED, "%s is Belay's own, not a vendor's",
                           file_of(dlsym(library->handle, "aclrtMapMem"), name));
    if (status == BLY_OK)
        status = find_all(library, name);
    if (status != BLY_OK)
        blyi_cann_unload(library);
    return status;
}

void blyi_cann_unload(struct blyi_cann_library *library)
{
    if (library->handle != NULL)
        dlclose(library->handle);
    library->handle = NULL;
}
