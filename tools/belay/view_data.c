/* SPDX-License-Identifier: Apache-2.0
 *
 * view_data.c - see view_data.h.
 */
#include "view_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/utf8.h"

void view_write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *end = text + strlen(text); text < end;) {
        size_t n = blyi_utf8_length((const unsigned char *)text, (const unsigned char *)end);
        unsigned char byte = (unsigned char)*text;
        if (n == 0) {
            fputs("\\ufffd", out);
            n = 1;
        } else if (n == 1 && (byte < ' ' || strchr("<>&\"\\'", *text) != NULL)) {
            fprintf(out, "\\u%04x", byte);
        } else if (n == 3 &&
                   (memcmp(text, "\xe2\x80\xa8", 3) == 0 || memcmp(text, "\xe2\x80\xa9", 3) == 0)) {
            fputc(' ', out); /* line ends, to some */
        } else {
            fwrite(text, 1, n, out);
        }
        text += n;
    }
    fputc('"', out);
}

/* ── Labels ───────────────────────────────────────────────────────────────────────────────── */

#define SPREAD     8 /* times the peak: addresses that are hardly ever used again */
#define LABELS_MAX 20000
#define LABEL_TEXT 160

/* Labels that are drawn, numbered anew from 1; 0 stands for those that are too many. */
struct names {
    const struct blyi_insight *in;
    uint32_t *number; /* of each label */
    uint32_t *labels;
    uint32_t n;
};

static bool names_make(struct names *names, const struct blyi_insight *in)
{
    *names = (struct names){.in = in};
    names->number = blyi_host_calloc(blyi_labels_count(in->labels) + 1, sizeof(uint32_t));
    names->labels = blyi_host_calloc(LABELS_MAX, sizeof(uint32_t));
    return names->number != NULL && names->labels != NULL;
}

static uint32_t number_of(struct names *names, uint32_t label)
{
    if (names->number[label] == 0 && names->n < LABELS_MAX) {
        names->labels[names->n++] = label;
        names->number[label] = names->n;
    }
    return names->number[label];
}

static void put_labels(FILE *out, const struct names *names)
{
    char text[LABEL_TEXT];
    fputs("\"labels\":[\"other\"", out);
    for (uint32_t i = 0; i < names->n; i++) {
        snprintf(text, sizeof(text), "%s", blyi_label_text(names->in->labels, names->labels[i]));
        fputs(",\n", out);
        view_write_string(out, text);
    }
    fputs("]}\n", out);
}

/* ── Buckets ──────────────────────────────────────────────────────────────────────────────── */

struct bucket {
    uint64_t ns;
    uint64_t most[BLYI_PEAK_COUNT], least[BLYI_PEAK_COUNT], reserved[BLYI_PEAK_COUNT];
};

struct buckets {
    struct bucket *at;
    size_t n;     /* at least 1, at most one a position */
    size_t total; /* changes */
};

/* Positions are 0 .. total. */
static size_t bucket_of(const struct buckets *b, size_t position)
{
    return position * b->n / (b->total + 1);
}

static void look(struct bucket *bucket, const struct blyi_curve *curve, uint8_t memory, bool first)
{
    const struct blyi_live *live = &curve->live[memory];
    if (first || live->asked > bucket->most[memory])
        bucket->most[memory] = live->asked;
    if (first || live->asked < bucket->least[memory])
        bucket->least[memory] = live->asked;
    if (first || live->reserved > bucket->reserved[memory])
        bucket->reserved[memory] = live->reserved;
}

static void fill(struct buckets *b, const struct blyi_history *h)
{
    struct blyi_curve curve;
    size_t last = b->n;
    blyi_curve_begin(&curve, h);
    do {
        size_t bucket = bucket_of(b, curve.at);
        b->at[bucket].ns = curve.at > 0 ? h->change_ns[curve.at - 1] : 0;
        if (bucket != last) {
            for (uint8_t m = 0; m < BLYI_PEAK_COUNT; m++)
                look(&b->at[bucket], &curve, m, true);
        } else {
            look(&b->at[bucket], &curve, curve.card, false);
            look(&b->at[bucket], &curve, BLYI_ALL_CARDS, false);
        }
        last = bucket;
    } while (blyi_curve_next(&curve));
}

static void put_series(FILE *out, const char *name, const struct buckets *b, size_t offset)
{
    fprintf(out, "\"%s\":[", name);
    for (size_t i = 0; i < b->n; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&b->at[i] + offset, sizeof(value));
        fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", value);
    }
    fputs("]", out);
}

static void put_memory(FILE *out, const struct blyi_insight *in, const struct buckets *b,
                       uint8_t memory, bool *first)
{
    const struct blyi_trace_card *card = memory < BLYI_CARDS ? blyi_insight_card(in, memory) : NULL;
    if (!in->peaks[memory].used)
        return;
    fprintf(out, "%s{\"name\":\"", *first ? "" : ",\n");
    if (memory == BLYI_ALL_CARDS)
        fputs("all cards", out);
    else if (memory == BLYI_NO_CARD)
        fputs("pinned host memory", out);
    else
        fprintf(out, "card %u", memory);
    fprintf(out, "\",\"total\":%" PRIu64 ",\"peak\":%" PRIu64 ",",
            card != NULL ? card->total - card->overhead : 0, in->peaks[memory].at_peak.asked);
    put_series(out, "most", b, offsetof(struct bucket, most) + memory * sizeof(uint64_t));
    fputc(',', out);
    put_series(out, "least", b, offsetof(struct bucket, least) + memory * sizeof(uint64_t));
    fputc(',', out);
    if (in->peaks[memory].reserved > 0)
        put_series(out, "reserved", b,
                   offsetof(struct bucket, reserved) + memory * sizeof(uint64_t));
    else
        fputs("\"reserved\":null", out);
    fputc('}', out);
    *first = false;
}

static void put_memories(FILE *out, const struct blyi_insight *in, const struct buckets *b)
{
    int n = 0;
    bool first = true;
    for (uint8_t card = 0; card < BLYI_CARDS; card++)
        n += in->peaks[card].used;
    fputs("\"memories\":[", out);
    if (n != 1)
        put_memory(out, in, b, BLYI_ALL_CARDS, &first);
    for (uint8_t card = 0; card < BLYI_CARDS; card++)
        put_memory(out, in, b, card, &first);
    put_memory(out, in, b, BLYI_NO_CARD, &first);
    fputs("],\n", out);
}

/* ── Holders over time ────────────────────────────────────────────────────────────────────── */

static bool put_stack(FILE *out, const struct blyi_insight *in, const struct buckets *b,
                      struct names *names)
{
    const struct blyi_history *h = &in->history;
    size_t n_labels = blyi_labels_count(in->labels), n = 0, filled = 0;
    uint8_t *row = blyi_host_calloc(n_labels + 1, 1);
    uint64_t(*sums)[VIEW_STACK + 1] = blyi_host_calloc(b->n, sizeof(*sums)),
                                 now[VIEW_STACK + 1] = {0};
    if (row == NULL || sums == NULL) {
        blyi_host_free(row);
        blyi_host_free(sums);
        return false;
    }
    memset(row, VIEW_STACK, n_labels);
    fputs("\"stack\":{\"names\":[", out);
    for (; n < in->names.n && n < VIEW_STACK && in->names.rows[n].first.bytes > 0; n++) {
        row[in->names.rows[n].label] = (uint8_t)n;
        fprintf(out, "%s%u", n > 0 ? "," : "", number_of(names, in->names.rows[n].label));
    }
    for (size_t i = 0; i < h->n_start; i++)
        if (blyi_is_card(&h->lives[i]))
            now[row[blyi_label_of(in->labels, &h->lives[i], BLYI_BY_NAME)]] += h->lives[i].asked;
    for (size_t i = 0; i < h->n_changes; i++) {
        struct blyi_change change = h->changes[i];
        for (size_t next = bucket_of(b, i + 1); filled < next; filled++)
            memcpy(sums[filled], now, sizeof(now));
        if (change.kind > BLYI_CHANGE_DIED || !blyi_is_card(&h->lives[change.index]))
            continue;
        const struct blyi_life *life = &h->lives[change.index];
        uint64_t *sum = &now[row[blyi_label_of(in->labels, life, BLYI_BY_NAME)]];
        *sum += change.kind == BLYI_CHANGE_BORN ? life->asked : 0 - life->asked;
    }
    for (; filled < b->n; filled++)
        memcpy(sums[filled], now, sizeof(now));
    fputs("],\"bytes\":[", out);
    for (size_t i = 0; i < b->n; i++) {
        fputs(i > 0 ? ",[" : "[", out);
        for (size_t k = 0; k < n; k++)
            fprintf(out, "%" PRIu64 ",", sums[i][k]);
        fprintf(out, "%" PRIu64, sums[i][VIEW_STACK]);
        fputc(']', out);
    }
    fputs("]},\n", out);
    blyi_host_free(row);
    blyi_host_free(sums);
    return true;
}

/* ── Blocks ───────────────────────────────────────────────────────────────────────────────── */

struct area {
    double area;
    uint32_t index;
};

static int by_area(const void *a, const void *b)
{
    const struct area *x = a, *y = b;
    if (x->area != y->area)
        return x->area > y->area ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static uint32_t end_of(const struct blyi_history *h, const struct blyi_life *life)
{
    return life->died_at == BLYI_STILL ? blyi_history_end(h) : life->died_at;
}

static bool put_blocks(FILE *out, const struct blyi_insight *in, const struct view_places *places,
                       struct names *names)
{
    const struct blyi_history *h = &in->history;
    struct area *areas = blyi_host_alloc((h->n_lives + 1) * sizeof(*areas));
    size_t n = 0, drawn;
    if (areas == NULL)
        return false;
    for (size_t i = 0; i < h->n_lives; i++) {
        const struct blyi_life *life = &h->lives[i];
        if (!blyi_is_card(life) || places->y[i] == VIEW_NOWHERE ||
            (!places->packed && life->class_ != BLYI_TRACE_CARD_BLOCK))
            continue;
        double area = (double)life->asked * ((double)end_of(h, life) - life->born_at + 1);
        areas[n++] = (struct area){area, (uint32_t)i};
    }
    if (n > 0)
        qsort(areas, n, sizeof(*areas), by_area);
    drawn = n < VIEW_BLOCKS ? n : VIEW_BLOCKS;
    fprintf(out, "\"n_blocks\":%zu,\"height\":%" PRIu64 ",\"packed\":%s,\"blocks\":[", n,
            places->height, places->packed ? "true" : "false");
    for (size_t i = 0; i < drawn; i++) {
        const struct blyi_life *life = &h->lives[areas[i].index];
        fprintf(out, "%s%" PRIu64 ",%" PRIu64 ",%u,%u,%u", i > 0 ? "," : "",
                places->y[areas[i].index], life->asked, life->born_at,
                life->died_at == BLYI_STILL ? blyi_history_end(h) + 1 : life->died_at,
                number_of(names, blyi_label_of(in->labels, life, BLYI_BY_NAME)));
        if (i % 16 == 15)
            fputc('\n', out);
    }
    fputs("],\n", out);
    blyi_host_free(areas);
    return true;
}

/* ── Marks, names ─────────────────────────────────────────────────────────────────────────── */

static void put_marks(FILE *out, const struct blyi_insight *in)
{
    const struct blyi_history *h = &in->history;
    size_t n = 0, met = 0, outermost = 0;
    for (size_t i = 0; i < h->n_moments; i++)
        outermost += h->moments[i].depth == 0;
    size_t every = outermost / VIEW_MARKS + 1;
    fputs("\"marks\":[", out);
    for (size_t i = 0; i < h->n_moments; i++) {
        if (h->moments[i].depth > 0 || met++ % every != 0)
            continue;
        fprintf(out, "%s[%u,", n++ > 0 ? "," : "", h->moments[i].at);
        view_write_string(out, blyi_trace_name(in->trace, h->moments[i].name));
        fputc(']', out);
    }
    fputs("],\"refused\":[", out);
    for (size_t i = 0; i < h->n_refusals && i < VIEW_MARKS; i++)
        fprintf(out, "%s[%u,%" PRIu64 "]", i > 0 ? "," : "", h->refusals[i].at,
                h->refusals[i].asked);
    fputs("],\n", out);
}

bly_status view_write_data(const struct blyi_insight *in, enum trace_format format, FILE *out)
{
    const struct blyi_history *h = &in->history;
    struct buckets b = {.total = h->n_changes};
    struct view_places places;
    struct names names;
    b.n = h->n_changes < VIEW_BUCKETS ? h->n_changes + 1 : VIEW_BUCKETS;
    bly_status status = view_places_make(in, format == TRACE_FORMAT_TSV, &places);
    uint64_t peak = in->peaks[BLYI_ALL_CARDS].at_peak.rounded;
    if (status == BLY_OK && !places.packed && places.height / SPREAD > peak) {
        blyi_host_free(places.y);
        status = view_places_make(in, true, &places);
    }
    if (status != BLY_OK)
        return status;
    b.at = blyi_host_calloc(b.n, sizeof(*b.at));
    bool ok = names_make(&names, in) && b.at != NULL;
    if (ok) {
        fill(&b, h);
        fprintf(out, "{\"n\":%zu,\"end_ns\":%" PRIu64 ",", h->n_changes, h->end_ns);
        put_series(out, "ns", &b, offsetof(struct bucket, ns));
        fputs(",\n", out);
        put_memories(out, in, &b);
        put_marks(out, in);
        ok = put_stack(out, in, &b, &names) && put_blocks(out, in, &places, &names);
    }
    if (ok)
        put_labels(out, &names);
    blyi_host_free(b.at);
    blyi_host_free(names.number);
    blyi_host_free(names.labels);
    blyi_host_free(places.y);
    if (ok)
        return BLY_OK;
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to draw it", in->info->name);
}
