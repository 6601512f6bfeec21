/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_copy.c - copies, at once and in stream order.
 *
 * Where the two addresses lie decides what an asynchronous copy is (H: pinned host memory,
 * D: card memory, U: other host memory):
 *
 *              dst H        dst D             dst U             default
 *   src H      host→host    host→device       0 or 1, else *    by location
 *   src D      device→host  device→device     2 or 3, else *    by location
 *   src U      0 or 2, *    1 or 3, else *    0 .. 3            by location
 *
 * and * is 107000. What comes out as host→host is 207000: a card behind PCIe has no engine for
 * it. The synchronous call takes the direction from the addresses and copies anything.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/staging.h"
#include "npu/copy.h"
#include "npu/memory.h"
#include "npu/stream.h"

#define ROWS_MAX  5242880u
#define WIDTH_MAX 5000000u

static aclError check_kind(enum blyi_acl_call call, aclrtMemcpyKind kind)
{
    if ((int)kind < ACL_MEMCPY_HOST_TO_HOST || (int)kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0 .. 5",
                               (int)kind);
    return ACL_SUCCESS;
}

/* Pointers, kind, destMax, in that order; count is not 0. */
static aclError check_copy(enum blyi_acl_call call, const void *dst, size_t dest_max,
                           const void *src, size_t count, aclrtMemcpyKind kind)
{
    if (unlikely(dst == NULL || src == NULL))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               dst == NULL ? "dst" : "src");
    aclError error = check_kind(call, kind);
    if (unlikely(error == ACL_SUCCESS && count > dest_max))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above destMax %zu",
                                count, dest_max);
    return error;
}

aclError bly_acl_aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                             aclrtMemcpyKind kind)
{
    if (count == 0)
        return ACL_SUCCESS;
    aclError error = check_copy(BLYI_ACL_CALL_aclrtMemcpy, dst, destMax, src, count, kind);
    struct blyi_context *context;
    if (likely(error == ACL_SUCCESS))
        error = blyi_acl_check_context(BLYI_ACL_CALL_aclrtMemcpy, &context);
    if (likely(error == ACL_SUCCESS))
        error = blyi_acl_check_foreign(BLYI_ACL_CALL_aclrtMemcpy, dst, src, kind, false);
    if (unlikely(error != ACL_SUCCESS || dst == src))
        return error;
    return acl_result(aclrtMemcpy, blyi_copy_now_at(dst, src, count, ACL_SITE_IF_TOLD()));
}

/* The direction an asynchronous copy takes, or an error of the table above. */
static aclError resolve(enum blyi_acl_call call, const void *dst, const void *src,
                        aclrtMemcpyKind kind, aclrtMemcpyKind *direction)
{
    enum blyi_place to = blyi_place_of(dst, NULL), from = blyi_place_of(src, NULL);
    bool to_card = to == BLYI_PLACE_CARD, from_card = from == BLYI_PLACE_CARD;
    aclrtMemcpyKind natural =
        from_card ? (to_card ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST)
                  : (to_card ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_HOST_TO_HOST);
    bool to_unknown = to == BLYI_PLACE_HOST, from_unknown = from == BLYI_PLACE_HOST;
    if (kind == ACL_MEMCPY_DEFAULT || (!to_unknown && !from_unknown)) {
        *direction = natural;
        return ACL_SUCCESS;
    }
    /* An unknown side may be called what it is or "device"; the known side must be right. */
    bool says_to_card = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    bool says_from_card = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    if ((!to_unknown && says_to_card != to_card) || (!from_unknown && says_from_card != from_card))
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "kind %d does not fit: dst is %s, src is %s", (int)kind,
                               to_card      ? "card memory"
                               : to_unknown ? "plain host memory"
                                            : "pinned host memory",
                               from_card      ? "card memory"
                               : from_unknown ? "plain host memory"
                                              : "pinned host memory");
    *direction = kind;
    return ACL_SUCCESS;
}

static aclError refuse_host_to_host(enum blyi_acl_call call)
{
    return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "a copy from host to host in stream order: the card has no engine for "
                           "it (aclrtMemcpy copies, and so does aclrtLaunchHostFunc in order)");
}

/* `kind` 5: the source may be changed once the call has returned. */
static aclError copy_buffered(enum blyi_acl_call call, void *dst, const void *src, size_t count,
                              void *stream, uint32_t site)
{
    if (blyi_place_of(dst, NULL) != BLYI_PLACE_CARD || blyi_place_of(src, NULL) == BLYI_PLACE_CARD)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "kind 5 does not fit: it copies from host to card memory");
    if (blyi_place_of(src, NULL) == BLYI_PLACE_HOST)
        return blyi_acl_result(call, blyi_copy_async(dst, src, count, stream, site));
    return blyi_acl_result(call, blyi_staging_copy(dst, src, count, stream, site));
}

static aclError copy_async(enum blyi_acl_call call, void *dst, const void *src, size_t count,
                           aclrtMemcpyKind kind, void *stream, uint32_t site)
{
    struct blyi_context *context;
    aclError error = blyi_acl_check_context(call, &context);
    if (error != ACL_SUCCESS)
        return error;
    error = blyi_acl_check_foreign(call, dst, src, kind, true);
    if (error != ACL_SUCCESS)
        return error;
    if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
        return copy_buffered(call, dst, src, count, stream, site);
    aclrtMemcpyKind direction = kind;
    error = resolve(call, dst, src, kind, &direction);
    if (error == ACL_SUCCESS && direction == ACL_MEMCPY_HOST_TO_HOST)
        error = refuse_host_to_host(call);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_copy_async(dst, src, count, stream, site));
}

aclError bly_acl_aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                                  aclrtMemcpyKind kind, aclrtStream stream)
{
    if (count == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    aclError error = check_copy(BLYI_ACL_CALL_aclrtMemcpyAsync, dst, destMax, src, count, kind);
    if (error != ACL_SUCCESS)
        return error;
    return copy_async(BLYI_ACL_CALL_aclrtMemcpyAsync, dst, src, count, kind, stream, site);
}

aclError bly_acl_aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src,
                                               size_t count, aclrtMemcpyKind kind,
                                               aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemcpyAsyncWithCondition;
    if (count == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    aclError error = check_copy(call, dst, destMax, src, count, kind);
    if (error != ACL_SUCCESS)
        return error;
    const void *sides[] = {dst, src};
    for (int i = 0; i < 2; i++) {
        if (blyi_place_of(sides[i], NULL) == BLYI_PLACE_HOST)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "%s is host memory that is not pinned", i == 0 ? "dst" : "src");
    }
    return copy_async(call, dst, src, count, kind, stream, site);
}

struct rows {
    void *dst;
    size_t dpitch;
    const void *src;
    size_t spitch, width, height;
    aclrtMemcpyKind kind;
};

/* The end of the last row is an address. */
static bool rows_fit(const void *start, uint64_t pitch, const struct rows *rows)
{
    uint64_t end;
    return !__builtin_mul_overflow(pitch, rows->height - 1, &end) &&
           !__builtin_add_overflow(end, rows->width, &end) &&
           !__builtin_add_overflow(end, (uintptr_t)start, &end);
}

static aclError check_rows(enum blyi_acl_call call, const struct rows *rows)
{
    if (rows->dst == NULL || rows->src == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               rows->dst == NULL ? "dst" : "src");
    if (rows->width > rows->dpitch || rows->width > rows->spitch)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "width %zu is above %s %zu",
                               rows->width, rows->width > rows->dpitch ? "dpitch" : "spitch",
                               rows->width > rows->dpitch ? rows->dpitch : rows->spitch);
    if ((int)rows->kind < ACL_MEMCPY_HOST_TO_DEVICE || (int)rows->kind > ACL_MEMCPY_DEFAULT)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "kind %d is not in 1 .. 4",
                               (int)rows->kind);
    struct blyi_context *context;
    aclError error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS && (rows->height > ROWS_MAX || rows->width > WIDTH_MAX))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "%zu rows of %zu bytes: at most %u rows of %u", rows->height,
                                rows->width, ROWS_MAX, WIDTH_MAX);
    bool dst_fits = rows_fit(rows->dst, rows->dpitch, rows);
    if (error == ACL_SUCCESS && (!dst_fits || !rows_fit(rows->src, rows->spitch, rows)))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "%zu rows %zu bytes apart, from %s %p on, go beyond the end of "
                                "memory",
                                rows->height, dst_fits ? rows->spitch : rows->dpitch,
                                dst_fits ? "src" : "dst", dst_fits ? rows->src : rows->dst);
    return error;
}

aclError bly_acl_aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
                               size_t width, size_t height, aclrtMemcpyKind kind)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemcpy2d;
    if (width == 0 || height == 0)
        return ACL_SUCCESS;
    struct rows rows = {dst, dpitch, src, spitch, width, height, kind};
    aclError error = check_rows(call, &rows);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_foreign(call, dst, src, kind, false);
    if (error != ACL_SUCCESS)
        return error;
    if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || (blyi_place_of(dst, NULL) == BLYI_PLACE_CARD &&
                                                blyi_place_of(src, NULL) == BLYI_PLACE_CARD))
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "a synchronous copy of rows from device to device "
                               "(aclrtMemcpy2dAsync can)");
    return blyi_acl_result(
        call, blyi_copy2d_now_at(&(struct blyi_rows){dst, dpitch, src, spitch, width, height},
                                 ACL_SITE_IF_TOLD()));
}

aclError bly_acl_aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                    size_t width, size_t height, aclrtMemcpyKind kind,
                                    aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemcpy2dAsync;
    if (width == 0 || height == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    struct rows rows = {dst, dpitch, src, spitch, width, height, kind};
    aclrtMemcpyKind direction = kind;
    aclError error = check_rows(call, &rows);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_foreign(call, dst, src, kind, true);
    if (error == ACL_SUCCESS)
        error = resolve(call, dst, src, kind, &direction);
    if (error == ACL_SUCCESS && direction == ACL_MEMCPY_HOST_TO_HOST)
        error = refuse_host_to_host(call);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(
        call, blyi_copy2d_async(dst, dpitch, src, spitch, width, height, stream, site));
}
