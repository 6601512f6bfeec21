/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_info.c - what a device is: attributes, state, bus address, ids.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "face/acl/check.h"
#include "face/acl/model.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/share.h"

#define BUS_ID_SIZE 13 /* "0000:01:00.0" and its end */
#define BUS_FIRST   1

/* X(attribute, value): int64 of a card. Attributes of parts that no model has are not here. */
#define ATTRIBUTES(X)                                                                              \
    X(ACL_DEV_ATTR_AICPU_CORE_NUM, (int64_t)card->model.aicpu)                                     \
    X(ACL_DEV_ATTR_AICORE_CORE_NUM, (int64_t)card->model.aicore)                                   \
    X(ACL_DEV_ATTR_CUBE_CORE_NUM, (int64_t)card->model.aicore)                                     \
    X(ACL_DEV_ATTR_VECTOR_CORE_NUM, (int64_t)card->model.vector_core)                              \
    X(ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, (int64_t)card->total)                                    \
    X(ACL_DEV_ATTR_L2_CACHE_SIZE, (int64_t)card->model.l2)                                         \
    X(ACL_DEV_ATTR_SMP_ID, 0)                                                                      \
    X(ACL_DEV_ATTR_PHY_CHIP_ID, card->id)                                                          \
    X(ACL_DEV_ATTR_CUST_OP_PRIVILEGE, 0)                                                           \
    X(ACL_DEV_ATTR_MAINBOARD_ID, 0)                                                                \
    X(ACL_DEV_ATTR_HD_CONNECT_TYPE, ACL_HOST_DEVICE_CONNECT_TYPE_PCIE)                             \
    X(ACL_DEV_ATTR_DEVICE_FORM_FACTOR, ACL_DEVICE_FORM_FACTOR_PCIE_CARD)                           \
    X(ACL_DEV_ATTR_IS_VIRTUAL, 0)

aclError bly_acl_aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
    if (value == NULL)
        return acl_null(aclrtGetDeviceInfo, "value");
    struct blyi_card *card;
    aclError error = blyi_acl_open_device(BLYI_ACL_CALL_aclrtGetDeviceInfo, deviceId,
                                          ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    switch ((int)attr) {
#define ATTRIBUTE_CASE(attribute, expression)                                                      \
    case attribute:                                                                                \
        *value = expression;                                                                       \
        return ACL_SUCCESS;
        ATTRIBUTES(ATTRIBUTE_CASE)
#undef ATTRIBUTE_CASE
    default:
        return acl_reject(aclrtGetDeviceInfo, ACL_ERROR_RT_PARAM_INVALID,
                          "attr %d is not an attribute of model %s", (int)attr, card->model.name);
    }
}

aclError bly_acl_aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value)
{
    if (value == NULL)
        return acl_null(aclGetDeviceCapability, "value");
    if ((int)deviceInfo < ACL_DEVICE_INFO_AI_CORE_NUM || (int)deviceInfo > ACL_DEVICE_INFO_L2_SIZE)
        return acl_reject(aclGetDeviceCapability, ACL_ERROR_INVALID_PARAM,
                          "deviceInfo %d is not in 0 .. 2", (int)deviceInfo);
    struct blyi_card *card;
    aclError error = blyi_acl_open_device(BLYI_ACL_CALL_aclGetDeviceCapability, deviceId,
                                          ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    const uint64_t values[] = {
        [ACL_DEVICE_INFO_AI_CORE_NUM] = card->model.aicore,
        [ACL_DEVICE_INFO_VECTOR_CORE_NUM] = card->model.vector_core,
        [ACL_DEVICE_INFO_L2_SIZE] = card->model.l2,
    };
    *value = (int64_t)values[deviceInfo];
    return ACL_SUCCESS;
}

/* Neither feature exists on a software card. */
aclError bly_acl_aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                          int32_t *value)
{
    if (value == NULL)
        return acl_null(aclrtGetDeviceCapability, "value");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtGetDeviceCapability, deviceId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
        devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV)
        return acl_reject(aclrtGetDeviceCapability, ACL_ERROR_RT_PARAM_INVALID,
                          "devFeatureType %d is not a feature", (int)devFeatureType);
    *value = ACL_DEV_FEATURE_NOT_SUPPORT;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus)
{
    if (deviceStatus == NULL)
        return acl_null(aclrtQueryDeviceStatus, "deviceStatus");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtQueryDeviceStatus, deviceId,
                                           ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return ACL_SUCCESS;
}

/* The cores are idle: no kernels run on this card. */
aclError bly_acl_aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                               aclrtUtilizationInfo *utilizationInfo)
{
    if (utilizationInfo == NULL)
        return acl_null(aclrtGetDeviceUtilizationRate, "utilizationInfo");
    if (utilizationInfo->utilizationExtend != NULL)
        return acl_reject(aclrtGetDeviceUtilizationRate, ACL_ERROR_INVALID_PARAM,
                          "utilizationInfo->utilizationExtend is reserved and not NULL");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtGetDeviceUtilizationRate, deviceId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    *utilizationInfo = (aclrtUtilizationInfo){.memoryUtilization = -1};
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceGetPCIBusId(int32_t deviceId, char *pciBusId, int32_t len)
{
    if (pciBusId == NULL)
        return acl_null(aclrtDeviceGetPCIBusId, "pciBusId");
    if (len < BUS_ID_SIZE)
        return acl_reject(aclrtDeviceGetPCIBusId, ACL_ERROR_INVALID_PARAM,
                          "len %" PRId32 " is below %d", len, BUS_ID_SIZE);
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtDeviceGetPCIBusId, deviceId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    snprintf(pciBusId, BUS_ID_SIZE, "0000:%02x:00.0", (unsigned)(BUS_FIRST + card) & 0xffu);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceGetByPCIBusId(const char *pciBusId, int32_t *deviceId)
{
    if (pciBusId == NULL || deviceId == NULL)
        return acl_reject(aclrtDeviceGetByPCIBusId, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          pciBusId == NULL ? "pciBusId" : "deviceId");
    unsigned domain, bus, slot, function;
    int end = 0;
    int user = -1;
    if (sscanf(pciBusId, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) == 4 &&
        pciBusId[end] == '\0' && domain == 0 && slot == 0 && function == 0 && bus >= BUS_FIRST)
        user = blyi_visible_user((int)bus - BUS_FIRST);
    if (user < 0)
        return acl_reject(aclrtDeviceGetByPCIBusId, ACL_ERROR_RT_PARAM_INVALID,
                          "no visible device has the bus id %.32s", pciBusId);
    *deviceId = user;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
    if (uuid == NULL)
        return acl_null(aclrtDeviceGetUuid, "uuid");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtDeviceGetUuid, deviceId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    memcpy(uuid->bytes, "belay-npu-card\0", sizeof(uuid->bytes));
    uuid->bytes[15] = (char)card;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceGetBareTgid(int32_t *pid)
{
    if (pid == NULL)
        return acl_null(aclrtDeviceGetBareTgid, "pid");
    *pid = blyi_key_pid();
    return ACL_SUCCESS;
}

const char *bly_acl_aclrtGetSocName(void)
{
    const struct blyi_model *model;
    bly_status status = blyi_acl_model(&model);
    if (status == BLY_OK)
        return model->soc;
    (void)acl_result(aclrtGetSocName, status);
    return NULL;
}
