/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_graph.h - pool memory that graphs hold: what was allocated on a captured stream has the same
 * address in each run, and stays in use until the graph is destroyed.
 */
#ifndef BLYI_ACL_POOL_GRAPH_H
#define BLYI_ACL_POOL_GRAPH_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_acl_pool;

/* For a stream that is captured into `graph`: a block that was freed on it in the same capture, or
 * another one of the pool. Errors as bly_pool_alloc(). */
bly_status blyi_pool_graph_alloc(void *graph, struct blyi_acl_pool *pool, void *stream,
                                 uint64_t size, const void *pc, void **block);
/* Frees a block in the order of the captured stream: for what the rest of the capture allocates on
 * it. E_CAPTURING: not allocated in this capture; E_INVALID: freed already. */
bly_status blyi_pool_graph_free(void *graph, void *block, void *stream);
/* Frees a block outside of captures: true when a graph has it, which keeps it for its runs. *status
 * is E_INVALID where it was freed already. */
bool blyi_pool_graph_give(void *block, bly_status *status);

#endif
