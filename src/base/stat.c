/* SPDX-License-Identifier: Apache-2.0
 *
 * stat.c - the counters and what their list says about them.
 */
#include "base/stat.h"
#include "base/assert.h"

uint64_t blyi_stat_values[BLYI_STAT_COUNT];

static const struct {
    const char *name, *unit, *help;
} stats[] = {
#define STAT_ROW(name, unit, help) {#name, unit, help},
    BLYI_STATS(STAT_ROW)
#undef STAT_ROW
};

const char *blyi_stat_name(enum blyi_stat stat)
{
    bly_assert(stat < BLYI_STAT_COUNT);
    return stats[stat].name;
}

const char *blyi_stat_unit(enum blyi_stat stat)
{
    bly_assert(stat < BLYI_STAT_COUNT);
    return stats[stat].unit;
}

const char *blyi_stat_help(enum blyi_stat stat)
{
    bly_assert(stat < BLYI_STAT_COUNT);
    return stats[stat].help;
}
