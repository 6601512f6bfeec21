/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_memory.c - card memory: every way to allocate it, and the ways to free it.
 *
 *   function                  rounding   policies
 *   aclrtMalloc               32, + 32   one value; a number outside the list is HUGE_FIRST;
 *                                        the huge peer-to-peer ones take normal pages
 *   aclrtMallocAlign32        32         the same
 *   aclrtMallocCached         32, + 32   NORMAL_ONLY, else 207000
 *   aclrtMallocWithCfg        32         low byte is the policy, the rest are hints
 *   ...ForTaskScheduler       32         the same, in the first 4 GiB
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "base/stat.h"
#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "face/acl/config.h"
#include "npu/card.h"
#include "npu/memory.h"

#define POLICY_BITS 0xffu

/* Policy and flags for src/npu; `plain` is the old entry of aclrtMalloc. */
static void translate_policy(uint32_t policy, bool plain, struct blyi_mem_request *request)
{
    static const struct {
        enum blyi_mem_policy policy, plain_policy;
        uint32_t flags;
    } rows[] = {
        [ACL_MEM_MALLOC_HUGE_FIRST] = {BLYI_MEM_HUGE_FIRST, BLYI_MEM_HUGE_FIRST, 0},
        [ACL_MEM_MALLOC_HUGE_ONLY] = {BLYI_MEM_HUGE_ONLY, BLYI_MEM_HUGE_ONLY, 0},
        [ACL_MEM_MALLOC_NORMAL_ONLY] = {BLYI_MEM_NORMAL_ONLY, BLYI_MEM_NORMAL_ONLY, 0},
        [ACL_MEM_MALLOC_HUGE_FIRST_P2P] = {BLYI_MEM_HUGE_FIRST, BLYI_MEM_NORMAL_ONLY,
                                           BLYI_MEM_CONTIGUOUS},
        [ACL_MEM_MALLOC_HUGE_ONLY_P2P] = {BLYI_MEM_HUGE_ONLY, BLYI_MEM_NORMAL_ONLY,
                                          BLYI_MEM_CONTIGUOUS},
        [ACL_MEM_MALLOC_NORMAL_ONLY_P2P] = {BLYI_MEM_NORMAL_ONLY, BLYI_MEM_NORMAL_ONLY,
                                            BLYI_MEM_CONTIGUOUS},
        [ACL_MEM_MALLOC_HUGE1G_ONLY] = {BLYI_MEM_GIANT_ONLY, BLYI_MEM_GIANT_ONLY, 0},
        [ACL_MEM_MALLOC_HUGE1G_ONLY_P2P] = {BLYI_MEM_GIANT_ONLY, BLYI_MEM_GIANT_ONLY,
                                            BLYI_MEM_CONTIGUOUS},
    };
    uint32_t hints = plain ? 0 : policy & ~POLICY_BITS;
    uint32_t low = plain ? policy : policy & POLICY_BITS;
    if (low >= BLYI_COUNT(rows)) { /* not a policy: everything is the default */
        low = ACL_MEM_MALLOC_HUGE_FIRST;
        hints = 0;
    }
    request->policy = plain ? rows[low].plain_policy : rows[low].policy;
    request->flags |= rows[low].flags;
    if (hints & ACL_MEM_ACCESS_USER_SPACE_READONLY)
        request->flags |= BLYI_MEM_READONLY;
}

static bool is_giant(uint32_t policy)
{
    return policy == ACL_MEM_MALLOC_HUGE1G_ONLY || policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
}

static void tell_p2p_once(uint32_t policy)
{
    static bool told;
    if (policy != ACL_MEM_MALLOC_HUGE_FIRST_P2P && policy != ACL_MEM_MALLOC_HUGE_ONLY_P2P)
        return;
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        blyi_log(BLYI_LOG_INFO, "aclrtMalloc with a huge peer-to-peer policy takes normal pages; "
                                "aclrtMallocWithCfg takes huge ones");
}

/* Calls are timed where somebody listens. 0: nobody does. */
static uint64_t time_begins(void)
{
    return blyi_probe_on(BLYI_PROBE_ALLOC) ? blyi_clock_ns() : 0;
}

static void time_ends(uint64_t began_ns)
{
    if (unlikely(began_ns != 0))
        blyi_stat_add(BLYI_STAT_alloc_ns, blyi_clock_ns() - began_ns);
}

/* The common end: size is checked, the context is not. */
static aclError allocate(enum blyi_acl_call call, struct blyi_mem_request *request, void **out)
{
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(call, &card);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_limit(call, request->rounded);
    if (error != ACL_SUCCESS)
        return error;
    uint64_t began_ns = time_begins();
    bly_status status = blyi_alloc_pool_takes(card, request)
                            ? blyi_alloc_pool_alloc(card, request, out)
                            : blyi_mem_alloc(card, request, out);
    time_ends(began_ns);
    return blyi_acl_result(call, status);
}

static aclError allocate_plain(enum blyi_acl_call call, void **out, size_t size,
                               aclrtMemMallocPolicy policy, bool padded, uint32_t site)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    struct blyi_mem_request request = {
        .asked = size, .site = site, .module = BLYI_MODULE_APPLICATION};
    aclError error =
        blyi_acl_check_size(call, size, padded && !is_giant((uint32_t)policy), &request.rounded);
    if (error != ACL_SUCCESS)
        return error;
    translate_policy((uint32_t)policy, true, &request);
    tell_p2p_once((uint32_t)policy);
    return allocate(call, &request, out);
}

aclError bly_acl_aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    return allocate_plain(BLYI_ACL_CALL_aclrtMalloc, devPtr, size, policy, true, ACL_SITE());
}

aclError bly_acl_aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    return allocate_plain(BLYI_ACL_CALL_aclrtMallocAlign32, devPtr, size, policy, false,
                          ACL_SITE());
}

aclError bly_acl_aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMallocCached;
    uint32_t site = ACL_SITE();
    if (devPtr == NULL)
        return acl_null(aclrtMallocCached, "devPtr");
    struct blyi_mem_request request = {.asked = size,
                                       .site = site,
                                       .module = BLYI_MODULE_APPLICATION,
                                       .policy = BLYI_MEM_NORMAL_ONLY};
    struct blyi_context *context;
    aclError error = blyi_acl_check_size(call, size, true, &request.rounded);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_context(call, &context);
    if (error != ACL_SUCCESS)
        return error;
    if (policy != ACL_MEM_MALLOC_NORMAL_ONLY)
        return acl_reject(aclrtMallocCached, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                          "policy %d is not ACL_MEM_MALLOC_NORMAL_ONLY (2): only normal pages can "
                          "be cached by the host",
                          (int)policy);
    return allocate(call, &request, devPtr);
}

/* Attributes: module, device (must be the current one); a fixed address is for the host only. */
static aclError apply_config(enum blyi_acl_call call, const aclrtMallocConfig *cfg,
                             struct blyi_mem_request *request)
{
    struct blyi_config config;
    aclError error = blyi_config_read(call, cfg, &config);
    if (error != ACL_SUCCESS)
        return error;
    request->module = config.module;
    if (!config.has_device && !config.has_va_flag)
        return ACL_SUCCESS;
    struct blyi_card *here;
    error = blyi_acl_check_card(call, &here);
    if (error != ACL_SUCCESS)
        return error;
    if (config.has_va_flag)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "attribute ACL_RT_MEM_ATTR_VA_FLAG is for host memory");
    int card;
    error = blyi_acl_check_device(call, config.device, ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error == ACL_SUCCESS && card != here->id)
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "attribute ACL_RT_MEM_ATTR_DEVICE_ID is %" PRIu32
                                ", the current context is on card %d",
                                config.device, here->id);
    return error;
}

static aclError allocate_with_config(enum blyi_acl_call call, void **out, size_t size,
                                     aclrtMemMallocPolicy policy, const aclrtMallocConfig *cfg,
                                     uint32_t flags, uint32_t site)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    struct blyi_mem_request request = {.asked = size, .site = site, .flags = flags};
    aclError error = blyi_acl_check_size(call, size, false, &request.rounded);
    if (error == ACL_SUCCESS)
        error = apply_config(call, cfg, &request);
    if (error != ACL_SUCCESS)
        return error;
    translate_policy((uint32_t)policy, false, &request);
    return allocate(call, &request, out);
}

aclError bly_acl_aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
                                    aclrtMallocConfig *cfg)
{
    return allocate_with_config(BLYI_ACL_CALL_aclrtMallocWithCfg, devPtr, size, policy, cfg, 0,
                                ACL_SITE());
}

aclError bly_acl_aclrtMallocForTaskScheduler(void **devPtr, size_t size,
                                             aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
    return allocate_with_config(BLYI_ACL_CALL_aclrtMallocForTaskScheduler, devPtr, size, policy,
                                cfg, BLYI_MEM_LOW, ACL_SITE());
}

static bly_status free_memory(void *address, uint32_t site)
{
    return unlikely(blyi_alloc_pool_has(address)) ? blyi_alloc_pool_free(address, site)
                                                  : blyi_mem_free(address, site);
}

aclError bly_acl_aclrtFree(void *devPtr)
{
    uint32_t site = ACL_SITE();
    if (devPtr == NULL)
        return acl_null(aclrtFree, "devPtr");
    uint64_t began_ns = time_begins();
    bly_status status = free_memory(devPtr, site);
    time_ends(began_ns);
    return acl_result(aclrtFree, status);
}

aclError bly_acl_aclrtFreeWithDevSync(void *devPtr)
{
    uint32_t site = ACL_SITE();
    if (devPtr == NULL)
        return acl_null(aclrtFreeWithDevSync, "devPtr");
    bly_status status = blyi_device_sync(0);
    if (status == BLY_OK)
        status = free_memory(devPtr, site);
    return acl_result(aclrtFreeWithDevSync, status);
}
