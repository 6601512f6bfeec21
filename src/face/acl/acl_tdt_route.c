/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_route.c - routes between queues: descriptions, lists, binding.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "face/acl/check.h"
#include "face/acl/tdt_route.h"
#include "npu/card.h"
#include "npu/mem_queue.h"
#include "npu/runtime.h"

struct route {
    uint32_t src, dst;
    int32_t status;
};

struct route_list {
    struct route *routes;
    size_t n, capacity;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE); /* routes and lists */

/* ── Routes ───────────────────────────────────────────────────────────────────────────────── */

acltdtQueueRoute *bly_acl_acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId)
{
    struct route *route = blyi_host_calloc(1, sizeof(*route));
    void *handle = NULL;
    bly_status status = route == NULL
                            ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a route")
                            : blyi_handle_create(BLYI_HANDLE_ROUTE, route, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(route);
        (void)acl_result(acltdtCreateQueueRoute, status);
        return NULL;
    }
    route->src = srcId;
    route->dst = dstId;
    return handle;
}

aclError bly_acl_acltdtDestroyQueueRoute(const acltdtQueueRoute *route)
{
    if (route == NULL)
        return acl_null(acltdtDestroyQueueRoute, "route");
    return acl_result(acltdtDestroyQueueRoute, blyi_handle_remove(BLYI_HANDLE_ROUTE, route));
}

/* The object behind a handle, pinned; NULL: its code is in *error. */
static void *pin(enum blyi_acl_call call, enum blyi_handle_kind kind, const void *handle,
                 const char *name, aclError *error)
{
    if (handle == NULL) {
        *error = blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL", name);
        return NULL;
    }
    void *object = NULL;
    bly_status status = blyi_runtime_check();
    if (status == BLY_OK && (object = blyi_handle_get(kind, handle)) == NULL)
        status = BLY_E_HANDLE;
    *error = blyi_acl_result(call, status);
    return object;
}

aclError bly_acl_acltdtGetQueueRouteParam(const acltdtQueueRoute *route,
                                          acltdtQueueRouteParamType type, size_t len,
                                          size_t *paramRetSize, void *param)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtGetQueueRouteParam;
    aclError error;
    if (paramRetSize == NULL)
        return acl_null(acltdtGetQueueRouteParam, "paramRetSize");
    if (param == NULL)
        return acl_null(acltdtGetQueueRouteParam, "param");
    struct route *known = pin(call, BLYI_HANDLE_ROUTE, route, "route", &error);
    if (known == NULL)
        return error;
    blyi_lock_take(&lock);
    struct route copy = *known;
    blyi_lock_drop(&lock);
    blyi_handle_put(route);
    const void *const values[] = {&copy.src, &copy.dst, &copy.status};
    if ((int)type < 0 || (size_t)type >= BLYI_COUNT(values))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "type %d is not in 0 .. 2",
                               (int)type);
    if (len < sizeof(uint32_t))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "len %zu is below 4", len);
    memcpy(param, values[type], sizeof(uint32_t));
    *paramRetSize = sizeof(uint32_t);
    return ACL_SUCCESS;
}

/* ── Lists ────────────────────────────────────────────────────────────────────────────────── */

static void list_gone(void *object)
{
    struct route_list *list = object;
    blyi_host_free(list->routes);
    blyi_host_free(list);
}

acltdtQueueRouteList *bly_acl_acltdtCreateQueueRouteList(void)
{
    struct route_list *list = blyi_host_calloc(1, sizeof(*list));
    void *handle = NULL;
    bly_status status =
        list == NULL ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a list of routes")
                     : blyi_handle_create(BLYI_HANDLE_ROUTES, list, list_gone, &handle);
    if (status != BLY_OK) {
        blyi_host_free(list);
        (void)acl_result(acltdtCreateQueueRouteList, status);
        return NULL;
    }
    return handle;
}

aclError bly_acl_acltdtDestroyQueueRouteList(const acltdtQueueRouteList *routeList)
{
    if (routeList == NULL)
        return acl_null(acltdtDestroyQueueRouteList, "routeList");
    return acl_result(acltdtDestroyQueueRouteList,
                      blyi_handle_remove(BLYI_HANDLE_ROUTES, routeList));
}

static bool reserve_locked(struct route_list *list, size_t n)
{
    if (n <= list->capacity)
        return true;
    size_t capacity = n < 8 ? 8 : 2 * n;
    struct route *routes = blyi_host_realloc(list->routes, capacity * sizeof(routes[0]));
    if (routes == NULL)
        return false;
    list->routes = routes;
    list->capacity = capacity;
    return true;
}

aclError bly_acl_acltdtAddQueueRoute(acltdtQueueRouteList *routeList, const acltdtQueueRoute *route)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtAddQueueRoute;
    aclError error;
    struct route_list *list = pin(call, BLYI_HANDLE_ROUTES, routeList, "routeList", &error);
    if (list == NULL)
        return error;
    const struct route *known = pin(call, BLYI_HANDLE_ROUTE, route, "route", &error);
    if (known != NULL) {
        blyi_lock_take(&lock);
        if (reserve_locked(list, list->n + 1))
            list->routes[list->n++] = *known;
        else
            error = blyi_acl_reject(call, ACL_ERROR_BAD_ALLOC,
                                    "the host has no memory for route %zu", list->n);
        blyi_lock_drop(&lock);
        blyi_handle_put(route);
    }
    blyi_handle_put(routeList);
    return error;
}

aclError bly_acl_acltdtGetQueueRoute(const acltdtQueueRouteList *routeList, size_t index,
                                     acltdtQueueRoute *route)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtGetQueueRoute;
    aclError error;
    const struct route_list *list = pin(call, BLYI_HANDLE_ROUTES, routeList, "routeList", &error);
    if (list == NULL)
        return error;
    struct route *known = pin(call, BLYI_HANDLE_ROUTE, route, "route", &error);
    if (known != NULL) {
        blyi_lock_take(&lock);
        size_t n = list->n;
        if (index < n)
            *known = list->routes[index];
        blyi_lock_drop(&lock);
        if (index >= n)
            error = blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                                    "index %zu: the list has %zu routes", index, n);
        blyi_handle_put(route);
    }
    blyi_handle_put(routeList);
    return error;
}

size_t bly_acl_acltdtGetQueueRouteNum(const acltdtQueueRouteList *routeList)
{
    aclError error;
    const struct route_list *list = pin(BLYI_ACL_CALL_acltdtGetQueueRouteNum, BLYI_HANDLE_ROUTES,
                                        routeList, "routeList", &error);
    if (list == NULL)
        return 0;
    blyi_lock_take(&lock);
    size_t n = list->n;
    blyi_lock_drop(&lock);
    blyi_handle_put(routeList);
    return n;
}

bly_status blyi_tdt_routes_replace(const void *handle, const struct blyi_queue_route *routes,
                                   size_t n)
{
    struct route_list *list = blyi_handle_get(BLYI_HANDLE_ROUTES, handle);
    if (list == NULL)
        return BLY_E_HANDLE;
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    if (!reserve_locked(list, n))
        status = blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for %zu routes", n);
    for (size_t i = 0; status == BLY_OK && i < n; i++)
        list->routes[i] = (struct route){routes[i].src, routes[i].dst, ACL_TDT_QUEUE_ROUTE_BIND};
    if (status == BLY_OK)
        list->n = n;
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    return status;
}

/* ── Binding ──────────────────────────────────────────────────────────────────────────────── */

typedef bly_status change_fn(int card, uint32_t src, uint32_t dst);

/* One after another, each with its status; the first failure is what the call returns. No call
 * into the card is made with the lock held, so routes are read and written one by one. */
static aclError change(enum blyi_acl_call call, acltdtQueueRouteList *routeList, change_fn *fn,
                       int32_t done)
{
    struct blyi_card *card = NULL;
    aclError error;
    struct route_list *list = pin(call, BLYI_HANDLE_ROUTES, routeList, "qRouteList", &error);
    if (list == NULL)
        return error;
    error = blyi_acl_check_card(call, &card);
    for (size_t i = 0; card != NULL; i++) {
        blyi_lock_take(&lock);
        bool more = i < list->n;
        struct route route = more ? list->routes[i] : (struct route){0};
        blyi_lock_drop(&lock);
        if (!more)
            break;
        bly_status status = fn(card->id, route.src, route.dst);
        if (status != BLY_OK && error == ACL_SUCCESS)
            error = blyi_acl_fail(call, status);
        blyi_lock_take(&lock);
        if (i < list->n)
            list->routes[i].status = status == BLY_OK ? done : ACL_TDT_QUEUE_ROUTE_UNBIND;
        blyi_lock_drop(&lock);
    }
    blyi_handle_put(routeList);
    return error;
}

aclError bly_acl_acltdtBindQueueRoutes(acltdtQueueRouteList *qRouteList)
{
    return change(BLYI_ACL_CALL_acltdtBindQueueRoutes, qRouteList, blyi_queue_route_bind,
                  ACL_TDT_QUEUE_ROUTE_BIND);
}

aclError bly_acl_acltdtUnbindQueueRoutes(acltdtQueueRouteList *qRouteList)
{
    return change(BLYI_ACL_CALL_acltdtUnbindQueueRoutes, qRouteList, blyi_queue_route_unbind,
                  ACL_TDT_QUEUE_ROUTE_UNBIND);
}
