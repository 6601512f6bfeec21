/* SPDX-License-Identifier: Apache-2.0
 *
 * tally_text.c - what other processes hold, for sentences. Their slots may be garbage.
 */
#include "npu/tally.h"
#include "npu/ledger.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/symtab.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOLD 4 /* processes in one sentence */

struct other {
    uint32_t slot;
    uint64_t bytes; /* or a number of streams */
};

const char *blyi_slot_name(const struct blyi_slot *slot, char buf[BLYI_SLOT_NAME])
{
    memcpy(buf, slot->name, BLYI_SLOT_NAME);
    buf[BLYI_SLOT_NAME - 1] = '\0';
    for (char *at = buf; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return buf;
}

static void append_place(uint32_t pid, uint64_t pc)
{
    char name[BLYI_SYMTAB_NAME], module[BLYI_SYMTAB_MODULE];
    uint64_t offset;
    if (blyi_symtab_find_in(pid, pc, name, &offset, module))
        blyi_fail_append(" at %s+0x%" PRIx64 " (%s)", name, offset, module);
    else
        blyi_fail_append(" at 0x%" PRIx64 " (%s)", pc, module[0] ? module : "unknown");
}

/* The row of a slot's card with most bytes (or most pieces), of the kinds given as bits. */
static bool largest_row(const struct blyi_slot *slot, int card, uint32_t kinds, bool by_count,
                        struct blyi_slot_row *best)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < BLYI_SLOT_ROWS; i++) {
        struct blyi_slot_row row = slot->rows[i];
        uint64_t size = by_count ? row.count : row.bytes;
        if (row.kind >= BLYI_ROW_KINDS || !((kinds >> row.kind) & 1) || row.card != card ||
            size <= most)
            continue;
        most = size;
        *best = row;
    }
    return most > 0;
}

/* Others with something, the largest first; returns how many are in `list`, *n is all. */
static uint32_t list_others(int card, uint64_t (*amount)(const struct blyi_slot_card *card),
                            struct other list[TOLD], uint32_t *n, uint64_t *sum)
{
    uint32_t kept = 0;
    *n = 0;
    *sum = 0;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (slot == blyi_ledger_slot() || !blyi_ledger_in_use(slot))
            continue;
        struct other other = {slot, amount(&blyi_ledger_slot_at(slot)->cards[card])};
        if (other.bytes == 0)
            continue;
        ++*n;
        *sum += other.bytes;
        uint32_t at = kept < TOLD ? kept++ : TOLD;
        while (at > 0 && list[at - 1].bytes < other.bytes) {
            if (at < TOLD)
                list[at] = list[at - 1];
            at--;
        }
        if (at < TOLD)
            list[at] = other;
    }
    return kept;
}

static uint64_t memory_of(const struct blyi_slot_card *card)
{
    return __atomic_load_n(&card->live, __ATOMIC_RELAXED) +
           __atomic_load_n(&card->overhead, __ATOMIC_RELAXED) +
           __atomic_load_n(&card->unused, __ATOMIC_RELAXED);
}

static uint64_t streams_of(const struct blyi_slot_card *card)
{
    return __atomic_load_n(&card->streams, __ATOMIC_RELAXED);
}

static uint64_t events_of(const struct blyi_slot_card *card)
{
    return __atomic_load_n(&card->events, __ATOMIC_RELAXED);
}

static uint64_t notifies_of(const struct blyi_slot_card *card)
{
    return __atomic_load_n(&card->notifies, __ATOMIC_RELAXED);
}

/* What of its memory is in pools, and whether it would help to ask for it. */
static void append_pools(const struct blyi_slot *slot, int card)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT];
    const struct blyi_slot_card *of = &slot->cards[card];
    uint64_t held = __atomic_load_n(&of->pool_held, __ATOMIC_RELAXED);
    uint64_t idle = __atomic_load_n(&of->pool_idle, __ATOMIC_RELAXED);
    if (held == 0)
        return;
    blyi_fail_append(", its pools hold %s of that, %s in use and %s idle", blyi_size_text(held, a),
                     blyi_size_text(held > idle ? held - idle : 0, b), blyi_size_text(idle, c));
    if (idle > 0)
        blyi_fail_append(" (trimming them there gives that back)");
}

static void append_holder(int card, const struct other *other)
{
    const struct blyi_slot *slot = blyi_ledger_slot_at(other->slot);
    char name[BLYI_SLOT_NAME], a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    struct blyi_slot_row row;
    uint64_t overhead = __atomic_load_n(&slot->cards[card].overhead, __ATOMIC_RELAXED);
    uint64_t live = __atomic_load_n(&slot->cards[card].live, __ATOMIC_RELAXED);
    blyi_fail_append("pid %" PRIu32 " (%s) %s live and %s overhead", slot->pid,
                     blyi_slot_name(slot, name), blyi_size_text(live, a),
                     blyi_size_text(overhead, b));
    if (largest_row(slot, card, 1u << BLYI_ROW_BLOCK | 1u << BLYI_ROW_HANDLE, false, &row)) {
        blyi_fail_append(", of that %s in %" PRIu64 " %s%s made", blyi_size_text(row.bytes, a),
                         row.count, row.kind == BLYI_ROW_BLOCK ? "block" : "handle",
                         row.count == 1 ? "" : "s");
        append_place(slot->pid, row.pc);
    }
    append_pools(slot, card);
}

void blyi_tally_append_memory(int card)
{
    struct other list[TOLD];
    uint32_t n;
    uint64_t sum;
    char size[BLYI_SIZE_TEXT];
    uint32_t kept = list_others(card, memory_of, list, &n, &sum);
    if (n == 0)
        return;
    blyi_fail_append("; %" PRIu32 " other process%s hold%s %s: ", n, n == 1 ? "" : "es",
                     n == 1 ? "s" : "", blyi_size_text(sum, size));
    for (uint32_t i = 0; i < kept; i++) {
        blyi_fail_append("%s", i == 0 ? "" : "; ");
        append_holder(card, &list[i]);
    }
}

void blyi_tally_append_counts(int card, enum blyi_limit what)
{
    struct other list[TOLD];
    uint32_t n;
    uint64_t sum;
    uint32_t kept = list_others(card,
                                what == BLYI_LIMIT_STREAMS  ? streams_of
                                : what == BLYI_LIMIT_EVENTS ? events_of
                                                            : notifies_of,
                                list, &n, &sum);
    uint32_t kind = what == BLYI_LIMIT_STREAMS ? BLYI_ROW_STREAM : BLYI_ROW_EVENT;
    for (uint32_t i = 0; i < kept; i++) {
        const struct blyi_slot *slot = blyi_ledger_slot_at(list[i].slot);
        char name[BLYI_SLOT_NAME];
        struct blyi_slot_row row;
        blyi_fail_append("; pid %" PRIu32 " (%s) has %" PRIu64, slot->pid,
                         blyi_slot_name(slot, name), list[i].bytes);
        if (what != BLYI_LIMIT_NOTIFIES && largest_row(slot, card, 1u << kind, true, &row)) {
            blyi_fail_append(", %" PRIu64 " made", row.count);
            append_place(slot->pid, row.pc);
        }
    }
}
