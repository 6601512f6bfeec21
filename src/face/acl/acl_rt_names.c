/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_rt_names.c - names of the layer below AscendCL.
 *
 * The vendor's libascendcl.so needs the library of that layer, so dlsym() on its handle finds
 * these as well, and memfabric and memcache load nothing without all of them. Each is a thin
 * equivalent of an AscendCL call; that layer has 107000 for what AscendCL calls 100000.
 */
#include <inttypes.h>

#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/memory.h"
#include "npu/peer.h"
#include "npu/share.h"
#include "npu/share_layout.h"

/* Of a card in no super pod. */
#define NO_SERVER    0x3ffu
#define NO_SUPER_POD 0xffffffffu
#define ANY_DEVICE   0xffffffffu

/* A device in a super pod: server, chip and die in it, and id on its server. */
static uint32_t sdid_of(int card)
{
    return NO_SERVER << 22 | ((uint32_t)card & 0xfu) << 18 | ((uint32_t)card & 0xffffu);
}

static uint32_t server_of(uint32_t sdid)
{
    return sdid >> 22;
}

static aclError refuse_null(enum blyi_acl_call call, const char *argument)
{
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "%s is NULL", argument);
}

aclError bly_acl_rtDeviceGetBareTgid(uint32_t *pid)
{
    if (pid == NULL)
        return refuse_null(BLYI_ACL_CALL_rtDeviceGetBareTgid, "pid");
    *pid = (uint32_t)blyi_key_pid();
    return ACL_SUCCESS;
}

aclError bly_acl_rtGetLogicDevIdByUserDevId(const int32_t userDevId, int32_t *const logicDevId)
{
    if (logicDevId == NULL)
        return refuse_null(BLYI_ACL_CALL_rtGetLogicDevIdByUserDevId, "logicDevId");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_rtGetLogicDevIdByUserDevId, userDevId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error == ACL_SUCCESS)
        *logicDevId = card;
    return error;
}

/* X(module, info, value): what is known of a software card. */
#define INFOS(X)                                                                                   \
    X(0, 18, card->id)                                                                             \
    X(0, 19, 0)                                                                                    \
    X(0, 26, sdid_of(card->id))                                                                    \
    X(0, 27, NO_SERVER)                                                                            \
    X(0, 29, NO_SUPER_POD)                                                                         \
    X(0, 30, 0)                                                                                    \
    X(1, 3, (int64_t)card->model.aicpu)                                                            \
    X(4, 3, (int64_t)card->model.aicore)                                                           \
    X(7, 3, (int64_t)card->model.vector_core)

aclError bly_acl_rtGetDeviceInfo(uint32_t deviceId, int32_t moduleType, int32_t infoType,
                                 int64_t *val)
{
    if (val == NULL)
        return refuse_null(BLYI_ACL_CALL_rtGetDeviceInfo, "val");
    struct blyi_card *card;
    aclError error = blyi_acl_open_device(BLYI_ACL_CALL_rtGetDeviceInfo, deviceId,
                                          ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
#define INFO_CASE(module, info, value)                                                             \
    if (moduleType == (module) && infoType == (info)) {                                            \
        *val = value;                                                                              \
        return ACL_SUCCESS;                                                                        \
    }
    INFOS(INFO_CASE)
#undef INFO_CASE
    return acl_reject(rtGetDeviceInfo, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                      "moduleType %" PRId32 ", infoType %" PRId32
                      ": nothing is known of this on model %s",
                      moduleType, infoType, card->model.name);
}

/* A user's device and a card by its own id, which differ. */
static aclError check_pair(enum blyi_acl_call call, uint32_t device, uint32_t peer, int *card)
{
    aclError error = blyi_acl_check_device(call, device, ACL_ERROR_RT_PARAM_INVALID, card);
    if (error != ACL_SUCCESS)
        return error;
    if (peer >= (uint32_t)blyi_card_count())
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "phyIdSrc %" PRIu32 " is no card: there are %d", peer,
                               blyi_card_count());
    if (peer == (uint32_t)*card)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "device %" PRIu32 " is card %" PRIu32 " itself", device, peer);
    return ACL_SUCCESS;
}

aclError bly_acl_rtEnableP2P(uint32_t devIdDes, uint32_t phyIdSrc, uint32_t flag)
{
    (void)flag; /* the driver does not look at it */
    int card;
    aclError error = check_pair(BLYI_ACL_CALL_rtEnableP2P, devIdDes, phyIdSrc, &card);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(rtEnableP2P, blyi_peer_enable(card, (int)phyIdSrc));
}

aclError bly_acl_rtDisableP2P(uint32_t devIdDes, uint32_t phyIdSrc)
{
    int card;
    aclError error = check_pair(BLYI_ACL_CALL_rtDisableP2P, devIdDes, phyIdSrc, &card);
    if (error == ACL_SUCCESS)
        blyi_peer_disable(card, (int)phyIdSrc);
    return error;
}

aclError bly_acl_rtIpcSetMemoryName(const void *ptr, uint64_t byteCount, char *name, uint32_t len)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_rtIpcSetMemoryName;
    struct blyi_context *context;
    uint32_t site = ACL_SITE();
    if (ptr == NULL || name == NULL)
        return refuse_null(call, ptr == NULL ? "ptr" : "name");
    if (byteCount == 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "byteCount is 0");
    if (len < BLYI_KEY_TEXT_SIZE)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "len %" PRIu32 " is less than the %d bytes of a name", len,
                               BLYI_KEY_TEXT_SIZE);
    aclError error = blyi_acl_check_context(call, &context);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_alloc_pool_check_export(ptr);
    if (status == BLY_OK)
        status = blyi_ipc_export((void *)(uintptr_t)ptr, byteCount, 0, site, name);
    return blyi_acl_result(call, status);
}

aclError bly_acl_rtIpcDestroyMemoryName(const char *name)
{
    uint32_t site = ACL_SITE();
    if (name == NULL)
        return refuse_null(BLYI_ACL_CALL_rtIpcDestroyMemoryName, "name");
    return acl_result(rtIpcDestroyMemoryName, blyi_ipc_end(name, site));
}

aclError bly_acl_rtSetIpcMemorySuperPodPid(const char *name, uint32_t sdid, int32_t *pid,
                                           int32_t num)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_rtSetIpcMemorySuperPodPid;
    if (name == NULL || pid == NULL)
        return refuse_null(call, name == NULL ? "name" : "pid");
    if (num <= 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "num %" PRId32 ": no process would be admitted", num);
    if (sdid != ANY_DEVICE && server_of(sdid) != NO_SERVER)
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "sdid 0x%" PRIx32 " is a device of server %" PRIu32
                               "; cards of this model are in no super pod",
                               sdid, server_of(sdid));
    struct blyi_key_form form = {BLYI_KEY_TEXT, name};
    return blyi_acl_result(call, blyi_key_allow(form, pid, (size_t)num));
}

aclError bly_acl_rtIpcOpenMemory(void **ptr, const char *name)
{
    struct blyi_card *card;
    uint32_t site = ACL_SITE();
    if (ptr == NULL || name == NULL)
        return refuse_null(BLYI_ACL_CALL_rtIpcOpenMemory, ptr == NULL ? "ptr" : "name");
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_rtIpcOpenMemory, &card);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(rtIpcOpenMemory, blyi_ipc_import(name, card->id, false, site, ptr));
}

aclError bly_acl_rtIpcCloseMemory(const void *ptr)
{
    uint32_t site = ACL_SITE();
    if (ptr == NULL)
        return refuse_null(BLYI_ACL_CALL_rtIpcCloseMemory, "ptr");
    return acl_result(rtIpcCloseMemory, blyi_ipc_close_at(ptr, site));
}

aclError bly_acl_rtMemcpyAsyncWithoutCheckKind(void *dst, uint64_t destMax, const void *src,
                                               uint64_t cnt, uint32_t kind, aclrtStream stm)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_rtMemcpyAsyncWithoutCheckKind;
    struct blyi_context *context;
    if (cnt == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    if (dst == NULL || src == NULL)
        return refuse_null(call, dst == NULL ? "dst" : "src");
    if (cnt > destMax)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "cnt %" PRIu64 " is above destMax %" PRIu64, cnt, destMax);
    aclError error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_foreign(call, dst, src, (aclrtMemcpyKind)kind, true);
    if (error != ACL_SUCCESS)
        return error;
    if (blyi_place_of(dst, NULL) != BLYI_PLACE_CARD && blyi_place_of(src, NULL) != BLYI_PLACE_CARD)
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "a copy from host to host in stream order: the card has no engine "
                               "for it");
    return blyi_acl_result(call, blyi_copy_async(dst, src, cnt, stm, site));
}
