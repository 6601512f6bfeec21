/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_leak.h"

#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/account_inside.h"

static struct blyi_account_group *group_of(struct blyi_check *check, int32_t card, uint32_t site)
{
    uint64_t key = (uint64_t)(uint32_t)(card + 1) << 32 | site;
    if (!check->opts.keeps_leaks || check->stopped != NULL)
        return NULL;
    struct blyi_account_group *group = blyi_map_get(&check->leaks, key);
    if (group != NULL)
        return group;
    group = blyi_host_calloc(1, sizeof(*group));
    if (group == NULL || blyi_map_put(&check->leaks, key, group) != BLY_OK) {
        blyi_host_free(group);
        blyi_check_stop(check);
        return NULL;
    }
    group->card = card;
    group->site = site;
    return group;
}

static void add(struct blyi_tally *to, uint64_t asked, uint64_t backed)
{
    to->count++;
    to->asked += asked;
    to->backed += backed;
}

static void leak_import(struct blyi_check *check, int32_t card, uint32_t site, uint64_t size,
                        bool by_reset)
{
    struct blyi_account_group *group = group_of(check, card, site);
    if (group != NULL)
        add(by_reset ? &group->imports_reset : &group->imports, size, size);
}

void blyi_leak_block(struct blyi_check *check, const struct blyi_area *area, bool by_reset)
{
    bool pinned = area->kind == BLYI_AREA_PINNED;
    if (area->kind == BLYI_AREA_IMPORT)
        leak_import(check, area->card, area->site, area->size, by_reset);
    if (area->kind != BLYI_AREA_BLOCK && !pinned)
        return;
    struct blyi_account_group *group =
        group_of(check, pinned ? BLYI_ACCOUNT_PINNED : area->card, area->site);
    if (group == NULL)
        return;
    add(by_reset ? &group->reset : &group->live, area->size, area->reach);
    if (group->first_address == 0 || area->node.key < group->first_address)
        group->first_address = area->node.key;
}

void blyi_leak_handle(struct blyi_check *check, const struct blyi_handle_memory *handle,
                      bool by_reset)
{
    if (handle->is_import) {
        leak_import(check, handle->card, handle->site, handle->size, by_reset);
        return;
    }
    struct blyi_account_group *group = group_of(check, handle->card, handle->site);
    if (group == NULL)
        return;
    add(by_reset ? &group->reset : &group->live, handle->size, handle->size);
    add(by_reset ? &group->handles_reset : &group->handles, handle->size, handle->size);
    group->handles_orphan += handle->n_maps == 0;
}

static void add_id(struct blyi_tally_ids *to, uint32_t id, bool by_reset)
{
    *(by_reset ? &to->reset : &to->live) += 1;
    blyi_account_keep_id(to, id);
}

void blyi_leak_stream(struct blyi_check *check, const struct blyi_check_stream *stream,
                      bool by_reset)
{
    struct blyi_account_group *group =
        stream->is_made && !stream->is_default ? group_of(check, stream->card, stream->site) : NULL;
    if (group != NULL)
        add_id(&group->streams, stream->id, by_reset);
}

void blyi_leak_event(struct blyi_check *check, const struct blyi_check_event *event, uint32_t id,
                     bool by_reset)
{
    struct blyi_account_group *group =
        event->card >= 0 ? group_of(check, event->card, event->site) : NULL;
    if (group != NULL)
        add_id(&group->events, id, by_reset);
}

static bool thing_of(enum blyi_probe_kind kind, enum blyi_account_thing *thing, bool *made)
{
    switch (kind) {
#define THING_CASE(one)                                                                            \
    case BLYI_PROBE_##one##_CREATE:                                                                \
    case BLYI_PROBE_##one##_DESTROY:                                                               \
        *thing = BLYI_ACCOUNT_##one;                                                               \
        *made = kind == BLYI_PROBE_##one##_CREATE;                                                 \
        return true;
        THING_CASE(NOTIFY)
        THING_CASE(GRAPH)
        THING_CASE(CONTEXT)
        THING_CASE(QUEUE)
#undef THING_CASE
    default:
        return false;
    }
}

static void leak_thing(struct blyi_check *check, uint64_t key, const void *made_at, bool by_reset)
{
    int32_t card = (int32_t)(key >> 32 & 0xffff) - 1;
    struct blyi_account_group *group = group_of(check, card, (uint32_t)((uintptr_t)made_at - 1));
    if (group != NULL)
        add_id(blyi_account_ids(group, (enum blyi_account_thing)(key >> 48)), (uint32_t)key,
               by_reset);
}

void blyi_leak_thing(struct blyi_check *check, const struct blyi_probe *probe)
{
    enum blyi_account_thing thing;
    bool made;
    if (!check->opts.keeps_leaks || !thing_of(probe->kind, &thing, &made))
        return;
    uint64_t key = (uint64_t)thing << 48 | blyi_account_key(probe->card, probe->event);
    if (made) {
        if (blyi_map_put(&check->things, key, (void *)((uintptr_t)probe->site + 1)) != BLY_OK)
            blyi_check_stop(check);
        return;
    }
    const void *made_at = blyi_map_remove(&check->things, key);
    if (made_at != NULL && probe->aux == 1)
        leak_thing(check, key, made_at, true);
}

void blyi_leak_access(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_account_access *to = check->accesses;
    size_t i = 0;
    if (!check->opts.keeps_leaks)
        return;
    while (i < check->n_accesses && check->access_pcs[i] != probe->pc)
        i++;
    if (i == BLYI_ACCOUNT_ACCESSES)
        return;
    if (i == check->n_accesses) {
        check->access_pcs[check->n_accesses++] = probe->pc;
        to[i] = (struct blyi_account_access){
            .card = probe->card,
            .block_site = probe->site,
            .is_write = probe->aux != 0,
            .address = probe->address,
            .offset = probe->other != 0 ? probe->address - probe->other : 0,
            .size = probe->asked};
    }
    to[i].count++;
}

/* ── Events and queued work ───────────────────────────────────────────────────────────────── */

static void look_at_tasks(struct blyi_check *check)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->events, &cursor, &key, &value))
        ((struct blyi_check_event *)value)->is_pending =
            ((struct blyi_check_event *)value)->is_used = false;
    cursor = 0;
    while (blyi_map_next(&check->streams, &cursor, &key, &value)) {
        const struct blyi_check_stream *stream = value;
        for (const struct blyi_check_task *task = stream->first; task != NULL; task = task->next) {
            bool records = task->kind == BLYI_PROBE_RECORD;
            struct blyi_check_event *event =
                records || task->kind == BLYI_PROBE_WAIT
                    ? blyi_map_get(&check->events, blyi_event_key(task->event))
                    : NULL;
            if (event == NULL)
                continue;
            event->is_used = true;
            event->is_pending = event->is_pending || records;
        }
    }
}

void blyi_check_events(struct blyi_check *check, struct blyi_account *account)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    if (check->stopped != NULL)
        return;
    look_at_tasks(check);
    while (blyi_map_next(&check->events, &cursor, &key, &value)) {
        const struct blyi_check_event *event = value;
        for (size_t i = 0; event->is_used && i < account->n_groups; i++) {
            struct blyi_account_group *group = &account->groups[i];
            if (group->card != event->card || group->site != event->site)
                continue;
            group->events_pending += event->is_pending;
            group->events_used++;
        }
    }
    account->knows_work = true;
}

/* ── All that was never given back ────────────────────────────────────────────────────────── */

static void add_live(struct blyi_check *check)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    for (struct blyi_tree_node *node = blyi_tree_first(&check->areas); node != NULL;
         node = blyi_tree_next(node))
        blyi_leak_block(check, BLYI_CONTAINER(node, struct blyi_area, node), false);
    while (blyi_map_next(&check->handles, &cursor, &key, &value))
        blyi_leak_handle(check, value, false);
    cursor = 0;
    while (blyi_map_next(&check->streams, &cursor, &key, &value))
        blyi_leak_stream(check, value, false);
    cursor = 0;
    while (blyi_map_next(&check->events, &cursor, &key, &value))
        if (key >> 62 == 0)
            blyi_leak_event(check, value, (uint32_t)key, false);
    cursor = 0;
    while (blyi_map_next(&check->things, &cursor, &key, &value))
        leak_thing(check, key, value, false);
}

void blyi_check_leaks(struct blyi_check *check)
{
    add_live(check);
    struct blyi_account *account = blyi_host_calloc(1, sizeof(*account));
    struct blyi_account_group *groups = blyi_host_calloc(check->leaks.count + 1, sizeof(*groups));
    struct blyi_finding *list = NULL;
    size_t cursor = 0, n = 0;
    uint64_t key;
    void *value;
    if (account == NULL || groups == NULL) {
        blyi_check_stop(check);
    } else {
        account->groups = groups;
        while (blyi_map_next(&check->leaks, &cursor, &key, &value))
            groups[account->n_groups++] = *(struct blyi_account_group *)value;
        memcpy(account->accesses, check->accesses, sizeof(account->accesses));
        account->n_accesses = check->n_accesses;
        blyi_check_events(check, account);
        if (blyi_findings_make(account, &list, &n) != BLY_OK)
            blyi_check_stop(check);
        for (size_t i = 0; i < n; i++)
            blyi_found(check, &list[i], list[i].sites[0].site, (uint64_t)(list[i].card + 1) << 32);
    }
    blyi_host_free(list);
    blyi_host_free(groups);
    blyi_host_free(account);
}

void blyi_leaks_fini(struct blyi_check *check)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->leaks, &cursor, &key, &value))
        blyi_host_free(value);
    blyi_map_fini(&check->leaks);
    blyi_map_fini(&check->things);
}
