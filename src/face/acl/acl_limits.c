/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_limits.c - what work may use: cores by process, stream and thread, stacks and FIFOs, time.
 *
 * Core limits are kept and read back as the documentation says; software kernels run their blocks
 * one after another whatever they are. Time limits end kernels. Lock: rank FACE, the tables.
 */
#include <inttypes.h>

#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/check.h"
#include "face/acl/limits.h"
#include "npu/card.h"
#include "npu/stream.h"
#include "npu/watch.h"

#define TYPES 2 /* cube cores, vector cores */

struct cores {
    uint32_t n[TYPES]; /* 0: not limited */
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct cores of_card[BLYI_CARD_MAX];
static struct blyi_map of_stream; /* stream handle -> struct cores */
static _Thread_local const void *used_stream;

static uint32_t hardware(const struct blyi_card *card, int type)
{
    return (uint32_t)(type == ACL_RT_DEV_RES_CUBE_CORE ? card->model.aicore
                                                       : card->model.vector_core);
}

static aclError check_type(enum blyi_acl_call call, int type)
{
    if (type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE)
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "type %d is not 0 or 1", type);
}

static aclError check_value(enum blyi_acl_call call, const struct blyi_card *card, int type,
                            uint32_t value)
{
    if (value >= 1 && value <= hardware(card, type))
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                           "%" PRIu32 " cores are not in 1 .. %" PRIu32, value,
                           hardware(card, type));
}

static uint32_t limit_of_card(const struct blyi_card *card, int type)
{
    blyi_lock_take(&lock);
    uint32_t n = of_card[card->id].n[type];
    blyi_lock_drop(&lock);
    return n != 0 ? n : hardware(card, type);
}

static aclError open_card(enum blyi_acl_call call, int32_t device, int type,
                          struct blyi_card **card)
{
    aclError error = check_type(call, type);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_open_device(call, device, ACL_ERROR_RT_PARAM_INVALID, card);
}

aclError bly_acl_aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                        uint32_t *value)
{
    struct blyi_card *card;
    if (value == NULL)
        return acl_null(aclrtGetDeviceResLimit, "value");
    aclError error = open_card(BLYI_ACL_CALL_aclrtGetDeviceResLimit, deviceId, (int)type, &card);
    if (error == ACL_SUCCESS)
        *value = limit_of_card(card, (int)type);
    return error;
}

aclError bly_acl_aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSetDeviceResLimit;
    struct blyi_card *card;
    aclError error = open_card(call, deviceId, (int)type, &card);
    if (error == ACL_SUCCESS)
        error = check_value(call, card, (int)type, value);
    if (error != ACL_SUCCESS)
        return error;
    blyi_lock_take(&lock);
    of_card[card->id].n[type] = value;
    blyi_lock_drop(&lock);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtResetDeviceResLimit(int32_t deviceId)
{
    struct blyi_card *card;
    aclError error = open_card(BLYI_ACL_CALL_aclrtResetDeviceResLimit, deviceId, 0, &card);
    if (error != ACL_SUCCESS)
        return error;
    blyi_lock_take(&lock);
    of_card[card->id] = (struct cores){{0}};
    blyi_lock_drop(&lock);
    return ACL_SUCCESS;
}

/* ── Streams ──────────────────────────────────────────────────────────────────────────────── */

/* The live stream that `stream` names (NULL: the default one), and the context's card. */
static aclError find_stream(enum blyi_acl_call call, aclrtStream *stream, struct blyi_card **card)
{
    void *default_stream;
    int32_t id;
    aclError error = blyi_acl_check_default(call, &default_stream, card);
    if (error != ACL_SUCCESS)
        return error;
    if (*stream == NULL)
        *stream = default_stream;
    return blyi_acl_result(call, blyi_stream_id(*stream, &id));
}

static uint32_t limit_of_stream(const void *stream, int type)
{
    blyi_lock_take(&lock);
    const struct cores *cores = blyi_map_get(&of_stream, (uint64_t)(uintptr_t)stream);
    uint32_t n = cores != NULL ? cores->n[type] : 0;
    blyi_lock_drop(&lock);
    return n;
}

aclError bly_acl_aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                        uint32_t *value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtGetStreamResLimit;
    struct blyi_card *card;
    if (value == NULL)
        return acl_null(aclrtGetStreamResLimit, "value");
    aclError error = check_type(call, (int)type);
    if (error == ACL_SUCCESS)
        error = find_stream(call, &stream, &card);
    if (error != ACL_SUCCESS)
        return error;
    uint32_t n = limit_of_stream(stream, (int)type);
    *value = n != 0 ? n : limit_of_card(card, (int)type);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                        uint32_t value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSetStreamResLimit;
    struct blyi_card *card;
    aclError error = check_type(call, (int)type);
    if (error == ACL_SUCCESS)
        error = find_stream(call, &stream, &card);
    if (error == ACL_SUCCESS)
        error = check_value(call, card, (int)type, value);
    if (error != ACL_SUCCESS)
        return error;
    uint64_t key = (uint64_t)(uintptr_t)stream;
    blyi_lock_take(&lock);
    struct cores *cores = blyi_map_get(&of_stream, key);
    if (cores == NULL) {
        cores = blyi_host_calloc(1, sizeof(*cores));
        if (cores != NULL && blyi_map_put(&of_stream, key, cores) != BLY_OK) {
            blyi_host_free(cores);
            cores = NULL;
        }
    }
    if (cores != NULL)
        cores->n[type] = value;
    blyi_lock_drop(&lock);
    if (cores == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_MEMORY_ALLOCATION,
                               "the host has no memory for a limit");
    return ACL_SUCCESS;
}

void blyi_limits_forget_stream(const void *stream)
{
    blyi_lock_take(&lock);
    void *cores = blyi_map_remove(&of_stream, (uint64_t)(uintptr_t)stream);
    blyi_lock_drop(&lock);
    blyi_host_free(cores);
}

aclError bly_acl_aclrtResetStreamResLimit(aclrtStream stream)
{
    struct blyi_card *card;
    aclError error = find_stream(BLYI_ACL_CALL_aclrtResetStreamResLimit, &stream, &card);
    if (error == ACL_SUCCESS)
        blyi_limits_forget_stream(stream);
    return error;
}

aclError bly_acl_aclrtUseStreamResInCurrentThread(aclrtStream stream)
{
    struct blyi_card *card;
    aclError error = find_stream(BLYI_ACL_CALL_aclrtUseStreamResInCurrentThread, &stream, &card);
    if (error == ACL_SUCCESS)
        used_stream = stream;
    return error;
}

aclError bly_acl_aclrtUnuseStreamResInCurrentThread(aclrtStream stream)
{
    struct blyi_card *card;
    aclError error = find_stream(BLYI_ACL_CALL_aclrtUnuseStreamResInCurrentThread, &stream, &card);
    if (error == ACL_SUCCESS)
        used_stream = NULL;
    return error;
}

aclError bly_acl_aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtGetResInCurrentThread;
    struct blyi_card *card;
    if (value == NULL)
        return acl_null(aclrtGetResInCurrentThread, "value");
    aclError error = check_type(call, (int)type);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_card(call, &card);
    if (error != ACL_SUCCESS)
        return error;
    uint32_t n = used_stream != NULL ? limit_of_stream(used_stream, (int)type) : 0;
    *value = n != 0 ? n : limit_of_card(card, (int)type);
    return ACL_SUCCESS;
}

/* ── Stacks and FIFOs ─────────────────────────────────────────────────────────────────────── */

/* X(limit, default, least, most, multiple): as aclInit's file has them. */
#define SIZES(X)                                                                                   \
    X(ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 32u << 10, 32u << 10, 192u << 10, 16u << 10)               \
    X(ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 32u << 10, 1u << 10, 64u << 20, 8u)

#define SIZE_DEFAULT(limit, otherwise, least, most, multiple) [limit] = otherwise,
static size_t sizes[] = {SIZES(SIZE_DEFAULT)}; /* atomic */
#undef SIZE_DEFAULT

static aclError check_limit(enum blyi_acl_call call, int limit, size_t value)
{
    size_t low, high, step;
    switch (limit) {
#define SIZE_CASE(name, otherwise, least, most, multiple)                                          \
    case name:                                                                                     \
        low = least, high = most, step = multiple;                                                 \
        break;
        SIZES(SIZE_CASE)
#undef SIZE_CASE
    case ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE:
    case ACL_RT_DEV_LIMIT_SIMT_DVG_WARP_STACK_SIZE:
    case ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE:
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "limit %d: the model has no SIMT units", limit);
    default:
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "limit %d is not in 0 .. 4", limit);
    }
    if (value < low || value > high || value % step != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "limit %d: %zu is not in %zu .. %zu in steps of %zu", limit, value,
                               low, high, step);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value)
{
    aclError error = check_limit(BLYI_ACL_CALL_aclrtDeviceSetLimit, (int)limit, value);
    if (error == ACL_SUCCESS)
        __atomic_store_n(&sizes[limit], value, __ATOMIC_RELAXED);
    return error;
}

aclError bly_acl_aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t *value)
{
    if (value == NULL)
        return acl_null(aclrtDeviceGetLimit, "value");
    /* A size that is always good: the limit alone is looked at. */
    aclError error = check_limit(BLYI_ACL_CALL_aclrtDeviceGetLimit, (int)limit, 32u << 10);
    if (error == ACL_SUCCESS)
        *value = __atomic_load_n(&sizes[limit], __ATOMIC_RELAXED);
    return error;
}

/* ── Time ─────────────────────────────────────────────────────────────────────────────────── */

#define INTERVAL_US 1000u /* limits are whole multiples */

static void set_time(uint64_t us)
{
    blyi_watch_set_default(us);
}

aclError bly_acl_aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
    set_time((uint64_t)timeout * 1000000u);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)
{
    set_time((uint64_t)timeout * 1000u);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
    if (actualTimeout == NULL)
        return acl_null(aclrtSetOpExecuteTimeOutV2, "actualTimeout");
    if (timeout > UINT64_MAX - INTERVAL_US)
        return acl_reject(aclrtSetOpExecuteTimeOutV2, ACL_ERROR_RT_PARAM_INVALID,
                          "timeout %" PRIu64 " us is too long", timeout);
    uint64_t actual = (timeout + INTERVAL_US - 1) / INTERVAL_US * INTERVAL_US;
    set_time(actual);
    *actualTimeout = actual;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetOpTimeOutInterval(uint64_t *interval)
{
    if (interval == NULL)
        return acl_null(aclrtGetOpTimeOutInterval, "interval");
    *interval = INTERVAL_US;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetOpExecuteTimeout(uint32_t *const timeoutMs)
{
    if (timeoutMs == NULL)
        return acl_null(aclrtGetOpExecuteTimeout, "timeoutMs");
    uint64_t ms = blyi_watch_default_us() / 1000u;
    *timeoutMs = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return ACL_SUCCESS;
}
