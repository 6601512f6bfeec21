/* SPDX-License-Identifier: Apache-2.0
 *
 * tdt_route.h - lists of routes as queries fill them.
 */
#ifndef BLYI_ACL_TDT_ROUTE_H
#define BLYI_ACL_TDT_ROUTE_H

#include <acl/acl_tdt_queue.h>

#include "npu/mem_queue.h"

/* The list has these routes, all bound, and no others. E_HANDLE, E_HOST_MEMORY. */
bly_status blyi_tdt_routes_replace(const void *handle, const struct blyi_queue_route *routes,
                                   size_t n);

#endif
