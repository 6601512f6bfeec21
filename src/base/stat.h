/* SPDX-License-Identifier: Apache-2.0
 *
 * stat.h - counters of the process, one list from which text and JSON are made.
 * Adding is one relaxed atomic; reading gives a snapshot that may be a moment old.
 */
#ifndef BLYI_STAT_H
#define BLYI_STAT_H

#include <stdint.h>

/* X(name, unit, help) */
#define BLYI_STATS(X)                                                                              \
    X(tasks_submitted, "count", "tasks put on streams")                                            \
    X(tasks_inline, "count", "tasks run in the caller's thread")                                   \
    X(engine_wakes, "count", "sleeping engines woken by a submission")                             \
    X(submit_waits, "count", "submissions that waited for room on a full stream")                  \
    X(engines_lost, "count", "engine threads given up because a kernel faulted")                   \
    X(copy_bytes, "bytes", "bytes copied, all directions")                                         \
    X(set_bytes, "bytes", "bytes set")                                                             \
    X(frames_committed, "count", "2 MiB frames backed by the host for the first time")             \
    X(frames_huge, "count", "of those, frames backed by one huge page")                            \
    X(frames_punched, "count", "resident frames given back to the host")                           \
    X(maps, "count", "ranges mapped into a window")                                                \
    X(unmaps, "count", "ranges unmapped from a window")                                            \
    X(defrag_bytes, "bytes", "frames moved by defragmentation")                                    \
    X(alloc_ns, "ns", "in aclrtMalloc, aclrtFree and their kin, while a report counts")            \
    X(driver_calls, "count", "calls that took memory from a card, mapped it, or gave it back")     \
    X(host_short, "count", "requests refused because the host was short of memory")

enum blyi_stat {
#define BLYI_STAT_ENUM(name, unit, help) BLYI_STAT_##name,
    BLYI_STATS(BLYI_STAT_ENUM)
#undef BLYI_STAT_ENUM
        BLYI_STAT_COUNT
};

extern uint64_t blyi_stat_values[BLYI_STAT_COUNT];

static inline void blyi_stat_add(enum blyi_stat stat, uint64_t n)
{
    __atomic_fetch_add(&blyi_stat_values[stat], n, __ATOMIC_RELAXED);
}

static inline uint64_t blyi_stat_read(enum blyi_stat stat)
{
    return __atomic_load_n(&blyi_stat_values[stat], __ATOMIC_RELAXED);
}

const char *blyi_stat_name(enum blyi_stat stat);
const char *blyi_stat_unit(enum blyi_stat stat);
const char *blyi_stat_help(enum blyi_stat stat);

#endif
