/* SPDX-License-Identifier: Apache-2.0
 *
 * own_work.c - streams that wait for the very thread that would wait for them.
 */
#include "npu/block.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/report.h"

#define MOST_STEPS 1024 /* a longer chain of waits is a ring, which nobody leaves */

static bool needs(struct blyi_stream *stream, bool in_doubt, int step)
{
    bool unknown = false;
    if (step == MOST_STEPS || blyi_callback_is_inside(stream) ||
        blyi_host_thread_is_needed(stream) || blyi_report_is_needed(stream))
        return true;
    struct blyi_stream *next = blyi_block_waits_for(stream, &unknown);
    bool needed = unknown && in_doubt;
    if (next != NULL) {
        needed = needed || needs(next, in_doubt, step + 1);
        blyi_queue_unref(next);
    }
    for (uint32_t n = 0; !needed && (next = blyi_graph_waits_for(stream, n)) != NULL; n++) {
        needed = needs(next, in_doubt, step + 1);
        blyi_queue_unref(next);
    }
    return needed;
}

bool blyi_callback_needs_caller(struct blyi_stream *stream, bool in_doubt)
{
    return blyi_callback_serves() && needs(stream, in_doubt, 0);
}
