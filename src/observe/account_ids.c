/* SPDX-License-Identifier: Apache-2.0
 *
 * account_ids.c - what has an id: how many were made, which were not destroyed.
 */
#include "observe/account_inside.h"

static struct blyi_account_objects *sum_of(enum blyi_account_thing thing)
{
    switch (thing) {
#define THING_SUM(things, one)                                                                     \
    case BLYI_ACCOUNT_##one:                                                                       \
        return &blyi_books.sum.things;
        BLYI_ACCOUNT_THINGS(THING_SUM)
#undef THING_SUM
    case BLYI_ACCOUNT_THING_COUNT:
        break;
    }
    return NULL;
}

struct blyi_tally_ids *blyi_account_ids(struct blyi_account_group *group,
                                        enum blyi_account_thing thing)
{
    switch (thing) {
#define THING_IDS(things, one)                                                                     \
    case BLYI_ACCOUNT_##one:                                                                       \
        return &group->things;
        BLYI_ACCOUNT_THINGS(THING_IDS)
#undef THING_IDS
    case BLYI_ACCOUNT_THING_COUNT:
        break;
    }
    return NULL;
}

static uint32_t id_of(const struct blyi_probe *probe, enum blyi_account_thing thing)
{
    return thing == BLYI_ACCOUNT_STREAM ? probe->stream : probe->event;
}

void blyi_account_keep_id(struct blyi_tally_ids *to, uint32_t id)
{
    uint32_t at = to->n_ids;
    if (at == BLYI_ACCOUNT_IDS) {
        if (to->ids[at - 1] <= id)
            return;
        at--;
    } else {
        to->n_ids++;
    }
    for (; at > 0 && to->ids[at - 1] > id; at--)
        to->ids[at] = to->ids[at - 1];
    to->ids[at] = id;
}

void blyi_account_made(const struct blyi_probe *probe, enum blyi_account_thing thing)
{
    if (thing == BLYI_ACCOUNT_STREAM && probe->aux != 0)
        return; /* a context's default stream, or a graph's: not the program's to destroy */
    struct blyi_account_objects *sum = sum_of(thing);
    struct blyi_account_group *group = blyi_account_group_of(probe->card, probe->site);
    uint64_t key = blyi_account_key(probe->card, id_of(probe, thing));
    if (blyi_map_put(&blyi_books.things[thing], key, group) != BLY_OK) {
        blyi_books.sum.untracked++;
        return;
    }
    struct blyi_tally_ids *ids = blyi_account_ids(group, thing);
    ids->made++;
    ids->live++;
    sum->made++;
    sum->live++;
    blyi_tally_raise(&sum->peak, sum->live);
}

void blyi_account_destroyed(const struct blyi_probe *probe, enum blyi_account_thing thing)
{
    struct blyi_account_objects *sum = sum_of(thing);
    uint32_t id = id_of(probe, thing);
    struct blyi_account_group *group =
        blyi_map_remove(&blyi_books.things[thing], blyi_account_key(probe->card, id));
    if (group == NULL)
        return;
    struct blyi_tally_ids *ids = blyi_account_ids(group, thing);
    ids->live--;
    sum->live--;
    if (probe->aux != 1) {
        sum->destroyed++;
        return;
    }
    blyi_account_keep_id(ids, id);
    ids->reset++;
}
