/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_ids.c - between the ids of a device. Logical and physical ids are the card's; where a
 * name says "logical" and means the user's id, it does so in AscendCL too.
 */
#include "face/acl/check.h"
#include "face/acl/visible.h"
#include "npu/card.h"

static aclError card_of_user(enum blyi_acl_call call, int32_t user, int32_t *out)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "the result's pointer is NULL");
    int card;
    aclError error = blyi_acl_check_device(call, user, ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error == ACL_SUCCESS)
        *out = card;
    return error;
}

static aclError user_of_card(enum blyi_acl_call call, int32_t card, int32_t *out)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "the result's pointer is NULL");
    int user = blyi_visible_user(card);
    if (user < 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "card %d is not among the visible ones (of %d)", (int)card,
                               blyi_card_count());
    *out = user;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId)
{
    return card_of_user(BLYI_ACL_CALL_aclrtGetLogicDevIdByUserDevId, userDevid, logicDevId);
}

aclError bly_acl_aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid)
{
    return user_of_card(BLYI_ACL_CALL_aclrtGetUserDevIdByLogicDevId, logicDevId, userDevid);
}

aclError bly_acl_aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId)
{
    return user_of_card(BLYI_ACL_CALL_aclrtGetLogicDevIdByPhyDevId, phyDevId, logicDevId);
}

aclError bly_acl_aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
    return card_of_user(BLYI_ACL_CALL_aclrtGetPhyDevIdByLogicDevId, logicDevId, phyDevId);
}

aclError bly_acl_aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t *const userDevId)
{
    return user_of_card(BLYI_ACL_CALL_aclrtGetUserDevIdByPhyDevId, phyDevId, userDevId);
}

aclError bly_acl_aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t *const phyDevId)
{
    return card_of_user(BLYI_ACL_CALL_aclrtGetPhyDevIdByUserDevId, userDevId, phyDevId);
}
