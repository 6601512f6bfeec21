/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_growth.c - what a row of valleys means, and sites that ask for more each time.
 */
#include "observe/insight_growth.h"

#include "base/fail.h"
#include "base/host.h"

const char *blyi_growth_key(enum blyi_growth_kind kind)
{
    static const char *const keys[] = {"unknown", "saw-tooth", "plateau", "creep", "uneven"};
    return keys[kind];
}

const char *blyi_growth_words(enum blyi_growth_kind kind)
{
    static const char *const words[] = {"cannot be judged", "is a saw-tooth", "reached a plateau",
                                        "creeps upwards", "is uneven"};
    return words[kind];
}

/* How many rises lie in a row at the end. */
static size_t rises_at_end(const uint64_t *valleys, size_t n)
{
    size_t rises = 0;
    while (rises + 1 < n && valleys[n - 1 - rises] > valleys[n - 2 - rises])
        rises++;
    return rises;
}

static void measure_creep(const uint64_t *valleys, size_t n, struct blyi_growth *out)
{
    out->from = n - 1 - out->rises;
    out->grown = valleys[n - 1] - valleys[out->from];
    out->least = UINT64_MAX;
    for (size_t i = out->from; i + 1 < n; i++) {
        uint64_t rise = valleys[i + 1] - valleys[i];
        out->least = rise < out->least ? rise : out->least;
        out->most = rise > out->most ? rise : out->most;
    }
}

void blyi_growth_of(const uint64_t *valleys, size_t n, struct blyi_growth *out)
{
    *out = (struct blyi_growth){.kind = BLYI_GROWTH_UNKNOWN};
    if (n < BLYI_CYCLES_MIN)
        return;
    out->rises = rises_at_end(valleys, n);
    /* The first valleys of a program rise while it warms up: half of all must be in the row. */
    if (out->rises >= BLYI_CREEP_MIN && out->rises >= (n - 1) / 2) {
        out->kind = BLYI_GROWTH_CREEP;
        measure_creep(valleys, n, out);
        return;
    }
    out->rises = 0;
    uint64_t most = 0, most_before = 0;
    for (size_t i = 0; i < n; i++) {
        most = valleys[i] > most ? valleys[i] : most;
        if (i < n / 2)
            most_before = most;
    }
    if (valleys[n - 1] <= valleys[0]) {
        out->kind = BLYI_GROWTH_SAWTOOTH;
    } else if (most == most_before) { /* nothing new in the second half */
        out->kind = BLYI_GROWTH_PLATEAU;
        while (valleys[out->from] < valleys[n - 1])
            out->from++;
        out->grown = valleys[n - 1] - valleys[0];
    } else {
        out->kind = BLYI_GROWTH_UNEVEN;
    }
}

/* ── Sizes that grow ──────────────────────────────────────────────────────────────────────── */

struct run {
    uint64_t n, first, last, step;
};

static void follow(struct run *run, struct run *longest, uint64_t size)
{
    uint64_t step = size - run->last;
    if (run->n > 0 && size > run->last) {
        run->step = run->n == 1 || run->step == step ? step : 0;
        run->last = size;
        run->n++;
    } else {
        *run = (struct run){1, size, size, 0};
    }
    if (run->n > longest->n)
        *longest = *run;
}

static void keep(struct blyi_ramp ramps[BLYI_RAMPS], size_t *n, const struct run *run,
                 uint32_t label)
{
    size_t at = *n;
    while (at > 0 && ramps[at - 1].n < run->n)
        at--;
    if (at == BLYI_RAMPS)
        return;
    *n += *n < BLYI_RAMPS;
    for (size_t i = *n - 1; i > at; i--)
        ramps[i] = ramps[i - 1];
    ramps[at] = (struct blyi_ramp){label, run->n, run->first, run->last, run->step};
}

bly_status blyi_ramps_make(const struct blyi_history *h, const struct blyi_labels *labels,
                           struct blyi_ramp ramps[BLYI_RAMPS], size_t *n)
{
    size_t n_labels = blyi_labels_count(labels);
    struct run *runs = blyi_host_calloc(2 * n_labels + 1, sizeof(*runs)), *longest = runs;
    if (runs == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to follow its sizes",
                         blyi_trace_info(h->trace)->name);
    longest += n_labels;
    for (size_t i = h->n_start; i < h->n_lives; i++) {
        uint32_t label = blyi_label_of(labels, &h->lives[i], BLYI_BY_SITE);
        if (blyi_is_card(&h->lives[i]) && h->lives[i].class_ == BLYI_TRACE_CARD_BLOCK)
            follow(&runs[label], &longest[label], h->lives[i].asked);
    }
    *n = 0;
    for (size_t i = 0; i < n_labels; i++)
        if (longest[i].n >= BLYI_RAMP_MIN)
            keep(ramps, n, &longest[i], (uint32_t)i);
    blyi_host_free(runs);
    return BLY_OK;
}
