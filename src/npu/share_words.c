/* SPDX-License-Identifier: Apache-2.0
 *
 * share_words.c - the frames of a share: their words, and the links that tell their order.
 */
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/share_inside.h"
#include "npu/stock.h"
#include "base/fail.h"
#include "base/host.h"

/* Flags in a word may be changed by who commits the frame, who does not need the ledger's lock. */
bool blyi_share_rename(struct blyi_card_file *file, uint32_t frame, uint32_t from, uint32_t to)
{
    uint32_t word = __atomic_load_n(&file->words[frame], __ATOMIC_RELAXED);
    do {
        if ((word & BLYI_FRAME_OWNER) != from)
            return false;
    } while (!__atomic_compare_exchange_n(&file->words[frame], &word,
                                          (word & ~BLYI_FRAME_OWNER) | to, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    blyi_ledger_step();
    return true;
}

/* A walk along links[], which others may have damaged: bounded by the frames that are to come. */
struct chain {
    const uint64_t *links;
    uint32_t n_frames, next, left;
    struct blyi_run run;
};

static struct chain chain_of(const struct blyi_card *card, const struct blyi_share *share)
{
    return (struct chain){.links = blyi_ledger_card_links(card->id),
                          .n_frames = blyi_ledger_card_frames(card->id),
                          .next = share->first,
                          .left = share->whole};
}

/* The next run in chain->run. False: no more, or the chain is damaged (left > 0). */
static bool chain_step(struct chain *chain)
{
    if (chain->left == 0 || chain->next >= chain->n_frames)
        return false;
    uint64_t link = __atomic_load_n(&chain->links[chain->next], __ATOMIC_RELAXED);
    uint32_t count = (uint32_t)link;
    if (count == 0 || count > chain->left || count > chain->n_frames - chain->next)
        return false;
    chain->run = (struct blyi_run){chain->next, count};
    chain->left -= count;
    chain->next = (uint32_t)(link >> 32);
    return true;
}

/* The same for a frame that goes from us to a share, or comes back. */
bool blyi_share_turn(struct blyi_stock *stock, uint32_t frame, uint32_t share, bool ours)
{
    uint32_t mine = blyi_ledger_slot() + 1;
    struct blyi_card_file *file = blyi_stock_file(stock);
    if (!blyi_share_rename(file, frame, ours ? share : mine, ours ? mine : share))
        return false;
    blyi_stock_turn_locked(stock, frame, ours);
    return true;
}

bool blyi_share_take_words_locked(struct blyi_card *card, struct blyi_share *share, uint32_t owner,
                                  const struct blyi_run *runs, uint32_t n_runs)
{
    uint64_t *links = blyi_ledger_card_links(card->id);
    bool sound = true;
    share->first = n_runs > 0 ? runs[0].first : BLYI_FRAME_NONE;
    share->whole = 0;
    for (uint32_t r = 0; r < n_runs; r++) {
        uint32_t next = r + 1 < n_runs ? runs[r + 1].first : BLYI_FRAME_NONE;
        links[runs[r].first] = (uint64_t)next << 32 | runs[r].count;
        share->whole += runs[r].count;
    }
    for (uint32_t r = 0; r < n_runs && sound; r++)
        for (uint32_t i = 0; i < runs[r].count && sound; i++)
            sound = blyi_share_turn(card->stock, runs[r].first + i, owner, false);
    for (uint32_t r = 0; r < n_runs && !sound; r++)
        for (uint32_t i = 0; i < runs[r].count; i++)
            (void)blyi_share_turn(card->stock, runs[r].first + i, owner, true);
    return sound;
}

bool blyi_share_pass_tail_locked(struct blyi_card_file *file, uint32_t index)
{
    const struct blyi_share *share = blyi_share_at(index);
    for (uint32_t i = 0; i < blyi_shares_count(); i++) {
        const struct blyi_share *other = blyi_share_at(i);
        if (i != index && other->state == BLYI_SHARE_LIVE && other->card == share->card &&
            other->tail_pages > 0 && other->tail_frame == share->tail_frame)
            return blyi_share_rename(file, share->tail_frame, BLYI_FRAME_SHARED | index,
                                     BLYI_FRAME_SHARED | i);
    }
    return false;
}

static bool is_of(const struct blyi_card_file *file, uint32_t frame, uint32_t index)
{
    uint32_t word = __atomic_load_n(&file->words[frame], __ATOMIC_RELAXED);
    return (word & BLYI_FRAME_OWNER) == (BLYI_FRAME_SHARED | index);
}

/* Those of a run whose words still name the share: back to the card, or to us. */
static void end_run_locked(struct blyi_stock *stock, struct blyi_run run, uint32_t index, bool give)
{
    struct blyi_card_file *file = blyi_stock_file(stock);
    uint32_t end = run.first + run.count, start = run.first;
    for (uint32_t i = start; i <= end; i++) {
        if (i < end && is_of(file, i, index)) {
            if (!give)
                (void)blyi_share_turn(stock, i, BLYI_FRAME_SHARED | index, true);
            continue;
        }
        if (give && i > start)
            blyi_stock_give_locked(stock, start, i - start);
        start = i + 1;
    }
}

/* The frames go back to the card (give), or become ours. */
void blyi_share_end_locked(struct blyi_card *card, uint32_t index, bool give)
{
    struct blyi_stock *stock = card->stock;
    struct blyi_card_file *file = blyi_stock_file(stock);
    struct blyi_share *share = blyi_share_at(index);
    blyi_share_set_state(share, BLYI_SHARE_ENDING);
    struct chain chain = chain_of(card, share);
    while (chain_step(&chain))
        end_run_locked(stock, chain.run, index, give);
    if (share->tail_pages > 0 && share->tail_frame < blyi_ledger_card_frames(card->id) &&
        is_of(file, share->tail_frame, index) && !blyi_share_pass_tail_locked(file, index))
        end_run_locked(stock, (struct blyi_run){share->tail_frame, 1}, index, give);
    blyi_share_set_state(share, BLYI_SHARE_EMPTY);
    blyi_shares_count_live(&blyi_shares()->live_shares, -1);
}

static void append(struct blyi_run *runs, uint32_t *n, struct blyi_run run)
{
    if (*n > 0 && runs[*n - 1].first + runs[*n - 1].count == run.first)
        runs[*n - 1].count += run.count;
    else
        runs[(*n)++] = run;
}

/* Our hold keeps links and words as they are, so no lock of the ledger is needed. */
bly_status blyi_share_runs(struct blyi_card *card, struct blyi_hold hold, uint32_t from,
                           uint32_t count, struct blyi_run **out, uint32_t *n_out)
{
    struct blyi_card_file *file = blyi_stock_file(card->stock);
    const struct blyi_share *share = blyi_share_at(hold.index);
    uint32_t end = from + count, at = 0, n = 0, most = 0;
    struct chain chain = chain_of(card, share);
    while (chain_step(&chain))
        most++;
    struct blyi_run *runs = blyi_host_alloc((most + 1) * sizeof *runs);
    if (!runs)
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to describe a share",
                         card->id);
    chain = chain_of(card, share);
    for (; at < end && chain_step(&chain) && n < most; at += chain.run.count) {
        struct blyi_run run = chain.run;
        for (uint32_t i = 0; i < run.count; i++)
            if (!is_of(file, run.first + i, hold.index))
                goto damaged;
        if (at + run.count <= from)
            continue;
        uint32_t skip = from > at ? from - at : 0;
        run.first += skip;
        run.count -= skip;
        if (at + skip + run.count > end)
            run.count = end - at - skip;
        append(runs, &n, run);
    }
    if (at >= end) {
        *out = runs;
        *n_out = n;
        return BLY_OK;
    }

damaged:
    blyi_host_free(runs);
    return blyi_fail(BLY_E_STATE,
                     "card %d: the shared state is damaged: the frames of a share of process %u "
                     "are not all its own",
                     card->id, share->maker_pid);
}

bool blyi_share_has_tail(struct blyi_card *card, struct blyi_hold hold)
{
    const struct blyi_share *share = blyi_share_at(hold.index);
    uint32_t frame = share->tail_frame;
    if (frame >= blyi_ledger_card_frames(card->id))
        return false;
    uint32_t word = __atomic_load_n(&blyi_stock_file(card->stock)->words[frame], __ATOMIC_RELAXED);
    uint32_t owner = word & BLYI_FRAME_OWNER;
    if (!(owner & BLYI_FRAME_SHARED))
        return owner == share->maker + 1;
    uint32_t other = owner & ~BLYI_FRAME_SHARED;
    return other < blyi_shares_count() && blyi_share_at(other)->tail_pages > 0 &&
           blyi_share_at(other)->tail_frame == frame;
}

bool blyi_share_is_committed(struct blyi_card *card, uint32_t frame)
{
    struct blyi_card_file *file = blyi_stock_file(card->stock);
    uint32_t word = __atomic_load_n(&file->words[frame], __ATOMIC_ACQUIRE);
    return (word & (BLYI_FRAME_COMMITTED | BLYI_FRAME_UNSURE)) == BLYI_FRAME_COMMITTED;
}
