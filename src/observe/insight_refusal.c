/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_refusal.c - see insight_refusal.h.
 */
#include "observe/insight_refusal.h"

#include "base/host.h"

const char *blyi_why_key(enum blyi_refusal_why why)
{
    static const char *const keys[] = {"not-memory", "cap",      "host",      "pinned", "too-large",
                                       "full",       "not-ours", "scattered", "untold"};
    return keys[why];
}

static void sum_live(const struct blyi_insight *in, struct blyi_explanation *e)
{
    uint64_t pool_backed = 0;
    for (size_t i = 0; i < in->history.n_lives; i++) {
        const struct blyi_life *life = &in->history.lives[i];
        if (!blyi_is_of(life, e->refusal->card) || !blyi_lives_at(life, e->refusal->at))
            continue;
        e->live.count++;
        e->live.asked += life->asked;
        e->live.rounded += life->rounded;
        e->live.backed += life->backed;
    }
    if (in->has_pool)
        pool_backed = e->pool.live; /* lies in what the pool reserved */
    e->live.reserved = e->pool.reserved;
    e->live.waiting = e->pool.waiting;
    e->taken = e->pool.reserved + (e->live.backed > pool_backed ? e->live.backed - pool_backed : 0);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void find_free(const struct blyi_insight *in, struct blyi_explanation *e)
{
    const struct blyi_trace_card *card = blyi_insight_card(in, e->refusal->card);
    e->total_told = card != NULL && card->total > 0;
    e->total = e->total_told ? card->total : 0;
    e->overhead = e->total_told ? card->overhead : 0;
    e->row_told = e->refusal->needed > 0 && e->total_told;
    e->needed = e->row_told ? e->refusal->needed : e->refusal->asked;
    e->free_told = e->row_told || e->refusal->free_told > 0;
    if (e->free_told)
        e->free_most = e->refusal->free_told;
    else if (e->total_told)
        e->free_most = less(e->total, e->overhead + e->taken);
    if (e->free_told || e->total_told)
        e->missing = less(e->needed, e->free_most);
    if (e->row_told)
        e->others = less(less(e->total, e->overhead + e->taken), e->free_most);
}

enum blyi_refusal_why blyi_why_of_status(int32_t status)
{
    switch ((bly_status)status) {
    case BLY_E_CAP:
        return BLYI_WHY_CAP;
    case BLY_E_HOST_MEMORY:
        return BLYI_WHY_HOST;
    case BLY_E_PIN_LIMIT:
        return BLYI_WHY_PINNED;
    case BLY_E_NO_MEMORY:
        return BLYI_WHY_UNTOLD;
    default:
        return BLYI_WHY_NOT_MEMORY;
    }
}

static enum blyi_refusal_why why(const struct blyi_explanation *e)
{
    enum blyi_refusal_why by_status = blyi_why_of_status(e->refusal->status);
    if (by_status != BLYI_WHY_UNTOLD || (!e->free_told && !e->total_told))
        return by_status;
    if (e->total_told && e->needed > less(e->total, e->overhead))
        return BLYI_WHY_TOO_LARGE;
    if (e->row_told && e->missing == 0)
        return BLYI_WHY_SCATTERED;
    if (e->row_told && e->others >= e->missing)
        return BLYI_WHY_NOT_OURS;
    return e->missing > 0 ? BLYI_WHY_FULL : BLYI_WHY_NOT_OURS;
}

bly_status blyi_explain(const struct blyi_insight *in, const struct blyi_refusal *refusal,
                        struct blyi_explanation *out)
{
    struct blyi_explanation e = {.refusal = refusal};
    bly_status status =
        blyi_fragments_make(&in->history, in->labels, refusal->card, refusal->at, &e.pool);
    if (status != BLY_OK)
        return status;
    struct blyi_holding_query query = {BLYI_BY_SITE, refusal->card, refusal->at,
                                       blyi_history_end(&in->history)};
    status = blyi_holdings_make(&in->history, in->labels, &query, &e.holders);
    if (status != BLY_OK) {
        blyi_explanation_fini(&e);
        return status;
    }
    sum_live(in, &e);
    find_free(in, &e);
    e.why = why(&e);
    if (e.missing > 0) {
        e.fits_if_pool_gives = e.pool.releasable >= e.missing;
        e.fits_if_packed = e.pool.idle >= e.missing;
        e.fits_if_waited = e.pool.idle + e.pool.waiting >= e.missing;
    }
    *out = e;
    return BLY_OK;
}

void blyi_explanation_fini(struct blyi_explanation *e)
{
    blyi_host_free(e->pool.pins);
    blyi_host_free(e->holders.rows);
}
