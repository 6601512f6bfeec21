/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_peer.c - memory of one device, touched by another.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/peer.h"

/* Two ids that exist and differ. */
static aclError check_pair(enum blyi_acl_call call, int64_t a, int64_t b, int *card, int *peer)
{
    aclError error = blyi_acl_check_device(call, a, ACL_ERROR_RT_PARAM_INVALID, card);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_device(call, b, ACL_ERROR_RT_PARAM_INVALID, peer);
    return error;
}

aclError bly_acl_aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
                                          int32_t peerDeviceId)
{
    if (canAccessPeer == NULL)
        return acl_null(aclrtDeviceCanAccessPeer, "canAccessPeer");
    if (deviceId == peerDeviceId)
        return acl_reject(aclrtDeviceCanAccessPeer, ACL_ERROR_INVALID_PARAM,
                          "both devices are %" PRId32, deviceId);
    int card, peer;
    bool can;
    aclError error =
        check_pair(BLYI_ACL_CALL_aclrtDeviceCanAccessPeer, deviceId, peerDeviceId, &card, &peer);
    if (error == ACL_SUCCESS)
        error = acl_result(aclrtDeviceCanAccessPeer, blyi_peer_can(card, peer, &can));
    if (error == ACL_SUCCESS)
        *canAccessPeer = can;
    return error;
}

/* The current device and its peer. */
static aclError check_peer(enum blyi_acl_call call, int64_t peer_id, int *card, int *peer)
{
    struct blyi_card *here;
    aclError error = blyi_acl_check_card(call, &here);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_device(call, peer_id, ACL_ERROR_RT_PARAM_INVALID, peer);
    if (error != ACL_SUCCESS)
        return error;
    *card = here->id;
    if (*card == *peer)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "peer %" PRId64 " is the current device", peer_id);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    int card, peer;
    if (flags != 0)
        return acl_reject(aclrtDeviceEnablePeerAccess, ACL_ERROR_FEATURE_UNSUPPORTED,
                          "flags %" PRIu32 " is not 0", flags);
    aclError error =
        check_peer(BLYI_ACL_CALL_aclrtDeviceEnablePeerAccess, peerDeviceId, &card, &peer);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtDeviceEnablePeerAccess, blyi_peer_enable(card, peer));
}

aclError bly_acl_aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
    int card, peer;
    aclError error =
        check_peer(BLYI_ACL_CALL_aclrtDeviceDisablePeerAccess, peerDeviceId, &card, &peer);
    if (error == ACL_SUCCESS)
        blyi_peer_disable(card, peer);
    return error;
}

aclError bly_acl_aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                             int32_t *status)
{
    if (status == NULL)
        return acl_null(aclrtDevicePeerAccessStatus, "status");
    int card, peer;
    aclError error =
        check_pair(BLYI_ACL_CALL_aclrtDevicePeerAccessStatus, deviceId, peerDeviceId, &card, &peer);
    if (error == ACL_SUCCESS)
        *status = blyi_peer_enabled(card, peer);
    return error;
}

/* Entries of the peer's page table are made ahead: nothing to do here, where all cards share one,
 * but what the call demands holds. */
aclError bly_acl_aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags)
{
    if (devPtr == NULL)
        return acl_null(aclrtMemP2PMap, "devPtr");
    if (size == 0)
        return acl_reject(aclrtMemP2PMap, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (flags != 0)
        return acl_reject(aclrtMemP2PMap, ACL_ERROR_INVALID_PARAM, "flags %" PRIu64 " is not 0",
                          flags);
    int peer, owner = -1;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtMemP2PMap, dstDevId,
                                           ACL_ERROR_RT_PARAM_INVALID, &peer);
    if (error != ACL_SUCCESS)
        return error;
    if (blyi_place_of(devPtr, &owner) != BLYI_PLACE_CARD || owner < 0)
        return acl_reject(aclrtMemP2PMap, ACL_ERROR_RT_PARAM_INVALID,
                          "devPtr %p is not memory of a device", devPtr);
    if (owner == peer)
        return acl_reject(aclrtMemP2PMap, ACL_ERROR_RT_PARAM_INVALID,
                          "devPtr %p is memory of device %" PRId32 " itself", devPtr, dstDevId);
    /* Enabled by either side: which one the driver looks at is not documented. */
    if (!blyi_peer_enabled(peer, owner) && !blyi_peer_enabled(owner, peer))
        return acl_reject(aclrtMemP2PMap, ACL_ERROR_RT_PARAM_INVALID,
                          "peer access between cards %d and %d is not enabled", owner, peer);
    return acl_result(aclrtMemP2PMap, blyi_mem_use_by(devPtr, size, BLYI_READ, -1));
}

aclError bly_acl_aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t *value)
{
    if (value == NULL)
        return acl_null(aclrtGetDevicesTopo, "value");
    int card, peer;
    bool can;
    aclError error =
        check_pair(BLYI_ACL_CALL_aclrtGetDevicesTopo, deviceId, otherDeviceId, &card, &peer);
    if (error == ACL_SUCCESS && card == peer)
        error = acl_reject(aclrtGetDevicesTopo, ACL_ERROR_RT_PARAM_INVALID,
                           "both devices are %" PRIu32, deviceId);
    if (error == ACL_SUCCESS)
        error = acl_result(aclrtGetDevicesTopo, blyi_peer_can(card, peer, &can));
    if (error == ACL_SUCCESS) /* one switch, or over the host */
        *value = can ? ACL_RT_DEVS_TOPOLOGY_HCCS : ACL_RT_DEVS_TOPOLOGY_SYS;
    return error;
}
