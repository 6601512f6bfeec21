/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the built-in models and the reader of model files.
 *
 * Where the figures are from: memory, core counts and caches of the platform descriptions that
 * are quoted in public (Ascend910A, Ascend910B3, Ascend310P3); streams, events and notifies of
 * the public limits table. Ours, since none is public: the split of `reserve` and `overhead`.
 */
#include "npu/model.h"
#include "npu/frame.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 512
#define FILE_LINES 1024 /* at most; the rest of a file is not a model */
#define SHOWN_TEXT 128

/* 60.97 GiB in whole frames. */
#define SEEN_910B (31216 * BLYI_FRAME_SIZE)

static const struct blyi_model builtin[] = {
    {.name = "910B",
     .soc = "Ascend910B3",
     .memory = 64 * GiB,
     .reserve = 64 * GiB - SEEN_910B,
     .overhead = 16 * MiB,
     .giant_pages = 1,
     .streams = 1984,
     .events = 65536,
     .notifies = 8192,
     .aicore = 20,
     .vector_core = 40,
     .aicpu = 6,
     .l2 = 192 * MiB,
     .snapshots = 1},
    {.name = "910",
     .soc = "Ascend910A",
     .memory = 32 * GiB,
     .reserve = 1 * GiB,
     .overhead = 16 * MiB,
     .giant_pages = 0,
     .streams = 2048,
     .events = 65535,
     .notifies = 1024,
     .aicore = 32,
     .vector_core = 0,
     .aicpu = 14,
     .l2 = 32 * MiB},
    {.name = "310P",
     .soc = "Ascend310P3",
     .memory = 24 * GiB,
     .reserve = 2 * GiB,
     .overhead = 16 * MiB,
     .giant_pages = 0,
     .streams = 1024,
     .events = 1023,
     .notifies = 1024,
     .aicore = 8,
     .vector_core = 7,
     .aicpu = 4,
     .l2 = 16 * MiB},
};

const struct blyi_model *blyi_model_builtin(int index)
{
    return index >= 0 && (size_t)index < BLYI_COUNT(builtin) ? &builtin[index] : NULL;
}

static const struct blyi_model *find_builtin(const char *name)
{
    for (size_t i = 0; i < BLYI_COUNT(builtin); i++)
        if (strcmp(builtin[i].name, name) == 0)
            return &builtin[i];
    return NULL;
}

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* What a file says, for a sentence: cut off, and without what would upset a terminal. */
static const char *shown(const char *text, char buf[SHOWN_TEXT])
{
    size_t n = 0;
    for (; *text != '\0' && n + sizeof "\\x00..." < SHOWN_TEXT; text++)
        n += (size_t)snprintf(buf + n, SHOWN_TEXT - n, is_printable(*text) ? "%c" : "\\x%02x",
                              (unsigned char)*text);
    snprintf(buf + n, SHOWN_TEXT - n, "%s", *text != '\0' ? "..." : "");
    return buf;
}

static bool read_text(const char *value, char out[32])
{
    size_t length = strlen(value);
    if (length == 0 || length > 31)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_printable(value[i]))
            return false;
    memcpy(out, value, length + 1);
    return true;
}

static bool read_size(const char *value, uint64_t *out)
{
    return blyi_size_parse(value, out) == BLY_OK;
}

static bool read_uint(const char *value, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0)
        return false;
    *out = number;
    return true;
}

enum field_result { FIELD_OK, FIELD_BAD, FIELD_UNKNOWN };

static enum field_result set_field(struct blyi_model *model, const char *key, const char *value)
{
#define READ_TEXT(field) read_text(value, model->field)
#define READ_SIZE(field) read_size(value, &model->field)
#define READ_UINT(field) read_uint(value, &model->field)
#define SET_FIELD(field, type, help)                                                               \
    if (strcmp(key, #field) == 0)                                                                  \
        return READ_##type(field) ? FIELD_OK : FIELD_BAD;
    BLYI_MODEL_FIELDS(SET_FIELD)
#undef SET_FIELD
#undef READ_TEXT
#undef READ_SIZE
#undef READ_UINT
    return FIELD_UNKNOWN;
}

/* Splits "key value # comment" in place. False for a line without content. */
static bool split_line(char *line, char **key, char **value)
{
    line[strcspn(line, "#\r\n")] = '\0';
    *key = line + strspn(line, " \t");
    if (**key == '\0')
        return false;
    char *end = *key + strcspn(*key, " \t=");
    *value = end + strspn(end, " \t=");
    *end = '\0';
    for (char *last = *value + strlen(*value); last > *value && strchr(" \t", last[-1]);)
        *--last = '\0';
    return true;
}

static bly_status read_line(const char *path, int number, char *line, struct blyi_model *model)
{
    char *key, *value, a[SHOWN_TEXT], b[SHOWN_TEXT];
    if (!split_line(line, &key, &value))
        return BLY_OK;
    if (strcmp(key, "base") == 0) {
        const struct blyi_model *base = find_builtin(value);
        if (!base)
            return blyi_fail(BLY_E_PARSE, "%s:%d: no built-in model '%s'", path, number,
                             shown(value, a));
        *model = *base;
        return BLY_OK;
    }
    switch (set_field(model, key, value)) {
    case FIELD_OK:
        return BLY_OK;
    case FIELD_BAD:
        return blyi_fail(BLY_E_PARSE, "%s:%d: '%s' is no value for %s", path, number,
                         shown(value, a), shown(key, b));
    case FIELD_UNKNOWN:
        break;
    }
    return blyi_fail(BLY_E_PARSE, "%s:%d: no field '%s'", path, number, shown(key, a));
}

static bly_status check(const char *what, const struct blyi_model *model)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    if (model->name[0] == '\0' || model->soc[0] == '\0')
        return blyi_fail(BLY_E_INVALID, "model %s: name and soc are needed", what);
    if (model->memory > (uint64_t)1 << 44)
        return blyi_fail(BLY_E_INVALID, "model %s: memory %s is above 16 TiB", what,
                         blyi_size_text(model->memory, a));
    if (model->reserve > model->memory ||
        model->memory - model->reserve < model->overhead + BLYI_FRAME_SIZE)
        return blyi_fail(BLY_E_INVALID,
                         "model %s: memory %s leaves no frame of 2 MiB beside reserve %s and "
                         "overhead %" PRIu64 " B",
                         what, blyi_size_text(model->memory, a), blyi_size_text(model->reserve, b),
                         model->overhead);
    if (model->giant_pages > 1)
        return blyi_fail(BLY_E_INVALID, "model %s: giant_pages %" PRIu64 " is neither 0 nor 1",
                         what, model->giant_pages);
    if (model->streams == 0 || model->streams > 1u << 19 || model->events > 1u << 19)
        return blyi_fail(BLY_E_INVALID,
                         "model %s: streams %" PRIu64 " or events %" PRIu64 " outside 1 .. 524288",
                         what, model->streams, model->events);
    return BLY_OK;
}

/* Never waits for somebody to write: a pipe is refused. NULL with a sentence. */
static FILE *open_file(const char *what)
{
    struct stat info;
    FILE *file = NULL;
    int fd = blyi_sys_open(what, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) {
        char text[SHOWN_TEXT];
        blyi_fail(BLY_E_IO, "model '%s' is not built in (910B, 910, 310P), nor a file: %s",
                  shown(what, text), strerror(errno));
        return NULL;
    }
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode))
        blyi_fail(BLY_E_IO, "model '%s' is not built in, and no regular file", what);
    else if ((file = fdopen(fd, "r")) == NULL)
        blyi_fail(BLY_E_IO, "model file '%s' cannot be read: %s", what, strerror(errno));
    if (file == NULL)
        close(fd);
    return file;
}

bly_status blyi_model_load(const char *what, struct blyi_model *out)
{
    const struct blyi_model *known = find_builtin(what);
    if (known) {
        *out = *known;
        return BLY_OK;
    }
    FILE *file = open_file(what);
    if (!file)
        return BLY_E_IO;
    struct blyi_model model = {0};
    char line[LINE_BYTES];
    bly_status status = BLY_OK;
    for (int number = 1; status == BLY_OK && fgets(line, sizeof line, file); number++) {
        if (number > FILE_LINES)
            status =
                blyi_fail(BLY_E_PARSE, "model file '%s' is longer than %d lines", what, FILE_LINES);
        else if (!strchr(line, '\n') && !feof(file))
            status = blyi_fail(BLY_E_PARSE, "%s:%d: longer than %d characters", what, number,
                               LINE_BYTES - 2);
        else
            status = read_line(what, number, line, &model);
    }
    if (status == BLY_OK && ferror(file))
        status = blyi_fail(BLY_E_IO, "model file '%s' cannot be read: %s", what, strerror(errno));
    fclose(file);
    if (status == BLY_OK)
        status = check(what, &model);
    if (status == BLY_OK)
        *out = model;
    return status;
}
