/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h - blocks whose memory is about to be shared, seen from the inside.
 */
#ifndef BLYI_POOL_EXPORT_H
#define BLYI_POOL_EXPORT_H

#include <belay/pool.h>

/* As bly_pool_export(), for any address in a block. */
bly_status blyi_pool_export_at(const void *address, void **handle);

#endif
