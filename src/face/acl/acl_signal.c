/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_signal.c - events and notifies that are handed to other processes.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/event.h"
#include "npu/notify.h"

_Static_assert(ACL_IPC_EVENT_HANDLE_SIZE == BLYI_EVENT_HANDLE_BYTES, "one size of handles");

#define PIDS_MAX 4096 /* in one call; a notify keeps fewer */

aclError bly_acl_aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
    if (event == NULL)
        return acl_null(aclrtIpcGetEventHandle, "event");
    if (handle == NULL)
        return acl_null(aclrtIpcGetEventHandle, "handle");
    return acl_result(aclrtIpcGetEventHandle,
                      blyi_event_export(event, (unsigned char *)handle->reserved));
}

aclError bly_acl_aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtIpcOpenEventHandle, "event");
    return acl_result(aclrtIpcOpenEventHandle,
                      blyi_event_import((const unsigned char *)handle.reserved, site, event));
}

aclError bly_acl_aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags)
{
    if (notify == NULL)
        return acl_null(aclrtNotifyGetExportKey, "notify");
    if (key == NULL)
        return acl_null(aclrtNotifyGetExportKey, "key");
    if (len < BLYI_NOTIFY_KEY)
        return acl_reject(aclrtNotifyGetExportKey,
                          len == 0 ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_PARAM_INVALID,
                          "len %zu is below the %d bytes of a key", len, BLYI_NOTIFY_KEY);
    if (flags != ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT &&
        flags != ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION)
        return acl_reject(aclrtNotifyGetExportKey, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %#" PRIx64 " are not 0 or 2", flags);
    return acl_result(aclrtNotifyGetExportKey, blyi_notify_export(notify, flags != 0, key));
}

aclError bly_acl_aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num)
{
    if (notify == NULL)
        return acl_null(aclrtNotifySetImportPid, "notify");
    if (pid == NULL)
        return acl_null(aclrtNotifySetImportPid, "pid");
    if (num == 0 || num > PIDS_MAX)
        return acl_reject(aclrtNotifySetImportPid, ACL_ERROR_RT_PARAM_INVALID,
                          "num %zu is not in 1 .. %d", num, PIDS_MAX);
    return acl_result(aclrtNotifySetImportPid, blyi_notify_allow(notify, pid, num));
}

/* All processes that can meet are on this machine, whatever server an entry names. */
aclError bly_acl_aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid *serverPids,
                                                    size_t num)
{
    if (notify == NULL)
        return acl_null(aclrtNotifySetImportPidInterServer, "notify");
    if (serverPids == NULL)
        return acl_null(aclrtNotifySetImportPidInterServer, "serverPids");
    if (num == 0 || num > PIDS_MAX)
        return acl_reject(aclrtNotifySetImportPidInterServer, ACL_ERROR_RT_PARAM_INVALID,
                          "num %zu is not in 1 .. %d", num, PIDS_MAX);
    int32_t pids[BLYI_NOTIFY_PIDS];
    size_t n = 0;
    for (size_t i = 0; i < num; i++) {
        if (serverPids[i].pid == NULL || serverPids[i].num == 0)
            return acl_reject(aclrtNotifySetImportPidInterServer, ACL_ERROR_INVALID_PARAM,
                              "entry %zu has no pids", i);
        if (serverPids[i].num > BLYI_NOTIFY_PIDS - n)
            return acl_reject(aclrtNotifySetImportPidInterServer, ACL_ERROR_RT_PARAM_INVALID,
                              "entries 0 .. %zu have more than %d pids", i, BLYI_NOTIFY_PIDS);
        for (size_t k = 0; k < serverPids[i].num; k++)
            pids[n++] = serverPids[i].pid[k];
    }
    return acl_result(aclrtNotifySetImportPidInterServer, blyi_notify_allow(notify, pids, n));
}

aclError bly_acl_aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags)
{
    uint32_t site = ACL_SITE();
    if (notify == NULL)
        return acl_null(aclrtNotifyImportByKey, "notify");
    if (key == NULL)
        return acl_null(aclrtNotifyImportByKey, "key");
    if (flags != ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT &&
        flags != ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS)
        return acl_reject(aclrtNotifyImportByKey, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %#" PRIx64 " are not 0 or 2", flags);
    return acl_result(aclrtNotifyImportByKey, blyi_notify_import(key, flags != 0, site, notify));
}
