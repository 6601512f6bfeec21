/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_convert.c - what the exports share.
 */
#include "trace_convert.h"

#include "base/fail.h"

bly_status export_no_memory(const struct blyi_trace *trace)
{
    if (blyi_trace_status(trace) != BLY_OK)
        return blyi_trace_status(trace);
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to convert it",
                     blyi_trace_info(trace)->name);
}

static void note_card(uint64_t *cards, int class_, int card)
{
    if (class_ >= 0 && class_ != BLYI_TRACE_PINNED_BLOCK && card >= 0 && card < 64)
        *cards |= (uint64_t)1 << card;
}

bly_status export_find_card(struct blyi_trace *trace, const struct export_opts *opts, int *card)
{
    struct blyi_trace_event event;
    uint64_t cards = 0;
    size_t n;
    const struct blyi_trace_block *start = blyi_trace_start_blocks(trace, &n);
    if (opts->card != EXPORT_ANY_CARD) {
        *card = opts->card;
        return BLY_OK;
    }
    for (size_t i = 0; i < n; i++)
        note_card(&cards, start[i].class_, start[i].card == 0xff ? -1 : start[i].card);
    (void)blyi_trace_rewind(trace);
    while (blyi_trace_next(trace, &event)) {
        bool makes;
        note_card(&cards, blyi_trace_class_of(event.probe.kind, &makes), event.probe.card);
    }
    if (blyi_trace_status(trace) != BLY_OK)
        return blyi_trace_status(trace);
    (void)blyi_trace_rewind(trace);
    if ((cards & (cards - 1)) != 0)
        return blyi_fail(BLY_E_INVALID,
                         "%s: blocks of %d cards; this format knows one memory: choose by --card",
                         blyi_trace_info(trace)->name, __builtin_popcountll(cards));
    *card = cards != 0 ? __builtin_ctzll(cards) : 0;
    return BLY_OK;
}

struct export_clock export_clock_of(const struct blyi_trace *trace)
{
    return (struct export_clock){blyi_trace_info(trace)->start_ns, 0};
}

uint64_t export_since(struct export_clock *clock, uint64_t time_ns)
{
    uint64_t since = time_ns > clock->base ? time_ns - clock->base : 0;
    if (since > clock->last)
        clock->last = since;
    return clock->last;
}
