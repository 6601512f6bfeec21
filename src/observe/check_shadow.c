/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_shadow.h"

#include "base/assert.h"
#include "base/host.h"

#define READS        3
#define SEGMENTS_MAX 8192

struct segment {
    struct blyi_tree_node node; /* key: first offset */
    uint64_t end;
    uint64_t when;   /* a task wrote last, here or near by; 0: none did */
    bool is_written; /* by somebody */
    bool has_write;  /* `write` says by whom */
    uint8_t n_reads;
    struct blyi_epoch write;
    struct blyi_epoch reads[READS]; /* since then */
};

static struct segment *segment_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct segment, node);
}

/* The first segment that ends behind `lo`. */
static struct segment *first_from(const struct blyi_shadow *shadow, uint64_t lo)
{
    struct segment *s = segment_of(blyi_tree_floor(&shadow->segments, lo));
    return s != NULL && s->end > lo ? s : segment_of(blyi_tree_ceil(&shadow->segments, lo));
}

static struct segment *next_of(const struct segment *s)
{
    return segment_of(blyi_tree_next(&s->node));
}

static void take_out(struct blyi_shadow *shadow, struct segment *s)
{
    blyi_tree_remove(&shadow->segments, &s->node);
    blyi_host_free(s);
}

static struct segment *put_in(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                              const struct segment *like)
{
    struct segment *s = blyi_host_alloc(sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = like != NULL ? *like : (struct segment){0};
    s->end = hi;
    blyi_tree_insert(&shadow->segments, &s->node, lo, 0);
    return s;
}

/* No segment lies across `at`. */
static bool split(struct blyi_shadow *shadow, uint64_t at)
{
    struct segment *s = segment_of(blyi_tree_floor(&shadow->segments, at));
    if (s == NULL || s->node.key == at || s->end <= at)
        return true;
    if (put_in(shadow, at, s->end, s) == NULL)
        return false;
    s->end = at;
    return true;
}

/* The range is made of whole segments, without a gap. */
static bool cover(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi)
{
    if (shadow->segments.count > SEGMENTS_MAX)
        blyi_shadow_forget(shadow);
    if (!split(shadow, lo) || !split(shadow, hi))
        return false;
    for (uint64_t at = lo; at < hi;) {
        struct segment *s = segment_of(blyi_tree_ceil(&shadow->segments, at));
        uint64_t until = s != NULL && s->node.key < hi ? s->node.key : hi;
        if (until > at && put_in(shadow, at, until, NULL) == NULL)
            return false;
        at = s != NULL && s->node.key < hi ? s->end : hi;
    }
    return true;
}

static bool knows(const struct blyi_vc *known, const struct blyi_epoch *epoch)
{
    return blyi_vc_get(known, epoch->slot) >= epoch->clock;
}

static void note(struct blyi_conflict *conflicts, uint32_t *n, const struct segment *s,
                 const struct blyi_epoch *with, bool write)
{
    for (uint32_t i = 0; i < *n; i++) {
        struct blyi_conflict *c = &conflicts[i];
        if (c->with.slot == with->slot && c->with.clock == with->clock && c->with_write == write) {
            c->hi = s->end;
            return;
        }
    }
    if (*n < BLYI_CONFLICTS)
        conflicts[(*n)++] = (struct blyi_conflict){*with, write, s->node.key, s->end};
}

static void find_conflicts(const struct segment *s, const struct blyi_vc *known, bool writes,
                           struct blyi_conflict *conflicts, uint32_t *n)
{
    if (s->has_write && !knows(known, &s->write))
        note(conflicts, n, s, &s->write, true);
    for (uint8_t i = 0; writes && i < s->n_reads; i++)
        if (!knows(known, &s->reads[i]))
            note(conflicts, n, s, &s->reads[i], false);
}

/* A read that the new one knows of needs no place: who is behind the new one is behind it too. */
static void add_read(struct segment *s, const struct blyi_epoch *epoch, const struct blyi_vc *known)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < s->n_reads; i++)
        if (!knows(known, &s->reads[i]))
            s->reads[kept++] = s->reads[i];
    if (kept == READS) {
        for (uint8_t i = 1; i < READS; i++)
            s->reads[i - 1] = s->reads[i];
        kept--;
    }
    s->reads[kept] = *epoch;
    s->n_reads = (uint8_t)(kept + 1);
}

static void become_written(struct segment *s, const struct blyi_epoch *epoch, uint64_t when)
{
    if (when > s->when)
        s->when = when;
    s->is_written = true;
    s->n_reads = 0;
    s->has_write = epoch != NULL;
    if (epoch != NULL)
        s->write = *epoch;
}

/* All of the range becomes one segment: the first one grows over the others. */
static void become_one(struct blyi_shadow *shadow, struct segment *first, uint64_t hi)
{
    struct segment *s;
    while ((s = next_of(first)) != NULL && s->node.key < hi) {
        if (s->when > first->when)
            first->when = s->when;
        take_out(shadow, s);
    }
    first->end = hi;
}

bool blyi_shadow_access(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                        const struct blyi_epoch *epoch, const struct blyi_vc *known, bool writes,
                        struct blyi_conflict *conflicts, uint32_t *n_conflicts)
{
    if (lo >= hi)
        return true;
    struct segment *first = first_from(shadow, lo);
    if (first == NULL || first->node.key != lo || first->end != hi) { /* else the usual case */
        if (!cover(shadow, lo, hi))
            return false;
        first = first_from(shadow, lo);
    }
    for (struct segment *s = first; s != NULL && s->node.key < hi; s = next_of(s)) {
        find_conflicts(s, known, writes, conflicts, n_conflicts);
        if (!writes)
            add_read(s, epoch, known);
    }
    if (writes) {
        become_one(shadow, first, hi);
        become_written(first, epoch, epoch->slot != 0 ? epoch->when + 1 : 0);
    }
    return true;
}

bool blyi_shadow_fill(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi, uint64_t when)
{
    if (lo >= hi)
        return true;
    if (!cover(shadow, lo, hi))
        return false;
    struct segment *first = first_from(shadow, lo);
    become_one(shadow, first, hi);
    become_written(first, NULL, when + 1);
    return true;
}

bool blyi_shadow_written_since(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                               uint64_t when)
{
    for (const struct segment *s = first_from(shadow, lo); s != NULL && s->node.key < hi;
         s = next_of(s))
        if (s->when > when)
            return true;
    return shadow->forgot;
}

uint64_t blyi_shadow_gaps(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                          struct blyi_gap gaps[BLYI_GAPS], uint32_t *n)
{
    uint64_t sum = 0, at = lo;
    *n = 0;
    const struct segment *s = first_from(shadow, lo);
    while (at < hi) {
        uint64_t from = at;
        while (s != NULL && s->node.key <= at && s->end <= at)
            s = next_of(s);
        if (s != NULL && s->node.key <= at) {
            at = s->end < hi ? s->end : hi;
            if (s->is_written)
                continue;
        } else {
            at = s != NULL && s->node.key < hi ? s->node.key : hi;
        }
        sum += at - from;
        if (*n > 0 && gaps[*n - 1].hi == from)
            gaps[*n - 1].hi = at;
        else if (*n == BLYI_GAPS)
            return *n = 0;
        else
            gaps[(*n)++] = (struct blyi_gap){from, at};
    }
    return sum;
}

bool blyi_shadow_unwrite(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi)
{
    if (!cover(shadow, lo, hi))
        return false;
    for (struct segment *s = first_from(shadow, lo); s != NULL && s->node.key < hi; s = next_of(s))
        s->is_written = false;
    return true;
}

void blyi_shadow_unknown(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                         const struct blyi_vc *known, blyi_shadow_fn *fn, void *arg)
{
    for (const struct segment *s = first_from(shadow, lo); s != NULL && s->node.key < hi;
         s = next_of(s)) {
        if (s->has_write && !knows(known, &s->write))
            fn(arg, &s->write, true);
        for (uint8_t i = 0; i < s->n_reads; i++)
            if (!knows(known, &s->reads[i]))
                fn(arg, &s->reads[i], false);
    }
}

void blyi_shadow_forget(struct blyi_shadow *shadow)
{
    struct blyi_tree_node *node;
    while ((node = blyi_tree_first(&shadow->segments)) != NULL)
        take_out(shadow, segment_of(node));
    shadow->tracks_init = false;
    shadow->forgot = true;
}

bool blyi_shadow_audit(const struct blyi_shadow *shadow)
{
    uint64_t end = 0;
    for (const struct segment *s = segment_of(blyi_tree_first(&shadow->segments)); s != NULL;
         s = next_of(s)) {
        if (s->node.key < end || s->end <= s->node.key || s->n_reads > READS)
            return false;
        end = s->end;
    }
    return blyi_tree_audit(&shadow->segments);
}
