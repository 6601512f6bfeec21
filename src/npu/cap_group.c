/* SPDX-License-Identifier: Apache-2.0
 *
 * cap_group.c - who is in which group of caps: joining an ancestor's, and summing up.
 */
#include "npu/cap_group.h"
#include "npu/cap_origin.h"
#include "npu/ledger_inside.h"
#include "npu/share.h"
#include "base/sys.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ANCESTORS 64

/* Field 4 of /proc/PID/stat; 0: no such process. */
static uint32_t parent_of(uint32_t pid)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *at = strrchr(text, ')'); /* behind the name, "S 123" */
    return at && strlen(at) > 4 ? (uint32_t)strtoul(at + 4, NULL, 10) : 0;
}

/* The next slot in use from `slot` on, or BLYI_SLOTS. */
static uint32_t next_used(uint32_t slot)
{
    while (slot < BLYI_SLOTS) {
        uint64_t bits = __atomic_load_n(&blyi_ledger_header()->used[slot / 64], __ATOMIC_ACQUIRE) >>
                        (slot % 64);
        if (bits != 0)
            return slot + (uint32_t)__builtin_ctzll(bits);
        slot = (slot / 64 + 1) * 64;
    }
    return BLYI_SLOTS;
}

static uint64_t cookie_of(uint32_t pid)
{
    for (uint32_t i = next_used(0); i < BLYI_SLOTS; i = next_used(i + 1)) {
        const struct blyi_slot *slot = blyi_ledger_slot_at(i);
        if (slot->pid == pid && slot->caps[0].group != 0 && i != blyi_ledger_slot() &&
            blyi_ledger_process_lives(slot, blyi_ledger.mapped, false))
            return slot->cookie;
    }
    return 0;
}

/* Without one, no ancestor need be asked for. */
static bool any_groups(void)
{
    for (uint32_t i = next_used(0); i < BLYI_SLOTS; i = next_used(i + 1))
        if (__atomic_load_n(&blyi_ledger_slot_at(i)->caps[0].group, __ATOMIC_RELAXED) != 0)
            return true;
    return false;
}

uint64_t blyi_cap_parent(void)
{
    uint64_t cookie = 0;
    uint32_t pid = (uint32_t)getpid();
    for (int i = 0; i < MOST_ANCESTORS && cookie == 0 && any_groups(); i++) {
        pid = parent_of(pid);
        if (pid <= 1)
            break;
        cookie = cookie_of(pid);
    }
    return cookie;
}

static const struct blyi_slot *slot_of_locked(uint64_t cookie)
{
    for (uint32_t i = next_used(0); i < BLYI_SLOTS && cookie != 0; i = next_used(i + 1))
        if (blyi_ledger_slot_at(i)->cookie == cookie)
            return blyi_ledger_slot_at(i);
    return NULL;
}

/* The groups of a slot that others began, then those of the environment that it does not name. */
static uint32_t collect(const struct blyi_slot *from, struct blyi_cap_origin out[BLYI_SLOT_CAPS])
{
    struct blyi_cap_origin born[BLYI_SLOT_CAPS];
    uint64_t own = blyi_cap_own_group();
    uint32_t n = 0, n_born = blyi_cap_origins(born);
    for (uint32_t i = 0; from && i < BLYI_SLOT_CAPS && from->caps[i].group != 0; i++)
        if (from->caps[i].group != own)
            out[n++] =
                (struct blyi_cap_origin){.group = from->caps[i].group, .cap = from->caps[i].cap};
    for (uint32_t i = 0; i < n_born && n < BLYI_SLOT_CAPS; i++)
        if (born[i].group != own && !(from && blyi_cap_is_member(from, born[i].group)))
            out[n++] = born[i];
    return n;
}

void blyi_cap_write_locked(uint64_t parent, uint64_t cap)
{
    struct blyi_slot *mine = blyi_ledger_mine();
    /* Joined once, for life: afterwards the list that counts is our own, behind our own group. */
    const struct blyi_slot *from = mine->caps[0].group == 0 ? slot_of_locked(parent) : mine;
    struct blyi_cap_origin others[BLYI_SLOT_CAPS];
    uint64_t least = UINT64_MAX;
    uint32_t n = collect(from, others), at = 0;
    for (uint32_t i = 0; i < n; i++)
        least = others[i].cap < least ? others[i].cap : least;
    mine->cap = cap;
    if (cap > 0 && cap < least) { /* a larger one inside a smaller one never binds */
        mine->caps[0].group = blyi_cap_own_group();
        mine->caps[0].cap = cap;
        at = 1;
    }
    for (uint32_t i = 0; i < n && at < BLYI_SLOT_CAPS; i++, at++) {
        mine->caps[at].group = others[i].group;
        mine->caps[at].cap = others[i].cap;
    }
    for (; at < BLYI_SLOT_CAPS; at++)
        mine->caps[at].group = mine->caps[at].cap = 0;
    mine->cap_group = mine->caps[0].group;
}

bool blyi_cap_is_member(const struct blyi_slot *slot, uint64_t group)
{
    for (uint32_t i = 0; i < BLYI_SLOT_CAPS; i++) {
        uint64_t there = __atomic_load_n(&slot->caps[i].group, __ATOMIC_RELAXED);
        if (there == group || there == 0)
            return there != 0;
    }
    return false;
}

static bool is_slot_member(void *arg, uint32_t slot)
{
    return blyi_ledger_in_use(slot) &&
           blyi_cap_is_member(blyi_ledger_slot_at(slot), *(const uint64_t *)arg);
}

uint64_t blyi_cap_imported_locked(uint64_t group)
{
    return blyi_share_charged_locked(is_slot_member, &group);
}

uint64_t blyi_cap_used_locked(uint64_t group)
{
    uint64_t sum = 0;
    for (uint32_t i = next_used(0); i < BLYI_SLOTS; i = next_used(i + 1)) {
        const struct blyi_slot *slot = blyi_ledger_slot_at(i);
        if (blyi_cap_is_member(slot, group))
            sum += __atomic_load_n(&slot->booked, __ATOMIC_RELAXED);
    }
    return sum + blyi_cap_imported_locked(group);
}

bool blyi_cap_fits_locked(uint64_t bytes)
{
    const struct blyi_slot *mine = blyi_ledger_mine();
    for (uint32_t i = 0; i < BLYI_SLOT_CAPS && mine->caps[i].group != 0; i++) {
        uint64_t sum = blyi_cap_used_locked(mine->caps[i].group), cap = mine->caps[i].cap;
        if (sum > cap || bytes > cap - sum)
            return false;
    }
    return true;
}
