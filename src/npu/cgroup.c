/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.c - reads /proc/self/cgroup once and keeps the folders that have a memory limit.
 */
#include "npu/cgroup.h"
#include "base/sys.h"
#include "base/compiler.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_MAX  16
#define FOLDER_MAX 512

struct version {
    const char *root, *limit, *usage, *cache;
};

static const struct version v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                  "memory.usage_in_bytes", "total_inactive_file "};
static const struct version v2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file "};

static struct group {
    const struct version *version;
    char folder[FOLDER_MAX];
} groups[GROUP_MAX];
static int n_groups;
static pthread_once_t once = PTHREAD_ONCE_INIT; /* its end orders the writes before all reads */

static bool read_file(const char *folder, const char *name, char *buf, size_t size)
{
    char path[FOLDER_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = blyi_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t length = blyi_sys_read(fd, buf, size - 1);
    close(fd);
    if (length < 0)
        return false;
    buf[length] = '\0';
    return true;
}

/* False for "max" and for the huge number that version 1 writes instead. */
static bool read_number(const char *folder, const char *name, uint64_t *number)
{
    char text[64];
    if (!read_file(folder, name, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoull(text, NULL, 10);
    return *number < (uint64_t)1 << 60;
}

/* Keeps `path` and every folder above it, down to the root, that exists and has a limit. */
static void add_groups(const struct version *version, const char *path)
{
    char folder[FOLDER_MAX];
    uint64_t limit;
    if (strstr(path, "..")) /* outside our view of the tree: only the root can be seen */
        path = "";
    int length = snprintf(folder, sizeof folder, "%s%s", version->root, path);
    if (length < 0 || (size_t)length >= sizeof folder)
        return;
    while (n_groups < GROUP_MAX && strlen(folder) >= strlen(version->root)) {
        if (read_number(folder, version->limit, &limit)) {
            groups[n_groups].version = version;
            memcpy(groups[n_groups].folder, folder, strlen(folder) + 1);
            n_groups++;
        }
        *strrchr(folder, '/') = '\0';
    }
}

static void find_groups(void)
{
    char text[8192], *rest = NULL;
    if (!read_file("/proc/self", "cgroup", text, sizeof text))
        return;
    /* "0::/path" is version 2, "5:memory:/path" (maybe with further names) version 1. */
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (strcmp(names, ":") == 0)
            add_groups(&v2, path);
        else if (strstr(names, "memory"))
            add_groups(&v1, path);
    }
}

static uint64_t read_cache(const struct group *group)
{
    char text[8192];
    if (!read_file(group->folder, "memory.stat", text, sizeof text))
        return 0;
    const char *row = strstr(text, group->version->cache);
    while (row && row != text && row[-1] != '\n')
        row = strstr(row + 1, group->version->cache);
    return row ? strtoull(row + strlen(group->version->cache), NULL, 10) : 0;
}

void blyi_cgroup_room(uint64_t *room, uint64_t *limit)
{
    pthread_once(&once, find_groups);
    for (int i = 0; i < n_groups; i++) {
        uint64_t max, used;
        if (!read_number(groups[i].folder, groups[i].version->limit, &max) ||
            !read_number(groups[i].folder, groups[i].version->usage, &used))
            continue;
        uint64_t cache = read_cache(&groups[i]);
        used = used > cache ? used - cache : 0;
        uint64_t left = max > used ? max - used : 0;
        if (left < *room) {
            *room = left;
            *limit = max;
        }
    }
}
