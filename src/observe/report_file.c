/* SPDX-License-Identifier: Apache-2.0
 *
 * report_file.c - what stands in a file of reports: begun, sections added, one object of several.
 */
#include "observe/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/report_disk.h"
#include "observe/report_page.h"
#include "observe/unfinished.h"

#define CHILDREN_KEY ",\n  \"children\": [\n"
#define CHILDREN_END "\n  ]\n}\n"
#define PARTS_MAX    7 /* of an object with children */

static pid_t self_of(const struct blyi_report_file *file)
{
    return file->self != 0 ? file->self : getpid();
}

/* ---- beginning ---- */

static struct blyi_slice slice_of(const char *text)
{
    return (struct blyi_slice){text, strlen(text)};
}

static bly_status open_disk(const struct blyi_report_file *file, struct blyi_report_disk *disk)
{
    return blyi_report_disk_open(file->path, self_of(file), file->shared, disk);
}

/* Makes slices of an object the whole file. */
static bly_status put_object(struct blyi_report_disk *disk, const struct blyi_report_file *file,
                             const struct blyi_slice *slices, size_t n)
{
    struct blyi_slice all[PARTS_MAX + 2];
    if (file->form != BLYI_REPORT_PAGE)
        return blyi_report_disk_replace(disk, slices, n);
    all[0] = blyi_report_page_head();
    memcpy(all + 1, slices, n * sizeof(*slices));
    all[n + 1] = blyi_report_page_tail();
    return blyi_report_disk_replace(disk, all, n + 2);
}

/* The object that a file holds. */
static struct blyi_slice object_of(const struct blyi_report_file *file, struct blyi_slice whole)
{
    return file->form == BLYI_REPORT_PAGE ? blyi_report_page_object(whole) : whole;
}

/* As it can stand in the file: `object` itself, or a copy for put_back(). Text NULL: no memory. */
static struct blyi_slice quoted(const struct blyi_report_file *file, struct blyi_slice object)
{
    return file->form == BLYI_REPORT_PAGE ? blyi_report_page_quote(object) : object;
}

static void put_back(struct blyi_slice copy, struct blyi_slice object)
{
    if (copy.text != object.text)
        blyi_host_free((char *)(uintptr_t)copy.text);
}

static bly_status make_unfinished(struct blyi_report_disk *disk,
                                  const struct blyi_report_file *file, enum blyi_unfinished kind)
{
    bool is_text = file->form == BLYI_REPORT_TEXT;
    char *text = is_text ? NULL : blyi_unfinished_text(kind);
    struct blyi_slice object = slice_of(text ? text : ""), whole = quoted(file, object);
    bly_status status;
    if ((!is_text && text == NULL) || whole.text == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to begin the report %s", file->path);
    else if (!blyi_report_disk_turn(disk))
        status = blyi_fail(BLY_E_TIMEOUT, "another process keeps the report %s", file->path);
    else
        status = put_object(disk, file, &whole, 1);
    put_back(whole, object);
    free(text);
    return status;
}

/* True: nobody's section is there; *kind tells what is. */
static bool is_without_sections(const struct blyi_report_file *file, const char *path,
                                enum blyi_unfinished *kind)
{
    char head[BLYI_UNFINISHED_HEAD];
    off_t at = file->form == BLYI_REPORT_PAGE ? (off_t)blyi_report_page_head().length : 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), at);
    if (fd >= 0)
        close(fd);
    *kind = n > 0 ? blyi_unfinished_kind(head, (size_t)n) : BLYI_UNFINISHED_NOT;
    return n == 0 || *kind != BLYI_UNFINISHED_NOT;
}

bly_status blyi_report_file_new(const struct blyi_report_file *file)
{
    struct blyi_report_disk disk;
    if (file->to_stderr || !file->shared)
        return BLY_OK;
    bly_status status = open_disk(file, &disk);
    if (status != BLY_OK)
        return status;
    if (disk.is_regular)
        status = make_unfinished(&disk, file, BLYI_UNFINISHED_WAITING);
    blyi_report_disk_close(&disk);
    return status;
}

static bly_status begin_shared(struct blyi_report_disk *disk, struct blyi_report_file *file,
                               bool append)
{
    enum blyi_unfinished kind;
    bly_status status = BLY_OK;
    if (blyi_report_disk_watch(disk) && (!append || is_without_sections(file, disk->path, &kind))) {
        file->first = getpid();
        status = make_unfinished(disk, file, BLYI_UNFINISHED_RUNNING);
    }
    blyi_report_disk_keep(disk);
    return status;
}

bly_status blyi_report_file_begin(struct blyi_report_file *file, bool append)
{
    struct blyi_report_disk disk;
    if (file->to_stderr || (!file->shared && file->form == BLYI_REPORT_TEXT))
        return BLY_OK;
    bly_status status = open_disk(file, &disk);
    if (status != BLY_OK)
        return status;
    if (disk.is_regular && file->shared)
        return begin_shared(&disk, file, append);
    if (disk.is_regular) /* a device or pipe takes what comes */
        status = make_unfinished(&disk, file, BLYI_UNFINISHED_RUNNING);
    blyi_report_disk_close(&disk);
    return status;
}

bool blyi_report_file_is_unused(const struct blyi_report_file *file)
{
    enum blyi_unfinished kind;
    if (file->to_stderr || !file->shared)
        return true;
    struct stat status;
    if (stat(file->path, &status) != 0)
        return errno == ENOENT;
    return S_ISREG(status.st_mode) && is_without_sections(file, file->path, &kind) &&
           kind != BLYI_UNFINISHED_RUNNING;
}

/* ---- JSON: one object, others in its list of children ---- */

/* The object without its last brace, so that a key can follow: "\n}\n" is cut off. */
static struct blyi_slice open_object(struct blyi_slice object)
{
    while (object.length > 0 && object.text[object.length - 1] != '}')
        object.length--;
    if (object.length >= 2)
        object.length -= 2;
    return object;
}

static struct blyi_slice whole_object(struct blyi_slice object)
{
    while (object.length > 0 && object.text[object.length - 1] != '}')
        object.length--;
    return object;
}

/* Takes a file of ours apart. Strings hold no newline, so the key can stand nowhere else. */
static void split_file(struct blyi_slice file, struct blyi_slice *head, struct blyi_slice *children)
{
    size_t key = strlen(CHILDREN_KEY), end = strlen(CHILDREN_END);
    const char *at = memmem(file.text, file.length, CHILDREN_KEY, key);
    *children = (struct blyi_slice){"", 0};
    if (at == NULL) {
        *head = open_object(file);
        return;
    }
    *head = (struct blyi_slice){file.text, (size_t)(at - file.text)};
    size_t rest = file.length - head->length - key;
    if (rest > end)
        *children = (struct blyi_slice){at + key, rest - end};
}

static bly_status add_object(struct blyi_report_disk *disk, const struct blyi_report_file *file,
                             struct blyi_slice old, struct blyi_slice mine)
{
    struct blyi_slice head, children;
    if (old.length == 0 || old.text[0] != '{' ||
        blyi_unfinished_kind(old.text, old.length) != BLYI_UNFINISHED_NOT)
        return put_object(disk, file, &mine, 1);
    split_file(old, &head, &children);
    struct blyi_slice key = slice_of(CHILDREN_KEY), end = slice_of(CHILDREN_END);
    struct blyi_slice brace = slice_of("\n}"), comma = slice_of(children.length ? ",\n" : "");
    if (file->first == self_of(file)) {
        struct blyi_slice parts[] = {open_object(mine), key, head, brace, comma, children, end};
        return put_object(disk, file, parts, PARTS_MAX);
    }
    struct blyi_slice parts[] = {head, key, children, comma, whole_object(mine), end};
    return put_object(disk, file, parts, 6);
}

static bly_status add_json(struct blyi_report_disk *disk, const struct blyi_report_file *file,
                           struct blyi_slice mine)
{
    struct blyi_slice old;
    if (!file->shared)
        return put_object(disk, file, &mine, 1);
    bly_status status = blyi_report_disk_read(disk, &old);
    if (status != BLY_OK)
        return status;
    status = add_object(disk, file, object_of(file, old), mine);
    blyi_host_free((char *)(uintptr_t)old.text);
    return status;
}

/* To a device or pipe, which takes what comes. */
static bly_status pass_on(struct blyi_report_disk *disk, const struct blyi_report_file *file,
                          struct blyi_slice mine)
{
    if (file->form != BLYI_REPORT_PAGE)
        return blyi_report_disk_append(disk, mine);
    bly_status status = blyi_report_disk_append(disk, blyi_report_page_head());
    if (status == BLY_OK)
        status = blyi_report_disk_append(disk, mine);
    return status != BLY_OK ? status : blyi_report_disk_append(disk, blyi_report_page_tail());
}

static bly_status add_section(struct blyi_report_disk *disk, const struct blyi_report_file *file,
                              struct blyi_slice mine)
{
    if (!disk->is_regular)
        return pass_on(disk, file, mine);
    if (!blyi_report_disk_turn(disk))
        return blyi_fail(BLY_E_TIMEOUT, "another process keeps the report %s", file->path);
    if (file->form != BLYI_REPORT_TEXT)
        return add_json(disk, file, mine);
    return file->shared ? blyi_report_disk_append(disk, mine)
                        : blyi_report_disk_replace(disk, &mine, 1);
}

/* ---- */

bly_status blyi_report_file_add(const struct blyi_report_file *file, const char *text,
                                size_t length)
{
    struct blyi_report_disk disk;
    struct blyi_slice mine = {text, length};
    if (file->to_stderr)
        return blyi_report_disk_stderr(mine);
    struct blyi_slice section = quoted(file, mine);
    if (section.text == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the report %s", file->path);
    bly_status status = open_disk(file, &disk);
    if (status == BLY_OK) {
        status = add_section(&disk, file, section);
        blyi_report_disk_leave(&disk);
    }
    put_back(section, mine);
    return status;
}
