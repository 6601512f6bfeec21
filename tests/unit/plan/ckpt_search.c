/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_search.c - see ckpt_search.h.
 */
#include "ckpt_search.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX 4096 /* longest schedule looked at */

/* Bit i of outputs or saved: held of stage i. head: the running output, not kept; 0: none. */
struct state {
    uint32_t gradient, head, outputs, saved;
};

struct entry {
    uint32_t state, next;
};

struct search {
    const bly_chain *chain;
    uint64_t budget;
    unsigned bits; /* of outputs and saved */
    size_t n_states;
    uint16_t *time;           /* of each state; UINT16_MAX: not reached */
    uint32_t first[TIME_MAX]; /* entries by time, as lists; 0: end */
    struct entry *entries;
    uint32_t n_entries, capacity;
};

static uint32_t pack(const struct search *search, struct state state)
{
    return state.gradient | state.head << 3 | state.outputs << 6 |
           state.saved << (6 + search->bits);
}

static struct state unpack(const struct search *search, uint32_t packed)
{
    uint32_t mask = (1u << search->bits) - 1;
    return (struct state){packed & 7, packed >> 3 & 7, packed >> 6 & mask,
                          packed >> (6 + search->bits) & mask};
}

static uint64_t gradient_of(const struct search *search, uint32_t stage)
{
    return stage > 0 ? search->chain->stages[stage - 1].gradient : 0;
}

static uint64_t memory_of(const struct search *search, struct state state)
{
    uint64_t memory = search->chain->input + gradient_of(search, state.gradient);
    for (uint32_t i = 1; i <= search->chain->n; i++) {
        const bly_chain_stage *stage = &search->chain->stages[i - 1];
        if (state.outputs >> i & 1 || state.head == i)
            memory += stage->output;
        if (state.saved >> i & 1)
            memory += stage->saved;
    }
    return memory;
}

static void reach(struct search *search, struct state state, uint64_t time)
{
    uint32_t packed = pack(search, state);
    if (time >= TIME_MAX || time >= search->time[packed])
        return;
    search->time[packed] = (uint16_t)time;
    if (search->n_entries >= search->capacity) {
        search->capacity = search->capacity * 2 + 1024;
        search->entries = realloc(search->entries, search->capacity * sizeof(*search->entries));
        if (search->entries == NULL)
            abort();
    }
    search->entries[search->n_entries] = (struct entry){packed, search->first[time]};
    search->first[time] = search->n_entries++;
}

static void run_backward(struct search *search, struct state from, uint64_t time)
{
    uint32_t t = from.gradient, available = from.outputs | from.saved | 1;
    const bly_chain_stage *stage = &search->chain->stages[t - 1];
    if (!(from.saved >> t & 1) || !(available >> (t - 1) & 1) ||
        memory_of(search, from) + gradient_of(search, t - 1) + stage->backward_temp >
            search->budget)
        return;
    from.saved &= ~(1u << t);
    from.gradient--;
    reach(search, from, time + stage->backward_ns);
}

/* ── Any schedule ─────────────────────────────────────────────────────────────────────────── */

static void expand_any(struct search *search, struct state from, uint64_t time)
{
    uint32_t available = from.outputs | from.saved | 1;
    uint64_t memory = memory_of(search, from);
    for (uint32_t i = 1; i <= search->chain->n; i++) {
        const bly_chain_stage *stage = &search->chain->stages[i - 1];
        struct state to = from;
        to.outputs = from.outputs & ~(1u << i);
        reach(search, to, time);
        to = from;
        to.saved = from.saved & ~(1u << i);
        reach(search, to, time);
        if (i > from.gradient || !(available >> (i - 1) & 1))
            continue;
        to = from;
        to.outputs |= 1u << i;
        if (memory + stage->output + stage->forward_temp <= search->budget)
            reach(search, to, time + stage->forward_ns);
        to = from;
        to.saved |= 1u << i;
        if (memory + stage->saved + stage->forward_temp <= search->budget)
            reach(search, to, time + stage->forward_ns);
    }
    run_backward(search, from, time);
}

/* ── Persistent schedules ─────────────────────────────────────────────────────────────────── */

static void expand_persistent(struct search *search, struct state from, uint64_t time)
{
    uint32_t kept = from.outputs | from.saved | 1;
    uint64_t memory = memory_of(search, from);
    if (from.head != 0) { /* to keep it, or to drop it */
        struct state to = from;
        to.head = 0;
        reach(search, to, time);
        to.outputs |= 1u << from.head;
        reach(search, to, time);
    }
    if (from.outputs >> from.gradient & 1 && from.gradient > 0) { /* after its last use */
        struct state to = from;
        to.outputs &= ~(1u << from.gradient);
        if (!(from.saved >> from.gradient & 1))
            reach(search, to, time);
    }
    for (uint32_t i = 1; i <= from.gradient; i++) {
        const bly_chain_stage *stage = &search->chain->stages[i - 1];
        if (kept >> i & 1)
            continue;
        struct state to = from;
        bool from_kept = kept >> (i - 1) & 1;
        if ((from_kept && from.head == 0) || (from.head != 0 && from.head == i - 1)) {
            to.head = i;
            if (memory + stage->output + stage->forward_temp <= search->budget)
                reach(search, to, time + stage->forward_ns);
        }
        to = from;
        to.saved |= 1u << i;
        if (from_kept && from.head == 0 &&
            memory + stage->saved + stage->forward_temp <= search->budget)
            reach(search, to, time + stage->forward_ns);
    }
    if (from.head == 0)
        run_backward(search, from, time);
}

static uint64_t search_run(const bly_chain *chain, uint64_t budget,
                           void (*expand)(struct search *, struct state, uint64_t))
{
    uint64_t best = UINT64_MAX;
    static struct search search;
    memset(&search, 0, sizeof(search));
    search.chain = chain;
    search.budget = budget;
    search.n_entries = 1; /* entry 0 ends the lists */
    search.capacity = 1024;
    search.entries = calloc(search.capacity, sizeof(*search.entries));
    search.bits = (unsigned)chain->n + 1;
    search.n_states = (size_t)1 << (6 + 2 * search.bits);
    search.time = malloc(search.n_states * sizeof(*search.time));
    if (chain->n > SEARCH_STAGES_MAX || search.time == NULL || search.entries == NULL)
        abort();
    memset(search.time, 0xff, search.n_states * sizeof(*search.time));
    reach(&search, (struct state){.gradient = (uint32_t)chain->n}, 0);
    for (uint64_t time = 0; time < TIME_MAX && best == UINT64_MAX; time++) {
        /* Steps that take no time add to the list being walked. */
        while (search.first[time] != 0 && best == UINT64_MAX) {
            struct entry entry = search.entries[search.first[time]];
            search.first[time] = entry.next;
            if (search.time[entry.state] != time)
                continue;
            struct state state = unpack(&search, entry.state);
            if (state.gradient == 0)
                best = time;
            else
                expand(&search, state, time);
        }
    }
    free(search.time);
    free(search.entries);
    return best;
}

uint64_t search_best_ns(const bly_chain *chain, uint64_t budget)
{
    return search_run(chain, budget, expand_any);
}

uint64_t search_persistent_ns(const bly_chain *chain, uint64_t budget)
{
    return search_run(chain, budget, expand_persistent);
}
