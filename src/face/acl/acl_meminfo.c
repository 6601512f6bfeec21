/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_meminfo.c - figures of a card's memory, and what an address is.
 *
 * One budget of frames stands behind every attribute of aclrtGetMemInfo:
 *
 *   attribute                     free                                     total
 *   ACL_DDR_MEM, ACL_HBM_MEM      whole free frames + unused normal pages   what programs see
 *   ..._HUGE, ..._P2P_HUGE        whole free frames                         the same
 *   ..._NORMAL, ..._P2P_NORMAL    unused pages of partly used frames        the same
 *   ..._HUGE1G, ..._P2P_HUGE1G    free aligned GiB (207000: no such pages)  its whole GiB
 *
 * So HUGE and NORMAL add up to the first row. A part with HBM has no DDR: zeros. A part with
 * DDR answers both.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "face/acl/model.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/mapping.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/share.h"
#include "npu/pointer.h"
#include "npu/runtime.h"
#include "npu/vmm.h"

enum figure { ALL, HUGE_PAGES, NORMAL_PAGES, GIANT_PAGES };

static const struct attribute {
    enum figure figure;
    bool is_ddr;
} attributes[] = {
    [ACL_DDR_MEM] = {ALL, true},
    [ACL_HBM_MEM] = {ALL, false},
    [ACL_DDR_MEM_HUGE] = {HUGE_PAGES, true},
    [ACL_DDR_MEM_NORMAL] = {NORMAL_PAGES, true},
    [ACL_HBM_MEM_HUGE] = {HUGE_PAGES, false},
    [ACL_HBM_MEM_NORMAL] = {NORMAL_PAGES, false},
    [ACL_DDR_MEM_P2P_HUGE] = {HUGE_PAGES, true},
    [ACL_DDR_MEM_P2P_NORMAL] = {NORMAL_PAGES, true},
    [ACL_HBM_MEM_P2P_HUGE] = {HUGE_PAGES, false},
    [ACL_HBM_MEM_P2P_NORMAL] = {NORMAL_PAGES, false},
    [ACL_HBM_MEM_HUGE1G] = {GIANT_PAGES, false},
    [ACL_HBM_MEM_P2P_HUGE1G] = {GIANT_PAGES, false},
    [ACL_MEM_NORMAL] = {NORMAL_PAGES, false},
    [ACL_MEM_HUGE] = {HUGE_PAGES, false},
    [ACL_MEM_HUGE1G] = {GIANT_PAGES, false},
    [ACL_MEM_P2P_NORMAL] = {NORMAL_PAGES, false},
    [ACL_MEM_P2P_HUGE] = {HUGE_PAGES, false},
    [ACL_MEM_P2P_HUGE1G] = {GIANT_PAGES, false},
};

aclError bly_acl_aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
    if (free == NULL || total == NULL)
        return acl_reject(aclrtGetMemInfo, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          free == NULL ? "free" : "total");
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtGetMemInfo, &card);
    if (error != ACL_SUCCESS)
        return error;
    if ((unsigned)attr >= BLYI_COUNT(attributes))
        return acl_reject(aclrtGetMemInfo, ACL_ERROR_RT_INVALID_MEMORY_TYPE,
                          "attr %d is not in 0 .. %zu", (int)attr, BLYI_COUNT(attributes) - 1);
    const struct attribute *attribute = &attributes[attr];
    if (attribute->figure == GIANT_PAGES && card->model.giant_pages == 0)
        return acl_reject(aclrtGetMemInfo, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                          "attr %d: model %s has no 1 GiB pages", (int)attr, card->model.name);
    if (attribute->is_ddr && !blyi_acl_model_is_ddr(&card->model)) {
        *free = *total = 0;
        return ACL_SUCCESS;
    }
    struct blyi_mem_figures figures;
    blyi_mem_figures(card, &figures);
    const uint64_t free_bytes[] = {
        [ALL] = figures.free,
        [HUGE_PAGES] = figures.huge_free,
        [NORMAL_PAGES] = figures.normal_free,
        [GIANT_PAGES] = figures.giant_free,
    };
    *free = free_bytes[attribute->figure];
    *total = attribute->figure == GIANT_PAGES ? blyi_align_down(figures.total, GiB) : figures.total;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo,
                                      size_t inputNum, size_t *outputNum)
{
    if (memUsageInfo == NULL || outputNum == NULL)
        return acl_reject(aclrtGetMemUsageInfo, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          memUsageInfo == NULL ? "memUsageInfo" : "outputNum");
    if (inputNum == 0)
        return acl_reject(aclrtGetMemUsageInfo, ACL_ERROR_INVALID_PARAM, "inputNum is 0");
    struct blyi_card *card;
    aclError error = blyi_acl_open_device(BLYI_ACL_CALL_aclrtGetMemUsageInfo, deviceId,
                                          ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    struct blyi_mem_usage rows[BLYI_MODULE_COUNT];
    size_t n = blyi_mem_usage(card, rows, BLYI_COUNT(rows));
    if (n > BLYI_COUNT(rows))
        n = BLYI_COUNT(rows);
    if (n > inputNum)
        n = inputNum;
    for (size_t i = 0; i < n; i++) {
        aclrtMemUsageInfo row = {.curMemSize = rows[i].live, .memPeakSize = rows[i].peak};
        _Static_assert(sizeof(row.name) == sizeof(rows[i].name), "names have one length");
        memcpy(row.name, rows[i].name, sizeof(row.name));
        memUsageInfo[i] = row;
    }
    *outputNum = n;
    return ACL_SUCCESS;
}

static uint32_t place_of(const void *ptr, int card)
{
    struct blyi_import_info import;
    struct blyi_mapping_info mapping;
    int user = blyi_visible_user(card), for_card = card;
    if (likely(user >= 0))
        return (uint32_t)user;
    if (blyi_import_find(ptr, &import))
        for_card = import.for_card;
    else if (blyi_mapping_find((uintptr_t)ptr, &mapping))
        for_card = mapping.for_card;
    return blyi_visible_place(card, for_card);
}

/* The block of a pool that is handed out at the address. */
static bool find_pooled(const void *ptr, bly_pool_block *block)
{
    block->struct_size = sizeof(*block);
    if (!blyi_alloc_pool_has(ptr))
        return false;
    bool found = bly_pool_find(ptr, block) == BLY_OK;
    if (!found)
        blyi_fail_clear();
    return found;
}

/* The program's own mapping at the address, not a pool's. */
static bool find_mapped(const void *ptr, struct blyi_mapping_info *mapping)
{
    struct blyi_reservation_info range;
    return blyi_mapping_find((uintptr_t)ptr, mapping) && blyi_vmm_find((uintptr_t)ptr, &range) &&
           !range.of_pool;
}

/* In a pool, and in no block that is handed out. */
static bool lies_idle(const void *ptr)
{
    bly_pool_block block;
    struct blyi_reservation_info range;
    return blyi_alloc_pool_has(ptr) && !find_pooled(ptr, &block) &&
           blyi_vmm_find((uintptr_t)ptr, &range) && range.of_pool;
}

aclError bly_acl_aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes_out)
{
    if (ptr == NULL || attributes_out == NULL)
        return acl_reject(aclrtPointerGetAttributes, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          ptr == NULL ? "ptr" : "attributes");
    aclrtPtrAttributes found = {.location = {.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED}};
    struct blyi_pointer_quick quick;
    if (unlikely(lies_idle(ptr))) {
        *attributes_out = found;
        return ACL_SUCCESS;
    }
    bool is_known = blyi_pointer_quick(ptr, &quick);
    if (!is_known && blyi_pointer_is_plain(ptr) && !blyi_runtime_is_forked()) {
        *attributes_out = found;
        return ACL_SUCCESS;
    }
    if (likely(is_known || blyi_pointer_partial(ptr, &quick))) {
        found.pageSize = (uint32_t)blyi_page_bytes(quick.page_kind);
        found.location.type =
            quick.card < 0 ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_DEVICE;
        found.location.id = quick.card < 0 ? 0 : place_of(ptr, quick.card);
        *attributes_out = found;
        return ACL_SUCCESS;
    }
    bly_pointer info = {.struct_size = sizeof(info)};
    bly_status status = bly_pointer_info(ptr, &info);
    if (status != BLY_OK)
        return acl_result(aclrtPointerGetAttributes, status);
    bool is_live = info.kind == BLY_POINTER_CARD || info.kind == BLY_POINTER_MAPPED ||
                   info.kind == BLY_POINTER_IMPORTED;
    if (is_live && info.card >= 0) {
        found.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        found.location.id = place_of(ptr, info.card);
    } else if (is_live || info.kind == BLY_POINTER_PINNED || info.kind == BLY_POINTER_REGISTERED) {
        found.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    }
    found.pageSize = info.page_size;
    *attributes_out = found;
    return ACL_SUCCESS;
}

/* The size is what was asked from the card: rounded by AscendCL's rule. */
aclError bly_acl_aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
    if (ptr == NULL)
        return acl_null(aclrtMemGetAddressRange, "ptr");
    if (pbase == NULL && psize == NULL)
        return acl_reject(aclrtMemGetAddressRange, ACL_ERROR_RT_PARAM_INVALID,
                          "pbase and psize are both NULL");
    bly_status status = blyi_runtime_check();
    if (status != BLY_OK)
        return acl_result(aclrtMemGetAddressRange, status);
    struct blyi_mem_block block;
    struct blyi_pinned_block pinned;
    struct blyi_mapping_info mapping;
    struct blyi_import_info import;
    bly_pool_block pooled;
    uintptr_t base;
    uint64_t size;
    if (blyi_mem_find(ptr, &block)) {
        base = block.address;
        size = block.rounded;
    } else if (blyi_pinned_find(ptr, &pinned)) {
        base = pinned.address;
        size = pinned.rounded;
    } else if (find_pooled(ptr, &pooled)) {
        base = (uintptr_t)pooled.address;
        size = pooled.asked;
    } else if (find_mapped(ptr, &mapping)) {
        base = mapping.address;
        size = mapping.size;
    } else if (blyi_import_find(ptr, &import)) {
        base = import.address;
        size = import.size;
    } else {
        return acl_reject(aclrtMemGetAddressRange, ACL_ERROR_RT_PARAM_INVALID,
                          "ptr %p lies in no live allocation", ptr);
    }
    if (pbase != NULL)
        *pbase = (void *)base; /* NOLINT(performance-no-int-to-ptr): an address of ours */
    if (psize != NULL)
        *psize = size;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType,
                                   uint32_t *checkResult, uint32_t reserve)
{
    if (addrList == NULL || checkResult == NULL)
        return acl_reject(aclrtCheckMemType, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          addrList == NULL ? "addrList" : "checkResult");
    if (size == 0)
        return acl_reject(aclrtCheckMemType, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (reserve != 0)
        return acl_reject(aclrtCheckMemType, ACL_ERROR_INVALID_PARAM,
                          "reserve %" PRIu32 " is not 0", reserve);
    bly_status status = blyi_runtime_check();
    if (status != BLY_OK)
        return acl_result(aclrtCheckMemType, status);
    uint32_t all = 1;
    for (uint32_t i = 0; i < size && all != 0; i++) {
        struct blyi_mem_block block;
        struct blyi_reservation_info range;
        bly_pool_block pooled;
        all = ((memType & ACL_RT_MEM_TYPE_DEV) != 0 &&
               (blyi_mem_find(addrList[i], &block) || find_pooled(addrList[i], &pooled))) ||
              ((memType & ACL_RT_MEM_TYPE_RSVD) != 0 &&
               blyi_vmm_find((uintptr_t)addrList[i], &range) && !range.of_pool);
    }
    *checkResult = all;
    return ACL_SUCCESS;
}

/* The host reaches card memory by copies only, which see what was written last. */
static aclError check_cached(enum blyi_acl_call call, const void *address, size_t size)
{
    if (address == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    if (size == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "size is 0");
    struct blyi_context *context;
    return blyi_acl_check_context(call, &context);
}

aclError bly_acl_aclrtMemFlush(void *devPtr, size_t size)
{
    return check_cached(BLYI_ACL_CALL_aclrtMemFlush, devPtr, size);
}

aclError bly_acl_aclrtMemInvalidate(void *devPtr, size_t size)
{
    return check_cached(BLYI_ACL_CALL_aclrtMemInvalidate, devPtr, size);
}
