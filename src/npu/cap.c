/* SPDX-License-Identifier: Apache-2.0
 *
 * cap.c - what this process has booked against BELAY_CAP, its own and its ancestors'.
 */
#include "npu/cap.h"
#include "npu/cap_group.h"
#include "npu/cap_origin.h"
#include "npu/ledger_process.h"
#include "npu/memory.h"
#include "npu/tally.h"
#include "base/option.h"
#include "base/compiler.h"
#include <stdatomic.h>

static _Atomic uint64_t used; /* relaxed: a sum that orders nothing */

/* What was found when the groups were last looked for. Written under the ledger's lock. */
enum mode { MODE_UNKNOWN, MODE_NONE, MODE_GROUPS };
static uint32_t mode;
static uint64_t known_cap; /* the option's value then */
static uint64_t parent;    /* cookie of the slot whose groups were joined */

static uint64_t own_cap(void)
{
    return (uint64_t)blyi_option_int(BLYI_OPT_CAP);
}

static bool is_known(uint64_t cap)
{
    return __atomic_load_n(&mode, __ATOMIC_ACQUIRE) != MODE_UNKNOWN &&
           __atomic_load_n(&known_cap, __ATOMIC_RELAXED) == cap;
}

static void join(uint64_t cap)
{
    uint64_t found = __atomic_load_n(&parent, __ATOMIC_RELAXED);
    if (__atomic_load_n(&mode, __ATOMIC_ACQUIRE) == MODE_UNKNOWN)
        found = blyi_cap_parent();
    blyi_ledger_lock();
    struct blyi_slot *mine = blyi_ledger_mine();
    __atomic_store_n(&parent, found, __ATOMIC_RELAXED);
    /* What was booked before was booked without a cap. */
    __atomic_store_n(&mine->booked, atomic_load_explicit(&used, memory_order_relaxed),
                     __ATOMIC_RELAXED);
    blyi_cap_write_locked(found, cap);
    __atomic_store_n(&known_cap, cap, __ATOMIC_RELAXED);
    __atomic_store_n(&mode, mine->caps[0].group != 0 ? MODE_GROUPS : MODE_NONE, __ATOMIC_RELEASE);
    blyi_ledger_unlock();
}

void blyi_cap_join(void)
{
    uint64_t cap = own_cap();
    if (!is_known(cap))
        join(cap);
}

static bool take_in_groups(uint64_t bytes)
{
    for (bool again = false;; again = true) {
        blyi_ledger_lock();
        bool fits = blyi_cap_fits_locked(bytes);
        if (fits) {
            __atomic_fetch_add(&blyi_ledger_mine()->booked, bytes, __ATOMIC_RELAXED);
            atomic_fetch_add_explicit(&used, bytes, memory_order_relaxed);
        }
        blyi_ledger_unlock();
        if (fits || again || blyi_ledger_reap() == 0)
            return fits;
    }
}

/* No other process is known of: a test, or the ledger is not there yet. */
static bool take_alone(uint64_t bytes, uint64_t cap)
{
    uint64_t now = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (cap > 0 && (now > cap || bytes > cap - now))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&used, &now, now + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool blyi_cap_take(uint64_t bytes)
{
    uint64_t cap = own_cap();
    if (unlikely(!is_known(cap))) {
        if (!blyi_ledger_attached())
            return take_alone(bytes, cap);
        join(cap);
    }
    if (__atomic_load_n(&mode, __ATOMIC_ACQUIRE) == MODE_GROUPS)
        return take_in_groups(bytes);
    atomic_fetch_add_explicit(&used, bytes, memory_order_relaxed);
    return true;
}

void blyi_cap_give(uint64_t bytes)
{
    atomic_fetch_sub_explicit(&used, bytes, memory_order_relaxed);
    if (__atomic_load_n(&mode, __ATOMIC_ACQUIRE) == MODE_GROUPS)
        __atomic_fetch_sub(&blyi_ledger_mine()->booked, bytes, __ATOMIC_RELAXED);
}

uint64_t blyi_mem_cap_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

bool blyi_cap_shares_group(uint32_t slot)
{
    const struct blyi_slot *mine = blyi_ledger_mine(), *other = blyi_ledger_slot_at(slot);
    for (uint32_t i = 0; i < BLYI_SLOT_CAPS && mine->caps[i].group != 0; i++)
        if (blyi_cap_is_member(other, mine->caps[i].group))
            return true;
    return false;
}

/* ── Telling ──────────────────────────────────────────────────────────────────────────────── */

static void add_member(struct blyi_cap_view *out, const struct blyi_slot *slot)
{
    uint64_t booked = __atomic_load_n(&slot->booked, __ATOMIC_RELAXED);
    if (booked == 0)
        return;
    uint32_t at = out->n_others < BLYI_CAP_ROWS ? out->n_others : BLYI_CAP_ROWS;
    out->n_others++;
    while (at > 0 && out->rows[at - 1].booked < booked) {
        if (at < BLYI_CAP_ROWS)
            out->rows[at] = out->rows[at - 1];
        at--;
    }
    if (at == BLYI_CAP_ROWS)
        return;
    out->rows[at].pid = slot->pid;
    out->rows[at].booked = booked;
    blyi_slot_name(slot, out->rows[at].name);
}

static void view_group_locked(uint64_t group, uint64_t cap, struct blyi_cap_view *out)
{
    const struct blyi_slot *mine = blyi_ledger_mine();
    *out = (struct blyi_cap_view){.cap = cap,
                                  .used = blyi_cap_used_locked(group),
                                  .mine = __atomic_load_n(&mine->booked, __ATOMIC_RELAXED),
                                  .imported = blyi_cap_imported_locked(group),
                                  .pid = blyi_cap_group_pid(group),
                                  .is_own = group == blyi_cap_own_group()};
    for (uint32_t i = 0; i < BLYI_SLOTS; i++) {
        const struct blyi_slot *slot = blyi_ledger_slot_at(i);
        if (!blyi_ledger_in_use(i))
            continue;
        if (slot->pid == out->pid && blyi_cap_is_member(slot, group))
            blyi_slot_name(slot, out->name);
        if (slot != mine && blyi_cap_is_member(slot, group))
            add_member(out, slot);
    }
}

static uint64_t left_of(const struct blyi_cap_view *view)
{
    return view->used < view->cap ? view->cap - view->used : 0;
}

void blyi_cap_view(uint64_t bytes, struct blyi_cap_view *out)
{
    *out = (struct blyi_cap_view){.cap = 0};
    if (__atomic_load_n(&mode, __ATOMIC_ACQUIRE) != MODE_GROUPS) {
        uint64_t now = blyi_mem_cap_used();
        *out = (struct blyi_cap_view){.cap = own_cap(), .used = now, .mine = now, .is_own = true};
        return;
    }
    blyi_ledger_lock();
    const struct blyi_slot *mine = blyi_ledger_mine();
    for (uint32_t i = 0; i < BLYI_SLOT_CAPS && mine->caps[i].group != 0; i++) {
        struct blyi_cap_view view;
        view_group_locked(mine->caps[i].group, mine->caps[i].cap, &view);
        bool passed = view.used > view.cap || bytes > view.cap - view.used;
        if (i == 0 || passed || left_of(&view) < left_of(out))
            *out = view;
        if (passed)
            break;
    }
    blyi_ledger_unlock();
    /* Who began it may have no card: a launcher, a shell. */
    if (!out->is_own && out->name[0] == '\0' && !blyi_process_name(out->pid, out->name))
        out->pid = 0;
}
