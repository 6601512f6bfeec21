/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/account.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/site.h"
#include "observe/place.h"

#define READ_WAIT_MS 2000

struct block {
    struct blyi_account_group *group;
    struct blyi_tally size; /* count is 1 */
    uint64_t saving;
    uint32_t page_kind;
    uint32_t n_maps; /* of a handle */
    bool is_handle;
};

/* Handles share the table of blocks; no address has this bit. */
#define HANDLE_KEY ((uint64_t)1 << 63)

static struct {
    struct blyi_lock lock;   /* guards all below */
    struct blyi_account sum; /* without groups */
    struct blyi_map blocks;  /* address -> struct block */
    struct blyi_map streams; /* card and id -> group */
    struct blyi_map events;
    struct blyi_map groups; /* card and site -> group */
    uint64_t epoch;         /* counts new peaks of the process */
    bool started, counted;
    bool forked; /* figures are those of the parent: nothing is counted any more; atomic */
} account = {.lock = BLYI_LOCK_INIT(BLYI_RANK_OBSERVE)};

/* Where records of groups that could not be made go; one per card, so that sums stay exact. */
static struct blyi_account_group unknown[BLYI_ACCOUNT_CARDS + 1];

static void tally_add(struct blyi_tally *to, const struct blyi_tally *size)
{
    to->count += size->count;
    to->asked += size->asked;
    to->rounded += size->rounded;
    to->backed += size->backed;
}

static void tally_sub(struct blyi_tally *from, const struct blyi_tally *size)
{
    from->count -= size->count;
    from->asked -= size->asked;
    from->rounded -= size->rounded;
    from->backed -= size->backed;
}

static void raise(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

static uint64_t card_key(int32_t card, uint32_t id)
{
    return (uint64_t)(uint32_t)(card + 1) << 32 | id;
}

static struct blyi_account_group *group_unknown(int32_t card)
{
    struct blyi_account_group *group = &unknown[card + 1];
    group->card = card;
    return group;
}

static struct blyi_account_group *group_of(int32_t card, uint32_t site)
{
    if (site == 0)
        return group_unknown(card);
    struct blyi_account_group *group = blyi_map_get(&account.groups, card_key(card, site));
    if (group != NULL)
        return group;
    group = blyi_host_calloc(1, sizeof(*group));
    if (group == NULL)
        return group_unknown(card);
    group->card = card;
    group->site = site;
    if (blyi_map_put(&account.groups, card_key(card, site), group) != BLY_OK) {
        blyi_host_free(group);
        return group_unknown(card);
    }
    blyi_place_keep(site);
    return group;
}

/* Must come before a group's live figures change. A group that has not changed since the peak
 * needs no copy: its live figures still are those of the peak. */
static void group_keep_peak(struct blyi_account_group *group)
{
    if (group->epoch != account.epoch) {
        group->at_peak = group->live;
        group->epoch = account.epoch;
    }
}

/* Backed bytes that an allocation costs more than its unpadded twin would. The card tells the
 * twin's figure, because it knows which pages the twin would get; without it the same kind of
 * page is assumed, which never promises too much. */
static uint64_t padding_cost(const struct blyi_probe *probe)
{
    static const uint64_t page[BLYI_PAGE_KIND_COUNT] = {4 * KiB, 2 * MiB, GiB};
    uint64_t plain = blyi_align_up(probe->asked, 32);
    if (probe->rounded <= plain || probe->page_kind >= BLYI_PAGE_KIND_COUNT)
        return 0;
    uint64_t twin =
        probe->aux > 0 ? (uint64_t)probe->aux : blyi_align_up(plain, page[probe->page_kind]);
    return probe->backed > twin ? probe->backed - twin : 0;
}

static bool is_handle_kind(enum blyi_probe_kind kind)
{
    return kind == BLYI_PROBE_PHYS_CREATE || kind == BLYI_PROBE_PHYS_FREE;
}

static uint64_t key_of(const struct blyi_probe *probe)
{
    return is_handle_kind(probe->kind) ? probe->address | HANDLE_KEY : probe->address;
}

/* The record of a block, attributed to the group that it is accounted in. */
static struct blyi_account_group *block_record(const struct blyi_probe *probe, int32_t card,
                                               const struct blyi_tally *size, uint64_t saving)
{
    struct block *block = blyi_host_alloc(sizeof(*block));
    if (block != NULL) {
        *block = (struct block){.group = group_of(card, probe->site),
                                .size = *size,
                                .saving = saving,
                                .page_kind = probe->page_kind,
                                .is_handle = is_handle_kind(probe->kind)};
        if (blyi_map_put(&account.blocks, key_of(probe), block) == BLY_OK)
            return block->group;
        blyi_host_free(block);
    }
    account.sum.untracked++;
    return group_unknown(card);
}

static void on_alloc(const struct blyi_probe *probe)
{
    bool pinned = probe->kind == BLYI_PROBE_HOST_ALLOC || probe->card < 0;
    int32_t card = pinned ? BLYI_ACCOUNT_PINNED : probe->card;
    struct blyi_account_totals *totals = pinned ? &account.sum.pinned : &account.sum.process;
    struct blyi_tally size = {1, probe->asked, probe->rounded, probe->backed};
    uint64_t saving = pinned ? 0 : padding_cost(probe);
    struct blyi_account_group *group = block_record(probe, card, &size, saving);

    group_keep_peak(group);
    tally_add(&group->all, &size);
    tally_add(&group->live, &size);
    if (is_handle_kind(probe->kind))
        tally_add(&group->handles, &size);
    if (group != group_unknown(card)) {
        group->saving += saving;
        raise(&group->saving_peak, group->saving);
    }
    tally_add(&totals->all, &size);
    tally_add(&totals->live, &size);
    raise(&totals->peak_backed, totals->live.backed);
    bool new_peak = totals->live.asked > totals->peak;
    raise(&totals->peak, totals->live.asked);
    if (pinned)
        return;

    if (new_peak)
        account.epoch++;
    struct blyi_account_card *of_card = &account.sum.cards[card];
    of_card->opened = true;
    tally_add(&of_card->live, &size);
    raise(&of_card->peak, of_card->live.asked);
    raise(&of_card->peak_backed, of_card->live.backed);
    if (probe->page_kind < BLYI_PAGE_KIND_COUNT) {
        struct blyi_account_pages *pages = &account.sum.pages[probe->page_kind];
        tally_add(&pages->all, &size);
        tally_add(&pages->live, &size);
        raise(&pages->peak_backed, pages->live.backed);
    }
}

static void on_free(const struct blyi_probe *probe)
{
    bool pinned = probe->kind == BLYI_PROBE_HOST_FREE || probe->card < 0;
    bool reset = probe->kind == BLYI_PROBE_RESET_FREE ||
                 (probe->kind == BLYI_PROBE_PHYS_FREE && probe->aux == 1);
    int32_t card = pinned ? BLYI_ACCOUNT_PINNED : probe->card;
    struct blyi_account_totals *totals = pinned ? &account.sum.pinned : &account.sum.process;

    struct block unrecorded = {.group = group_unknown(card),
                               .size = {1, probe->asked, probe->rounded, probe->backed},
                               .page_kind = probe->page_kind};
    unrecorded.is_handle = is_handle_kind(probe->kind);
    struct block *block = blyi_map_remove(&account.blocks, key_of(probe));
    if (block == NULL) {
        if (group_unknown(card)->live.count == 0)
            return; /* made before the account began: never counted */
        block = &unrecorded;
    }

    struct blyi_account_group *group = block->group;
    group_keep_peak(group);
    tally_sub(&group->live, &block->size);
    if (block->is_handle)
        tally_sub(&group->handles, &block->size);
    if (reset && block->is_handle) {
        tally_add(&group->reset, &block->size);
        tally_add(&group->handles_reset, &block->size);
        group->handles_orphan += block->n_maps == 0;
    } else if (reset) {
        tally_add(&group->reset, &block->size);
        if (group->first_address == 0 || probe->address < group->first_address)
            group->first_address = probe->address;
    }
    group->saving -= block->saving;
    tally_sub(&totals->live, &block->size);
    *(reset ? &totals->reset : &totals->frees) += 1;
    if (!pinned) {
        tally_sub(&account.sum.cards[card].live, &block->size);
        if (block->page_kind < BLYI_PAGE_KIND_COUNT)
            tally_sub(&account.sum.pages[block->page_kind].live, &block->size);
    }
    if (block != &unrecorded)
        blyi_host_free(block);
}

static void on_refused(const struct blyi_probe *probe)
{
    bool pinned = probe->card < 0;
    struct blyi_account_group *group = group_of(probe->card, probe->site);
    group->refused++;
    raise(&group->refused_largest, probe->asked);
    group->refused_status = probe->aux;
    (pinned ? &account.sum.pinned : &account.sum.process)->refused++;
}

static void on_free_refused(const struct blyi_probe *probe)
{
    account.sum.frees.count++;
    account.sum.frees.site = probe->site;
    blyi_place_keep(probe->site);
}

static void keep_low_id(struct blyi_tally_ids *to, uint32_t id)
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

static void on_made(const struct blyi_probe *probe, bool is_event)
{
    if (!is_event && probe->aux == 1)
        return; /* a context's default stream: not the program's to destroy */
    struct blyi_account_objects *sum = is_event ? &account.sum.events : &account.sum.streams;
    struct blyi_account_group *group = group_of(probe->card, probe->site);
    uint64_t key = card_key(probe->card, is_event ? probe->event : probe->stream);
    if (blyi_map_put(is_event ? &account.events : &account.streams, key, group) != BLY_OK) {
        account.sum.untracked++;
        return;
    }
    struct blyi_tally_ids *ids = is_event ? &group->events : &group->streams;
    ids->made++;
    ids->live++;
    sum->made++;
    sum->live++;
    raise(&sum->peak, sum->live);
}

static void on_destroyed(const struct blyi_probe *probe, bool is_event)
{
    struct blyi_account_objects *sum = is_event ? &account.sum.events : &account.sum.streams;
    uint32_t id = is_event ? probe->event : probe->stream;
    struct blyi_account_group *group =
        blyi_map_remove(is_event ? &account.events : &account.streams, card_key(probe->card, id));
    if (group == NULL)
        return;
    struct blyi_tally_ids *ids = is_event ? &group->events : &group->streams;
    ids->live--;
    sum->live--;
    if (probe->aux != 1) {
        sum->destroyed++;
        return;
    }
    keep_low_id(ids, id);
    ids->reset++;
}

/* A reset unmaps on its way; what was reachable before counts. */
static void on_map(const struct blyi_probe *probe)
{
    struct block *handle = blyi_map_get(&account.blocks, probe->other | HANDLE_KEY);
    if (handle == NULL || probe->aux == 1)
        return;
    if (probe->kind == BLYI_PROBE_MAP)
        handle->n_maps++;
    else
        handle->n_maps--;
}

static void on_card(const struct blyi_probe *probe)
{
    struct blyi_account_card *card = &account.sum.cards[probe->card];
    card->opened = true;
    card->total = probe->size;
    card->overhead = (uint64_t)probe->aux;
}

static void take_probe(const struct blyi_probe *probe)
{
    switch (probe->kind) {
    case BLYI_PROBE_CARD_OPEN:
        on_card(probe);
        break;
    case BLYI_PROBE_ALLOC:
    case BLYI_PROBE_HOST_ALLOC:
    case BLYI_PROBE_PHYS_CREATE:
        on_alloc(probe);
        break;
    case BLYI_PROBE_FREE:
    case BLYI_PROBE_RESET_FREE:
    case BLYI_PROBE_HOST_FREE:
    case BLYI_PROBE_PHYS_FREE:
        on_free(probe);
        break;
    case BLYI_PROBE_MAP:
    case BLYI_PROBE_UNMAP:
        on_map(probe);
        break;
    case BLYI_PROBE_ALLOC_FAIL:
        on_refused(probe);
        break;
    case BLYI_PROBE_FREE_FAIL:
        on_free_refused(probe);
        break;
    case BLYI_PROBE_STREAM_CREATE:
    case BLYI_PROBE_EVENT_CREATE:
        on_made(probe, probe->kind == BLYI_PROBE_EVENT_CREATE);
        break;
    case BLYI_PROBE_STREAM_DESTROY:
    case BLYI_PROBE_EVENT_DESTROY:
        on_destroyed(probe, probe->kind == BLYI_PROBE_EVENT_DESTROY);
        break;
    default:
        break;
    }
}

static bool may_be_hosts(enum blyi_probe_kind kind)
{
    return kind == BLYI_PROBE_HOST_ALLOC || kind == BLYI_PROBE_HOST_FREE ||
           kind == BLYI_PROBE_PHYS_CREATE || kind == BLYI_PROBE_PHYS_FREE ||
           kind == BLYI_PROBE_MAP || kind == BLYI_PROBE_UNMAP || kind == BLYI_PROBE_FREE_FAIL;
}

static void account_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    if (__atomic_load_n(&account.forked, __ATOMIC_RELAXED))
        return;
    bool on_card = probe->card >= 0 && probe->card < BLYI_ACCOUNT_CARDS;
    bool pinned = may_be_hosts(probe->kind) ||
                  (probe->kind == BLYI_PROBE_ALLOC_FAIL && probe->card == BLYI_ACCOUNT_PINNED);
    if (!on_card && !pinned)
        return;
    blyi_lock_take(&account.lock);
    account.counted = true;
    take_probe(probe);
    blyi_lock_drop(&account.lock);
}

/* ---- host accesses: told in a signal handler, so without a lock or memory ---- */

static struct {
    _Atomic(const void *) pc; /* set first, by whoever takes the entry; NULL: unused */
    _Atomic bool filled;
    _Atomic uint64_t count;
    struct blyi_account_access access;
} accesses[BLYI_ACCOUNT_ACCESSES];

static void access_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    for (size_t i = 0; i < BLYI_ACCOUNT_ACCESSES; i++) {
        const void *pc = NULL;
        if (atomic_compare_exchange_strong(&accesses[i].pc, &pc, probe->pc)) {
            accesses[i].access = (struct blyi_account_access){
                .card = probe->card,
                .block_site = probe->site,
                .is_write = probe->aux != 0,
                .address = probe->address,
                .offset = probe->other != 0 ? probe->address - probe->other : 0,
                .size = probe->asked};
            atomic_store(&accesses[i].filled, true);
        } else if (pc != probe->pc) {
            continue;
        }
        atomic_fetch_add(&accesses[i].count, 1);
        return;
    }
}

static void copy_accesses(struct blyi_account *out)
{
    out->n_accesses = 0;
    for (size_t i = 0; i < BLYI_ACCOUNT_ACCESSES; i++) {
        if (!atomic_load(&accesses[i].filled))
            continue;
        struct blyi_account_access *to = &out->accesses[out->n_accesses++];
        *to = accesses[i].access;
        to->site = blyi_site_intern(atomic_load(&accesses[i].pc));
        to->count = atomic_load(&accesses[i].count);
    }
}

/* The child's runtime is dead if the parent's was up; if it was not, the child starts anew. */
static void on_fork_child(void)
{
    blyi_lock_init(&account.lock, BLYI_RANK_OBSERVE);
    __atomic_store_n(&account.forked, account.forked || account.counted, __ATOMIC_RELAXED);
}

static void start_once(void)
{
#define WANTED(kind) ((uint64_t)1 << BLYI_PROBE_##kind)
    static struct blyi_sink sink = {
        .kinds = WANTED(CARD_OPEN) | WANTED(ALLOC) | WANTED(FREE) | WANTED(RESET_FREE) |
                 WANTED(ALLOC_FAIL) | WANTED(HOST_ALLOC) | WANTED(HOST_FREE) |
                 WANTED(STREAM_CREATE) | WANTED(STREAM_DESTROY) | WANTED(EVENT_CREATE) |
                 WANTED(EVENT_DESTROY) | WANTED(PHYS_CREATE) | WANTED(PHYS_FREE) | WANTED(MAP) |
                 WANTED(UNMAP) | WANTED(FREE_FAIL),
        .probe = account_probe,
    };
#undef WANTED
    blyi_map_init(&account.blocks);
    blyi_map_init(&account.streams);
    blyi_map_init(&account.events);
    blyi_map_init(&account.groups);
    account.epoch = 1;
    account.started = true;
    pthread_atfork(NULL, NULL, on_fork_child);
    blyi_probe_add_sink(&sink);
    static struct blyi_sink access_sink = {.kinds = (uint64_t)1 << BLYI_PROBE_HOST_ACCESS,
                                           .probe = access_probe};
    blyi_probe_add_sink(&access_sink);
}

void blyi_account_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
}

bool blyi_account_is_own(void)
{
    return account.started && !__atomic_load_n(&account.forked, __ATOMIC_RELAXED);
}

void blyi_account_set_dying(void)
{
    account.sum.dying = true;
}

static bool lock_patiently(void)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < READ_WAIT_MS; i++) {
        if (blyi_lock_try(&account.lock))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void copy_group(struct blyi_account *out, struct blyi_account_group *group)
{
    if (group->all.count + group->refused + group->streams.made + group->events.made == 0)
        return;
    group_keep_peak(group);
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

static void copy_ids(struct blyi_account *out, const struct blyi_map *map, bool is_event)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(map, &cursor, &key, &value)) {
        struct blyi_account_group *group = copied_group(out, value);
        keep_low_id(is_event ? &group->events : &group->streams, (uint32_t)key);
    }
}

static void copy_leaks(struct blyi_account *out)
{
    size_t cursor = 0;
    uint64_t address;
    void *value;
    while (blyi_map_next(&account.blocks, &cursor, &address, &value)) {
        const struct block *block = value;
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
    size_t max = account.groups.count + BLYI_ACCOUNT_CARDS + 1;
    struct blyi_account_group *groups = blyi_host_calloc(max, sizeof(*groups));
    if (groups == NULL) {
        blyi_lock_drop(&account.lock);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a report on %zu sites", max);
    }
    *out = account.sum;
    out->groups = groups;
    out->n_groups = 0;
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&account.groups, &cursor, &key, &value))
        copy_group(out, value);
    for (size_t i = 0; i < BLYI_COUNT(unknown); i++)
        copy_group(out, &unknown[i]);
    qsort(groups, out->n_groups, sizeof(*groups), group_order);
    copy_leaks(out);
    copy_ids(out, &account.streams, false);
    copy_ids(out, &account.events, true);
    blyi_lock_drop(&account.lock);
    copy_accesses(out);
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
    tally_add(group->card == BLYI_ACCOUNT_PINNED ? pinned : card, &group->live);
}

static bool audit_locked(void)
{
    struct blyi_tally card = {0}, pinned = {0}, by_card = {0}, records = {0};
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&account.groups, &cursor, &key, &value))
        sum_group(&card, &pinned, value);
    for (size_t i = 0; i < BLYI_COUNT(unknown); i++)
        sum_group(&card, &pinned, &unknown[i]);
    for (size_t i = 0; i < BLYI_ACCOUNT_CARDS; i++)
        tally_add(&by_card, &account.sum.cards[i].live);
    cursor = 0;
    while (blyi_map_next(&account.blocks, &cursor, &key, &value))
        tally_add(&records, &((const struct block *)value)->size);
    return tally_equal(&card, &account.sum.process.live) &&
           tally_equal(&pinned, &account.sum.pinned.live) &&
           tally_equal(&by_card, &account.sum.process.live) &&
           records.count <= card.count + pinned.count &&
           account.sum.process.peak >= account.sum.process.live.asked &&
           blyi_map_audit(&account.blocks) && blyi_map_audit(&account.groups);
}

bool blyi_account_audit(void)
{
    blyi_lock_take(&account.lock);
    bool sound = audit_locked();
    blyi_lock_drop(&account.lock);
    return sound;
}
