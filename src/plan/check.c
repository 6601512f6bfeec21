/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - every wish of a buffer, then all fixed buffers against each other.
 */
#include "plan/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/text.h"
#include "plan/verify.h"

#define SUM_MAX ((uint64_t)1 << 62)
#define N_MAX   ((size_t)1 << 31)

/* What sentences call a buffer: its name where it has one, else its position. */
struct names {
    char *const *ids; /* NULL: none */
    char text[2][48];
};

static const char *name_of(struct names *names, size_t i, int which)
{
    char *text = names->text[which];
    if (names->ids != NULL && names->ids[i][0] != '\0')
        return blyi_slice_show((struct blyi_slice){names->ids[i], strlen(names->ids[i])}, text);
    snprintf(text, sizeof(names->text[which]), "%zu", i);
    return text;
}

static bly_status check_gaps(const bly_plan_buffer *b, size_t i, struct names *names)
{
    int64_t at = b->lower;
    uint64_t gapped = 0;
    for (uint32_t g = 0; g < b->n_gaps; g++) {
        const bly_plan_gap *gap = &b->gaps[g];
        if (gap->lower >= gap->upper || gap->lower < at || gap->upper > b->upper)
            return blyi_fail(BLY_E_INVALID,
                             "buffer %s: gap [%lld, %lld) is empty, out of order or outside of "
                             "[%lld, %lld)",
                             name_of(names, i, 0), (long long)gap->lower, (long long)gap->upper,
                             (long long)b->lower, (long long)b->upper);
        if (gap->keep_lower > gap->keep_upper || gap->keep_upper > b->size)
            return blyi_fail(BLY_E_INVALID,
                             "buffer %s: gap [%lld, %lld) keeps bytes %llu to %llu of %llu",
                             name_of(names, i, 0), (long long)gap->lower, (long long)gap->upper,
                             (unsigned long long)gap->keep_lower,
                             (unsigned long long)gap->keep_upper, (unsigned long long)b->size);
        at = gap->upper;
        if (gap->keep_lower == gap->keep_upper)
            gapped += (uint64_t)gap->upper - (uint64_t)gap->lower;
    }
    if (gapped == (uint64_t)b->upper - (uint64_t)b->lower)
        return blyi_fail(BLY_E_INVALID, "buffer %s: its gaps leave no time in which it is used",
                         name_of(names, i, 0));
    return BLY_OK;
}

static bly_status check_wishes(const bly_plan_buffer *b, size_t i, struct names *names,
                               const bly_plan_opts *opts)
{
    uint64_t align = b->align != 0 ? b->align : opts->align;
    uint32_t n_regions = opts->n_regions == 0 ? 1 : opts->n_regions;
    if (align > SUM_MAX)
        return blyi_fail(BLY_E_INVALID, "buffer %s: alignment %llu is above 2^62",
                         name_of(names, i, 0), (unsigned long long)align);
    if (b->offset < BLY_PLAN_FREE || (b->offset >= 0 && (uint64_t)b->offset > SUM_MAX - b->size))
        return blyi_fail(BLY_E_INVALID, "buffer %s: offset %lld is out of range",
                         name_of(names, i, 0), (long long)b->offset);
    if (b->offset >= 0 && align > 1 && (uint64_t)b->offset % align != 0)
        return blyi_fail(BLY_E_INVALID, "buffer %s: offset %lld is no multiple of %llu",
                         name_of(names, i, 0), (long long)b->offset, (unsigned long long)align);
    if (b->region < BLY_PLAN_FREE || (b->region >= 0 && (uint32_t)b->region >= n_regions))
        return blyi_fail(BLY_E_INVALID, "buffer %s: region %d; there are %u", name_of(names, i, 0),
                         b->region, n_regions);
    if (b->n_gaps > 0 && b->gaps == NULL)
        return blyi_fail(BLY_E_INVALID, "buffer %s: %u gaps, but no array of them",
                         name_of(names, i, 0), b->n_gaps);
    return check_gaps(b, i, names);
}

/* What a buffer can take at most, alignment of the next one included. */
static bly_status check_buffer(const bly_plan_buffer *b, size_t i, struct names *names,
                               const bly_plan_opts *opts, uint64_t *sum)
{
    if (b->lower >= b->upper)
        return blyi_fail(BLY_E_INVALID, "buffer %s: lifetime [%lld, %lld) is empty",
                         name_of(names, i, 0), (long long)b->lower, (long long)b->upper);
    if (b->size == 0)
        return blyi_fail(BLY_E_INVALID, "buffer %s: size 0", name_of(names, i, 0));
    uint64_t align = b->align != 0 ? b->align : opts->align;
    if (b->size > SUM_MAX || align > SUM_MAX || *sum + b->size + align > SUM_MAX)
        return blyi_fail(BLY_E_INVALID,
                         "buffer %s: size %llu and alignment %llu bring the total above "
                         "2^62",
                         name_of(names, i, 0), (unsigned long long)b->size,
                         (unsigned long long)align);
    *sum += b->size + align;
    return check_wishes(b, i, names, opts);
}

static bool is_fixed_in(const bly_plan_buffer *b, uint32_t region)
{
    return b->offset >= 0 && (b->region >= 0 ? (uint32_t)b->region : 0) == region;
}

static bly_status check_fixed(const bly_plan_buffer *buffers, size_t n, uint32_t region,
                              struct names *names)
{
    size_t room = 0, n_spans = 0;
    for (size_t i = 0; i < n; i++)
        room += is_fixed_in(&buffers[i], region) ? 1 + 2 * (size_t)buffers[i].n_gaps : 0;
    if (room == 0)
        return BLY_OK;
    struct blyi_span *spans = blyi_host_alloc_dense(room * sizeof(*spans));
    if (spans == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "checking %zu fixed buffers: the host has no memory",
                         room);
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        if (is_fixed_in(&buffers[i], region))
            blyi_spans_of(&buffers[i], (uint32_t)i, (uint64_t)buffers[i].offset, spans + n_spans,
                          &count);
        n_spans += count;
    }
    uint32_t pair[2];
    bly_status status = blyi_spans_sweep(spans, n_spans, pair);
    blyi_host_free(spans);
    if (status != BLY_OK || pair[0] == UINT32_MAX)
        return status;
    return blyi_fail(BLY_E_INVALID,
                     "buffers %s and %s are fixed at %lld and %lld, where they overlap",
                     name_of(names, pair[0], 0), name_of(names, pair[1], 1),
                     (long long)buffers[pair[0]].offset, (long long)buffers[pair[1]].offset);
}

bly_status blyi_plan_check(const bly_plan_buffer *buffers, size_t n, const bly_plan_opts *opts,
                           char *const *ids)
{
    if (opts->struct_size != sizeof(*opts))
        return blyi_fail(BLY_E_INVALID, "opts has struct_size %u; this library knows %zu",
                         opts->struct_size, sizeof(*opts));
    if (n > N_MAX)
        return blyi_fail(BLY_E_INVALID, "%zu buffers; at most %zu can be planned", n, N_MAX);
    struct names names = {.ids = ids};
    uint64_t sum = 0;
    bool any_fixed = false;
    for (size_t i = 0; i < n; i++) {
        bly_status status = check_buffer(&buffers[i], i, &names, opts, &sum);
        if (status != BLY_OK)
            return status;
        any_fixed |= buffers[i].offset >= 0;
    }
    uint32_t n_regions = opts->n_regions == 0 ? 1 : opts->n_regions;
    for (uint32_t r = 0; any_fixed && r < n_regions; r++) {
        bly_status status = check_fixed(buffers, n, r, &names);
        if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}
