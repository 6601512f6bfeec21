/* SPDX-License-Identifier: Apache-2.0
 *
 * binary.h - shared objects with kernels in them, and the handles of their functions.
 *
 * A binary is referenced by its handle, by each function handle and by each queued launch; its
 * code leaves the process with the last of them.
 */
#ifndef BLYI_BINARY_H
#define BLYI_BINARY_H

#include <belay/kernel.h>
#include <stdbool.h>

struct blyi_binary;

/* E_INVALID: not there, or no shared object that fits this process; the sentence has the reason. */
bly_status blyi_binary_load(const char *path, bool on_cpu, void **handle);
bly_status blyi_binary_load_data(const void *data, size_t size, bool on_cpu, void **handle);
/* The handle and those of its functions are stale at once; queued launches still run. */
bly_status blyi_binary_unload(void *handle);
/* E_HANDLE: not a live binary. */
bly_status blyi_binary_check(void *handle);
/* The same handle for the same name. E_NO_KERNEL, E_HANDLE. */
bly_status blyi_binary_function(void *handle, const char *name, void **function);

/* A variable of the binary: it lies in memory of the process, which kernels reach, for as long as
 * the binary is loaded. E_NO_KERNEL: there is none of that name; E_HANDLE. */
bly_status blyi_binary_global(void *handle, const char *name, void **address, size_t *size);

struct blyi_function {
    bly_kernel fn;
    const char *name;
    struct blyi_binary *binary;
    void *binary_handle;
    bool on_cpu; /* for the AI CPU */
};
/* Pins the function: pair with blyi_function_unpin(). E_HANDLE. */
bly_status blyi_function_pin(void *function, const struct blyi_function **out);
void blyi_function_unpin(void *function);
/* Bytes of its code. E_NO_KERNEL: the binary does not say. */
bly_status blyi_function_size(const struct blyi_function *function, size_t *size);

/* Bytes of each parameter, as the binary's variable <name>_params says (belay/kernel.h). Valid
 * while the function is pinned. E_NO_KERNEL: there is none; E_INVALID: it makes no argument block.
 */
bly_status blyi_function_params(const struct blyi_function *function, const uint32_t **sizes,
                                size_t *n);

void blyi_binary_ref(struct blyi_binary *binary);
void blyi_binary_unref(struct blyi_binary *binary);

#endif
