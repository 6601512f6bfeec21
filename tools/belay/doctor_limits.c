/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_limits.c - memory and limits: how much card the host can carry.
 */
#include "doctor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "base/size.h"

#define WINDOW_WANTED (64 * GiB)

static bool meminfo(const char *key, uint64_t *bytes)
{
    char line[128];
    bool found = false;
    unsigned long long kib;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
        found =
            strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), ": %llu", &kib) == 1;
    if (file != NULL)
        fclose(file);
    if (found)
        *bytes = (uint64_t)kib * 1024;
    return found;
}

void check_memory(struct result *result)
{
    char total_text[BLYI_SIZE_TEXT], free_text[BLYI_SIZE_TEXT];
    uint64_t total = 0, available = 0;
    if (!meminfo("MemTotal", &total) || !meminfo("MemAvailable", &available)) {
        put_value(result, "unknown: /proc/meminfo cannot be read");
        put_meaning(result, LEVEL_PROBLEM, "Belay cannot tell when the host runs short");
        put_advice(result, "mount /proc");
        return;
    }
    put_value(result, "%s available of %s", blyi_size_short(available, free_text),
              blyi_size_short(total, total_text));
    if (available >= 2 * GiB) {
        put_meaning(result, LEVEL_OK,
                    "as much card memory can really be used at once; a card may be larger, what "
                    "is not touched costs nothing");
        return;
    }
    put_meaning(result, LEVEL_NOTE,
                "less than 2 GiB can be used on all cards at once; beyond that calls fail and say "
                "that it was the host");
    put_advice(result, "end other programs, or use a machine with more memory");
}

/* Limit and use of this process's memory cgroup, version 2 or 1. False: none, or no limit. */
static bool cgroup_limit(uint64_t *limit, uint64_t *used)
{
    char line[512], path[1024], text[64];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        bool v2 = controllers[1] == '\0';
        if (!v2 && strcmp(controllers + 1, "memory") != 0)
            continue;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/%s", v2 ? "" : "/memory", group,
                 v2 ? "memory.max" : "memory.limit_in_bytes");
        *limit = strtoull(read_line_of(path, text, sizeof(text)), NULL, 10);
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/%s", v2 ? "" : "/memory", group,
                 v2 ? "memory.current" : "memory.usage_in_bytes");
        *used = strtoull(read_line_of(path, text, sizeof(text)), NULL, 10);
        found = *limit > 0 && *limit < (uint64_t)1 << 60; /* "max" reads as 0 */
    }
    if (file != NULL)
        fclose(file);
    return found;
}

void check_cgroup(struct result *result)
{
    char limit_text[BLYI_SIZE_TEXT], used_text[BLYI_SIZE_TEXT];
    uint64_t limit = 0, used = 0;
    if (!cgroup_limit(&limit, &used)) {
        put_value(result, "none");
        put_meaning(result, LEVEL_OK, "no control group limits this process's memory");
        return;
    }
    put_value(result, "%s, used %s", blyi_size_short(limit, limit_text),
              blyi_size_short(used, used_text));
    bool small = used + 2 * GiB > limit;
    put_meaning(result, small ? LEVEL_NOTE : LEVEL_OK,
                "the control group limits what all cards can use at once; Belay keeps below it, "
                "so the kernel does not kill the program");
    if (small)
        put_advice(result, "give the container more memory");
}

static void put_unreadable(struct result *result, const char *setting)
{
    put_value(result, "unknown: %s cannot be read", setting);
    put_meaning(result, LEVEL_NOTE, "Belay takes the kernel's default for granted");
    put_advice(result, "mount /proc");
}

void check_overcommit(struct result *result)
{
    char line[32];
    read_line_of("/proc/sys/vm/overcommit_memory", line, sizeof(line));
    if (line[0] == '\0') {
        put_unreadable(result, "vm.overcommit_memory");
        return;
    }
    put_value(result, "vm.overcommit_memory = %s", line);
    if (strcmp(line, "2") != 0) {
        put_meaning(result, LEVEL_OK, "address space can be reserved without memory behind it");
        return;
    }
    put_meaning(result, LEVEL_NOTE,
                "strict accounting: the kernel may refuse memory that is still available");
    put_advice(result, "sysctl vm.overcommit_memory=0");
}

static void limit_text(rlim_t limit, char buf[BLYI_SIZE_TEXT])
{
    if (limit == RLIM_INFINITY)
        snprintf(buf, BLYI_SIZE_TEXT, "unlimited");
    else
        blyi_size_short((uint64_t)limit, buf);
}

void check_address_space(struct result *result)
{
    char text[BLYI_SIZE_TEXT];
    struct rlimit limit = {0};
    getrlimit(RLIMIT_AS, &limit);
    limit_text(limit.rlim_cur, text);
    put_value(result, "%s (ulimit -v)", text);
    if (limit.rlim_cur == RLIM_INFINITY) {
        put_meaning(result, LEVEL_OK, "each card gets the window of addresses it wants");
    } else if (limit.rlim_cur >= WINDOW_WANTED) {
        put_meaning(result, LEVEL_NOTE, "windows of cards are made smaller until they fit");
        put_advice(result, "ulimit -v unlimited");
    } else {
        put_meaning(result, limit.rlim_cur < 4 * GiB ? LEVEL_PROBLEM : LEVEL_NOTE,
                    "windows of cards are made smaller until they fit: a program may run out of "
                    "addresses before it runs out of card memory");
        put_advice(result, "ulimit -v unlimited");
    }
}

void check_map_count(struct result *result)
{
    char line[32];
    long count = strtol(read_line_of("/proc/sys/vm/max_map_count", line, sizeof(line)), NULL, 10);
    if (line[0] == '\0') {
        put_unreadable(result, "vm.max_map_count");
        return;
    }
    put_value(result, "vm.max_map_count = %s", line);
    if (count >= 65530) {
        put_meaning(result, LEVEL_OK,
                    "Belay uses at most three quarters, so that the program's own memory "
                    "allocation never fails for it");
        return;
    }
    put_meaning(result, count < 4096 ? LEVEL_PROBLEM : LEVEL_NOTE,
                "few mappings: a fragmented card may refuse an allocation and name this limit");
    put_advice(result, "sysctl vm.max_map_count=65530");
}

void check_memlock(struct result *result)
{
    char text[BLYI_SIZE_TEXT];
    struct rlimit limit = {0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    limit_text(limit.rlim_cur, text);
    put_value(result, "%s (ulimit -l)", text);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= GiB) {
        put_meaning(result, LEVEL_OK,
                    "pinned host memory is really locked in RAM up to this limit");
        return;
    }
    put_meaning(result, LEVEL_NOTE,
                "pinned host memory beyond this limit works, but is not locked: it may be swapped");
    put_advice(result, "ulimit -l unlimited, or LimitMEMLOCK= of the service");
}

void check_open_files(struct result *result)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        put_value(result, "unlimited (ulimit -n)");
    else
        put_value(result, "%" PRIu64 " (ulimit -n)", (uint64_t)limit.rlim_cur);
    if (limit.rlim_cur >= 256) {
        put_meaning(result, LEVEL_OK, "Belay needs a few for each card");
        return;
    }
    put_meaning(result, LEVEL_NOTE, "Belay needs a few for each card; the program gets the rest");
    put_advice(result, "ulimit -n 1024");
}
