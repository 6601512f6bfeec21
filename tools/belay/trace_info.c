/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_info.c - `belay trace info`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "command.h"
#include "trace_command.h"
#include "trace_input.h"
#include "trace_live.h"

struct totals {
    uint64_t blocks, bytes, before, before_bytes;
};

/* Card memory: blocks and what is behind handles. */
static struct totals totals_of(const struct live *live)
{
    struct totals totals = {0};
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node)) {
        const struct blyi_trace_block *is = &live_block_of(node)->is;
        if (is->class_ == BLYI_TRACE_PINNED_BLOCK || is->card == 0xff)
            continue;
        totals.blocks++;
        totals.bytes += is->asked;
        if (is->flags & BLYI_TRACE_BEFORE) {
            totals.before++;
            totals.before_bytes += is->asked;
        }
    }
    return totals;
}

static void print_blocks(const char *when, const struct totals *totals)
{
    char bytes[BLYI_SIZE_TEXT];
    printf("%-9s %" PRIu64 " blocks of card memory, %s\n", when, totals->blocks,
           blyi_size_text(totals->bytes, bytes));
    if (totals->before > 0)
        printf("          %" PRIu64 " of them, %s: made before recording, site unknown\n",
               totals->before, blyi_size_text(totals->before_bytes, bytes));
}

/* Peak of card memory, cards together. */
static bool play(struct blyi_trace *trace, struct live *live, uint64_t *peak, uint64_t *peak_seq)
{
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    *peak = 0;
    *peak_seq = 0;
    for (int first = 1;; first = 0) {
        uint64_t sum = 0;
        bool more = first || blyi_trace_next(trace, &event);
        if (!more)
            return blyi_trace_status(trace) == BLY_OK;
        if (!first && !live_step(live, &event, &change, &block))
            return false;
        if (!first && change == LIVE_ENDED)
            free(block);
        if (!first && change != LIVE_MADE)
            continue;
        for (int card = 0; card < 64; card++)
            sum += live->asked[card];
        if (sum > *peak) {
            *peak = sum;
            *peak_seq = first ? 0 : event.seq;
        }
    }
}

static bool print_memory(struct blyi_trace *trace)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct live live;
    char bytes[BLYI_SIZE_TEXT];
    uint64_t peak, peak_seq;
    size_t n;
    const struct blyi_trace_card *cards = blyi_trace_cards(trace, &n);
    for (size_t i = 0; i < n; i++)
        printf("card %-4d %s as programs see it\n", cards[i].card,
               blyi_size_text(cards[i].total, bytes));
    if (!live_begin(&live, trace))
        return false;
    struct totals totals = totals_of(&live);
    bool has_history = (info->flags & BLYI_TRACE_NO_HISTORY) == 0;
    print_blocks(has_history ? "at start" : "state", &totals);
    bool ok = play(trace, &live, &peak, &peak_seq);
    if (ok && has_history) {
        printf("peak      %s", blyi_size_text(peak, bytes));
        printf(peak_seq > 0 ? ", reached by event no. %" PRIu64 "\n" : ", at the start\n",
               peak_seq);
        totals = totals_of(&live);
        print_blocks("at end", &totals);
    }
    live_end(&live);
    return ok;
}

int trace_info_run(int argc, char **argv)
{
    struct trace_input input;
    if (argc != 2 || argv[1][0] == '-')
        return usage_error("trace", "trace info: one file, please");
    if (!trace_input_open(argv[1], &input))
        return 1;
    const struct blyi_trace_info *info = blyi_trace_info(input.trace);
    trace_print_about(input.trace, (int)input.format, stdout);
    printf("names     %u threads, %u sites, %u stacks\n", info->n_threads, info->n_sites,
           info->n_stacks);
    bool ok = print_memory(input.trace);
    if (!ok)
        say("%s: %s", argv[1], bly_last_error()[0] ? bly_last_error() : "no host memory");
    trace_input_close(&input);
    return ok ? 0 : 1;
}
