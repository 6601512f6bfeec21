/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_waste.c - see insight_waste.h.
 */
#include "observe/insight_waste.h"

static void add(struct blyi_live *live, const struct blyi_life *life)
{
    live->count++;
    live->asked += life->asked;
    live->rounded += life->rounded;
    live->backed += life->backed;
}

static uint64_t most_saving(const struct blyi_history *h)
{
    uint64_t now = 0, most = 0;
    for (size_t i = 0; i < h->n_changes; i++) {
        struct blyi_change change = h->changes[i];
        if (change.kind == BLYI_CHANGE_BORN)
            now += h->lives[change.index].saving;
        else if (change.kind == BLYI_CHANGE_DIED)
            now -= h->lives[change.index].saving;
        most = now > most ? now : most;
    }
    return most;
}

void blyi_waste_make(const struct blyi_history *h, uint32_t peak_at, struct blyi_waste *out)
{
    *out = (struct blyi_waste){0};
    for (size_t i = 0; i < h->n_lives; i++) {
        const struct blyi_life *life = &h->lives[i];
        out->told = out->told || life->backed != life->asked || life->rounded != life->asked;
        if (!blyi_is_card(life)) {
            add(&out->pinned, life);
            continue;
        }
        add(&out->all, life);
        if (life->page_kind < BLYI_PAGE_KIND_COUNT)
            add(&out->pages[life->page_kind], life);
        if (blyi_lives_at(life, peak_at))
            add(&out->at_peak, life);
    }
    out->told = out->told || (blyi_trace_info(h->trace)->flags & BLYI_TRACE_IMPORTED) == 0;
    out->saving = most_saving(h);
}
