/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_route.c - routes between queues. A message moves in the thread that makes it possible:
 * who puts it into the source, makes room in a destination, or binds and unbinds.
 */
#include <inttypes.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "npu/mem_queue_inside.h"
#include "npu/runtime.h"

struct route {
    struct blyi_list link;
    struct blyi_mem_queue *src, *dst;
};

static struct blyi_list routes = BLYI_LIST_INIT(routes); /* under blyi_queues_lock */

static struct route *route_at(struct blyi_list *node)
{
    return BLYI_CONTAINER(node, struct route, link);
}

static bool has_room_everywhere(const struct blyi_mem_queue *src)
{
    BLYI_LIST_FOR(node, &routes)
    {
        const struct route *route = route_at(node);
        if (route->src == src && route->dst->n >= route->dst->depth)
            return false;
    }
    return true;
}

/* n chains of the same data as `chain`, linked by `queued`; NULL with n > 0: no host memory. */
static struct blyi_mbuf *clones_of(const struct blyi_mbuf *chain, uint32_t n)
{
    struct blyi_mbuf *made = NULL;
    for (; n > 0; n--) {
        struct blyi_mbuf *copy = blyi_mbuf_clone(chain);
        if (copy == NULL) {
            while (made != NULL) {
                struct blyi_mbuf *next = made->queued;
                blyi_mbuf_drop(made);
                made = next;
            }
            return NULL;
        }
        copy->queued = made;
        made = copy;
    }
    return made;
}

bly_status blyi_routes_drain_locked(struct blyi_mem_queue *src)
{
    while (src->n > 0 && src->n_out > 0 && has_room_everywhere(src)) {
        struct blyi_mbuf *more = clones_of(src->first, src->n_out - 1);
        if (more == NULL && src->n_out > 1)
            return blyi_fail(BLY_E_HOST_MEMORY,
                             "no host memory to hand a message of queue %" PRIu32 " to %" PRIu32
                             " queues",
                             src->ref.id, src->n_out);
        struct blyi_mbuf *chain = blyi_mem_queue_pop_locked(src);
        BLYI_LIST_FOR(node, &routes)
        {
            const struct route *route = route_at(node);
            if (route->src != src)
                continue;
            struct blyi_mbuf *next = more;
            if (next != NULL)
                more = next->queued;
            blyi_mem_queue_push_locked(route->dst, next != NULL ? next : chain);
        }
    }
    return BLY_OK;
}

bly_status blyi_routes_feed_locked(struct blyi_mem_queue *dst)
{
    bly_status status = BLY_OK;
    BLYI_LIST_FOR(node, &routes)
    {
        const struct route *route = route_at(node);
        if (route->dst == dst && status == BLY_OK)
            status = blyi_routes_drain_locked(route->src);
    }
    return status;
}

static struct route *find_locked(int card, uint32_t src, uint32_t dst)
{
    BLYI_LIST_FOR(node, &routes)
    {
        struct route *route = route_at(node);
        if (route->src->ref.card == card && route->src->ref.id == src && route->dst->ref.id == dst)
            return route;
    }
    return NULL;
}

static bly_status bind_locked(struct blyi_mem_queue *src, struct blyi_mem_queue *dst)
{
    if (src == dst)
        return blyi_fail(BLY_E_INVALID, "queue %" PRIu32 " cannot be routed to itself",
                         src->ref.id);
    if (src->n_in > 0 || dst->n_out > 0)
        return blyi_fail(
            BLY_E_INVALID, "queue %" PRIu32 " is a %s already: it cannot be a %s as well",
            src->n_in > 0 ? src->ref.id : dst->ref.id, src->n_in > 0 ? "destination" : "source",
            src->n_in > 0 ? "source" : "destination");
    struct route *route = blyi_host_calloc(1, sizeof(*route));
    if (route == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a route");
    route->src = src;
    route->dst = dst;
    src->n_out++;
    dst->n_in++;
    blyi_list_push_back(&routes, &route->link);
    if (blyi_routes_drain_locked(src) != BLY_OK)
        blyi_fail_clear();
    return BLY_OK;
}

bly_status blyi_queue_route_bind(int card, uint32_t src_id, uint32_t dst_id)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mem_queue *dst = NULL;
    struct blyi_mem_queue *src =
        blyi_mem_queue_find_locked((struct blyi_queue_ref){card, src_id, false});
    if (src != NULL)
        dst = blyi_mem_queue_find_locked((struct blyi_queue_ref){card, dst_id, false});
    if (dst == NULL)
        status = BLY_E_INVALID;
    else if (find_locked(card, src_id, dst_id) == NULL)
        status = bind_locked(src, dst);
    blyi_lock_drop(&blyi_queues_lock);
    return status;
}

bly_status blyi_queue_route_unbind(int card, uint32_t src, uint32_t dst)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_queues_lock);
    struct route *route = find_locked(card, src, dst);
    if (route != NULL) {
        blyi_list_remove(&route->link);
        route->src->n_out--;
        route->dst->n_in--;
        /* The one that was full may have been this one. */
        if (blyi_routes_drain_locked(route->src) != BLY_OK)
            blyi_fail_clear();
    }
    blyi_lock_drop(&blyi_queues_lock);
    blyi_host_free(route);
    return BLY_OK;
}

bly_status blyi_queue_route_list(int card, const uint32_t *src, const uint32_t *dst,
                                 struct blyi_queue_route *out, size_t max, size_t *n)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    size_t found = 0;
    blyi_lock_take(&blyi_queues_lock);
    BLYI_LIST_FOR(node, &routes)
    {
        const struct route *route = route_at(node);
        if (route->src->ref.card != card || (src != NULL && route->src->ref.id != *src) ||
            (dst != NULL && route->dst->ref.id != *dst))
            continue;
        if (found < max)
            out[found] = (struct blyi_queue_route){route->src->ref.id, route->dst->ref.id};
        found++;
    }
    blyi_lock_drop(&blyi_queues_lock);
    *n = found;
    return BLY_OK;
}
