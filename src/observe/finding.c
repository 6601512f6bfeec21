/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"

static const struct {
    const char *key, *meaning, *cure;
} kinds[BLYI_FINDING_KIND_COUNT] = {
#define BLYI_FINDING_ROW(name, key, meaning, cure) {key, meaning, cure},
    BLYI_FINDINGS(BLYI_FINDING_ROW)
#undef BLYI_FINDING_ROW
};

static const struct {
    const char *key, *words;
} roles[] = {
#define BLYI_ROLE_ROW(name, key, words) {key, words},
    BLYI_ROLES(BLYI_ROLE_ROW)
#undef BLYI_ROLE_ROW
};

const char *blyi_finding_key(enum blyi_finding_kind kind)
{
    return kinds[kind].key;
}

const char *blyi_finding_meaning(enum blyi_finding_kind kind)
{
    return kinds[kind].meaning;
}

const char *blyi_finding_cure(const struct blyi_finding *finding)
{
    if (finding->kind == BLYI_FINDING_LEAK && finding->card == BLYI_ACCOUNT_PINNED)
        return "call aclrtFreeHost for every block before the program ends";
    return kinds[finding->kind].cure;
}

const char *blyi_role_key(enum blyi_role role)
{
    return roles[role].key;
}

const char *blyi_role_words(enum blyi_role role)
{
    return roles[role].words;
}

static void say_where(const struct blyi_finding *finding, char *to, size_t size)
{
    if (finding->card == BLYI_ACCOUNT_PINNED)
        snprintf(to, size, "pinned host memory");
    else
        snprintf(to, size, "card %d", finding->card);
}

static void say_reset(struct blyi_finding *finding)
{
    size_t length = strlen(finding->message);
    if (finding->reset > 0)
        snprintf(finding->message + length, sizeof(finding->message) - length,
                 " (%" PRIu64 " taken back by a device reset or aclFinalize)", finding->reset);
}

/* Physical memory is told apart: a handle is not a block. */
static struct blyi_finding leaked_handle_of(const struct blyi_account_group *group)
{
    struct blyi_finding leak = {
        .kind = BLYI_FINDING_LEAKED_HANDLE,
        .card = group->card,
        .site = group->site,
        .role = BLYI_ROLE_CREATE,
        .bytes = group->handles.asked + group->handles_reset.asked,
        .backed = group->handles.backed + group->handles_reset.backed,
        .count = group->handles.count + group->handles_reset.count,
        .reset = group->handles_reset.count,
    };
    char where[32], size[BLYI_SIZE_TEXT];
    say_where(&leak, where, sizeof(where));
    int used = snprintf(
        leak.message, sizeof(leak.message), "%s in %" PRIu64 " physical handle%s of %s never freed",
        blyi_size_text(leak.bytes, size), leak.count, leak.count == 1 ? "" : "s", where);
    if (group->handles_orphan > 0)
        snprintf(leak.message + used, sizeof(leak.message) - (size_t)used,
                 ", orphan physical memory, reachable by no address: %" PRIu64,
                 group->handles_orphan);
    say_reset(&leak);
    return leak;
}

static struct blyi_finding leak_of(const struct blyi_account_group *group)
{
    const struct blyi_tally *handles = &group->handles, *reset = &group->handles_reset;
    struct blyi_finding leak = {
        .kind = BLYI_FINDING_LEAK,
        .card = group->card,
        .site = group->site,
        .role = BLYI_ROLE_ALLOC,
        .address = group->first_address,
        .bytes = group->live.asked + group->reset.asked - handles->asked - reset->asked,
        .backed = group->live.backed + group->reset.backed - handles->backed - reset->backed,
        .count = group->live.count + group->reset.count - handles->count - reset->count,
        .reset = group->reset.count - reset->count,
    };
    char where[32], size[BLYI_SIZE_TEXT];
    say_where(&leak, where, sizeof(where));
    snprintf(leak.message, sizeof(leak.message), "%s in %" PRIu64 " block%s of %s never freed",
             blyi_size_text(leak.bytes, size), leak.count, leak.count == 1 ? "" : "s", where);
    say_reset(&leak);
    return leak;
}

static struct blyi_finding leaked_ids_of(const struct blyi_account_group *group, bool is_event)
{
    const struct blyi_tally_ids *ids = is_event ? &group->events : &group->streams;
    struct blyi_finding leak = {
        .kind = is_event ? BLYI_FINDING_LEAKED_EVENT : BLYI_FINDING_LEAKED_STREAM,
        .card = group->card,
        .site = group->site,
        .role = BLYI_ROLE_CREATE,
        .count = ids->live + ids->reset,
        .reset = ids->reset,
        .n_ids = ids->n_ids,
    };
    memcpy(leak.ids, ids->ids, sizeof(leak.ids));
    snprintf(leak.message, sizeof(leak.message), "%" PRIu64 " %s%s of card %d never destroyed",
             leak.count, is_event ? "event" : "stream", leak.count == 1 ? "" : "s", leak.card);
    say_reset(&leak);
    return leak;
}

static struct blyi_finding access_of(const struct blyi_account_access *access)
{
    struct blyi_finding finding = {
        .kind = BLYI_FINDING_HOST_ACCESS,
        .card = access->card,
        .site = access->site,
        .role = BLYI_ROLE_USE,
        .block_site = access->block_site,
        .address = access->address,
        .bytes = 0,
        .count = access->count,
    };
    char where[64] = "where no live block is", size[BLYI_SIZE_TEXT];
    if (access->size > 0)
        snprintf(where, sizeof(where), "%" PRIu64 " bytes into a block of %s", access->offset,
                 blyi_size_text(access->size, size));
    char card[32] = "reserved addresses";
    if (access->card >= 0)
        snprintf(card, sizeof(card), "memory of card %d", access->card);
    snprintf(finding.message, sizeof(finding.message), "host code %s %s, %s",
             access->is_write ? "wrote to" : "read", card, where);
    return finding;
}

static int finding_order(const void *left, const void *right)
{
    const struct blyi_finding *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

bly_status blyi_findings_make(const struct blyi_account *account, struct blyi_finding **out,
                              size_t *n)
{
    size_t count = 0, max = 4 * account->n_groups + account->n_accesses + 1;
    struct blyi_finding *list = blyi_host_alloc(max * sizeof(*list));
    if (list == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu findings", max);
    for (size_t i = 0; i < account->n_groups && !account->dying; i++) {
        const struct blyi_account_group *group = &account->groups[i];
        uint64_t handles = group->handles.count + group->handles_reset.count;
        if (group->live.count + group->reset.count > handles)
            list[count++] = leak_of(group);
        if (handles > 0)
            list[count++] = leaked_handle_of(group);
        if (group->streams.live + group->streams.reset > 0)
            list[count++] = leaked_ids_of(group, false);
        if (group->events.live + group->events.reset > 0)
            list[count++] = leaked_ids_of(group, true);
    }
    for (size_t i = 0; i < account->n_accesses; i++)
        list[count++] = access_of(&account->accesses[i]);
    qsort(list, count, sizeof(*list), finding_order);
    *out = list;
    *n = count;
    return BLY_OK;
}
