/* SPDX-License-Identifier: Apache-2.0
 *
 * account_read.c - a copy of all figures, for reports.
 */
#include "observe/account_inside.h"

#include <stdlib.h>
#include <time.h>
#include "base/fail.h"
#include "base/host.h"

#define READ_WAIT_MS 2000

static bool lock_patiently(void)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < READ_WAIT_MS; i++) {
        if (blyi_lock_try(&blyi_books.lock))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void copy_group(struct blyi_account *out, struct blyi_account_group *group)
{
    if (group->all.count + group->refused + group->streams.made + group->events.made +
            group->notifies.made + group->graphs.made + group->contexts.made + group->queues.made +
            group->imports.count + group->imports_reset.count ==
        0)
        return;
    blyi_account_keep_peak(group);
    out->groups[out->n_groups++] = *group;
}

static int group_order(const void *left, const void *right)
{
    const struct blyi_account_group *a = left, *b = right;
    if (a->card != b->card)
        return a->card < b->card ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

static struct blyi_account_group *copied_group(struct blyi_account *out,
                                               const struct blyi_account_group *group)
{
    return bsearch(group, out->groups, out->n_groups, sizeof(*group), group_order);
}

static void copy_ids(struct blyi_account *out, enum blyi_account_thing thing)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&blyi_books.things[thing], &cursor, &key, &value))
        blyi_account_keep_id(blyi_account_ids(copied_group(out, value), thing), (uint32_t)key);
}

static void copy_leaks(struct blyi_account *out)
{
    size_t cursor = 0;
    uint64_t address;
    void *value;
    while (blyi_map_next(&blyi_books.blocks, &cursor, &address, &value)) {
        const struct blyi_account_block *block = value;
        struct blyi_account_group *group = copied_group(out, block->group);
        if (block->is_handle)
            group->handles_orphan += block->n_maps == 0;
        else if (group->first_address == 0 || address < group->first_address)
            group->first_address = address;
    }
}

bly_status blyi_account_read(struct blyi_account *out)
{
    if (!lock_patiently())
        return blyi_fail(BLY_E_TIMEOUT, "the memory account is busy for %d ms", READ_WAIT_MS);
    size_t max = blyi_books.groups.count + BLYI_ACCOUNT_CARDS + 1;
    struct blyi_account_group *groups = blyi_host_calloc(max, sizeof(*groups));
    if (groups == NULL) {
        blyi_lock_drop(&blyi_books.lock);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a report on %zu sites", max);
    }
    *out = blyi_books.sum;
    out->groups = groups;
    out->n_groups = 0;
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&blyi_books.groups, &cursor, &key, &value))
        copy_group(out, value);
    for (size_t i = 0; i < BLYI_COUNT(blyi_account_unknown); i++)
        copy_group(out, &blyi_account_unknown[i]);
    qsort(groups, out->n_groups, sizeof(*groups), group_order);
    copy_leaks(out);
    for (int thing = 0; thing < BLYI_ACCOUNT_THING_COUNT; thing++)
        copy_ids(out, (enum blyi_account_thing)thing);
    blyi_tally_add(&out->pinned.live, &out->registered.live);
    blyi_lock_drop(&blyi_books.lock);
    blyi_account_copy_accesses(out);
    return BLY_OK;
}

void blyi_account_fini(struct blyi_account *copy)
{
    blyi_host_free(copy->groups);
    copy->groups = NULL;
    copy->n_groups = 0;
}

static bool tally_equal(const struct blyi_tally *a, const struct blyi_tally *b)
{
    return a->count == b->count && a->asked == b->asked && a->rounded == b->rounded &&
           a->backed == b->backed;
}

static void sum_group(struct blyi_tally *card, struct blyi_tally *pinned,
                      const struct blyi_account_group *group)
{
    blyi_tally_add(group->card == BLYI_ACCOUNT_PINNED ? pinned : card, &group->live);
}

static bool audit_locked(void)
{
    struct blyi_tally card = {0}, pinned = {0}, by_card = {0}, records = {0};
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&blyi_books.groups, &cursor, &key, &value))
        sum_group(&card, &pinned, value);
    for (size_t i = 0; i < BLYI_COUNT(blyi_account_unknown); i++)
        sum_group(&card, &pinned, &blyi_account_unknown[i]);
    for (size_t i = 0; i < BLYI_ACCOUNT_CARDS; i++)
        blyi_tally_add(&by_card, &blyi_books.sum.cards[i].live);
    cursor = 0;
    while (blyi_map_next(&blyi_books.blocks, &cursor, &key, &value))
        blyi_tally_add(&records, &((const struct blyi_account_block *)value)->size);
    return tally_equal(&card, &blyi_books.sum.process.live) &&
           tally_equal(&pinned, &blyi_books.sum.pinned.live) &&
           tally_equal(&by_card, &blyi_books.sum.process.live) &&
           records.count <= card.count + pinned.count &&
           blyi_books.sum.process.peak >= blyi_books.sum.process.live.asked &&
           blyi_map_audit(&blyi_books.blocks) && blyi_map_audit(&blyi_books.groups);
}

bool blyi_account_audit(void)
{
    blyi_lock_take(&blyi_books.lock);
    bool sound = audit_locked();
    blyi_lock_drop(&blyi_books.lock);
    return sound;
}
