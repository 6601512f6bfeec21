/* SPDX-License-Identifier: Apache-2.0
 *
 * allocator.h - three ways for a service to get card memory.
 */
#ifndef SERVING_ALLOCATOR_H
#define SERVING_ALLOCATOR_H

#include <acl/acl.h>
#include <stdbool.h>

struct allocator {
    const char *name;
    /* give() may be called while work on the memory is queued on `stream`. */
    bool in_stream_order;
    void (*start)(void);
    void *(*take)(size_t bytes, aclrtStream stream);
    void (*give)(void *memory, aclrtStream stream);
    void (*stop)(void); /* gives everything back to the card */
};

extern const struct allocator allocator_stock;   /* aclrtMalloc, aclrtFree */
extern const struct allocator allocator_caching; /* blocks kept for each stream, as frameworks do */
extern const struct allocator allocator_pool;    /* belay/pool.h */

#endif
