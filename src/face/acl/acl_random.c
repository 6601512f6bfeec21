/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_random.c - random numbers in card memory.
 */
#include <inttypes.h>
#include <string.h>

#include "face/acl/check.h"
#include "face/acl/model.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/random.h"

#define CALL BLYI_ACL_CALL_aclrtRandomNumAsync

/* X(AscendCL's type, ours) */
#define TYPES(X)                                                                                   \
    X(ACL_INT32, INT32)                                                                            \
    X(ACL_INT64, INT64)                                                                            \
    X(ACL_UINT32, UINT32)                                                                          \
    X(ACL_UINT64, UINT64)                                                                          \
    X(ACL_BF16, BF16)                                                                              \
    X(ACL_FLOAT16, FP16)                                                                           \
    X(ACL_FLOAT, FP32)

static aclError read_type(const aclrtRandomNumTaskInfo *info, struct blyi_random *random)
{
    switch ((int)info->dataType) {
#define TYPE_CASE(theirs, ours)                                                                    \
    case theirs:                                                                                   \
        random->type = BLYI_RANDOM_##ours;                                                         \
        break;
        TYPES(TYPE_CASE)
#undef TYPE_CASE
    default:
        return blyi_acl_reject(CALL, ACL_ERROR_INVALID_PARAM,
                               "there are no random numbers of data type %d", (int)info->dataType);
    }
    aclrtRandomNumFuncType kind = info->randomNumFuncParaInfo.funcType;
    if ((int)kind < ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK ||
        (int)kind > ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS)
        return blyi_acl_reject(CALL, ACL_ERROR_RT_PARAM_INVALID, "funcType %d is not in 0 .. 3",
                               (int)kind);
    random->kind = (enum blyi_random_kind)kind;
    if (random->kind != BLYI_RANDOM_UNIFORM && random->type < BLYI_RANDOM_BF16)
        return blyi_acl_reject(CALL, ACL_ERROR_RT_PARAM_INVALID,
                               "funcType %d has no integers: data type %d", (int)kind,
                               (int)info->dataType);
    return ACL_SUCCESS;
}

static aclError read_param(const aclrtRandomParaInfo *info, const char *name, uint32_t size,
                           struct blyi_random_param *param)
{
    if (info->isAddr > 1)
        return blyi_acl_reject(CALL, ACL_ERROR_RT_PARAM_INVALID, "isAddr %d of %s is not 0 or 1",
                               info->isAddr, name);
    uint32_t most = info->isAddr ? sizeof(uint64_t) : size;
    if (info->size == 0 || info->size > most)
        return blyi_acl_reject(CALL, ACL_ERROR_RT_PARAM_INVALID,
                               "size %d of %s is not in 1 .. %" PRIu32, info->size, name, most);
    param->is_address = info->isAddr == 1;
    param->word = 0;
    memcpy(&param->word, info->valueOrAddr, info->size);
    return ACL_SUCCESS;
}

static aclError read_params(const aclrtRandomNumTaskInfo *info, struct blyi_random *random)
{
    const aclrtRandomNumFuncParaInfo *function = &info->randomNumFuncParaInfo;
    uint32_t size = blyi_random_size(random->type);
    aclError error;
    if (random->kind == BLYI_RANDOM_MASK) {
        error = read_param(&function->paramInfo.dropoutBitmaskInfo.dropoutRation, "dropoutRation",
                           size, &random->first);
    } else {
        bool uniform = random->kind == BLYI_RANDOM_UNIFORM;
        error = read_param(uniform ? &function->paramInfo.uniformDisInfo.min
                                   : &function->paramInfo.normalDisInfo.mean,
                           uniform ? "min" : "mean", size, &random->first);
        if (error == ACL_SUCCESS)
            error = read_param(uniform ? &function->paramInfo.uniformDisInfo.max
                                       : &function->paramInfo.normalDisInfo.stddev,
                               uniform ? "max" : "stddev", size, &random->second);
    }
    if (error == ACL_SUCCESS)
        error = read_param(&info->randomSeed, "randomSeed", sizeof(uint64_t), &random->seed);
    if (error == ACL_SUCCESS)
        error = read_param(&info->randomNum, "randomNum", sizeof(uint64_t), &random->n);
    return error;
}

/* Room of the program's for the two parameters: they are written there, and read when the task
 * runs. */
static aclError place_params(void *address, struct blyi_random *random)
{
    const uint64_t words[2] = {random->first.word, random->second.word};
    bly_status status = blyi_copy_own(address, words, sizeof(words));
    if (status != BLY_OK)
        return blyi_acl_fail(CALL, status);
    if (!random->first.is_address)
        random->first = (struct blyi_random_param){(uintptr_t)address, true};
    if (!random->second.is_address)
        random->second = (struct blyi_random_param){(uintptr_t)address + sizeof(uint64_t), true};
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtRandomNumAsync(const aclrtRandomNumTaskInfo *taskInfo,
                                     const aclrtStream stream, void *reserve)
{
    uint32_t site = ACL_SITE();
    struct blyi_random random = {0};
    struct blyi_card *card;
    if (taskInfo == NULL)
        return acl_null(aclrtRandomNumAsync, "taskInfo");
    aclError error = read_type(taskInfo, &random);
    if (error == ACL_SUCCESS && reserve != NULL)
        error = blyi_acl_reject(CALL, ACL_ERROR_RT_PARAM_INVALID, "reserve is not NULL");
    if (error == ACL_SUCCESS)
        error = read_params(taskInfo, &random);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_card(CALL, &card);
    if (error == ACL_SUCCESS && blyi_acl_model_is_ddr(&card->model))
        error = blyi_acl_reject(CALL, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                "model %s makes no random numbers", card->model.name);
    random.result = taskInfo->randomResultAddr;
    random.counter = taskInfo->randomCounterAddr;
    if (error == ACL_SUCCESS && taskInfo->randomParaAddr != NULL)
        error = place_params(taskInfo->randomParaAddr, &random);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(CALL, blyi_random_async(&random, stream, site));
}
