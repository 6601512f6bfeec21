/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_cause_card.c - causes that lie in how the card's memory is shared: pools, other
 * processes, other cards.
 */
#include "observe/insight_judge.h"

#include <inttypes.h>

/* At the first refusal, else at the end. */
static const struct blyi_fragments *pool_of(const struct blyi_case *c, const char **when)
{
    *when = c->has_first ? "when the first request failed" : "at the end";
    return c->has_first ? &c->first.pool : &c->in->fragments;
}

static bool no_pool(const struct blyi_case *c, struct blyi_cause *out)
{
    if (c->in->has_pool)
        return false;
    if (c->imported)
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "the file tells of blocks and not of the memory that a pool took for them");
    else
        blyi_judge_set(out, BLYI_DOES_NOT,
                       "no pool took memory: every allocation had pages of its own");
    return true;
}

/* The card's own frames. */
static void judge_scattered(const struct blyi_explanation *e, struct blyi_cause *out)
{
    blyi_judge_set(out, BLYI_APPLIES,
                   "at event no. %" PRIu64
                   " %s in one row were asked of card %d, which had %s free "
                   "and room for %s of this kind at most",
                   e->refusal->seq, blyi_judge_size(e->needed), e->refusal->card,
                   blyi_judge_size(e->free_most), blyi_judge_size(e->refusal->largest));
    out->bytes = e->free_most;
    blyi_judge_cure(out, "ask for such memory before what scatters the card, or for 2 MiB pages "
                         "that need no row; belay defrag moves what can be moved");
}

void blyi_judge_fragmentation(const struct blyi_case *c, struct blyi_cause *out)
{
    const char *when;
    const struct blyi_fragments *pool = pool_of(c, &when);
    if (c->n_why[BLYI_WHY_SCATTERED] > 0) {
        judge_scattered(&c->explained[BLYI_WHY_SCATTERED], out);
        return;
    }
    if (no_pool(c, out))
        return;
    bool failed = c->has_first && c->first.missing > 0 && pool->idle >= c->first.missing &&
                  pool->largest < c->first.refusal->asked;
    bool applies = failed || blyi_is_much(pool->pinned, pool->reserved);
    blyi_judge_set(out, applies ? BLYI_APPLIES : BLYI_DOES_NOT,
                   "%s %s of %s that the pool had were idle and pinned by live blocks in %zu "
                   "segment%s; the longest idle row was %s",
                   when, blyi_judge_size(pool->pinned), blyi_judge_size(pool->reserved),
                   pool->n_pins, blyi_plural(pool->n_pins), blyi_judge_size(pool->largest));
    out->bytes = pool->pinned;
    if (failed)
        blyi_judge_add(out, ", and %s were asked for", blyi_judge_size(c->first.refusal->asked));
    if (pool->n_pins > 0)
        blyi_judge_add(out, ". Most is pinned by %s: a block of %s keeps %s idle",
                       blyi_judge_site(c, pool->pins[0].label),
                       blyi_judge_size(pool->pins[0].label_bytes),
                       blyi_judge_size(pool->pins[0].idle));
    if (pool->sparse > 0)
        blyi_judge_cure(out,
                        "what if: were the %" PRIu64 " block%s (%s) elsewhere that lie in the "
                        "%" PRIu64 " segment%s at most half used, %s could go back to the card. ",
                        pool->sparse_blocks, blyi_plural(pool->sparse_blocks),
                        blyi_judge_size(pool->sparse_bytes), pool->sparse,
                        blyi_plural(pool->sparse),
                        blyi_judge_size(pool->sparse_bytes + pool->sparse_idle));
    blyi_judge_cure(out, "Make what lives long before what is short-lived%s",
                    c->in->history.expandable ? ""
                                              : ", or let the pool use one expandable range "
                                                "(expandable_segments:True in PyTorch)");
}

void blyi_judge_cached(const struct blyi_case *c, struct blyi_cause *out)
{
    const char *when;
    const struct blyi_fragments *pool = pool_of(c, &when);
    if (no_pool(c, out))
        return;
    out->bytes = pool->releasable;
    blyi_judge_set(out,
                   blyi_is_much(pool->releasable, pool->reserved) ? BLYI_APPLIES : BLYI_DOES_NOT,
                   "%s the pool had %s, of which %s in %" PRIu64 " of %" PRIu64
                   " segments held no block and could have gone back to the card",
                   when, blyi_judge_size(pool->reserved), blyi_judge_size(pool->releasable),
                   pool->free_pieces, pool->n_pieces);
    blyi_judge_cure(out, "trim the pool before another needs the card (empty_cache() in PyTorch, "
                         "aclrtMemPoolTrimTo), or lower its release threshold; this is no leak");
}

void blyi_judge_pool_growth(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_growth *pool = &c->in->pool_growth, *live = &c->in->growth;
    if (no_pool(c, out))
        return;
    if (pool->kind == BLYI_GROWTH_UNKNOWN) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "fewer than %d cycles in the recording; the pool had at most %s for at most "
                       "%s asked",
                       BLYI_CYCLES_MIN, blyi_judge_size(c->in->peaks[BLYI_ALL_CARDS].reserved),
                       blyi_judge_size(c->in->peaks[BLYI_ALL_CARDS].at_peak.asked));
        return;
    }
    /* Where live bytes are uneven, the pool may follow them. */
    bool applies = pool->kind == BLYI_GROWTH_CREEP &&
                   (live->kind == BLYI_GROWTH_SAWTOOTH || live->kind == BLYI_GROWTH_PLATEAU);
    out->bytes = pool->kind == BLYI_GROWTH_CREEP ? pool->grown : 0;
    if (pool->kind == BLYI_GROWTH_CREEP)
        blyi_judge_set(out, applies ? BLYI_APPLIES : BLYI_DOES_NOT,
                       "what the pool had rose by %s in %zu cycles in a row, while what is live %s",
                       blyi_judge_size(pool->grown), pool->rises, blyi_growth_words(live->kind));
    else
        blyi_judge_set(out, BLYI_DOES_NOT, "over %zu cycles what the pool had %s", c->in->cycles.n,
                       blyi_growth_words(pool->kind));
    if (c->in->n_ramps > 0)
        blyi_judge_add(out, "; requests of %s rise from %s to %s in %" PRIu64 " steps",
                       blyi_judge_site(c, c->in->ramps[0].label),
                       blyi_judge_size(c->in->ramps[0].first),
                       blyi_judge_size(c->in->ramps[0].last), c->in->ramps[0].n);
    blyi_judge_cure(out, "ask for the largest size once and keep it, or trim the pool between "
                         "cycles: each larger request finds no idle block that is large enough");
}

void blyi_judge_others(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_explanation *full = &c->explained[BLYI_WHY_FULL];
    const struct blyi_explanation *e = &c->explained[BLYI_WHY_NOT_OURS];
    if (c->n_why[BLYI_WHY_NOT_OURS] == 0 && c->n_why[BLYI_WHY_FULL] > 0 &&
        (full->row_told || !full->free_told)) {
        blyi_judge_set(
            out, BLYI_DOES_NOT, "when card %d refused, this process alone had taken %s of its %s",
            full->refusal->card, blyi_judge_size(full->taken), blyi_judge_size(full->total));
    } else if (c->n_why[BLYI_WHY_NOT_OURS] == 0 && c->n_why[BLYI_WHY_SCATTERED] > 0) {
        blyi_judge_set(out, BLYI_DOES_NOT, "when card %d refused, it had enough free",
                       c->explained[BLYI_WHY_SCATTERED].refusal->card);
    } else if (c->n_why[BLYI_WHY_NOT_OURS] == 0) {
        blyi_judge_set(out, BLYI_CANNOT_TELL, "the file knows of this process alone");
    } else if (e->row_told) {
        out->bytes = e->others;
        blyi_judge_set(out, BLYI_APPLIES,
                       "at event no. %" PRIu64 " %s were asked, %s in pages; card %d had %s free: "
                       "of its %s this process had taken %s, the runtime %s and others %s",
                       e->refusal->seq, blyi_judge_size(e->refusal->asked),
                       blyi_judge_size(e->needed), e->refusal->card, blyi_judge_size(e->free_most),
                       blyi_judge_size(e->total), blyi_judge_size(e->taken),
                       blyi_judge_size(e->overhead), blyi_judge_size(e->others));
        blyi_judge_cure(out, "belay smi shows who has the card while they run");
    } else if (e->free_told) {
        blyi_judge_set(out, BLYI_DOES_NOT,
                       "at event no. %" PRIu64 " %s were asked and the card itself had %s free: a "
                       "limit of the program's own was reached",
                       e->refusal->seq, blyi_judge_size(e->refusal->asked),
                       blyi_judge_size(e->free_most));
    } else {
        blyi_judge_set(out, BLYI_APPLIES,
                       "at event no. %" PRIu64 " %s were asked; this process had taken %s of the "
                       "%s of card %d, the runtime %s: others had the rest, or it was not in one "
                       "row",
                       e->refusal->seq, blyi_judge_size(e->refusal->asked),
                       blyi_judge_size(e->taken), blyi_judge_size(e->total), e->refusal->card,
                       blyi_judge_size(e->overhead));
        blyi_judge_cure(out, "belay smi shows who has the card while they run");
    }
}

void blyi_judge_too_small(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_explanation *e = &c->first;
    if (!c->has_first) {
        blyi_judge_set(out, BLYI_DOES_NOT, "no request failed for want of card memory");
        return;
    }
    if (c->n_why[BLYI_WHY_TOO_LARGE] > 0) {
        const struct blyi_refusal *refusal = c->by_why[BLYI_WHY_TOO_LARGE];
        blyi_judge_set(out, BLYI_APPLIES,
                       "at event no. %" PRIu64 " %s were asked of card %d, which has less",
                       refusal->seq, blyi_judge_size(refusal->asked), refusal->card);
        blyi_judge_cure(out, "ask for less at once, or use a card with more memory");
        return;
    }
    if (e->why == BLYI_WHY_UNTOLD) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "the file does not tell how much memory the card has");
        return;
    }
    /* Nobody needed what is idle, waiting or reached by no address. */
    bool applies = e->why == BLYI_WHY_FULL && !e->fits_if_packed && !e->fits_if_waited &&
                   c->in->orphans.bytes < e->missing;
    out->bytes = applies ? e->missing : 0;
    blyi_judge_set(out, applies ? BLYI_APPLIES : BLYI_DOES_NOT,
                   "at event no. %" PRIu64 " %s were asked, %s were live and %s idle in a pool; %s "
                   "were missing",
                   e->refusal->seq, blyi_judge_size(e->refusal->asked),
                   blyi_judge_size(e->live.asked), blyi_judge_size(e->pool.idle),
                   blyi_judge_size(e->missing));
    if (e->holders.n > 0)
        blyi_judge_cure(out, "free %s before it; the largest holder then was %s with %s",
                        blyi_judge_size(e->missing), blyi_judge_site(c, e->holders.rows[0].label),
                        blyi_judge_size(e->holders.rows[0].first.bytes));
}

/* A card of the file that had room for what another one refused. */
static bool has_room(const struct blyi_case *c, uint8_t card, uint64_t *room)
{
    const struct blyi_trace_card *about = blyi_insight_card(c->in, card);
    uint64_t taken = about != NULL ? about->overhead : 0;
    for (size_t i = 0; i < c->in->history.n_lives; i++)
        if (blyi_is_of(&c->in->history.lives[i], card) &&
            blyi_lives_at(&c->in->history.lives[i], c->first.refusal->at))
            taken += c->in->history.lives[i].backed;
    *room = about != NULL && about->total > taken ? about->total - taken : 0;
    return *room >= c->first.refusal->asked;
}

void blyi_judge_device(const struct blyi_case *c, struct blyi_cause *out)
{
    uint64_t room = 0;
    int n_used = 0;
    for (uint8_t card = 0; card < BLYI_CARDS; card++) {
        n_used += c->in->peaks[card].used || blyi_insight_card(c->in, card) != NULL;
        if (c->has_first && !c->in->has_pool && card != c->first.refusal->card &&
            has_room(c, card, &room)) {
            blyi_judge_set(out, BLYI_APPLIES,
                           "card %d refused %s at event no. %" PRIu64 " while card %d had up to %s "
                           "that this process did not use",
                           c->first.refusal->card, blyi_judge_size(c->first.refusal->asked),
                           c->first.refusal->seq, card, blyi_judge_size(room));
            blyi_judge_cure(
                out, "call aclrtSetDevice in every thread before it asks; request: %s",
                blyi_judge_site(c, blyi_label_of_site(c->in->labels, c->first.refusal->site,
                                                      c->first.refusal->stack)));
            return;
        }
    }
    if (n_used <= 1) {
        blyi_judge_set(out, BLYI_DOES_NOT, "the recording has one card");
        return;
    }
    blyi_judge_set(out, BLYI_CANNOT_TELL, "peaks by card, to compare with what was meant:");
    for (uint8_t card = 0; card < BLYI_CARDS; card++)
        if (c->in->peaks[card].used)
            blyi_judge_add(out, " card %d %s;", card,
                           blyi_judge_size(c->in->peaks[card].at_peak.asked));
}
