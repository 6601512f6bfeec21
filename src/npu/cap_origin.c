/* SPDX-License-Identifier: Apache-2.0
 *
 * cap_origin.c - reads and writes BELAY_CAP_GROUP.
 */
#include "npu/cap_origin.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/option.h"

#define ENTRY_TEXT 48u /* an ID, a cap and what separates them */

uint64_t blyi_cap_own_group(void)
{
    static uint64_t own; /* a forked child finds its parent's */
    uint32_t pid = (uint32_t)getpid(), random = 0;
    if (blyi_cap_group_pid(own) == pid)
        return own;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = 0; /* then the pid alone tells groups apart */
    own = (uint64_t)pid << 32 | random;
    return own;
}

static bool is_listed(const struct blyi_cap_origin *list, uint32_t n, uint64_t group)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].group == group)
            return true;
    return false;
}

uint32_t blyi_cap_origins(struct blyi_cap_origin out[BLYI_SLOT_CAPS])
{
    const char *at = blyi_option_text(BLYI_OPT_CAP_GROUP);
    uint32_t n = 0;
    while (n < BLYI_SLOT_CAPS && isxdigit((unsigned char)*at)) {
        char *end;
        struct blyi_cap_origin found = {.group = strtoull(at, &end, 16)};
        if (*end != ':' || !isdigit((unsigned char)end[1]))
            break;
        found.cap = strtoull(end + 1, &end, 10);
        if (found.group != 0 && found.cap != 0 && !is_listed(out, n, found.group))
            out[n++] = found;
        if (*end != ',')
            break;
        at = end + 1;
    }
    return n;
}

/* The program's threads may be reading the environment. */
static bool is_alone(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3; /* and "." and ".." */
}

static void write_list(const struct blyi_cap_origin *list, uint32_t n)
{
    char text[BLYI_SLOT_CAPS * ENTRY_TEXT] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < n && i < BLYI_SLOT_CAPS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%016" PRIx64 ":%" PRIu64,
                                 i > 0 ? "," : "", list[i].group, list[i].cap);
    if (blyi_option_set(BLYI_OPT_CAP_GROUP, text) != BLY_OK)
        blyi_fail_clear(); /* host memory is short: children that fork have a cap of their own */
    if (is_alone())
        setenv(blyi_option_info(BLYI_OPT_CAP_GROUP)->variable, text, 1);
}

void blyi_cap_begin(void)
{
    struct blyi_cap_origin inherited[BLYI_SLOT_CAPS], list[BLYI_SLOT_CAPS + 1];
    uint64_t own = blyi_cap_own_group(), cap = (uint64_t)blyi_option_int(BLYI_OPT_CAP);
    uint64_t least = UINT64_MAX;
    uint32_t n_inherited = blyi_cap_origins(inherited), n = 0;
    for (uint32_t i = 0; i < n_inherited; i++)
        if (inherited[i].group != own && inherited[i].cap < least)
            least = inherited[i].cap;
    if (cap > 0 && cap < least)
        list[n++] = (struct blyi_cap_origin){.group = own, .cap = cap};
    for (uint32_t i = 0; i < n_inherited; i++)
        if (inherited[i].group != own)
            list[n++] = inherited[i];
    write_list(list, n);
}

__attribute__((constructor)) static void begin_as_loaded(void)
{
    const char *cap = getenv("BELAY_CAP");
    if (cap != NULL && cap[0] != '\0')
        blyi_cap_begin();
}
