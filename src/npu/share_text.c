/* SPDX-License-Identifier: Apache-2.0
 *
 * share_text.c - shared memory in sentences about a card that is full.
 */
#include "npu/ledger.h"
#include "npu/share_inside.h"
#include "npu/tally.h"
#include "base/fail.h"
#include "base/size.h"
#include <inttypes.h>

/* What nobody's account has but the card lacks. */
struct left {
    uint64_t bytes;
    struct blyi_share_info most;
};

static void find_left_locked(int card, struct left *left)
{
    for (uint32_t i = 0; i < blyi_shares_count(); i++) {
        struct blyi_share_info info;
        if (!blyi_share_read(blyi_shares(), i, &info) || info.card != card || !info.made_free)
            continue;
        left->bytes += info.bytes;
        if (info.bytes > left->most.bytes)
            left->most = info;
    }
}

static bool holds(const struct blyi_share_info *info, uint32_t slot)
{
    return (info->holders[slot / 64] >> (slot % 64) & 1) != 0;
}

/* " in this process", " in pid 13 (serve) and 2 more". */
static void append_keepers(const struct blyi_share_info *info)
{
    char name[BLYI_SLOT_NAME];
    uint32_t n = 0, first = BLYI_SLOTS;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (!holds(info, slot))
            continue;
        n++;
        if (first == BLYI_SLOTS || slot == blyi_ledger_slot())
            first = slot;
    }
    if (n == 0) /* they let go meanwhile */
        return;
    if (first == blyi_ledger_slot())
        blyi_fail_append(" in this process");
    else
        blyi_fail_append(" in pid %" PRIu32 " (%s)", blyi_ledger_slot_at(first)->pid,
                         blyi_slot_name(blyi_ledger_slot_at(first), name));
    if (n > 1)
        blyi_fail_append(" and %" PRIu32 " more", n - 1);
}

void blyi_share_append_freed(int card)
{
    struct left left = {0};
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    if (!blyi_shares_in_use())
        return;
    blyi_ledger_lock();
    find_left_locked(card, &left);
    blyi_ledger_unlock();
    if (left.bytes == 0)
        return;
    blyi_fail_append("; %s that exporters no longer have are still open: %s of pid %" PRIu32,
                     blyi_size_text(left.bytes, a), blyi_size_text(left.most.bytes, b),
                     left.most.maker_pid);
    append_keepers(&left.most);
    if (left.most.bytes < left.bytes)
        blyi_fail_append(", and %s elsewhere", blyi_size_text(left.bytes - left.most.bytes, a));
}
