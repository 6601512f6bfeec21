/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_binary.c - kernel binaries and their functions. A binary is a shared object of C functions
 * (include/belay/kernel.h); a compiled Ascend C object is refused with the loader's sentence.
 */
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "face/acl/check.h"
#include "face/acl/exceptions.h"
#include "npu/binary.h"

/* AI CPU modes of aclrtBinaryLoadOption: from a description, from a file, from data. */
enum { CPU_NONE = -1, CPU_DESCRIPTION = 0, CPU_FILE = 1, CPU_DATA = 2 };

static aclError read_options(enum blyi_acl_call call, const aclrtBinaryLoadOptions *options,
                             bool from_data, bool *on_cpu)
{
    int mode = CPU_NONE;
    if (options != NULL && options->options == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "options->options is NULL");
    for (size_t i = 0; options != NULL && i < options->numOpt; i++) {
        const aclrtBinaryLoadOption *option = &options->options[i];
        if ((int)option->type < ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD ||
            (int)option->type > ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "option %zu has type %d, which is not in 1 .. 3", i,
                                   (int)option->type);
        if (option->type == ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE)
            mode = option->value.cpuKernelMode;
    }
    if (mode != CPU_NONE &&
        (from_data ? mode != CPU_DATA : mode != CPU_DESCRIPTION && mode != CPU_FILE))
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "AI CPU mode %d: %s", mode,
                               from_data ? "data has mode 2" : "a file has mode 0 or 1");
    *on_cpu = mode != CPU_NONE;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *options,
                                         aclrtBinHandle *binHandle)
{
    bool on_cpu = false;
    if (binPath == NULL)
        return acl_null(aclrtBinaryLoadFromFile, "binPath");
    if (binHandle == NULL)
        return acl_null(aclrtBinaryLoadFromFile, "binHandle");
    aclError error = read_options(BLYI_ACL_CALL_aclrtBinaryLoadFromFile, options, false, &on_cpu);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtBinaryLoadFromFile, blyi_binary_load(binPath, on_cpu, binHandle));
}

aclError bly_acl_aclrtBinaryLoadFromData(const void *data, size_t length,
                                         const aclrtBinaryLoadOptions *options,
                                         aclrtBinHandle *binHandle)
{
    bool on_cpu = false;
    if (data == NULL)
        return acl_null(aclrtBinaryLoadFromData, "data");
    if (binHandle == NULL)
        return acl_null(aclrtBinaryLoadFromData, "binHandle");
    if (length == 0)
        return acl_reject(aclrtBinaryLoadFromData, ACL_ERROR_RT_PARAM_INVALID, "length is 0");
    aclError error = read_options(BLYI_ACL_CALL_aclrtBinaryLoadFromData, options, true, &on_cpu);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtBinaryLoadFromData,
                      blyi_binary_load_data(data, length, on_cpu, binHandle));
}

aclError bly_acl_aclrtBinaryUnLoad(aclrtBinHandle binHandle)
{
    if (binHandle == NULL)
        return acl_null(aclrtBinaryUnLoad, "binHandle");
    bly_status status = blyi_binary_unload(binHandle);
    if (status == BLY_OK)
        blyi_exceptions_forget_binary(binHandle);
    return acl_result(aclrtBinaryUnLoad, status);
}

aclError bly_acl_aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName,
                                        aclrtFuncHandle *funcHandle)
{
    if (binHandle == NULL)
        return acl_null(aclrtBinaryGetFunction, "binHandle");
    if (kernelName == NULL)
        return acl_null(aclrtBinaryGetFunction, "kernelName");
    if (funcHandle == NULL)
        return acl_null(aclrtBinaryGetFunction, "funcHandle");
    struct blyi_context *context;
    aclError error = blyi_acl_check_context(BLYI_ACL_CALL_aclrtBinaryGetFunction, &context);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtBinaryGetFunction,
                      blyi_binary_function(binHandle, kernelName, funcHandle));
}

aclError bly_acl_aclrtRegisterCpuFunc(const aclrtBinHandle handle, const char *funcName,
                                      const char *kernelName, aclrtFuncHandle *funcHandle)
{
    if (handle == NULL)
        return acl_null(aclrtRegisterCpuFunc, "handle");
    if (funcName == NULL)
        return acl_null(aclrtRegisterCpuFunc, "funcName");
    if (kernelName == NULL)
        return acl_null(aclrtRegisterCpuFunc, "kernelName");
    if (funcHandle == NULL)
        return acl_null(aclrtRegisterCpuFunc, "funcHandle");
    void *function;
    const struct blyi_function *found;
    bly_status status = blyi_binary_function(handle, funcName, &function);
    if (status == BLY_OK)
        status = blyi_function_pin(function, &found);
    if (status != BLY_OK)
        return acl_result(aclrtRegisterCpuFunc, status);
    bool on_cpu = found->on_cpu;
    blyi_function_unpin(function);
    if (!on_cpu)
        return acl_reject(aclrtRegisterCpuFunc, ACL_ERROR_RT_PARAM_INVALID,
                          "the binary was not loaded for the AI CPU");
    *funcHandle = function;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetFunctionName(aclrtFuncHandle funcHandle, uint32_t maxLen, char *name)
{
    const struct blyi_function *function;
    if (name == NULL)
        return acl_null(aclrtGetFunctionName, "name");
    if (funcHandle == NULL)
        return acl_null(aclrtGetFunctionName, "funcHandle");
    bly_status status = blyi_function_pin(funcHandle, &function);
    if (status != BLY_OK)
        return acl_result(aclrtGetFunctionName, status);
    aclError error = ACL_SUCCESS;
    size_t size = strlen(function->name) + 1;
    if (size > maxLen)
        error = acl_reject(aclrtGetFunctionName, ACL_ERROR_RT_PARAM_INVALID,
                           "maxLen %u is less than the %zu bytes of the name", maxLen, size);
    else
        memcpy(name, function->name, size);
    blyi_function_unpin(funcHandle);
    return error;
}

aclError bly_acl_aclrtFunctionGetBinary(const aclrtFuncHandle funcHandle, aclrtBinHandle *binHandle)
{
    const struct blyi_function *function;
    if (funcHandle == NULL)
        return acl_null(aclrtFunctionGetBinary, "funcHandle");
    if (binHandle == NULL)
        return acl_null(aclrtFunctionGetBinary, "binHandle");
    bly_status status = blyi_function_pin(funcHandle, &function);
    if (status == BLY_OK) {
        *binHandle = function->binary_handle;
        blyi_function_unpin(funcHandle);
    }
    return acl_result(aclrtFunctionGetBinary, status);
}

/* ── A binary described first, loaded later ───────────────────────────────────────────────── */

struct described {
    const void *data;
    size_t size;
};

static void described_gone(void *object)
{
    blyi_host_free(object);
}

aclrtBinary bly_acl_aclrtCreateBinary(const void *data, size_t dataLen)
{
    void *handle;
    struct described *described = data != NULL ? blyi_host_alloc(sizeof(*described)) : NULL;
    if (described == NULL)
        return NULL;
    described->data = data;
    described->size = dataLen;
    if (blyi_handle_create(BLYI_HANDLE_OTHER, described, described_gone, &handle) != BLY_OK) {
        blyi_host_free(described);
        return NULL;
    }
    return handle;
}

aclError bly_acl_aclrtDestroyBinary(aclrtBinary binary)
{
    if (binary == NULL)
        return acl_null(aclrtDestroyBinary, "binary");
    return acl_result(aclrtDestroyBinary, blyi_handle_remove(BLYI_HANDLE_OTHER, binary));
}

aclError bly_acl_aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle)
{
    if (binary == NULL)
        return acl_null(aclrtBinaryLoad, "binary");
    if (binHandle == NULL)
        return acl_null(aclrtBinaryLoad, "binHandle");
    const struct described *described = blyi_handle_get(BLYI_HANDLE_OTHER, binary);
    if (described == NULL)
        return acl_result(aclrtBinaryLoad, BLY_E_HANDLE);
    bly_status status = blyi_binary_load_data(described->data, described->size, false, binHandle);
    blyi_handle_put(binary);
    return acl_result(aclrtBinaryLoad, status);
}
