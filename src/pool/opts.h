/* SPDX-License-Identifier: Apache-2.0
 *
 * opts.h - what a pool is made with.
 */
#ifndef BLYI_OPTS_H
#define BLYI_OPTS_H

#include "pool/pool.h"

/* Each profile's values, by which it is documented (docs/pool.md). */
struct blyi_profile {
    const char *name;
    uint32_t slack;     /* of the peak of live bytes, in 1/10000 */
    uint32_t reserve;   /* of the card, in 1/10000 */
    uint32_t share;     /* a handle is at most one in so many of what is held; */
    uint32_t share_far; /* so few where handles keep too much that is idle */
    uint32_t ahead;     /* growth is rounded up to so many granules */
};
extern const struct blyi_profile blyi_profiles[BLY_POOL_PROFILES];

/* The options with defaults in place of 0. NULL: the defaults. E_INVALID: which field, its range.
 */
bly_status blyi_opts_read(const bly_pool_opts *asked, bly_pool_opts *opts);
/* Bytes of a card that are left free. */
uint64_t blyi_opts_reserve(const bly_pool_opts *opts, uint64_t total);
/* What they mean for placement. */
struct blyi_policy blyi_opts_policy(const bly_pool_opts *opts);
/* The backend that they name. */
bly_status blyi_opts_backend(const bly_pool_opts *opts, struct blyi_backend **backend);

#endif
