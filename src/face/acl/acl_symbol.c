/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_symbol.c - where the variables and functions of a kernel binary lie, and how long they are.
 *
 * A software kernel runs on any engine: its code has one address for all of them.
 */
#include <string.h>

#include "face/acl/acl_error.h"
#include "npu/binary.h"

aclError bly_acl_aclrtBinaryGetGlobal(aclrtBinHandle binHandle, const char *name, void **dptr,
                                      size_t *size)
{
    void *address = NULL;
    size_t bytes = 0;
    if (binHandle == NULL)
        return acl_null(aclrtBinaryGetGlobal, "binHandle");
    if (name == NULL)
        return acl_null(aclrtBinaryGetGlobal, "name");
    if (dptr == NULL && size == NULL)
        return acl_reject(aclrtBinaryGetGlobal, ACL_ERROR_INVALID_PARAM,
                          "dptr and size are both NULL");
    aclError error =
        acl_result(aclrtBinaryGetGlobal, blyi_binary_global(binHandle, name, &address, &bytes));
    if (error != ACL_SUCCESS)
        return error;
    if (dptr != NULL)
        *dptr = address;
    if (size != NULL)
        *size = bytes;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetFunctionAddr(aclrtFuncHandle funcHandle, void **aicAddr, void **aivAddr)
{
    const struct blyi_function *function;
    if (funcHandle == NULL)
        return acl_null(aclrtGetFunctionAddr, "funcHandle");
    if (aicAddr == NULL)
        return acl_null(aclrtGetFunctionAddr, "aicAddr");
    if (aivAddr == NULL)
        return acl_null(aclrtGetFunctionAddr, "aivAddr");
    aclError error = acl_result(aclrtGetFunctionAddr, blyi_function_pin(funcHandle, &function));
    if (error != ACL_SUCCESS)
        return error;
    memcpy(aicAddr, &function->fn, sizeof(*aicAddr));
    memcpy(aivAddr, &function->fn, sizeof(*aivAddr));
    blyi_function_unpin(funcHandle);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetFunctionSize(aclrtFuncHandle funcHandle, size_t *aicSize, size_t *aivSize)
{
    const struct blyi_function *function;
    size_t size = 0;
    if (funcHandle == NULL)
        return acl_null(aclrtGetFunctionSize, "funcHandle");
    if (aicSize == NULL)
        return acl_null(aclrtGetFunctionSize, "aicSize");
    if (aivSize == NULL)
        return acl_null(aclrtGetFunctionSize, "aivSize");
    bly_status status = blyi_function_pin(funcHandle, &function);
    if (status == BLY_OK) {
        status = blyi_function_size(function, &size);
        blyi_function_unpin(funcHandle);
    }
    if (status == BLY_OK)
        *aicSize = *aivSize = size;
    return acl_result(aclrtGetFunctionSize, status);
}
