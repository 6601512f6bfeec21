/* SPDX-License-Identifier: Apache-2.0
 *
 * host_room.c - the allowance: a part of the room that was read last, spent by booking, so that
 * a commit of one frame costs an atomic subtraction and not three files of /proc.
 */
#include "npu/host_room.h"
#include "npu/backing.h"
#include "npu/cgroup.h"
#include "base/compiler.h"
#include "base/option.h"
#include "base/size.h"
#include "base/sys.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define MARGIN_MIN  (256 * MiB)
#define MARGIN_PART 32 /* of the RAM, or of the cgroup's limit */
#define STALE_NS    50000000u

/* All relaxed: they are sums and hints and order nothing. */
static _Atomic uint64_t held;      /* bytes booked */
static _Atomic int64_t allowance;  /* bytes that may be booked before the next reading */
static _Atomic uint64_t read_time; /* of the last reading */

/* Not blyi_clock_ns(): a virtual clock stands still while the host changes. */
static uint64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool read_meminfo(uint64_t *total, uint64_t *available)
{
    char text[4096];
    int fd = blyi_sys_open("/proc/meminfo", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t length = blyi_sys_read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *a = strstr(text, "MemTotal:"), *b = strstr(text, "MemAvailable:");
    if (!a || !b)
        return false;
    *total = strtoull(a + strlen("MemTotal:"), NULL, 10) * KiB;
    *available = strtoull(b + strlen("MemAvailable:"), NULL, 10) * KiB;
    return true;
}

static void read_memory(uint64_t *total, uint64_t *available)
{
    if (read_meminfo(total, available))
        return;
    struct sysinfo info; /* no /proc: what is really unused is the best that is known */
    if (sysinfo(&info) != 0) {
        *total = *available = 0;
        return;
    }
    *total = (uint64_t)info.totalram * info.mem_unit;
    *available = (uint64_t)info.freeram * info.mem_unit;
}

void blyi_host_room_read(struct blyi_host_room *out)
{
    read_memory(&out->ram, &out->available);
    out->cgroup = UINT64_MAX;
    out->cgroup_limit = UINT64_MAX;
    blyi_cgroup_room(&out->cgroup, &out->cgroup_limit);
    out->limit = (uint64_t)blyi_option_int(BLYI_OPT_HOST_LIMIT);
    out->held = blyi_host_room_held();

    uint64_t whole = out->ram < out->cgroup_limit ? out->ram : out->cgroup_limit;
    out->margin = whole / MARGIN_PART;
    /* A small machine or container keeps an eighth, else nothing would be left to use. */
    uint64_t least = whole / 8 < MARGIN_MIN ? whole / 8 : MARGIN_MIN;
    if (out->margin < least)
        out->margin = least;

    uint64_t room = out->available < out->cgroup ? out->available : out->cgroup;
    room = room > out->margin ? room - out->margin : 0;
    if (out->limit > 0) {
        uint64_t left = out->limit > out->held ? out->limit - out->held : 0;
        room = room < left ? room : left;
    }
    out->room = room;
}

uint64_t blyi_backing_host_room(void)
{
    struct blyi_host_room room;
    blyi_host_room_read(&room);
    return room.room;
}

/* Books against BELAY_HOST_LIMIT, exactly. */
static bool hold(uint64_t bytes)
{
    uint64_t limit = (uint64_t)blyi_option_int(BLYI_OPT_HOST_LIMIT);
    uint64_t now = atomic_load_explicit(&held, memory_order_relaxed);
    do {
        if (limit > 0 && (now > limit || bytes > limit - now))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&held, &now, now + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static bool spend(uint64_t bytes)
{
    if (real_ns() - atomic_load_explicit(&read_time, memory_order_relaxed) > STALE_NS)
        return false;
    int64_t left = atomic_load_explicit(&allowance, memory_order_relaxed);
    do {
        if (left < (int64_t)bytes)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&allowance, &left, left - (int64_t)bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool blyi_host_room_take(uint64_t bytes)
{
    if (bytes > INT64_MAX || !hold(bytes))
        return false;
    if (likely(spend(bytes)))
        return true;

    struct blyi_host_room now;
    blyi_host_room_read(&now);
    uint64_t room = now.room;
    if (now.limit > 0) { /* `bytes` are held already, so they must not be asked for twice */
        uint64_t by_system = now.available < now.cgroup ? now.available : now.cgroup;
        room = by_system > now.margin ? by_system - now.margin : 0;
    }
    if (bytes > room) {
        blyi_host_room_give(bytes);
        return false;
    }
    /* Half the margin at a time: when others take memory meanwhile, the margin pays. */
    uint64_t part = room - bytes < now.margin / 2 ? room - bytes : now.margin / 2;
    atomic_store_explicit(&allowance, (int64_t)part, memory_order_relaxed);
    atomic_store_explicit(&read_time, real_ns(), memory_order_relaxed);
    return true;
}

void blyi_host_room_give(uint64_t bytes)
{
    atomic_fetch_sub_explicit(&held, bytes, memory_order_relaxed);
}

void blyi_host_room_adopt(uint64_t bytes)
{
    atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed);
}

uint64_t blyi_host_room_held(void)
{
    return atomic_load_explicit(&held, memory_order_relaxed);
}

const char *blyi_host_room_text(char buf[BLYI_HOST_ROOM_TEXT])
{
    struct blyi_host_room now;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT];
    blyi_host_room_read(&now);
    int at = snprintf(buf, BLYI_HOST_ROOM_TEXT, "the host can give %s: available %s, margin %s",
                      blyi_size_text(now.room, a), blyi_size_text(now.available, b),
                      blyi_size_text(now.margin, c));
    if (now.cgroup != UINT64_MAX)
        at += snprintf(buf + at, BLYI_HOST_ROOM_TEXT - (size_t)at, ", cgroup limit %s leaves %s",
                       blyi_size_text(now.cgroup_limit, a), blyi_size_text(now.cgroup, b));
    if (now.limit > 0)
        at += snprintf(buf + at, BLYI_HOST_ROOM_TEXT - (size_t)at, ", BELAY_HOST_LIMIT %s",
                       blyi_size_text(now.limit, a));
    snprintf(buf + at, BLYI_HOST_ROOM_TEXT - (size_t)at, ", held by Belay %s",
             blyi_size_text(now.held, a));
    return buf;
}
