/* SPDX-License-Identifier: Apache-2.0
 *
 * file_input.c - maps a file, unpacks it where it is compressed.
 */
#include "file_input.h"

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

static bool is_zstd(const struct file_input *file)
{
    static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    return file->length >= sizeof(magic) && memcmp(file->at, magic, sizeof(magic)) == 0;
}

/* Frames without a size in front are unpacked into a buffer that grows. */
static bool unpack(const char *path, const struct file_input *file, struct file_input *text)
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
    *text = (struct file_input){out.dst, out.pos, false};
    return true;
}

/* Maps the file; it is not empty and not too large. */
static bool map_file(const char *path, int fd, struct file_input *file)
{
    struct stat about;
    if (fstat(fd, &about) != 0) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        say("%s: %s", path, S_ISREG(about.st_mode) ? "empty" : "not a regular file");
        return false;
    }
    if ((uint64_t)about.st_size > TEXT_MAX) {
        say("%s: %llu bytes; at most %llu can be read", path, (unsigned long long)about.st_size,
            (unsigned long long)TEXT_MAX);
        return false;
    }
    void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    *file = (struct file_input){map, (size_t)about.st_size, true};
    return true;
}

bool file_input_read(const char *path, struct file_input *file)
{
    struct file_input mapped;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    bool ok = map_file(path, fd, &mapped);
    close(fd);
    if (!ok || !is_zstd(&mapped)) {
        if (ok)
            *file = mapped;
        return ok;
    }
    ok = unpack(path, &mapped, file);
    file_input_release(&mapped);
    return ok;
}

void file_input_release(struct file_input *file)
{
    if (file->is_mapped)
        munmap(file->at, file->length);
    else
        free(file->at);
    *file = (struct file_input){0};
}
