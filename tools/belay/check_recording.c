/* SPDX-License-Identifier: Apache-2.0
 *
 * check_recording.c - what was there at the start, then each event, then what was never given back.
 */
#include "check_recording.h"

#include "base/compiler.h"

static void tell_start(struct blyi_check *check, const struct blyi_trace *trace)
{
    size_t n;
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    for (size_t i = 0; i < n; i++) {
        static const enum blyi_probe_kind kinds[] = {BLYI_PROBE_ALLOC, BLYI_PROBE_HOST_ALLOC,
                                                     BLYI_PROBE_PHYS_CREATE};
        const struct blyi_trace_block *block = &blocks[i];
        if (block->class_ >= BLYI_COUNT(kinds))
            continue;
        blyi_check_was_there(check, &(struct blyi_probe){.kind = kinds[block->class_],
                                                         .card = (int8_t)block->card,
                                                         .address = block->address,
                                                         .asked = block->asked,
                                                         .size = block->asked,
                                                         .rounded = block->rounded,
                                                         .backed = block->backed,
                                                         .site = block->site});
    }
}

bool check_is_complete(const struct blyi_trace_info *info)
{
    const uint32_t partial = BLYI_TRACE_NO_HISTORY | BLYI_TRACE_LATE | BLYI_TRACE_CUT;
    return (info->flags & partial) == 0 && info->dropped == 0 && info->cut == 0 &&
           info->lost == 0 && info->damaged == 0 && info->unknown == 0;
}

static bly_status look(struct blyi_check *check, struct blyi_trace *trace)
{
    struct blyi_trace_event event;
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    tell_start(check, trace);
    bly_status status = blyi_trace_rewind(trace);
    if (status != BLY_OK)
        return status;
    while (blyi_trace_next(trace, &event))
        blyi_check_probe(check, &event.probe);
    status = blyi_trace_status(trace);
    if (status != BLY_OK)
        return status;
    if (info->state == BLYI_TRACE_ENDED && (info->flags & BLYI_TRACE_CUT) == 0)
        blyi_check_leaks(check);
    return BLY_OK;
}

bly_status check_recording(struct blyi_trace *trace, uint32_t groups, struct blyi_check **out)
{
    const struct blyi_check_opts opts = {.groups = groups,
                                         .complete = check_is_complete(blyi_trace_info(trace)),
                                         .keeps_leaks = true};
    struct blyi_check *check = NULL;
    bly_status status = blyi_check_create(&opts, &check);
    if (status == BLY_OK)
        status = look(check, trace);
    if (status == BLY_OK) {
        *out = check;
        return BLY_OK;
    }
    blyi_check_destroy(check);
    return status;
}
