/* SPDX-License-Identifier: Apache-2.0
 *
 * account_inside.h - the figures themselves, for the files that keep and read them.
 */
#ifndef BLYI_ACCOUNT_INSIDE_H
#define BLYI_ACCOUNT_INSIDE_H

#include "base/lock.h"
#include "base/map.h"
#include "observe/account.h"

struct blyi_account_block {
    struct blyi_account_group *group;
    struct blyi_tally size; /* count is 1 */
    uint64_t saving;
    uint32_t page_kind;
    uint32_t n_maps; /* of a handle */
    bool is_handle;
    bool is_in_pool;
};

/* X(things, one of them): what has an id and is made and destroyed. */
#define BLYI_ACCOUNT_THINGS(X)                                                                     \
    X(streams, STREAM)                                                                             \
    X(events, EVENT)                                                                               \
    X(notifies, NOTIFY)                                                                            \
    X(graphs, GRAPH)                                                                               \
    X(contexts, CONTEXT)                                                                           \
    X(queues, QUEUE)

enum blyi_account_thing {
#define BLYI_THING_ENUM(things, one) BLYI_ACCOUNT_##one,
    BLYI_ACCOUNT_THINGS(BLYI_THING_ENUM)
#undef BLYI_THING_ENUM
        BLYI_ACCOUNT_THING_COUNT
};

struct blyi_books {
    struct blyi_lock lock;                            /* guards all below */
    struct blyi_account sum;                          /* without groups */
    struct blyi_map blocks;                           /* address -> struct blyi_account_block */
    struct blyi_map things[BLYI_ACCOUNT_THING_COUNT]; /* card and id -> group */
    struct blyi_map imports;                          /* address or handle -> block */
    struct blyi_map groups;                           /* card and site -> group */
    uint64_t epoch;                                   /* counts new peaks of the process */
    bool started, counted;
    bool forked; /* figures are those of the parent: nothing is counted any more; atomic */
};
extern struct blyi_books blyi_books;

/* Where records of groups that could not be made go; one per card, so that sums stay exact. */
extern struct blyi_account_group blyi_account_unknown[BLYI_ACCOUNT_CARDS + 1];

static inline void blyi_tally_add(struct blyi_tally *to, const struct blyi_tally *size)
{
    to->count += size->count;
    to->asked += size->asked;
    to->rounded += size->rounded;
    to->backed += size->backed;
}

static inline void blyi_tally_sub(struct blyi_tally *from, const struct blyi_tally *size)
{
    from->count -= size->count;
    from->asked -= size->asked;
    from->rounded -= size->rounded;
    from->backed -= size->backed;
}

static inline void blyi_tally_raise(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

static inline uint64_t blyi_account_key(int32_t card, uint32_t id)
{
    return (uint64_t)(uint32_t)(card + 1) << 32 | id;
}

/* All of what follows under the lock. */
struct blyi_account_group *blyi_account_group_of(int32_t card, uint32_t site);
/* Must come before a group's live figures change. A group that has not changed since the peak
 * needs no copy: its live figures still are those of the peak. */
void blyi_account_keep_peak(struct blyi_account_group *group);

void blyi_account_made(const struct blyi_probe *probe, enum blyi_account_thing thing);
void blyi_account_destroyed(const struct blyi_probe *probe, enum blyi_account_thing thing);
struct blyi_tally_ids *blyi_account_ids(struct blyi_account_group *group,
                                        enum blyi_account_thing thing);
void blyi_account_keep_id(struct blyi_tally_ids *to, uint32_t id);

void blyi_account_imported(const struct blyi_probe *probe);
void blyi_account_import_closed(const struct blyi_probe *probe);

/* Host accesses, without the lock. */
void blyi_account_access_probe(void *arg, const struct blyi_probe *probe);
void blyi_account_copy_accesses(struct blyi_account *out);

#endif
