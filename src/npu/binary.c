/* SPDX-License-Identifier: Apache-2.0
 *
 * binary.c - loading kernels from shared objects.
 *
 * All symbols are bound at load time: a kernel never enters the dynamic linker, whose lock it
 * would keep if it faulted there. Lock: rank BINARY, the functions of one binary.
 */
#include "npu/binary.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/order.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/sys.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"

struct blyi_binary {
    void *object; /* of dlopen */
    int fd;       /* of data, else -1: kept, since the loader knows an object by its path */
    void *handle;
    bool on_cpu;
    uint32_t refs;
    struct blyi_lock lock;
    struct blyi_list functions; /* struct function */
};

struct function {
    struct blyi_function shown;
    void *handle;
    struct blyi_list link; /* in its binary; a reference of the binary holds both */
    char name[];
};

void blyi_binary_ref(struct blyi_binary *binary)
{
    __atomic_fetch_add(&binary->refs, 1, __ATOMIC_RELAXED);
}

void blyi_binary_unref(struct blyi_binary *binary)
{
    if (!blyi_ref_drop(&binary->refs))
        return;
    dlclose(binary->object);
    if (binary->fd >= 0)
        close(binary->fd);
    blyi_lock_fini(&binary->lock);
    blyi_host_free(binary);
}

static void binary_gone(void *object)
{
    blyi_binary_unref(object);
}

static void function_gone(void *object)
{
    struct function *function = object;
    blyi_binary_unref(function->shown.binary);
    blyi_host_free(function);
}

/* `what` names the source in sentences; `fd` becomes the binary's on success. */
static bly_status open_object(const char *path, const char *what, int fd, bool on_cpu,
                              void **handle)
{
    struct blyi_binary *binary = blyi_host_calloc(1, sizeof(*binary));
    if (binary == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a kernel binary");
    binary->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (binary->object == NULL) {
        const char *reason = dlerror();
        blyi_host_free(binary);
        return blyi_fail(BLY_E_INVALID, "%s is no kernel binary for this process: %s", what,
                         reason != NULL ? reason : "no reason given");
    }
    binary->fd = -1;
    binary->on_cpu = on_cpu;
    binary->refs = 1;
    blyi_lock_init(&binary->lock, BLYI_RANK_BINARY);
    blyi_list_init(&binary->functions);
    bly_status status =
        blyi_handle_create(BLYI_HANDLE_BINARY, binary, binary_gone, &binary->handle);
    if (status != BLY_OK) {
        blyi_binary_unref(binary);
        return status;
    }
    binary->fd = fd;
    *handle = binary->handle;
    return BLY_OK;
}

bly_status blyi_binary_load(const char *path, bool on_cpu, void **handle)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK)
        return status;
    /* A name without a slash would be looked for among the system's libraries. */
    char *full = realpath(path, NULL);
    if (full == NULL)
        return blyi_fail(BLY_E_INVALID, "the kernel binary %s: %s", path, strerror(errno));
    status = open_object(full, full, -1, on_cpu, handle);
    free(full);
    return status;
}

static bool write_all(int fd, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = blyi_sys_pwrite(fd, data + done, size - done, (off_t)done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

bly_status blyi_binary_load_data(const void *data, size_t size, bool on_cpu, void **handle)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK)
        return status;
    int fd = blyi_sys_memfd_create("belay-kernel", MFD_CLOEXEC);
    if (fd < 0)
        return blyi_fail(BLY_E_SYSTEM, "no file for a kernel binary: %s", strerror(errno));
    if (!write_all(fd, data, size)) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "no room for a kernel binary of %zu bytes", size);
    } else {
        char path[64], what[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        snprintf(what, sizeof(what), "the data of %zu bytes", size);
        status = open_object(path, what, fd, on_cpu, handle);
    }
    if (status != BLY_OK)
        close(fd);
    return status;
}

bly_status blyi_binary_unload(void *handle)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_binary *binary = blyi_handle_get(BLYI_HANDLE_BINARY, handle);
    if (binary == NULL)
        return BLY_E_HANDLE;
    status = blyi_handle_remove(BLYI_HANDLE_BINARY, handle);
    if (status == BLY_OK) {
        struct blyi_list *link;
        blyi_lock_take(&binary->lock);
        while ((link = binary->functions.next) != &binary->functions) {
            struct function *function = BLYI_CONTAINER(link, struct function, link);
            blyi_list_remove(link);
            blyi_lock_drop(&binary->lock);
            blyi_handle_remove(BLYI_HANDLE_FUNCTION, function->handle);
            blyi_lock_take(&binary->lock);
        }
        blyi_lock_drop(&binary->lock);
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_binary_check(void *handle)
{
    if (blyi_handle_get(BLYI_HANDLE_BINARY, handle) == NULL)
        return BLY_E_HANDLE;
    blyi_handle_put(handle);
    return BLY_OK;
}

static struct function *find_locked(struct blyi_binary *binary, const char *name)
{
    BLYI_LIST_FOR(node, &binary->functions)
    {
        struct function *function = BLYI_CONTAINER(node, struct function, link);
        if (strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

static bly_status make_locked(struct blyi_binary *binary, const char *name, void **handle)
{
    void *symbol = dlsym(binary->object, name);
    if (symbol == NULL)
        return blyi_fail(BLY_E_NO_KERNEL, "the kernel binary has no function %s", name);
    size_t length = strlen(name) + 1;
    struct function *function = blyi_host_calloc(1, sizeof(*function) + length);
    if (function == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a kernel function");
    memcpy(function->name, name, length);
    memcpy(&function->shown.fn, &symbol, sizeof(symbol));
    function->shown.name = function->name;
    function->shown.binary = binary;
    function->shown.binary_handle = binary->handle;
    function->shown.on_cpu = binary->on_cpu;
    blyi_list_init(&function->link);
    bly_status status =
        blyi_handle_create(BLYI_HANDLE_FUNCTION, function, function_gone, &function->handle);
    if (status != BLY_OK) {
        blyi_host_free(function);
        return status;
    }
    blyi_binary_ref(binary);
    blyi_list_push_back(&binary->functions, &function->link);
    *handle = function->handle;
    return BLY_OK;
}

bly_status blyi_binary_function(void *handle, const char *name, void **function)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_binary *binary = blyi_handle_get(BLYI_HANDLE_BINARY, handle);
    if (binary == NULL)
        return BLY_E_HANDLE;
    blyi_lock_take(&binary->lock);
    const struct function *known = find_locked(binary, name);
    if (known != NULL)
        *function = known->handle;
    else
        status = make_locked(binary, name, function);
    blyi_lock_drop(&binary->lock);
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_function_pin(void *handle, const struct blyi_function **out)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    const struct function *function = blyi_handle_get(BLYI_HANDLE_FUNCTION, handle);
    if (function == NULL)
        return BLY_E_HANDLE;
    *out = &function->shown;
    return BLY_OK;
}

void blyi_function_unpin(void *handle)
{
    blyi_handle_put(handle);
}

/* ── Sizes, as the object's own table of symbols has them ─────────────────────────────────── */

static bly_status symbol_size(const struct blyi_binary *binary, const void *address,
                              const char *name, unsigned type, size_t *size)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    const struct link_map *map = NULL;
    /* Names of the libraries that the binary needs are found as well: they are not its own. */
    if (dlinfo(binary->object, RTLD_DI_LINKMAP, &map) != 0 ||
        dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL ||
        info.dli_saddr != address || (uintptr_t)info.dli_fbase != map->l_addr ||
        ELF64_ST_TYPE(symbol->st_info) != type)
        return blyi_fail(BLY_E_NO_KERNEL, "the kernel binary has no %s %s",
                         type == STT_OBJECT ? "variable" : "function", name);
    *size = symbol->st_size;
    return BLY_OK;
}

bly_status blyi_binary_global(void *handle, const char *name, void **address, size_t *size)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    const struct blyi_binary *binary = blyi_handle_get(BLYI_HANDLE_BINARY, handle);
    if (binary == NULL)
        return BLY_E_HANDLE;
    void *symbol = dlsym(binary->object, name);
    status = symbol == NULL
                 ? blyi_fail(BLY_E_NO_KERNEL, "the kernel binary has no variable %s", name)
                 : symbol_size(binary, symbol, name, STT_OBJECT, size);
    if (status == BLY_OK)
        *address = symbol;
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_function_size(const struct blyi_function *function, size_t *size)
{
    void *address;
    memcpy(&address, &function->fn, sizeof(address));
    return symbol_size(function->binary, address, function->name, STT_FUNC, size);
}

/* Each lies inside the largest block, whatever their alignment adds. */
static bly_status check_params(const char *name, const uint32_t *sizes, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += (uint64_t)sizes[i] + 7;
        if (sizes[i] == 0 || total > BLY_KERNEL_ARGS_MAX)
            return blyi_fail(BLY_E_INVALID,
                             "%s_params: parameter %zu has %u bytes; an argument block has %u",
                             name, i, sizes[i], BLY_KERNEL_ARGS_MAX);
    }
    return BLY_OK;
}

bly_status blyi_function_params(const struct blyi_function *function, const uint32_t **sizes,
                                size_t *n)
{
    char name[256];
    size_t size = 0;
    int length = snprintf(name, sizeof(name), "%s_params", function->name);
    void *symbol =
        length > 0 && (size_t)length < sizeof(name) ? dlsym(function->binary->object, name) : NULL;
    bly_status status =
        symbol == NULL
            ? blyi_fail(BLY_E_NO_KERNEL,
                        "the kernel binary does not say what parameters %s has: no variable "
                        "%s_params",
                        function->name, function->name)
            : symbol_size(function->binary, symbol, name, STT_OBJECT, &size);
    if (status == BLY_OK)
        status = check_params(function->name, symbol, size / sizeof(**sizes));
    if (status == BLY_OK) {
        *sizes = symbol;
        *n = size / sizeof(**sizes);
    }
    return status;
}
