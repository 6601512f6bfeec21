/* SPDX-License-Identifier: Apache-2.0
 *
 * opts.c - options of pools: defaults, profiles, ranges.
 */
#include "pool/opts.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include "backend/backend.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "pool/class.h"

#define MS         UINT64_C(1000000)
#define SIZE_FIRST ((uint32_t)offsetof(bly_pool_opts, flags))

/* A step's repetitions settle with 2 %; requests that come and go are served faster with less that
 * has to move. */
const struct blyi_profile blyi_profiles[BLY_POOL_PROFILES] = {
    [BLY_POOL_BALANCED] = {"balanced", 100, 0, 128, 256, 16},
    [BLY_POOL_TRAINING] = {"training", 200, 500, 128, 256, 16},
    [BLY_POOL_SERVING] = {"serving", 500, 500, 128, 256, 16},
    [BLY_POOL_TIGHT] = {"tight", 0, 500, 1024, 4096, 1},
};

bly_pool_opts bly_pool_opts_default(void)
{
    bly_pool_opts opts = {
        .struct_size = sizeof opts, .device = -1, .threshold = UINT64_MAX, .slack = UINT32_MAX};
    return opts;
}

static bly_status check(const bly_pool_opts *opts)
{
    if (opts->align != 0 && (!blyi_is_pow2(opts->align) || opts->align > GiB))
        return blyi_fail(BLY_E_INVALID,
                         "align is %" PRIu64 ": a power of two up to 1 GiB, or 0, is allowed",
                         opts->align);
    if (opts->small != 0 && (opts->small < BLYI_SLAB_MIN || opts->small > BLYI_SLOT_MAX))
        return blyi_fail(BLY_E_INVALID,
                         "small is %" PRIu64 ": %" PRIu64 " to %" PRIu64 ", or 0, are allowed",
                         opts->small, (uint64_t)BLYI_SLAB_MIN, (uint64_t)BLYI_SLOT_MAX);
    if ((unsigned)opts->profile >= BLY_POOL_PROFILES)
        return blyi_fail(BLY_E_INVALID, "profile is %d: 0 to %d are allowed", (int)opts->profile,
                         BLY_POOL_PROFILES - 1);
    if (opts->reuse >
        (BLY_POOL_REUSE_EVENTS | BLY_POOL_REUSE_OPPORTUNISTIC | BLY_POOL_REUSE_DEPENDENCIES))
        return blyi_fail(BLY_E_INVALID, "reuse is 0x%" PRIx32 ": bits 0 to 2 are allowed",
                         opts->reuse);
    if ((opts->flags & ~BLY_POOL_EXPORTABLE) != 0)
        return blyi_fail(BLY_E_INVALID, "flags 0x%" PRIx32 ": BLY_POOL_EXPORTABLE alone is known",
                         opts->flags);
    if (opts->limit > 0 && opts->prefill > opts->limit)
        return blyi_fail(BLY_E_INVALID,
                         "prefill is %" PRIu64 ": at most the limit, %" PRIu64 ", is allowed",
                         opts->prefill, opts->limit);
    if (opts->slack != UINT32_MAX && opts->slack > 100000)
        return blyi_fail(BLY_E_INVALID, "slack is %" PRIu32 ": 0 to 100000 (ten times) is allowed",
                         opts->slack);
    return BLY_OK;
}

bly_status blyi_opts_read(const bly_pool_opts *asked, bly_pool_opts *opts)
{
    *opts = bly_pool_opts_default();
    if (asked != NULL) {
        if (asked->struct_size < SIZE_FIRST || asked->struct_size > 4096)
            return blyi_fail(BLY_E_INVALID,
                             "struct_size is %" PRIu32 ": begin with bly_pool_opts_default()",
                             asked->struct_size);
        memcpy(opts, asked, asked->struct_size < sizeof *opts ? asked->struct_size : sizeof *opts);
        opts->struct_size = sizeof *opts;
    }
    bly_status status = check(opts);
    if (status == BLY_OK && opts->slack == UINT32_MAX)
        opts->slack = blyi_profiles[opts->profile].slack;
    return status;
}

uint64_t blyi_opts_reserve(const bly_pool_opts *opts, uint64_t total)
{
    uint32_t part = blyi_profiles[opts->profile].reserve;
    if (opts->reserve != 0)
        return opts->reserve == UINT64_MAX ? 0 : opts->reserve;
    return total / 10000 * part + total % 10000 * part / 10000;
}

/* Figures of bench/pool_traces on recorded programs led here. */
struct blyi_policy blyi_opts_policy(const bly_pool_opts *opts)
{
    const struct blyi_profile *profile = &blyi_profiles[opts->profile];
    struct blyi_policy policy = {.slack = opts->slack,
                                 .wait_slack = opts->slack,
                                 .share = profile->share,
                                 .handle_most = 32,
                                 .share_far = profile->share_far,
                                 .share_least = 4096,
                                 .ahead = profile->ahead,
                                 .ahead_handle = 16,
                                 .patience_ns = 100 * MS,
                                 .wait_ns = 10000 * MS};
    if (opts->split > 0) { /* idle blocks stay whole while there is fresh memory */
        policy.slack = policy.wait_slack = UINT32_MAX;
        policy.ahead = 1;
    }
    return policy;
}

bly_status blyi_opts_backend(const bly_pool_opts *opts, struct blyi_backend **backend)
{
    if (opts->backend == NULL || strcmp(opts->backend, "npu") == 0)
        return blyi_backend_npu(opts->device, backend);
    if (strcmp(opts->backend, "cann") == 0)
        return blyi_backend_cann(opts->device, NULL, backend);
    return blyi_fail(BLY_E_UNSUPPORTED, "there is no backend \"%s\": there are npu and cann",
                     opts->backend);
}
