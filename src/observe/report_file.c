/* SPDX-License-Identifier: Apache-2.0
 *
 * report_file.c - record locks, because a forked child must not hold what its parent holds.
 * Byte 0 is locked for reading by every process that watches, byte 1 for writing by the one
 * that adds its section. Closing any descriptor of the file drops a process's locks, so the one
 * that keeps byte 0 stays open; it is never used again, since the program may have closed it and
 * got its number for a file of its own.
 */
#include "observe/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/unfinished.h"

#define BYTE_WATCH   0
#define BYTE_ADD     1
#define ADD_WAIT_MS  2000
#define CHILDREN_KEY ",\n  \"children\": [\n"
#define CHILDREN_END "\n  ]\n}\n"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

bly_status blyi_report_file_parse(const char *destination, const char *folder,
                                  struct blyi_report_file *out)
{
    char here[PATH_MAX] = "";
    struct blyi_report_file file = {.form = BLYI_REPORT_TEXT};
    if (strcmp(destination, "-") == 0) {
        file.to_stderr = true;
        *out = file;
        return BLY_OK;
    }
    if (ends_with(destination, ".json"))
        file.form = BLYI_REPORT_JSON;
    else if (!ends_with(destination, ".txt"))
        return blyi_fail(
            BLY_E_INVALID, "BELAY_REPORT \"%s\": a report goes to - (stderr), *.txt or *.json%s",
            destination, ends_with(destination, ".html") ? "; *.html does not exist yet" : "");
    /* The program may change its folder before it ends. */
    if (destination[0] == '/')
        folder = here;
    else if (folder == NULL && (folder = getcwd(here, sizeof(here))) == NULL)
        return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the working folder is gone (%s)",
                         destination, strerror(errno));
    int n =
        snprintf(file.path, sizeof(file.path), "%s%s%s", folder, folder[0] ? "/" : "", destination);
    if (n >= PATH_MAX)
        return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the path is too long", destination);
    file.shared = strstr(file.path, "%p") == NULL;
    *out = file;
    return BLY_OK;
}

bly_status blyi_report_files_parse(const char *list, const char *folder,
                                   struct blyi_report_files *out)
{
    char name[PATH_MAX];
    out->n = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (out->n == BLYI_REPORT_FILES_MAX)
            return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": at most %d places", list,
                             BLYI_REPORT_FILES_MAX);
        if (length >= sizeof(name))
            return blyi_fail(BLY_E_INVALID, "BELAY_REPORT \"%s\": the path is too long", list);
        memcpy(name, at, length);
        name[length] = '\0';
        bly_status status = blyi_report_file_parse(name, folder, &out->file[out->n]);
        if (status != BLY_OK)
            return status;
        out->n++;
        at += length;
        if (*at == '\0')
            return BLY_OK;
    }
}

static pid_t self_of(const struct blyi_report_file *file)
{
    return file->self != 0 ? file->self : getpid();
}

static bool lock_byte(int fd, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock) == 0;
}

static bly_status cannot(const char *what, const char *path)
{
    return blyi_fail(BLY_E_IO, "cannot %s the report %s: %s", what, path, strerror(errno));
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

static bool wait_for_turn(int fd)
{
    for (int i = 0; i < ADD_WAIT_MS; i++) {
        if (lock_byte(fd, BYTE_ADD, F_WRLCK) || (errno != EAGAIN && errno != EACCES))
            return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

struct slice {
    const char *text;
    size_t length;
};

static struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

/* Makes slices, one behind the other, the whole file. */
static bool rewrite(int fd, const struct slice *slices, size_t n)
{
    off_t size = 0;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!write_all(fd, slices[i].text, slices[i].length))
            return false;
        size += (off_t)slices[i].length;
    }
    return ftruncate(fd, size) == 0;
}

static bool expand_path(const char *pattern, pid_t self, char path[PATH_MAX])
{
    size_t used = 0;
    for (const char *p = pattern; *p != '\0'; p++) {
        bool pid = p[0] == '%' && p[1] == 'p';
        int n = pid ? snprintf(path + used, PATH_MAX - used, "%d", (int)self)
                    : snprintf(path + used, PATH_MAX - used, "%c", *p);
        used += (size_t)n;
        if (used >= PATH_MAX)
            return false;
        p += pid;
    }
    return true;
}

static bly_status open_file(const struct blyi_report_file *file, int flags, int *fd)
{
    char path[PATH_MAX];
    if (!expand_path(file->path, self_of(file), path))
        return blyi_fail(BLY_E_INVALID, "the path of the report is too long: %s", file->path);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | flags, 0666);
    return *fd < 0 ? cannot("open", path) : BLY_OK;
}

/* ---- beginning ---- */

static bool is_regular(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static bly_status make_unfinished(int fd, const struct blyi_report_file *file,
                                  enum blyi_unfinished kind)
{
    char *text = file->form == BLYI_REPORT_JSON ? blyi_unfinished_text(kind) : NULL;
    if (file->form == BLYI_REPORT_JSON && text == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to begin the report %s", file->path);
    struct slice whole = slice_of(text ? text : "");
    bly_status status = rewrite(fd, &whole, 1) ? BLY_OK : cannot("begin", file->path);
    free(text);
    return status;
}

/* True: nobody's section is there; *kind tells what is. */
static bool is_without_sections(int fd, enum blyi_unfinished *kind)
{
    char head[BLYI_UNFINISHED_HEAD];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    *kind = n > 0 ? blyi_unfinished_kind(head, (size_t)n) : BLYI_UNFINISHED_NOT;
    return n == 0 || *kind != BLYI_UNFINISHED_NOT;
}

bly_status blyi_report_file_new(const struct blyi_report_file *file)
{
    int fd;
    if (file->to_stderr || !file->shared)
        return BLY_OK;
    bly_status status = open_file(file, 0, &fd);
    if (status != BLY_OK)
        return status;
    if (is_regular(fd))
        status = make_unfinished(fd, file, BLYI_UNFINISHED_WAITING);
    close(fd);
    return status;
}

static bly_status begin_shared(int fd, struct blyi_report_file *file, bool append)
{
    enum blyi_unfinished kind;
    bly_status status = BLY_OK;
    bool alone = lock_byte(fd, BYTE_WATCH, F_WRLCK) || errno == ENOLCK;
    if (alone && (!append || is_without_sections(fd, &kind))) {
        file->first = getpid();
        status = make_unfinished(fd, file, BLYI_UNFINISHED_RUNNING);
    }
    lock_byte(fd, BYTE_WATCH, F_RDLCK);
    return status;
}

bly_status blyi_report_file_begin(struct blyi_report_file *file, bool append)
{
    int fd;
    if (file->to_stderr || (!file->shared && file->form != BLYI_REPORT_JSON))
        return BLY_OK;
    bly_status status = open_file(file, 0, &fd);
    if (status != BLY_OK || !is_regular(fd))
        return status; /* a device or pipe takes what comes */
    if (file->shared)
        return begin_shared(fd, file, append); /* stays open: it keeps the lock */
    status = make_unfinished(fd, file, BLYI_UNFINISHED_RUNNING);
    close(fd);
    return status;
}

bool blyi_report_file_is_unused(const struct blyi_report_file *file)
{
    enum blyi_unfinished kind;
    if (file->to_stderr || !file->shared)
        return true;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT;
    bool unused =
        is_regular(fd) && is_without_sections(fd, &kind) && kind != BLYI_UNFINISHED_RUNNING;
    close(fd);
    return unused;
}

/* ---- JSON: one object, others in its list of children ---- */

/* The object without its last brace, so that a key can follow: "\n}\n" is cut off. */
static struct slice open_object(struct slice object)
{
    while (object.length > 0 && object.text[object.length - 1] != '}')
        object.length--;
    if (object.length >= 2)
        object.length -= 2;
    return object;
}

static struct slice whole_object(struct slice object)
{
    while (object.length > 0 && object.text[object.length - 1] != '}')
        object.length--;
    return object;
}

/* Takes a file of ours apart. Strings hold no newline, so the key can stand nowhere else. */
static void split_file(struct slice file, struct slice *head, struct slice *children)
{
    size_t key = strlen(CHILDREN_KEY), end = strlen(CHILDREN_END);
    const char *at = memmem(file.text, file.length, CHILDREN_KEY, key);
    *children = (struct slice){"", 0};
    if (at == NULL) {
        *head = open_object(file);
        return;
    }
    *head = (struct slice){file.text, (size_t)(at - file.text)};
    size_t rest = file.length - head->length - key;
    if (rest > end)
        *children = (struct slice){at + key, rest - end};
}

static bool add_object(int fd, struct slice old, struct slice mine, bool mine_first)
{
    struct slice head, children;
    if (old.length == 0 || old.text[0] != '{' ||
        blyi_unfinished_kind(old.text, old.length) != BLYI_UNFINISHED_NOT)
        return rewrite(fd, &mine, 1);
    split_file(old, &head, &children);
    struct slice key = slice_of(CHILDREN_KEY), end = slice_of(CHILDREN_END);
    struct slice brace = slice_of("\n}"), comma = slice_of(children.length ? ",\n" : "");
    if (mine_first) {
        struct slice parts[] = {open_object(mine), key, head, brace, comma, children, end};
        return rewrite(fd, parts, 7);
    }
    struct slice parts[] = {head, key, children, comma, whole_object(mine), end};
    return rewrite(fd, parts, 6);
}

static bly_status add_json(int fd, const struct blyi_report_file *file, struct slice mine)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return write_all(fd, mine.text, mine.length) ? BLY_OK : cannot("write", file->path);
    size_t size = (size_t)status.st_size, got = 0;
    char *old = blyi_host_alloc(size + 1);
    if (old == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to add to %s", file->path);
    ssize_t n = 1;
    while (got < size && (n = pread(fd, old + got, size - got, (off_t)got)) > 0)
        got += (size_t)n;
    bool done =
        n > 0 && add_object(fd, (struct slice){old, got}, mine, file->first == self_of(file));
    bly_status result = done ? BLY_OK : cannot("write", file->path);
    blyi_host_free(old);
    return result;
}

/* ---- */

bly_status blyi_report_file_add(const struct blyi_report_file *file, const char *text,
                                size_t length)
{
    int fd;
    if (file->to_stderr)
        return write_all(STDERR_FILENO, text, length) ? BLY_OK : cannot("write", "to stderr");
    bool append = file->form == BLYI_REPORT_TEXT && file->shared;
    bly_status status = open_file(file, append ? O_APPEND : file->shared ? 0 : O_TRUNC, &fd);
    if (status != BLY_OK)
        return status;
    if (!wait_for_turn(fd))
        status = blyi_fail(BLY_E_TIMEOUT, "another process keeps the report %s", file->path);
    else if (file->form == BLYI_REPORT_JSON)
        status = add_json(fd, file, (struct slice){text, length});
    else if (!write_all(fd, text, length))
        status = cannot("write", file->path);
    close(fd);
    return status;
}
