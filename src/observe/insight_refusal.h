/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_refusal.h - why a request failed, and what would have made it fit.
 */
#ifndef BLYI_INSIGHT_REFUSAL_H
#define BLYI_INSIGHT_REFUSAL_H

#include "observe/insight.h"

enum blyi_refusal_why {
    BLYI_WHY_NOT_MEMORY, /* the status is of another kind */
    BLYI_WHY_CAP,
    BLYI_WHY_HOST,
    BLYI_WHY_PINNED,
    BLYI_WHY_TOO_LARGE, /* more than the card ever has */
    BLYI_WHY_FULL,      /* this process alone has taken it */
    BLYI_WHY_NOT_OURS,  /* this process left room: another one, or no room in one row */
    BLYI_WHY_SCATTERED, /* enough was free, and not in one row; only where the file tells that */
    BLYI_WHY_UNTOLD,    /* the file does not tell how large the card is */
};
#define BLYI_EXPLAINED_MAX 16 /* refusals that commands explain; the others they count */
/* What the status alone says: UNTOLD for a card without room. */
enum blyi_refusal_why blyi_why_of_status(int32_t status);
const char *blyi_why_key(enum blyi_refusal_why why);

struct blyi_explanation {
    const struct blyi_refusal *refusal;
    enum blyi_refusal_why why;
    struct blyi_live live; /* of the card, then */
    struct blyi_fragments pool;
    bool total_told, free_told;
    bool row_told;   /* by the card: the request in pages, what was free and the longest row */
    uint64_t needed; /* in pages where that is told, else as asked */
    uint64_t others; /* where row_told: what this process left and was not free */
    uint64_t total, overhead;
    uint64_t taken;     /* of the card by this process: pages of blocks and handles, or the pool's
                           reserved memory and blocks outside of it */
    uint64_t free_most; /* what could be free at most: told, else total less overhead and taken */
    uint64_t missing;   /* needed less free_most; 0: enough by this account */
    struct blyi_holdings holders; /* first: then */
    /* What would have made it fit, each alone: */
    bool fits_if_pool_gives; /* what the pool could give back */
    bool fits_if_packed;     /* all that is idle in it */
    bool fits_if_waited;     /* also what waits for streams */
};

/* E_HOST_MEMORY. */
bly_status blyi_explain(const struct blyi_insight *insight, const struct blyi_refusal *refusal,
                        struct blyi_explanation *out);
void blyi_explanation_fini(struct blyi_explanation *explanation);

#endif
