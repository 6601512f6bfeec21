/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_inbox.h"

#include "base/fail.h"
#include "base/host.h"

_Static_assert(sizeof(struct blyi_inbox_place) == (size_t)2 * BLYI_CACHE_LINE,
               "a place is two lines");

bly_status blyi_inbox_init(struct blyi_inbox *inbox)
{
    size_t size = BLYI_INBOX_SIZE * sizeof(struct blyi_inbox_place);
    char *memory = blyi_host_calloc(1, size + BLYI_CACHE_LINE);
    if (memory == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the checker");
    /* Aligned by hand and never given back: probes may still be on their way. */
    inbox->places = (struct blyi_inbox_place *)(void *)(uintptr_t)blyi_align_up((uintptr_t)memory,
                                                                                BLYI_CACHE_LINE);
    return BLY_OK;
}
