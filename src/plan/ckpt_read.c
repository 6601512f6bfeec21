/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_read.c - chains from CSV. The format is in checkpoint.h.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/ckpt_model.h"
#include "plan/ckpt_text.h"

#define FILE_MAX ((size_t)4 << 20) /* a hundred times the longest chain that makes sense */

/* X(name, is needed) */
#define COLUMNS(X)                                                                                 \
    X(stage, 0)                                                                                    \
    X(name, 0)                                                                                     \
    X(fwd_us, 1)                                                                                   \
    X(bwd_us, 1)                                                                                   \
    X(out, 1)                                                                                      \
    X(saved, 1)                                                                                    \
    X(grad, 1)                                                                                     \
    X(fwd_tmp, 1)                                                                                  \
    X(bwd_tmp, 1)

enum column {
#define COLUMN_ENUM(name, needed) COLUMN_##name,
    COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
        N_COLUMNS
};

static const struct {
    const char *name;
    bool needed;
} columns[N_COLUMNS] = {
#define COLUMN_ROW(name, needed) {#name, needed},
    COLUMNS(COLUMN_ROW)
#undef COLUMN_ROW
};

struct reader {
    const char *name;
    struct blyi_ckpt_text rest; /* what was not read yet */
    size_t line;                /* number of the line being read */
    bool has_header;
    size_t n_fields;
    enum column order[N_COLUMNS]; /* column of each field */
    uint64_t unit, input_units, sum;
    bly_chain chain;
};

/* ── Comments: unit_bytes=N input_units=N ─────────────────────────────────────────────────── */

static bly_status read_setting(struct reader *reader, struct blyi_ckpt_text word, const char *key,
                               uint64_t *value)
{
    size_t length = strlen(key);
    if (word.length <= length || memcmp(word.at, key, length) != 0 || word.at[length] != '=')
        return BLY_OK;
    struct blyi_ckpt_text number = {word.at + length + 1, word.length - length - 1};
    if (!blyi_ckpt_text_uint(number, value))
        return blyi_fail(BLY_E_PARSE, "%s:%zu: %s is \"%.*s\", not a whole number below 2^64",
                         reader->name, reader->line, key, blyi_ckpt_text_brief(number), number.at);
    if (reader->has_header && reader->chain.n > 0)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: %s comes after the first stage", reader->name,
                         reader->line, key);
    return BLY_OK;
}

static bly_status read_comment(struct reader *reader, struct blyi_ckpt_text line)
{
    struct blyi_ckpt_text word;
    while (blyi_ckpt_text_word(&line, &word)) {
        bly_status status = read_setting(reader, word, "unit_bytes", &reader->unit);
        if (status == BLY_OK)
            status = read_setting(reader, word, "input_units", &reader->input_units);
        if (status != BLY_OK)
            return status;
    }
    if (reader->unit == 0 || reader->unit > BLY_CHAIN_SIZE_MAX ||
        reader->input_units > BLY_CHAIN_SIZE_MAX / reader->unit)
        return blyi_fail(BLY_E_PARSE,
                         "%s:%zu: an input of %" PRIu64 " units of %" PRIu64
                         " B; a unit has at least 1 B, and the input at most %" PRIu64 " B",
                         reader->name, reader->line, reader->input_units, reader->unit,
                         BLY_CHAIN_SIZE_MAX);
    return BLY_OK;
}

/* ── The header line ──────────────────────────────────────────────────────────────────────── */

static bly_status read_column(struct reader *reader, struct blyi_ckpt_text field, bool *seen)
{
    for (int column = 0; column < N_COLUMNS; column++) {
        if (!blyi_ckpt_text_equal(field, columns[column].name))
            continue;
        if (seen[column])
            return blyi_fail(BLY_E_PARSE, "%s:%zu: the column %s is there twice", reader->name,
                             reader->line, columns[column].name);
        seen[column] = true;
        reader->order[reader->n_fields++] = (enum column)column;
        return BLY_OK;
    }
    return blyi_fail(BLY_E_PARSE,
                     "%s:%zu: unknown column \"%.*s\"; known are stage, name, fwd_us, bwd_us, out, "
                     "saved, grad, fwd_tmp, bwd_tmp",
                     reader->name, reader->line, blyi_ckpt_text_brief(field), field.at);
}

static bly_status read_header(struct reader *reader, struct blyi_ckpt_text line)
{
    bool seen[N_COLUMNS] = {false}, more = true;
    while (more) {
        struct blyi_ckpt_text field;
        more = blyi_ckpt_text_field(&line, &field);
        bly_status status = read_column(reader, field, seen);
        if (status != BLY_OK)
            return status;
    }
    for (int column = 0; column < N_COLUMNS; column++)
        if (columns[column].needed && !seen[column])
            return blyi_fail(BLY_E_PARSE, "%s:%zu: the column %s is missing", reader->name,
                             reader->line, columns[column].name);
    reader->has_header = true;
    return BLY_OK;
}

/* ── Stages ───────────────────────────────────────────────────────────────────────────────── */

static bly_status read_size(struct reader *reader, enum column column, struct blyi_ckpt_text field,
                            uint64_t *bytes)
{
    uint64_t units = 0;
    if (!blyi_ckpt_text_uint(field, &units))
        return blyi_fail(BLY_E_PARSE, "%s:%zu: %s is \"%.*s\", not a whole number below 2^64",
                         reader->name, reader->line, columns[column].name,
                         blyi_ckpt_text_brief(field), field.at);
    if (units > (BLY_CHAIN_SIZE_MAX - reader->sum) / reader->unit)
        return blyi_fail(BLY_E_PARSE,
                         "%s:%zu: with %s, %" PRIu64 " units of %" PRIu64
                         " B, the sizes sum to more than %" PRIu64 " B",
                         reader->name, reader->line, columns[column].name, units, reader->unit,
                         BLY_CHAIN_SIZE_MAX);
    *bytes = units * reader->unit;
    reader->sum += *bytes;
    return BLY_OK;
}

static bly_status read_time(struct reader *reader, enum column column, struct blyi_ckpt_text field,
                            uint64_t *ns)
{
    if (!blyi_ckpt_text_thousandths(field, ns) || *ns > BLY_CHAIN_TIME_MAX)
        return blyi_fail(BLY_E_PARSE,
                         "%s:%zu: %s is \"%.*s\", not microseconds: digits, up to three of them "
                         "behind a point, at most %" PRIu64,
                         reader->name, reader->line, columns[column].name,
                         blyi_ckpt_text_brief(field), field.at, BLY_CHAIN_TIME_MAX / 1000);
    return BLY_OK;
}

static bly_status read_number(struct reader *reader, struct blyi_ckpt_text field)
{
    uint64_t number = 0;
    if (blyi_ckpt_text_uint(field, &number) && number == reader->chain.n + 1)
        return BLY_OK;
    return blyi_fail(BLY_E_PARSE, "%s:%zu: stage is \"%.*s\"; stage %zu comes next", reader->name,
                     reader->line, blyi_ckpt_text_brief(field), field.at, reader->chain.n + 1);
}

static bly_status read_name(struct reader *reader, struct blyi_ckpt_text field, char **name)
{
    if (!blyi_ckpt_text_is_printable(field))
        return blyi_fail(BLY_E_PARSE, "%s:%zu: the name has a control character", reader->name,
                         reader->line);
    *name = blyi_host_alloc(field.length + 1);
    if (*name == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a name of %zu bytes", field.length);
    memcpy(*name, field.at, field.length);
    (*name)[field.length] = '\0';
    return BLY_OK;
}

static bly_status read_field(struct reader *reader, enum column column, struct blyi_ckpt_text field,
                             bly_chain_stage *stage)
{
    switch (column) {
    case COLUMN_stage:
        return read_number(reader, field);
    case COLUMN_name:
        return read_name(reader, field, &stage->name);
    case COLUMN_fwd_us:
        return read_time(reader, column, field, &stage->forward_ns);
    case COLUMN_bwd_us:
        return read_time(reader, column, field, &stage->backward_ns);
    case COLUMN_out:
        return read_size(reader, column, field, &stage->output);
    case COLUMN_saved:
        return read_size(reader, column, field, &stage->saved);
    case COLUMN_grad:
        return read_size(reader, column, field, &stage->gradient);
    case COLUMN_fwd_tmp:
        return read_size(reader, column, field, &stage->forward_temp);
    case COLUMN_bwd_tmp:
        return read_size(reader, column, field, &stage->backward_temp);
    case N_COLUMNS:
        break;
    }
    return BLY_OK;
}

static bly_status read_fields(struct reader *reader, struct blyi_ckpt_text line,
                              bly_chain_stage *stage)
{
    size_t n_fields = blyi_ckpt_text_count_fields(line);
    if (n_fields != reader->n_fields)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: %zu fields; the header has %zu", reader->name,
                         reader->line, n_fields, reader->n_fields);
    for (size_t i = 0; i < n_fields; i++) {
        struct blyi_ckpt_text field;
        blyi_ckpt_text_field(&line, &field);
        bly_status status = read_field(reader, reader->order[i], field, stage);
        if (status != BLY_OK)
            return status;
    }
    if (stage->saved < stage->output)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: saved is less than out, which is part of it",
                         reader->name, reader->line);
    return BLY_OK;
}

static bly_status read_stage(struct reader *reader, struct blyi_ckpt_text line)
{
    if (reader->chain.n == BLY_CHAIN_STAGES_MAX)
        return blyi_fail(BLY_E_PARSE, "%s:%zu: more than %d stages", reader->name, reader->line,
                         BLY_CHAIN_STAGES_MAX);
    bly_chain_stage stage = {0};
    bly_status status = read_fields(reader, line, &stage);
    if (status != BLY_OK) {
        blyi_host_free(stage.name);
        return status;
    }
    reader->chain.stages[reader->chain.n++] = stage;
    return BLY_OK;
}

static bly_status read_lines(struct reader *reader)
{
    struct blyi_ckpt_text line;
    bly_status status = BLY_OK;
    while (status == BLY_OK && blyi_ckpt_text_line(&reader->rest, &line)) {
        reader->line++;
        if (line.length > 0 && line.at[0] == '#')
            status = read_comment(reader, line);
        else if (!blyi_ckpt_text_is_blank(line))
            status = reader->has_header ? read_stage(reader, line) : read_header(reader, line);
    }
    if (status == BLY_OK && reader->chain.n == 0)
        status = blyi_fail(BLY_E_PARSE, "%s: no %s", reader->name,
                           reader->has_header ? "stages follow the header line" : "header line");
    return status;
}

bly_status bly_chain_parse(const char *text, size_t length, const char *name, bly_chain *chain)
{
    size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* of UTF-8 */
    struct reader reader = {.name = name, .rest = {text + mark, length - mark}, .unit = 1};
    reader.chain.stages = blyi_host_calloc(BLY_CHAIN_STAGES_MAX, sizeof(*reader.chain.stages));
    if (reader.chain.stages == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for a chain", name);
    bly_status status = read_lines(&reader);
    reader.chain.unit = reader.unit;
    reader.chain.input = reader.input_units * reader.unit;
    if (status == BLY_OK)
        status = blyi_ckpt_chain_check(&reader.chain); /* the input counts in the sum, too */
    if (status == BLY_OK)
        *chain = reader.chain;
    else
        bly_chain_release(&reader.chain);
    return status;
}

bly_status bly_chain_read(const char *path, bly_chain *chain)
{
    char *text = NULL;
    size_t length = 0;
    bly_status status = blyi_ckpt_text_read(path, FILE_MAX, &text, &length);
    if (status != BLY_OK)
        return status;
    status = bly_chain_parse(text, length, path, chain);
    blyi_host_free(text);
    return status;
}

void bly_chain_release(bly_chain *chain)
{
    for (size_t i = 0; i < chain->n; i++)
        blyi_host_free(chain->stages[i].name);
    blyi_host_free(chain->stages);
    *chain = (bly_chain){0};
}
