/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_keep.c - launches that a graph keeps.
 */
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/order.h"
#include "npu/binary.h"
#include "npu/kernel_inside.h"
#include "npu/memory.h"

/* Blocks of ranges, and those that words of the arguments point into: at most so many. */
static size_t n_owned_max(const struct blyi_launch *launch)
{
    size_t n = launch->n_ranges;
    if (launch->card_args != NULL)
        n++;
    else
        n += launch->args_size / sizeof(void *);
    return n * BLYI_OWNED_RANGE;
}

static void find_owned(struct blyi_kept *kept)
{
    struct blyi_launch *launch = kept->launch;
    const char *args = blyi_launch_args(launch);
    uint32_t n = 0;
    for (int i = 0; i < launch->n_ranges; i++)
        if (launch->ranges[i].size != 0)
            n = blyi_owned_add(kept->owned, n, launch->ranges[i].address, launch->ranges[i].size);
    if (launch->card_args != NULL)
        n = blyi_owned_add(kept->owned, n, launch->card_args, launch->args_size);
    else if (launch->scan)
        for (uint32_t at = 0; at + sizeof(void *) <= launch->args_size; at += sizeof(void *)) {
            const void *word;
            memcpy(&word, args + at, sizeof(word));
            if (blyi_place_of(word, NULL) != BLYI_PLACE_HOST)
                n = blyi_owned_add(kept->owned, n, word, 1);
        }
    kept->n_owned = n;
}

bly_status blyi_kernel_keep(const struct blyi_kernel_call *call, struct blyi_kept **out)
{
    bly_status status = blyi_kernel_check(call);
    if (status != BLY_OK)
        return status;
    struct blyi_launch *launch = blyi_launch_make(call, true);
    struct blyi_kept *kept = NULL;
    if (launch != NULL)
        kept = blyi_host_calloc(1, sizeof(*kept) + n_owned_max(launch) * sizeof(kept->owned[0]));
    if (kept == NULL) {
        if (launch != NULL && launch->binary != NULL)
            blyi_binary_unref(launch->binary);
        if (launch != NULL)
            blyi_launch_free(launch);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a kernel launch of a graph");
    }
    kept->refs = 1;
    kept->launch = launch;
    launch->kept = kept;
    find_owned(kept);
    *out = kept;
    return BLY_OK;
}

void blyi_kept_ref(struct blyi_kept *kept)
{
    __atomic_fetch_add(&kept->refs, 1, __ATOMIC_RELAXED);
}

void blyi_kept_unref(struct blyi_kept *kept)
{
    if (!blyi_ref_drop(&kept->refs))
        return;
    if (kept->launch->binary != NULL)
        blyi_binary_unref(kept->launch->binary);
    blyi_launch_free(kept->launch);
    blyi_host_free(kept);
}
