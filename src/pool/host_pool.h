/* SPDX-License-Identifier: Apache-2.0
 *
 * host_pool.h - the inside of host pools that tests need: machines with several nodes.
 */
#ifndef BLYI_HOST_POOL_H
#define BLYI_HOST_POOL_H

#include <belay/host_pool.h>

/* How many NUMA nodes a list like "0-1,3" in a file stands for; 1 where there is none. */
unsigned blyi_host_nodes(const char *path);
/* As bly_host_pool_create(), on a machine with so many nodes. */
bly_status blyi_host_pool_make(bly_pool *pool, const bly_host_pool_opts *opts, unsigned n_nodes,
                               unsigned (*node_of)(void), bly_host_pool **host);

#endif
