/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_input.c - maps a file, unpacks it where it is compressed, parses the text.
 */
#include "plan_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "command.h"

#define TEXT_MAX ((uint64_t)4 << 30) /* of text: some hundred million buffers */

struct text {
    char *at;
    size_t length;
};

static bool is_zstd(const struct text *file)
{
    static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    return file->length >= sizeof(magic) && memcmp(file->at, magic, sizeof(magic)) == 0;
}

/* Frames without a size in front are unpacked into a buffer that grows. */
static bool unpack(const char *path, const struct text *file, struct text *text)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {file->at, file->length, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    size_t left = 1;
    while (stream != NULL && in.pos < in.size) {
        if (out.pos == out.size) {
            size_t room = out.size * 2 + ((size_t)1 << 20);
            char *bigger = room > TEXT_MAX ? NULL : realloc(out.dst, room);
            if (bigger == NULL)
                break;
            out.dst = bigger;
            out.size = room;
        }
        left = ZSTD_decompressStream(stream, &out, &in);
        if (ZSTD_isError(left))
            break;
    }
    bool whole = stream != NULL && !ZSTD_isError(left) && left == 0 && in.pos == in.size;
    if (!whole)
        say("%s: %s", path,
            ZSTD_isError(left) ? ZSTD_getErrorName(left)
            : in.pos < in.size ? "too large when unpacked"
                               : "the compressed data ends early");
    ZSTD_freeDStream(stream);
    if (!whole) {
        free(out.dst);
        return false;
    }
    *text = (struct text){out.dst, out.pos};
    return true;
}

static bool parse(const char *path, const struct text *file, bly_plan_input *input)
{
    struct text text = *file;
    bool packed = is_zstd(file);
    if (packed && !unpack(path, file, &text))
        return false;
    bly_status status = bly_plan_parse(text.at, text.length, path, input);
    if (packed)
        free(text.at);
    if (status != BLY_OK)
        say("%s", bly_last_error());
    return status == BLY_OK;
}

bool plan_input_read(const char *path, bly_plan_input *input)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) {
        say("%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool ok = false;
    if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        say("%s: %s", path, S_ISREG(about.st_mode) ? "empty" : "not a regular file");
    } else if ((uint64_t)about.st_size > TEXT_MAX) {
        say("%s: %llu bytes; at most %llu can be read", path, (unsigned long long)about.st_size,
            (unsigned long long)TEXT_MAX);
    } else {
        struct text file = {NULL, (size_t)about.st_size};
        void *map = mmap(NULL, file.length, PROT_READ, MAP_PRIVATE, fd, 0);
        file.at = map;
        if (map == MAP_FAILED)
            say("%s: %s", path, strerror(errno));
        else
            ok = parse(path, &file, input);
        if (map != MAP_FAILED)
            munmap(map, file.length);
    }
    close(fd);
    return ok;
}
