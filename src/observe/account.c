/* SPDX-License-Identifier: Apache-2.0
 *
 * account.c - the sink: what each probe of memory does to the figures.
 */
#include "observe/account_inside.h"

#include <pthread.h>
#include "base/host.h"
#include "observe/place.h"

/* Handles share the table of blocks; no address has this bit. */
#define HANDLE_KEY ((uint64_t)1 << 63)

struct blyi_books blyi_books = {.lock = BLYI_LOCK_INIT(BLYI_RANK_OBSERVE)};
struct blyi_account_group blyi_account_unknown[BLYI_ACCOUNT_CARDS + 1];

static struct blyi_account_group *group_unknown(int32_t card)
{
    struct blyi_account_group *group = &blyi_account_unknown[card + 1];
    group->card = card;
    return group;
}

struct blyi_account_group *blyi_account_group_of(int32_t card, uint32_t site)
{
    if (site == 0)
        return group_unknown(card);
    struct blyi_account_group *group =
        blyi_map_get(&blyi_books.groups, blyi_account_key(card, site));
    if (group != NULL)
        return group;
    group = blyi_host_calloc(1, sizeof(*group));
    if (group == NULL)
        return group_unknown(card);
    group->card = card;
    group->site = site;
    if (blyi_map_put(&blyi_books.groups, blyi_account_key(card, site), group) != BLY_OK) {
        blyi_host_free(group);
        return group_unknown(card);
    }
    blyi_place_keep(site);
    return group;
}

void blyi_account_keep_peak(struct blyi_account_group *group)
{
    if (group->epoch != blyi_books.epoch) {
        group->at_peak = group->live;
        group->epoch = blyi_books.epoch;
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

static bool is_in_pool(const struct blyi_probe *probe)
{
    return !is_handle_kind(probe->kind) && probe->other != 0;
}

static uint64_t key_of(const struct blyi_probe *probe)
{
    return is_handle_kind(probe->kind) ? probe->address | HANDLE_KEY : probe->address;
}

/* The record of a block, attributed to the group that it is accounted in. */
static struct blyi_account_group *block_record(const struct blyi_probe *probe, int32_t card,
                                               const struct blyi_tally *size, uint64_t saving)
{
    struct blyi_account_block *block = blyi_host_alloc(sizeof(*block));
    if (block != NULL) {
        *block = (struct blyi_account_block){.group = blyi_account_group_of(card, probe->site),
                                             .size = *size,
                                             .saving = saving,
                                             .page_kind = probe->page_kind,
                                             .is_handle = is_handle_kind(probe->kind),
                                             .is_in_pool = is_in_pool(probe)};
        if (blyi_map_put(&blyi_books.blocks, key_of(probe), block) == BLY_OK)
            return block->group;
        blyi_host_free(block);
    }
    blyi_books.sum.untracked++;
    return group_unknown(card);
}

/* What is registered is pinned as well. */
static void raise_pinned(void)
{
    struct blyi_account_totals *pinned = &blyi_books.sum.pinned;
    const struct blyi_tally *registered = &blyi_books.sum.registered.live;
    blyi_tally_raise(&pinned->peak, pinned->live.asked + registered->asked);
    blyi_tally_raise(&pinned->peak_backed, pinned->live.backed + registered->backed);
}

static void on_registered(const struct blyi_probe *probe)
{
    struct blyi_account_registered *registered = &blyi_books.sum.registered;
    struct blyi_tally size = {1, probe->asked, probe->rounded, probe->backed};
    if (probe->backed == 0)
        return; /* of a pinned block, which is counted already */
    if (probe->kind == BLYI_PROBE_HOST_REGISTER) {
        registered->made++;
        blyi_tally_add(&registered->live, &size);
        raise_pinned();
    } else if (registered->live.count > 0) { /* else made before the account began */
        blyi_tally_sub(&registered->live, &size);
    }
}

/* What the card gives: pages of blocks outside of pools, and what pools hold. */
static void take_from_card(int32_t card, uint64_t bytes)
{
    struct blyi_account_card *of_card = &blyi_books.sum.cards[card];
    of_card->taken += bytes;
    blyi_tally_raise(&of_card->peak_taken, of_card->taken);
}

static void on_segment(const struct blyi_probe *probe)
{
    struct blyi_account_card *of_card = &blyi_books.sum.cards[probe->card];
    if (probe->kind == BLYI_PROBE_SEGMENT) {
        of_card->held += probe->size;
        take_from_card(probe->card, probe->size);
    } else if (of_card->held >= probe->size) { /* else taken before the account began */
        of_card->held -= probe->size;
        of_card->taken -= probe->size;
    }
}

static void on_alloc(const struct blyi_probe *probe)
{
    bool pinned = probe->kind == BLYI_PROBE_HOST_ALLOC || probe->card < 0;
    int32_t card = pinned ? BLYI_ACCOUNT_PINNED : probe->card;
    struct blyi_account_totals *totals = pinned ? &blyi_books.sum.pinned : &blyi_books.sum.process;
    struct blyi_tally size = {1, probe->asked, probe->rounded, probe->backed};
    uint64_t saving = pinned ? 0 : padding_cost(probe);
    struct blyi_account_group *group = block_record(probe, card, &size, saving);

    blyi_account_keep_peak(group);
    blyi_tally_add(&group->all, &size);
    blyi_tally_add(&group->live, &size);
    if (is_handle_kind(probe->kind))
        blyi_tally_add(&group->handles, &size);
    if (group != group_unknown(card)) {
        group->saving += saving;
        blyi_tally_raise(&group->saving_peak, group->saving);
    }
    blyi_tally_add(&totals->all, &size);
    blyi_tally_add(&totals->live, &size);
    if (pinned) {
        raise_pinned();
        return;
    }
    blyi_tally_raise(&totals->peak_backed, totals->live.backed);
    bool new_peak = totals->live.asked > totals->peak;
    blyi_tally_raise(&totals->peak, totals->live.asked);
    if (new_peak)
        blyi_books.epoch++;
    struct blyi_account_card *of_card = &blyi_books.sum.cards[card];
    of_card->opened = true;
    blyi_tally_add(&of_card->live, &size);
    blyi_tally_raise(&of_card->peak, of_card->live.asked);
    blyi_tally_raise(&of_card->peak_backed, of_card->live.backed);
    if (!is_in_pool(probe))
        take_from_card(card, size.backed);
    if (probe->page_kind < BLYI_PAGE_KIND_COUNT) {
        struct blyi_account_pages *pages = &blyi_books.sum.pages[probe->page_kind];
        blyi_tally_add(&pages->all, &size);
        blyi_tally_add(&pages->live, &size);
        blyi_tally_raise(&pages->peak_backed, pages->live.backed);
    }
}

static void on_free(const struct blyi_probe *probe)
{
    bool pinned = probe->kind == BLYI_PROBE_HOST_FREE || probe->card < 0;
    bool reset = probe->kind == BLYI_PROBE_RESET_FREE ||
                 (probe->kind == BLYI_PROBE_PHYS_FREE && probe->aux == 1);
    int32_t card = pinned ? BLYI_ACCOUNT_PINNED : probe->card;
    struct blyi_account_totals *totals = pinned ? &blyi_books.sum.pinned : &blyi_books.sum.process;

    struct blyi_account_block unrecorded = {
        .group = group_unknown(card),
        .size = {1, probe->asked, probe->rounded, probe->backed},
        .page_kind = probe->page_kind};
    unrecorded.is_handle = is_handle_kind(probe->kind);
    unrecorded.is_in_pool = is_in_pool(probe);
    struct blyi_account_block *block = blyi_map_remove(&blyi_books.blocks, key_of(probe));
    if (block == NULL) {
        if (group_unknown(card)->live.count == 0)
            return; /* made before the account began: never counted */
        block = &unrecorded;
    }

    struct blyi_account_group *group = block->group;
    blyi_account_keep_peak(group);
    blyi_tally_sub(&group->live, &block->size);
    if (block->is_handle)
        blyi_tally_sub(&group->handles, &block->size);
    if (reset && block->is_handle) {
        blyi_tally_add(&group->reset, &block->size);
        blyi_tally_add(&group->handles_reset, &block->size);
        group->handles_orphan += block->n_maps == 0;
    } else if (reset) {
        blyi_tally_add(&group->reset, &block->size);
        if (group->first_address == 0 || probe->address < group->first_address)
            group->first_address = probe->address;
    }
    group->saving -= block->saving;
    blyi_tally_sub(&totals->live, &block->size);
    *(reset ? &totals->reset : &totals->frees) += 1;
    if (!pinned) {
        blyi_tally_sub(&blyi_books.sum.cards[card].live, &block->size);
        blyi_books.sum.cards[card].taken -= block->is_in_pool ? 0 : block->size.backed;
        if (block->page_kind < BLYI_PAGE_KIND_COUNT)
            blyi_tally_sub(&blyi_books.sum.pages[block->page_kind].live, &block->size);
    }
    if (block != &unrecorded)
        blyi_host_free(block);
}

static void on_refused(const struct blyi_probe *probe)
{
    bool pinned = probe->card < 0;
    struct blyi_account_group *group = blyi_account_group_of(probe->card, probe->site);
    group->refused++;
    blyi_tally_raise(&group->refused_largest, probe->asked);
    group->refused_status = probe->aux;
    (pinned ? &blyi_books.sum.pinned : &blyi_books.sum.process)->refused++;
}

static void on_free_refused(const struct blyi_probe *probe)
{
    blyi_books.sum.frees.count++;
    blyi_books.sum.frees.site = probe->site;
    blyi_place_keep(probe->site);
}

/* A reset unmaps on its way; what was reachable before counts. */
static void on_map(const struct blyi_probe *probe)
{
    struct blyi_account_block *handle = blyi_map_get(&blyi_books.blocks, probe->other | HANDLE_KEY);
    if (handle == NULL || probe->aux == 1)
        return;
    if (probe->kind == BLYI_PROBE_MAP)
        handle->n_maps++;
    else
        handle->n_maps--;
}

static void on_card(const struct blyi_probe *probe)
{
    struct blyi_account_card *card = &blyi_books.sum.cards[probe->card];
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
    case BLYI_PROBE_SEGMENT:
    case BLYI_PROBE_SEGMENT_FREE:
        on_segment(probe);
        break;
    case BLYI_PROBE_IMPORT:
        blyi_account_imported(probe);
        break;
    case BLYI_PROBE_IMPORT_CLOSE:
        blyi_account_import_closed(probe);
        break;
    case BLYI_PROBE_ALLOC_FAIL:
        on_refused(probe);
        break;
    case BLYI_PROBE_FREE_FAIL:
        on_free_refused(probe);
        break;
    case BLYI_PROBE_HOST_REGISTER:
    case BLYI_PROBE_HOST_UNREGISTER:
        on_registered(probe);
        break;
#define THING_CASE(things, one)                                                                    \
    case BLYI_PROBE_##one##_CREATE:                                                                \
        blyi_account_made(probe, BLYI_ACCOUNT_##one);                                              \
        break;                                                                                     \
    case BLYI_PROBE_##one##_DESTROY:                                                               \
        blyi_account_destroyed(probe, BLYI_ACCOUNT_##one);                                         \
        break;
        BLYI_ACCOUNT_THINGS(THING_CASE)
#undef THING_CASE
    default:
        break;
    }
}

static bool may_be_hosts(enum blyi_probe_kind kind)
{
    return kind == BLYI_PROBE_HOST_ALLOC || kind == BLYI_PROBE_HOST_FREE ||
           kind == BLYI_PROBE_HOST_REGISTER || kind == BLYI_PROBE_HOST_UNREGISTER ||
           kind == BLYI_PROBE_PHYS_CREATE || kind == BLYI_PROBE_PHYS_FREE ||
           kind == BLYI_PROBE_MAP || kind == BLYI_PROBE_UNMAP || kind == BLYI_PROBE_FREE_FAIL;
}

static void account_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    if (__atomic_load_n(&blyi_books.forked, __ATOMIC_RELAXED))
        return;
    bool on_card = probe->card >= 0 && probe->card < BLYI_ACCOUNT_CARDS;
    bool pinned = may_be_hosts(probe->kind) ||
                  (probe->kind == BLYI_PROBE_ALLOC_FAIL && probe->card == BLYI_ACCOUNT_PINNED);
    if (!on_card && !pinned)
        return;
    blyi_lock_take(&blyi_books.lock);
    blyi_books.counted = true;
    take_probe(probe);
    blyi_lock_drop(&blyi_books.lock);
}

/* The child's runtime is dead if the parent's was up; if it was not, the child starts anew. */
static void on_fork_child(void)
{
    __atomic_store_n(&blyi_books.forked, blyi_books.forked || blyi_books.counted, __ATOMIC_RELAXED);
}

static void start_once(void)
{
    static struct blyi_sink sink = {
        .kinds = BLYI_KIND(CARD_OPEN) | BLYI_KIND(ALLOC) | BLYI_KIND(FREE) | BLYI_KIND(RESET_FREE) |
                 BLYI_KIND(ALLOC_FAIL) | BLYI_KIND(HOST_ALLOC) | BLYI_KIND(HOST_FREE) |
                 BLYI_KIND(HOST_REGISTER) | BLYI_KIND(HOST_UNREGISTER) | BLYI_KIND(STREAM_CREATE) |
                 BLYI_KIND(STREAM_DESTROY) | BLYI_KIND(EVENT_CREATE) | BLYI_KIND(EVENT_DESTROY) |
                 BLYI_KIND(IMPORT) | BLYI_KIND(IMPORT_CLOSE) | BLYI_KIND(NOTIFY_CREATE) |
                 BLYI_KIND(NOTIFY_DESTROY) | BLYI_KIND(GRAPH_CREATE) | BLYI_KIND(GRAPH_DESTROY) |
                 BLYI_KIND(CONTEXT_CREATE) | BLYI_KIND(CONTEXT_DESTROY) | BLYI_KIND(QUEUE_CREATE) |
                 BLYI_KIND(QUEUE_DESTROY) | BLYI_KIND(PHYS_CREATE) | BLYI_KIND(PHYS_FREE) |
                 BLYI_KIND(MAP) | BLYI_KIND(UNMAP) | BLYI_KIND(FREE_FAIL) | BLYI_KIND(SEGMENT) |
                 BLYI_KIND(SEGMENT_FREE),
        .probe = account_probe,
    };
    blyi_map_init(&blyi_books.blocks);
    for (int thing = 0; thing < BLYI_ACCOUNT_THING_COUNT; thing++)
        blyi_map_init(&blyi_books.things[thing]);
    blyi_map_init(&blyi_books.imports);
    blyi_map_init(&blyi_books.groups);
    blyi_books.epoch = 1;
    blyi_books.started = true;
    pthread_atfork(NULL, NULL, on_fork_child);
    blyi_probe_add_sink(&sink);
    static struct blyi_sink access_sink = {.kinds = BLYI_KIND(HOST_ACCESS),
                                           .probe = blyi_account_access_probe};
    blyi_probe_add_sink(&access_sink);
}

void blyi_account_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
}

bool blyi_account_is_own(void)
{
    return blyi_books.started && !__atomic_load_n(&blyi_books.forked, __ATOMIC_RELAXED);
}

void blyi_account_set_dying(void)
{
    blyi_books.sum.dying = true;
}
