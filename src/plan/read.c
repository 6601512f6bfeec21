/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c - buffers from the text of a CSV file, and from allocation traces (read_trace.c).
 */
#include "plan/read.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* X(column, name): what a CSV file may tell of a buffer; the first four are required. */
#define COLUMNS(X)                                                                                 \
    X(ID, "id")                                                                                    \
    X(LOWER, "lower")                                                                              \
    X(UPPER, "upper")                                                                              \
    X(SIZE, "size")                                                                                \
    X(ALIGNMENT, "alignment")                                                                      \
    X(OFFSET, "offset")                                                                            \
    X(HINT, "hint")                                                                                \
    X(REGION, "region")                                                                            \
    X(GAPS, "gaps")

enum column {
#define COLUMN_ENUM(column, name) COLUMN_##column,
    COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
        COLUMN_COUNT
};

static const char *const column_names[] = {
#define COLUMN_NAME(column, name) name,
    COLUMNS(COLUMN_NAME)
#undef COLUMN_NAME
};

static const struct {
    const char *word;
    enum column column;
} aliases[] = {{"buffer", COLUMN_ID},   {"buffer_id", COLUMN_ID}, {"start", COLUMN_LOWER},
               {"begin", COLUMN_LOWER}, {"end", COLUMN_UPPER},    {"align", COLUMN_ALIGNMENT}};

#define FIELDS_MAX 32

struct header {
    size_t n;
    enum column columns[FIELDS_MAX];
    int64_t upper_added; /* an `end` is part of the lifetime */
};

static bool find_column(struct blyi_slice word, enum column *column)
{
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        if (blyi_slice_is(word, column_names[c])) {
            *column = (enum column)c;
            return true;
        }
    }
    for (size_t a = 0; a < BLYI_COUNT(aliases); a++) {
        if (blyi_slice_is(word, aliases[a].word)) {
            *column = aliases[a].column;
            return true;
        }
    }
    return false;
}

static bly_status read_header(const struct blyi_text *text, struct blyi_slice line,
                              struct header *h)
{
    char show[48];
    bool seen[COLUMN_COUNT] = {false};
    struct blyi_slice word;
    h->n = 0;
    h->upper_added = 0;
    while (blyi_slice_field(&line, ',', &word)) {
        enum column column;
        if (h->n == FIELDS_MAX || !find_column(word, &column))
            return blyi_fail(BLY_E_PARSE, "%s:%zu: unknown column \"%s\"", text->name, text->line,
                             blyi_slice_show(word, show));
        if (seen[column])
            return blyi_fail(BLY_E_PARSE, "%s:%zu: column \"%s\" stands twice", text->name,
                             text->line, column_names[column]);
        seen[column] = true;
        if (column == COLUMN_UPPER && blyi_slice_is(word, "end"))
            h->upper_added = 1;
        h->columns[h->n++] = column;
    }
    for (size_t c = COLUMN_ID; c <= COLUMN_SIZE; c++) {
        if (!seen[c])
            return blyi_fail(BLY_E_PARSE, "%s:%zu: column \"%s\" is missing", text->name,
                             text->line, column_names[c]);
    }
    return BLY_OK;
}

static bly_status bad_field(const struct blyi_text *text, const char *column,
                            struct blyi_slice field, const char *what)
{
    char show[48];
    return blyi_fail(BLY_E_PARSE, "%s:%zu: %s \"%s\" %s", text->name, text->line, column,
                     blyi_slice_show(field, show), what);
}

/* lower-upper or lower-upper@keep_lower:keep_upper; lower and upper may be negative. */
static bool parse_gap(struct blyi_slice text, int64_t upper_added, bly_plan_gap *gap)
{
    struct blyi_slice span, keep = text, part;
    int64_t keep_lower = 0, keep_upper = 0;
    if (!blyi_slice_field(&keep, '@', &span))
        return false;
    if (keep.at != NULL) {
        if (!blyi_slice_field(&keep, ':', &part) || !blyi_slice_int(part, &keep_lower) ||
            !blyi_slice_int(keep, &keep_upper) || keep_lower < 0 || keep_upper < keep_lower)
            return false;
    }
    size_t dash = 1; /* a minus at the start belongs to the number */
    while (dash < span.length && span.at[dash] != '-')
        dash++;
    if (dash >= span.length)
        return false;
    struct blyi_slice lower = {span.at, dash};
    struct blyi_slice upper = {span.at + dash + 1, span.length - dash - 1};
    if (!blyi_slice_int(lower, &gap->lower) || !blyi_slice_int(upper, &gap->upper) ||
        gap->upper > INT64_MAX - upper_added)
        return false;
    gap->upper += upper_added;
    gap->keep_lower = (uint64_t)keep_lower;
    gap->keep_upper = (uint64_t)keep_upper;
    return true;
}

static bly_status parse_gaps(struct blyi_reader *r, const struct blyi_text *text,
                             struct blyi_slice field, int64_t upper_added, bly_plan_buffer *b)
{
    struct blyi_slice word, all = field;
    while (blyi_slice_field(&field, ' ', &word)) {
        bly_plan_gap gap;
        if (word.length == 0)
            continue;
        if (!parse_gap(word, upper_added, &gap))
            return bad_field(text, "gaps", all, "is not lower-upper[@keep_lower:keep_upper] ...");
        bly_status status = blyi_reader_add_gap(r, &gap);
        if (status != BLY_OK)
            return status;
        b->n_gaps++;
    }
    return BLY_OK;
}

static bly_status parse_number(const struct blyi_text *text, enum column column,
                               struct blyi_slice field, int64_t *value)
{
    bool optional = column > COLUMN_SIZE;
    if (optional && field.length == 0)
        *value = BLY_PLAN_FREE;
    else if (!blyi_slice_int(field, value))
        return bad_field(text, column_names[column], field, "is not an integer of 64 bits");
    if (column == COLUMN_SIZE && *value <= 0)
        return bad_field(text, column_names[column], field, "is not above 0");
    if (optional && *value < BLY_PLAN_FREE)
        return bad_field(text, column_names[column], field, "is below 0");
    if (column == COLUMN_REGION && *value > INT32_MAX)
        return bad_field(text, column_names[column], field, "is above 2147483647");
    return BLY_OK;
}

static bly_status read_row(struct blyi_reader *r, const struct blyi_text *text,
                           struct blyi_slice line, const struct header *h)
{
    bly_plan_buffer b = bly_plan_buffer_make(0, 0, 0);
    struct blyi_slice id = {NULL, 0}, field, rest = line;
    size_t n = 0;
    for (; n < h->n && blyi_slice_field(&rest, ',', &field); n++) {
        enum column column = h->columns[n];
        int64_t value = 0;
        bly_status status;
        if (column == COLUMN_ID) {
            id = field;
            continue;
        }
        if (column == COLUMN_GAPS)
            status = parse_gaps(r, text, field, h->upper_added, &b);
        else
            status = parse_number(text, column, field, &value);
        if (status != BLY_OK)
            return status;
        switch (column) {
        case COLUMN_LOWER:
            b.lower = value;
            break;
        case COLUMN_UPPER:
            if (value > INT64_MAX - h->upper_added)
                return bad_field(text, "end", field, "leaves no time behind it");
            b.upper = value + h->upper_added;
            break;
        case COLUMN_SIZE:
            b.size = (uint64_t)value;
            break;
        case COLUMN_ALIGNMENT:
            b.align = value > 0 ? (uint64_t)value : 0;
            break;
        case COLUMN_OFFSET:
            b.offset = value;
            break;
        case COLUMN_HINT:
            b.hint = value;
            break;
        case COLUMN_REGION:
            b.region = (int32_t)value;
            break;
        default:
            break;
        }
    }
    if (n < h->n || rest.at != NULL)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: %s fields than the %zu columns", text->name,
                         text->line, n < h->n ? "fewer" : "more", h->n);
    if (b.upper <= b.lower)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: lifetime [%lld, %lld) is empty", text->name,
                         text->line, (long long)b.lower, (long long)b.upper);
    return blyi_reader_add(r, &b, id);
}

static bly_status read_csv(struct blyi_reader *r, struct blyi_text *text, struct blyi_slice line)
{
    struct header header;
    bly_status status = read_header(text, line, &header);
    while (status == BLY_OK && blyi_text_line(text, &line))
        status = read_row(r, text, line, &header);
    return status;
}

bly_status bly_plan_parse(const char *text, size_t length, const char *name, bly_plan_input *input)
{
    struct blyi_text cursor = {name, text, text + length, 0};
    struct blyi_slice line;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        cursor.at += 3;
    if (!blyi_text_line(&cursor, &line))
        return blyi_fail(BLY_E_PARSE, "%s: no header line", name);
    struct blyi_reader reader;
    memset(&reader, 0, sizeof(reader));
    bool is_trace = memchr(line.at, '\t', line.length) != NULL;
    bly_status status =
        is_trace ? blyi_read_trace(&reader, &cursor, line) : read_csv(&reader, &cursor, line);
    return blyi_reader_finish(&reader, status, is_trace, input);
}
