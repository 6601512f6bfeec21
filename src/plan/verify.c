/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c - a sweep over time that keeps the live spans sorted by address: a span that comes
 * must fit between its two neighbours. Live spans are kept in runs of bounded length, so that
 * many of them cost little more than few.
 */
#include "plan/verify.h"

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/sort.h"

#define RUN_MAX 32

struct live {
    uint64_t start, end;
    uint32_t buffer;
};

struct run {
    uint32_t n;
    struct live spans[RUN_MAX];
};

/* Runs in order of address; a run is empty only when it is the only one. */
struct line {
    struct run **runs;
    size_t n, room;
};

static bool line_grow(struct line *line, size_t at)
{
    if (line->n == line->room) {
        size_t room = line->room * 2 + 8;
        struct run **runs = blyi_host_realloc(line->runs, room * sizeof(struct run *));
        if (runs == NULL)
            return false;
        line->runs = runs;
        line->room = room;
    }
    struct run *run = blyi_host_alloc_dense(sizeof(*run));
    if (run == NULL)
        return false;
    run->n = 0;
    memmove(line->runs + at + 1, line->runs + at, (line->n - at) * sizeof(struct run *));
    line->runs[at] = run;
    line->n++;
    return true;
}

static void line_fini(struct line *line)
{
    for (size_t i = 0; i < line->n; i++)
        blyi_host_free(line->runs[i]);
    blyi_host_free(line->runs);
}

/* The run in which `start` belongs. */
static size_t line_find(const struct line *line, uint64_t start)
{
    size_t lo = 0, hi = line->n;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (line->runs[mid]->spans[0].start <= start)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Position in a run of the first span that starts at or above `start`. */
static uint32_t run_find(const struct run *run, uint64_t start)
{
    uint32_t lo = 0, hi = run->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (run->spans[mid].start < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The buffer that overlaps the new span, or UINT32_MAX. `found` is where it would go. */
static uint32_t neighbour_hit(const struct line *line, size_t r, uint32_t at,
                              const struct blyi_span *span)
{
    const struct run *run = line->runs[r];
    const struct live *above = NULL, *below = NULL;
    if (at < run->n)
        above = &run->spans[at];
    else if (r + 1 < line->n)
        above = &line->runs[r + 1]->spans[0];
    if (at > 0)
        below = &run->spans[at - 1];
    if (above != NULL && above->start < span->end)
        return above->buffer;
    if (below != NULL && below->end > span->start)
        return below->buffer;
    return UINT32_MAX;
}

static bool line_insert(struct line *line, size_t r, uint32_t at, const struct blyi_span *span)
{
    struct run *run = line->runs[r];
    if (run->n == RUN_MAX) {
        if (!line_grow(line, r + 1))
            return false;
        struct run *upper = line->runs[r + 1];
        /* Cut at the end where the new span goes: ascending arrivals leave full runs behind. */
        uint32_t keep = at == RUN_MAX ? RUN_MAX : RUN_MAX / 2;
        upper->n = RUN_MAX - keep;
        memcpy(upper->spans, run->spans + keep, upper->n * sizeof(struct live));
        run->n = keep;
        if (at >= keep) {
            run = upper;
            at -= keep;
        }
    }
    memmove(run->spans + at + 1, run->spans + at, (run->n - at) * sizeof(struct live));
    run->spans[at] = (struct live){span->start, span->end, span->buffer};
    run->n++;
    return true;
}

static void line_remove(struct line *line, uint64_t start)
{
    size_t r = line_find(line, start);
    struct run *run = line->runs[r];
    uint32_t at = run_find(run, start);
    memmove(run->spans + at, run->spans + at + 1, (run->n - at - 1) * sizeof(struct live));
    if (--run->n == 0 && line->n > 1) {
        blyi_host_free(run);
        memmove(line->runs + r, line->runs + r + 1, (line->n - r - 1) * sizeof(struct run *));
        line->n--;
    }
}

/* What is swept: spans, or whole buffers where none of them has gaps, which spares a copy. */
struct source {
    const struct blyi_span *spans; /* NULL: buffers */
    const bly_plan_buffer *buffers;
    const uint64_t *offset;
    int64_t base; /* time that keys count from */
};

static struct blyi_span span_at(const struct source *source, size_t i)
{
    if (source->spans != NULL)
        return source->spans[i];
    const bly_plan_buffer *b = &source->buffers[i];
    uint64_t start = source->offset[i];
    return (struct blyi_span){b->lower, b->upper, start, start + b->size, (uint32_t)i};
}

static uint64_t start_at(const struct source *source, size_t i)
{
    return source->spans != NULL ? source->spans[i].start : source->offset[i];
}

/* Keys in order of time. Births mostly come in that order: then the index does, and *births is
 * left NULL. False: no host memory. */
static bool sort_spans(struct source *source, struct blyi_sort_key **births,
                       struct blyi_sort_key **deaths, size_t n)
{
    int64_t before = INT64_MIN;
    bool sorted = true;
    source->base = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t lower = span_at(source, i).lower;
        source->base = lower < source->base ? lower : source->base;
        sorted &= before <= lower;
        before = lower;
    }
    *deaths = blyi_host_alloc_dense((2 * n + 1) * sizeof(**deaths));
    if (!sorted)
        *births = blyi_host_alloc_dense((n + 1) * sizeof(**births));
    if (*deaths == NULL || (!sorted && *births == NULL))
        return false;
    struct blyi_sort_key *spare = *deaths + n;
    for (size_t i = 0; i < n; i++) {
        uint64_t upper = (uint64_t)span_at(source, i).upper;
        (*deaths)[i] = (struct blyi_sort_key){upper - (uint64_t)source->base, (uint32_t)i};
    }
    blyi_sort_keys(*deaths, spare, n);
    for (size_t i = 0; !sorted && i < n; i++) {
        uint64_t lower = (uint64_t)span_at(source, i).lower;
        (*births)[i] = (struct blyi_sort_key){lower - (uint64_t)source->base, (uint32_t)i};
    }
    if (!sorted)
        blyi_sort_keys(*births, spare, n);
    return true;
}

/* False: no host memory. */
static bool sweep_time(const struct source *source, const struct blyi_sort_key *births,
                       const struct blyi_sort_key *deaths, size_t n, struct line *line,
                       uint32_t pair[2])
{
    const struct blyi_sort_key *dead = deaths;
    for (size_t b = 0; b < n; b++) {
        struct blyi_span span = span_at(source, births == NULL ? b : births[b].value);
        /* What died is taken out before what is born at the same time comes. */
        for (; dead->key <= (uint64_t)span.lower - (uint64_t)source->base; dead++)
            line_remove(line, start_at(source, dead->value));
        size_t r = line_find(line, span.start);
        uint32_t at = run_find(line->runs[r], span.start);
        uint32_t hit = neighbour_hit(line, r, at, &span);
        if (hit != UINT32_MAX) {
            pair[0] = hit;
            pair[1] = span.buffer;
            return true;
        }
        if (!line_insert(line, r, at, &span))
            return false;
    }
    return true;
}

static bly_status sweep(struct source *source, size_t n, uint32_t pair[2])
{
    struct line line = {NULL, 0, 0};
    struct blyi_sort_key *births = NULL, *deaths = NULL;
    pair[0] = pair[1] = UINT32_MAX;
    bool done = sort_spans(source, &births, &deaths, n) && line_grow(&line, 0) &&
                sweep_time(source, births, deaths, n, &line, pair);
    line_fini(&line);
    blyi_host_free(births);
    blyi_host_free(deaths);
    return done ? BLY_OK
                : blyi_fail(BLY_E_HOST_MEMORY,
                            "checking a plan of %zu parts: the host has no memory", n);
}

bly_status blyi_spans_sweep(const struct blyi_span *spans, size_t n, uint32_t pair[2])
{
    struct source source = {.spans = spans};
    return sweep(&source, n, pair);
}

void blyi_spans_of(const bly_plan_buffer *buffer, uint32_t index, uint64_t offset,
                   struct blyi_span *spans, size_t *n)
{
    struct blyi_span whole = {buffer->lower, buffer->upper, offset, offset + buffer->size, index};
    size_t count = 0;
    for (uint32_t g = 0; g < buffer->n_gaps; g++) {
        const bly_plan_gap *gap = &buffer->gaps[g];
        if (whole.lower < gap->lower) {
            spans[count] = whole;
            spans[count++].upper = gap->lower;
        }
        if (gap->keep_lower < gap->keep_upper)
            spans[count++] = (struct blyi_span){gap->lower, gap->upper, offset + gap->keep_lower,
                                                offset + gap->keep_upper, index};
        whole.lower = gap->upper;
    }
    if (whole.lower < whole.upper)
        spans[count++] = whole;
    *n = count;
}

static bly_status overlap(const bly_plan_buffer *buffers, const uint64_t *offset,
                          const uint32_t pair[2])
{
    const bly_plan_buffer *a = &buffers[pair[0]], *b = &buffers[pair[1]];
    return blyi_fail(BLY_E_INVALID,
                     "buffers %u [%lld, %lld) of %llu bytes at %llu and %u [%lld, %lld) of %llu "
                     "bytes at %llu overlap",
                     pair[0], (long long)a->lower, (long long)a->upper, (unsigned long long)a->size,
                     (unsigned long long)offset[pair[0]], pair[1], (long long)b->lower,
                     (long long)b->upper, (unsigned long long)b->size,
                     (unsigned long long)offset[pair[1]]);
}

/* One region at a time. */
static bly_status verify_region(const bly_plan_buffer *buffers, size_t n, const uint64_t *offset,
                                const uint32_t *region, uint32_t which, struct blyi_span *spans,
                                uint64_t *peak)
{
    size_t n_spans = 0;
    *peak = 0;
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        if (region != NULL && region[i] != which)
            continue;
        if (spans != NULL)
            blyi_spans_of(&buffers[i], (uint32_t)i, offset[i], spans + n_spans, &count);
        n_spans += count;
        uint64_t end = offset[i] + buffers[i].size;
        *peak = end > *peak ? end : *peak;
    }
    uint32_t pair[2];
    struct source source = {spans, buffers, offset, 0};
    bly_status status = sweep(&source, spans != NULL ? n_spans : n, pair);
    if (status != BLY_OK || pair[0] == UINT32_MAX)
        return status;
    return overlap(buffers, offset, pair);
}

static bly_status verify_place(const bly_plan_buffer *b, size_t i, uint64_t align, uint64_t offset,
                               const uint32_t *region)
{
    uint64_t own = b->align != 0 ? b->align : align;
    if (own > 1 && offset % own != 0)
        return blyi_fail(BLY_E_INVALID, "buffer %zu lies at %llu, which is no multiple of %llu", i,
                         (unsigned long long)offset, (unsigned long long)own);
    if (b->offset >= 0 && offset != (uint64_t)b->offset)
        return blyi_fail(BLY_E_INVALID, "buffer %zu lies at %llu but is fixed at %lld", i,
                         (unsigned long long)offset, (long long)b->offset);
    if (region != NULL && b->region >= 0 && region[i] != (uint32_t)b->region)
        return blyi_fail(BLY_E_INVALID, "buffer %zu lies in region %u but is fixed in %d", i,
                         region[i], b->region);
    return BLY_OK;
}

bly_status bly_plan_verify(const bly_plan_buffer *buffers, size_t n, uint64_t align,
                           const uint64_t *offset, const uint32_t *region, uint64_t *peak)
{
    size_t n_spans = 1;
    uint32_t n_regions = 1;
    bool whole = true; /* no gaps, one region */
    for (size_t i = 0; i < n; i++) {
        bly_status status = verify_place(&buffers[i], i, align, offset[i], region);
        if (status != BLY_OK)
            return status;
        n_spans += 1 + 2 * (size_t)buffers[i].n_gaps;
        if (region != NULL && region[i] >= n_regions)
            n_regions = region[i] + 1;
        whole &= buffers[i].n_gaps == 0 && n_regions == 1;
    }
    struct blyi_span *spans = whole ? NULL : blyi_host_alloc_dense(n_spans * sizeof(*spans));
    if (!whole && spans == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "checking a plan of %zu buffers: the host has no memory", n);
    uint64_t sum = 0;
    bly_status status = BLY_OK;
    for (uint32_t r = 0; r < n_regions && status == BLY_OK; r++) {
        uint64_t region_peak;
        status = verify_region(buffers, n, offset, region, r, spans, &region_peak);
        sum += region_peak;
    }
    blyi_host_free(spans);
    if (status == BLY_OK)
        *peak = sum;
    return status;
}
