/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c - from buffers to the form that solvers read: sections, units, pieces.
 */
#include "plan/pack.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/sort.h"

static const bly_plan_buffer *member(const bly_plan_buffer *buffers, const uint32_t *members,
                                     size_t i)
{
    return &buffers[members == NULL ? i : members[i]];
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t align_of(const bly_plan_buffer *b, uint64_t default_align)
{
    return b->align == 0 ? default_align : b->align;
}

/* What the buffers have in common, found in one pass before anything is allocated. */
struct survey {
    uint64_t unit;
    uint64_t uniform; /* alignment of all of them, 0 when they differ */
    size_t n_pieces;
    bool any_gap, any_fixed, any_hint;
    int64_t min_time;
};

static size_t pieces_of(const bly_plan_buffer *b)
{
    size_t n = 1;
    int64_t at = b->lower;
    for (uint32_t g = 0; g < b->n_gaps; g++) {
        n += b->gaps[g].keep_lower < b->gaps[g].keep_upper;
        n += b->gaps[g].lower > at;
        at = b->gaps[g].upper;
    }
    return n + (at < b->upper) - 1;
}

static void survey_buffers(struct survey *s, const bly_plan_buffer *buffers,
                           const uint32_t *members, size_t n, uint64_t default_align)
{
    memset(s, 0, sizeof(*s));
    s->min_time = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const bly_plan_buffer *b = member(buffers, members, i);
        uint64_t align = align_of(b, default_align);
        if (i == 0)
            s->uniform = align;
        else if (s->uniform != align)
            s->uniform = 0;
        if (s->unit != 1)
            s->unit = gcd(s->unit, align > 1 ? gcd(b->size, align) : b->size);
        if (b->offset != BLY_PLAN_FREE) {
            s->any_fixed = true;
            s->unit = gcd(s->unit, (uint64_t)b->offset);
        }
        for (uint32_t g = 0; g < b->n_gaps; g++)
            s->unit = gcd(s->unit, gcd(b->gaps[g].keep_lower, b->gaps[g].keep_upper));
        s->any_hint |= b->hint >= 0;
        s->any_gap |= b->n_gaps > 0;
        s->n_pieces += b->n_gaps == 0 ? 1 : pieces_of(b);
        if (b->lower < s->min_time)
            s->min_time = b->lower;
    }
    /* With one alignment for all, sizes are rounded up to it and offsets align by themselves. */
    if (s->uniform > 1)
        s->unit = gcd(s->uniform, s->any_gap ? s->unit : 0);
    if (s->unit == 0)
        s->unit = 1;
}

static bool make_arrays(struct blyi_pack *pack, const struct survey *s, size_t n)
{
    size_t room = n + 1;
    pack->items = blyi_host_alloc_dense(room * sizeof(*pack->items));
    if (s->uniform == 0)
        pack->align = blyi_host_alloc_dense(room * sizeof(*pack->align));
    if (s->any_fixed)
        pack->fixed = blyi_host_alloc_dense(room * sizeof(*pack->fixed));
    if (s->any_hint)
        pack->hint = blyi_host_alloc_dense(room * sizeof(*pack->hint));
    if (s->any_gap) {
        pack->piece_at = blyi_host_calloc_dense(room, sizeof(*pack->piece_at));
        pack->pieces = blyi_host_alloc_dense((s->n_pieces + 1) * sizeof(*pack->pieces));
    }
    return pack->items != NULL && (s->uniform != 0 || pack->align != NULL) &&
           (!s->any_fixed || pack->fixed != NULL) && (!s->any_hint || pack->hint != NULL) &&
           (!s->any_gap || (pack->piece_at != NULL && pack->pieces != NULL));
}

static void add_piece(struct blyi_pack *pack, struct blyi_sort_key *births,
                      struct blyi_sort_key *deaths, uint32_t *at, const int64_t span[2],
                      int64_t min_time, int64_t lo, int64_t hi)
{
    births[*at] = (struct blyi_sort_key){(uint64_t)span[0] - (uint64_t)min_time, *at};
    deaths[*at] = (struct blyi_sort_key){(uint64_t)span[1] - (uint64_t)min_time, *at};
    if (pack->pieces != NULL)
        pack->pieces[*at] = (struct blyi_pack_piece){0, 0, lo, hi};
    ++*at;
}

static void fill_gapped(struct blyi_pack *pack, const bly_plan_buffer *b, int64_t size,
                        struct blyi_sort_key *births, struct blyi_sort_key *deaths, uint32_t *at,
                        int64_t min_time)
{
    int64_t span[2] = {b->lower, b->lower};
    for (uint32_t g = 0; g < b->n_gaps; g++) {
        const bly_plan_gap *gap = &b->gaps[g];
        span[1] = gap->lower;
        if (span[0] < span[1])
            add_piece(pack, births, deaths, at, span, min_time, 0, size);
        if (gap->keep_lower < gap->keep_upper) {
            const int64_t inside[2] = {gap->lower, gap->upper};
            add_piece(pack, births, deaths, at, inside, min_time,
                      (int64_t)gap->keep_lower / pack->unit, (int64_t)gap->keep_upper / pack->unit);
            pack->windowed = true;
        }
        span[0] = gap->upper;
    }
    span[1] = b->upper;
    if (span[0] < span[1])
        add_piece(pack, births, deaths, at, span, min_time, 0, size);
}

static void fill_items(struct blyi_pack *pack, const struct survey *s,
                       const bly_plan_buffer *buffers, const uint32_t *members,
                       uint64_t default_align, struct blyi_sort_key *births,
                       struct blyi_sort_key *deaths)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        const bly_plan_buffer *b = member(buffers, members, i);
        uint64_t size = b->size, unit = (uint64_t)pack->unit;
        if (s->uniform > 1)
            size = (size + s->uniform - 1) / s->uniform * s->uniform;
        pack->items[i] = (struct blyi_pack_item){0, 0, (int64_t)(size / unit)};
        if (pack->align != NULL)
            pack->align[i] =
                (int64_t)(align_of(b, default_align) / gcd(align_of(b, default_align), unit));
        if (pack->fixed != NULL)
            pack->fixed[i] = b->offset < 0 ? BLYI_PACK_FREE : (int64_t)((uint64_t)b->offset / unit);
        if (pack->hint != NULL)
            pack->hint[i] = b->hint < 0 ? BLYI_PACK_FREE : (int64_t)((uint64_t)b->hint / unit);
        if (pack->piece_at != NULL)
            pack->piece_at[i] = at;
        const int64_t span[2] = {b->lower, b->upper};
        if (b->n_gaps == 0)
            add_piece(pack, births, deaths, &at, span, s->min_time, 0, pack->items[i].size);
        else
            fill_gapped(pack, b, pack->items[i].size, births, deaths, &at, s->min_time);
    }
    if (pack->piece_at != NULL)
        pack->piece_at[pack->n] = at;
}

/* One walk over births and deaths in order of time, deaths first among equals. */
static void cut_sections(struct blyi_pack *pack, const struct blyi_sort_key *births,
                         const struct blyi_sort_key *deaths, size_t n_pieces)
{
    uint32_t section = 0;
    bool died = true;
    size_t d = 0;
    pack->n_sections = 0;
    for (size_t b = 0; b < n_pieces; b++) {
        for (; d < n_pieces && deaths[d].key <= births[b].key; d++) {
            uint32_t i = deaths[d].value;
            *(pack->pieces ? &pack->pieces[i].last : &pack->items[i].last) = section;
            died = true;
        }
        if (died) {
            section = pack->n_sections++;
            pack->time[section] = births[b].key;
            died = false;
        }
        uint32_t i = births[b].value;
        *(pack->pieces ? &pack->pieces[i].first : &pack->items[i].first) = section;
    }
    for (; d < n_pieces; d++) {
        uint32_t i = deaths[d].value;
        *(pack->pieces ? &pack->pieces[i].last : &pack->items[i].last) = section;
    }
    pack->time[pack->n_sections] = n_pieces == 0 ? 0 : deaths[n_pieces - 1].key;
    if (pack->pieces == NULL)
        return;
    for (uint32_t i = 0; i < pack->n; i++) {
        uint32_t from = pack->piece_at[i], to = pack->piece_at[i + 1];
        pack->items[i].first = pack->pieces[from].first;
        pack->items[i].last = pack->pieces[to - 1].last;
    }
}

static uint32_t count_sections(const struct blyi_sort_key *births,
                               const struct blyi_sort_key *deaths, size_t n)
{
    uint32_t count = 0;
    size_t d = 0;
    bool died = true;
    for (size_t b = 0; b < n; b++) {
        for (; d < n && deaths[d].key <= births[b].key; d++)
            died = true;
        count += died;
        died = false;
    }
    return count;
}

bly_status blyi_pack_init(struct blyi_pack *pack, const bly_plan_buffer *buffers,
                          const uint32_t *members, size_t n, uint64_t default_align)
{
    memset(pack, 0, sizeof(*pack));
    struct survey s;
    survey_buffers(&s, buffers, members, n, default_align);
    pack->n = (uint32_t)n;
    pack->unit = (int64_t)s.unit;

    size_t m = s.n_pieces;
    struct blyi_sort_key *keys = blyi_host_alloc_dense((3 * m + 1) * sizeof(*keys));
    if (keys == NULL || !make_arrays(pack, &s, n))
        goto fail;
    struct blyi_sort_key *births = keys, *deaths = keys + m, *spare = keys + 2 * m;
    fill_items(pack, &s, buffers, members, default_align, births, deaths);
    blyi_sort_keys(births, spare, m);
    blyi_sort_keys(deaths, spare, m);
    pack->time = blyi_host_alloc_dense((count_sections(births, deaths, m) + (size_t)1) *
                                       sizeof(*pack->time));
    if (pack->time == NULL)
        goto fail;
    cut_sections(pack, births, deaths, m);
    blyi_host_free(keys);
    return BLY_OK;

fail:
    blyi_host_free(keys);
    blyi_pack_fini(pack);
    return blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory for them", n);
}

void blyi_pack_fini(struct blyi_pack *pack)
{
    blyi_host_free(pack->items);
    blyi_host_free(pack->align);
    blyi_host_free(pack->fixed);
    blyi_host_free(pack->hint);
    blyi_host_free(pack->piece_at);
    blyi_host_free(pack->pieces);
    blyi_host_free(pack->time);
    memset(pack, 0, sizeof(*pack));
}

int64_t blyi_pack_peak(const struct blyi_pack *pack, const int64_t *offset)
{
    int64_t peak = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        int64_t end = offset[i] + pack->items[i].size;
        if (end > peak)
            peak = end;
    }
    return peak;
}
