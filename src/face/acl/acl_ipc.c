/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_ipc.c - device memory shared between processes by keys.
 */
#include <inttypes.h>

#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "npu/card.h"
#include "npu/share.h"
#include "npu/share_layout.h"

#define KEY_SIZE ((size_t)BLYI_KEY_TEXT_SIZE)

static struct blyi_key_form form_of(const char *key)
{
    return (struct blyi_key_form){BLYI_KEY_TEXT, key};
}

aclError bly_acl_aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len,
                                         uint64_t flags)
{
    struct blyi_context *context;
    uint32_t site = ACL_SITE();
    if (devPtr == NULL || key == NULL)
        return acl_reject(aclrtIpcMemGetExportKey, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          devPtr == NULL ? "devPtr" : "key");
    if (size == 0 || len == 0)
        return acl_reject(aclrtIpcMemGetExportKey, ACL_ERROR_INVALID_PARAM, "%s is 0",
                          size == 0 ? "size" : "len");
    if (len < KEY_SIZE)
        return acl_reject(aclrtIpcMemGetExportKey, ACL_ERROR_RT_PARAM_INVALID,
                          "len %zu is less than the %zu bytes of a key", len, KEY_SIZE);
    if (flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
        return acl_reject(aclrtIpcMemGetExportKey, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %" PRIu64 " is neither 0 nor 1", flags);
    aclError error = blyi_acl_check_context(BLYI_ACL_CALL_aclrtIpcMemGetExportKey, &context);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_alloc_pool_check_export(devPtr);
    if (status == BLY_OK)
        status = blyi_ipc_export(devPtr, size, flags == 1 ? BLYI_EXPORT_ANY : 0, site, key);
    return acl_result(aclrtIpcMemGetExportKey, status);
}

aclError bly_acl_aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
    struct blyi_card *card;
    uint32_t site = ACL_SITE();
    if (devPtr == NULL || key == NULL)
        return acl_reject(aclrtIpcMemImportByKey, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          devPtr == NULL ? "devPtr" : "key");
    if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
        return acl_reject(aclrtIpcMemImportByKey, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %" PRIu64 " is neither 0 nor 1", flags);
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtIpcMemImportByKey, &card);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtIpcMemImportByKey,
                      blyi_ipc_import(key, card->id, flags == 1, site, devPtr));
}

aclError bly_acl_aclrtIpcMemClose(const char *key)
{
    uint32_t site = ACL_SITE();
    if (key == NULL)
        return acl_null(aclrtIpcMemClose, "key");
    return acl_result(aclrtIpcMemClose, blyi_ipc_close(key, site));
}

aclError bly_acl_aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
{
    if (key == NULL || pid == NULL)
        return acl_reject(aclrtIpcMemSetImportPid, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          key == NULL ? "key" : "pid");
    if (num == 0)
        return acl_reject(aclrtIpcMemSetImportPid, ACL_ERROR_RT_PARAM_INVALID,
                          "num is 0: no process would be admitted");
    return acl_result(aclrtIpcMemSetImportPid, blyi_key_allow(form_of(key), pid, num));
}

/* Servers of one super pod: no model has that. */
aclError bly_acl_aclrtIpcMemImportPidInterServer(const char *key, aclrtServerPid *serverPids,
                                                 size_t num)
{
    if (key == NULL || serverPids == NULL)
        return acl_reject(aclrtIpcMemImportPidInterServer, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          key == NULL ? "key" : "serverPids");
    if (num == 0)
        return acl_reject(aclrtIpcMemImportPidInterServer, ACL_ERROR_RT_PARAM_INVALID,
                          "num is 0: no process would be admitted");
    bly_status status = blyi_key_check(form_of(key));
    if (status != BLY_OK)
        return acl_result(aclrtIpcMemImportPidInterServer, status);
    return acl_reject(aclrtIpcMemImportPidInterServer, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                      "cards of this model are in no super pod; processes of this server are "
                      "admitted by aclrtIpcMemSetImportPid");
}

/* As aclrtMemMapSetLink: none of the models has a choice of links. The key may come later. */
aclError bly_acl_aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr)
{
    if (key == NULL)
        return acl_null(aclrtIpcMemSetAttr, "key");
    if (type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK)
        return acl_reject(aclrtIpcMemSetAttr, ACL_ERROR_RT_PARAM_INVALID, "type %d is not 0 (link)",
                          (int)type);
    if (attr > ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH)
        return acl_reject(aclrtIpcMemSetAttr, ACL_ERROR_RT_PARAM_INVALID,
                          "attr %" PRIu64 " is no link: 0 .. 3", attr);
    return acl_reject(aclrtIpcMemSetAttr, ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED,
                      "link type %" PRIu64 ": cards of this model have no choice of links", attr);
}
