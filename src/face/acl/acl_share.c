/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_share.c - handles of physical memory shared between processes: as a number, or as the 128
 * bytes that reach other servers too.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/card.h"
#include "npu/share.h"
#include "npu/share_layout.h"

_Static_assert(sizeof(aclrtMemFabricHandle) == BLYI_KEY_FABRIC_SIZE, "a fabric handle's size");

static aclError check_flags(enum blyi_acl_call call, uint64_t flags)
{
    if (flags <= ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "flags %" PRIu64 " is neither 0 nor 1",
                           flags);
}

static aclError check_type(enum blyi_acl_call call, aclrtMemSharedHandleType type,
                           const void *handle, struct blyi_key_form *form)
{
    form->bytes = handle;
    form->kind = type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC ? BLYI_KEY_FABRIC : BLYI_KEY_HANDLE;
    if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                           "shareType %d is neither default (1) nor fabric (2)", (int)type);
}

static uint32_t options_of(uint64_t flags)
{
    return flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION ? BLYI_EXPORT_ANY : 0;
}

aclError bly_acl_aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
                                                 aclrtMemHandleType handleType, uint64_t flags,
                                                 uint64_t *shareableHandle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemExportToShareableHandle;
    uint32_t site = ACL_SITE();
    if (handle == NULL || shareableHandle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               handle == NULL ? "handle" : "shareableHandle");
    if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "handleType %d is not 0",
                               (int)handleType);
    aclError error = check_flags(call, flags);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_handle_export(handle, BLYI_KEY_HANDLE, options_of(flags),
                                                    site, shareableHandle));
}

aclError bly_acl_aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                                   aclrtMemSharedHandleType shareType,
                                                   void *shareableHandle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemExportToShareableHandleV2;
    struct blyi_key_form form;
    uint32_t site = ACL_SITE();
    if (handle == NULL || shareableHandle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               handle == NULL ? "handle" : "shareableHandle");
    aclError error = check_flags(call, flags);
    if (error == ACL_SUCCESS)
        error = check_type(call, shareType, shareableHandle, &form);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(
        call, blyi_handle_export(handle, form.kind, options_of(flags), site, shareableHandle));
}

aclError bly_acl_aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
                                                 size_t pidNum)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemSetPidToShareableHandle;
    struct blyi_key_form form = {BLYI_KEY_HANDLE, &shareableHandle};
    if (pid == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "pid is NULL");
    if (pidNum == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "pidNum is 0: no process would be admitted");
    return blyi_acl_result(call, blyi_key_allow(form, pid, pidNum));
}

aclError bly_acl_aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
                                                   aclrtMemSharedHandleType shareType, int32_t *pid,
                                                   size_t pidNum)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemSetPidToShareableHandleV2;
    struct blyi_key_form form;
    if (shareableHandle == NULL || pid == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               pid == NULL ? "pid" : "shareableHandle");
    if (pidNum == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "pidNum is 0: no process would be admitted");
    aclError error = check_type(call, shareType, shareableHandle, &form);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_key_allow(form, pid, pidNum));
}

aclError bly_acl_aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                                   aclrtDrvMemHandle *handle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemImportFromShareableHandle;
    struct blyi_key_form form = {BLYI_KEY_HANDLE, &shareableHandle};
    uint32_t site = ACL_SITE();
    int card;
    if (handle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "handle is NULL");
    aclError error = blyi_acl_check_device(call, deviceId, ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_handle_import(form, card, site, handle));
}

aclError bly_acl_aclrtMemImportFromShareableHandleV2(void *shareableHandle,
                                                     aclrtMemSharedHandleType shareType,
                                                     uint64_t flags, aclrtDrvMemHandle *handle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemImportFromShareableHandleV2;
    struct blyi_key_form form;
    struct blyi_card *card;
    uint32_t site = ACL_SITE();
    if (shareableHandle == NULL || handle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               handle == NULL ? "handle" : "shareableHandle");
    if (flags != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "flags %" PRIu64 " is not 0",
                               flags);
    aclError error = check_type(call, shareType, shareableHandle, &form);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_card(call, &card);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_handle_import(form, card->id, site, handle));
}
