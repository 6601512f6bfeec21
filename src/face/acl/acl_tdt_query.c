/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_query.c - which routes there are.
 */
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "face/acl/check.h"
#include "face/acl/tdt_route.h"
#include "npu/card.h"
#include "npu/runtime.h"

struct query {
    uint32_t mode, src, dst;
    bool has_mode, has_src, has_dst;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE); /* queries */

acltdtQueueRouteQueryInfo *bly_acl_acltdtCreateQueueRouteQueryInfo(void)
{
    struct query *query = blyi_host_calloc(1, sizeof(*query));
    void *handle = NULL;
    bly_status status =
        query == NULL ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a query")
                      : blyi_handle_create(BLYI_HANDLE_ROUTE_QUERY, query, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(query);
        (void)acl_result(acltdtCreateQueueRouteQueryInfo, status);
        return NULL;
    }
    return handle;
}

aclError bly_acl_acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo *info)
{
    if (info == NULL)
        return acl_null(acltdtDestroyQueueRouteQueryInfo, "info");
    return acl_result(acltdtDestroyQueueRouteQueryInfo,
                      blyi_handle_remove(BLYI_HANDLE_ROUTE_QUERY, info));
}

aclError bly_acl_acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo *param,
                                              acltdtQueueRouteQueryInfoParamType type, size_t len,
                                              const void *value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtSetQueueRouteQueryInfo;
    uint32_t word;
    if (param == NULL)
        return acl_null(acltdtSetQueueRouteQueryInfo, "param");
    if (value == NULL)
        return acl_null(acltdtSetQueueRouteQueryInfo, "value");
    if ((int)type < ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM ||
        (int)type > ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "type %d is not in 0 .. 2",
                               (int)type);
    if (len != sizeof(word))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "len %zu is not 4", len);
    bly_status status = blyi_runtime_check();
    struct query *query = status == BLY_OK ? blyi_handle_get(BLYI_HANDLE_ROUTE_QUERY, param) : NULL;
    if (query == NULL)
        return blyi_acl_fail(call, status != BLY_OK ? status : BLY_E_HANDLE);
    memcpy(&word, value, sizeof(word));
    blyi_lock_take(&lock);
    if (type == ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM) {
        query->mode = word;
        query->has_mode = true;
    } else if (type == ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32) {
        query->src = word;
        query->has_src = true;
    } else {
        query->dst = word;
        query->has_dst = true;
    }
    blyi_lock_drop(&lock);
    blyi_handle_put(param);
    return ACL_SUCCESS;
}

/* What the mode looks at, which must have been set. */
static aclError read_query(const struct query *query, const uint32_t **src, const uint32_t **dst)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtQueryQueueRoutes;
    bool by_src = query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC ||
                  query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST;
    bool by_dst = query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_DST ||
                  query->mode == ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST;
    if (!query->has_mode)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "the query's mode was never set");
    if (!by_src && !by_dst && query->mode != ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "the query's mode %d is not in 0 .. 2, or 100", (int)query->mode);
    if ((by_src && !query->has_src) || (by_dst && !query->has_dst))
        return blyi_acl_reject(
            call, ACL_ERROR_INVALID_PARAM, "mode %d looks at the %s queue, which was never set",
            (int)query->mode, by_src && !query->has_src ? "source" : "destination");
    *src = by_src ? &query->src : NULL;
    *dst = by_dst ? &query->dst : NULL;
    return ACL_SUCCESS;
}

/* Routes may come between the count and the list: then once more. */
static bly_status list_routes(int card, const uint32_t *src, const uint32_t *dst,
                              struct blyi_queue_route **out, size_t *n)
{
    struct blyi_queue_route *routes = NULL;
    size_t room = 0;
    for (;;) {
        bly_status status = blyi_queue_route_list(card, src, dst, routes, room, n);
        if (status == BLY_OK && *n <= room) {
            *out = routes;
            return BLY_OK;
        }
        room = *n;
        blyi_host_free(routes);
        routes = status == BLY_OK ? blyi_host_calloc(room, sizeof(routes[0])) : NULL;
        if (status == BLY_OK && routes == NULL)
            status = blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for %zu routes", room);
        if (status != BLY_OK)
            return status;
    }
}

/* Routes have no way to become abnormal here: a queue with routes cannot be destroyed. */
aclError bly_acl_acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo *queryInfo,
                                        acltdtQueueRouteList *qRouteList)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtQueryQueueRoutes;
    const uint32_t *src = NULL, *dst = NULL;
    struct blyi_queue_route *routes = NULL;
    struct blyi_card *card;
    size_t n = 0;
    if (qRouteList == NULL)
        return acl_null(acltdtQueryQueueRoutes, "qRouteList");
    if (queryInfo == NULL)
        return acl_null(acltdtQueryQueueRoutes, "queryInfo");
    bly_status status = blyi_runtime_check();
    const struct query *known =
        status == BLY_OK ? blyi_handle_get(BLYI_HANDLE_ROUTE_QUERY, queryInfo) : NULL;
    if (known == NULL)
        return blyi_acl_fail(call, status != BLY_OK ? status : BLY_E_HANDLE);
    blyi_lock_take(&lock);
    struct query query = *known;
    blyi_lock_drop(&lock);
    blyi_handle_put(queryInfo);
    aclError error = read_query(&query, &src, &dst);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_card(call, &card);
    if (error == ACL_SUCCESS && query.mode != ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL)
        error = blyi_acl_result(call, list_routes(card->id, src, dst, &routes, &n));
    if (error == ACL_SUCCESS)
        error = blyi_acl_result(call, blyi_tdt_routes_replace(qRouteList, routes, n));
    blyi_host_free(routes);
    return error;
}
