/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_process.c - reads /proc; where there is none, or another pid space's, asks kill().
 */
#include "npu/ledger_process.h"
#include "npu/ledger_inside.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A /proc of another pid space has other processes under our numbers. */
static bool proc_is_ours(void)
{
    char text[24];
    ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return strtol(text, NULL, 10) == (long)getpid();
}

#define STAT 1024

/* The beginning of /proc/PID/FILE; empty: nothing. */
static size_t read_file(uint32_t pid, const char *file, char *text, size_t size)
{
    char path[40];
    text[0] = '\0';
    if (pid == 0 || !proc_is_ours())
        return 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return strlen(text);
}

/* What /proc/PID/stat says behind the name, from the state on; NULL: nothing. */
static char *read_stat(uint32_t pid, char text[STAT])
{
    read_file(pid, "stat", text, STAT);
    char *at = strrchr(text, ')'); /* the name may hold anything but a later ')' */
    return at && at[1] == ' ' ? at + 2 : NULL;
}

bool blyi_process_name(uint32_t pid, char name[BLYI_SLOT_NAME])
{
    size_t length = read_file(pid, "comm", name, BLYI_SLOT_NAME);
    while (length > 0 && name[length - 1] == '\n')
        name[--length] = '\0';
    return length > 0;
}

uint64_t blyi_process_start(uint32_t pid)
{
    char text[STAT], *at = read_stat(pid, text);
    if (!at || *at == 'Z' || *at == 'X')
        return 0;
    for (int field = 3; field < 22 && at; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

bool blyi_process_is_stopped(uint32_t pid)
{
    char text[STAT];
    const char *at = read_stat(pid, text);
    return at && *at == 'T'; /* and not 't', which those who are traced pass through */
}

/* ── Mappings ─────────────────────────────────────────────────────────────────────────────── */

struct line {
    uint64_t begin;
    struct blyi_mapped mapped;
};

/* "begin-end rights offset major:minor inode path" */
static bool parse(const char *text, struct line *line)
{
    char *at;
    line->begin = strtoull(text, &at, 16);
    for (int field = 0; field < 3 && at; field++)
        at = strchr(at + (field > 0), ' ');
    if (!at)
        return false;
    uint64_t major = strtoull(at + 1, &at, 16);
    uint64_t minor = *at == ':' ? strtoull(at + 1, &at, 16) : 0;
    line->mapped.device = major << 32 | minor;
    line->mapped.inode = strtoull(at, NULL, 10);
    return true;
}

static bool is_same(struct blyi_mapped a, struct blyi_mapped b)
{
    return a.inode == b.inode && a.device == b.device;
}

enum found { NOT_THERE, THERE, CANNOT_TELL };

/* Looks for a mapping of `wanted`; wanted 0: for the one at `begin`, and *wanted is set. */
static enum found search(const char *path, uint64_t begin, struct blyi_mapped *wanted)
{
    char text[4096], *line;
    struct line there;
    size_t kept = 0;
    ssize_t got = -1;
    enum found found = NOT_THERE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (found == NOT_THERE && fd >= 0 &&
           (got = read(fd, text + kept, sizeof text - 1 - kept)) > 0) {
        char *end;
        text[kept + (size_t)got] = '\0';
        for (line = text; found == NOT_THERE && (end = strchr(line, '\n')); line = end + 1) {
            if (!parse(line, &there) ||
                (begin ? there.begin != begin : !is_same(there.mapped, *wanted)))
                continue;
            *wanted = there.mapped;
            found = THERE;
        }
        kept = strlen(line);
        if (kept == sizeof text - 1) /* a path that long: its file does not matter any more */
            kept = 0;
        memmove(text, line, kept);
    }
    if (fd >= 0)
        close(fd);
    return found == NOT_THERE && got < 0 ? CANNOT_TELL : found;
}

struct blyi_mapped blyi_mapped_learn(int fd)
{
    struct blyi_mapped mapped = {0, 0};
    void *page = blyi_sys_mmap(NULL, 4096, PROT_NONE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return mapped;
    if (search("/proc/self/maps", (uintptr_t)page, &mapped) != THERE)
        mapped = (struct blyi_mapped){0, 0};
    blyi_sys_munmap(page, 4096);
    return mapped;
}

static bool maps(uint32_t pid, struct blyi_mapped ledger)
{
    char path[40];
    if (ledger.inode == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    return search(path, 0, &ledger) != NOT_THERE;
}

/* ── Life ─────────────────────────────────────────────────────────────────────────────────── */

static bool exists(uint32_t pid)
{
    return pid != 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

bool blyi_ledger_process_lives(const struct blyi_slot *slot, struct blyi_mapped ledger,
                               bool unknown)
{
    /* Relaxed: it may be cleared at this moment, and is dead then. */
    uint32_t pid = __atomic_load_n(&slot->pid, __ATOMIC_RELAXED);
    uint64_t start = __atomic_load_n(&slot->start, __ATOMIC_RELAXED);
    if (start == 0) /* it could not find out when it began */
        return unknown && exists(pid);
    if (!proc_is_ours())
        return exists(pid);
    if (blyi_process_start(pid) != start)
        return false;
    /* Of our own number: this process, or what it was before exec(). */
    if (pid == (uint32_t)getpid())
        return blyi_ledger_attached() &&
               __atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) == blyi_ledger_mine()->cookie;
    return maps(pid, ledger);
}
