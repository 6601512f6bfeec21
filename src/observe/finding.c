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
    if (finding->cure[0] != '\0')
        return finding->cure;
    if (finding->kind == BLYI_FINDING_LEAK && finding->card == BLYI_ACCOUNT_PINNED)
        return "call aclrtFreeHost for every block before the program ends";
    if (finding->is_import)
        return "call aclrtIpcMemClose for every import of a key, and aclrtFreePhysical for every "
               "imported handle";
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

void blyi_finding_add_site(struct blyi_finding *finding, enum blyi_role role, uint32_t site,
                           const char *words)
{
    if (finding->n_sites == BLYI_FINDING_SITES)
        return;
    struct blyi_finding_site *to = &finding->sites[finding->n_sites++];
    to->site = site;
    to->role = role;
    snprintf(to->words, sizeof(to->words), "%s", words != NULL ? words : "");
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
    blyi_finding_add_site(&leak, BLYI_ROLE_CREATE, group->site, NULL);
    return leak;
}

/* Memory of another process, which cannot give it back while this one holds it. */
static struct blyi_finding leaked_import_of(const struct blyi_account_group *group)
{
    const struct blyi_tally *live = &group->imports, *reset = &group->imports_reset;
    struct blyi_finding leak = {
        .kind = BLYI_FINDING_LEAKED_HANDLE,
        .card = group->card,
        .bytes = live->asked + reset->asked,
        .backed = live->backed + reset->backed,
        .count = live->count + reset->count,
        .reset = reset->count,
        .is_import = true,
    };
    char where[32], size[BLYI_SIZE_TEXT];
    say_where(&leak, where, sizeof(where));
    snprintf(leak.message, sizeof(leak.message),
             "%s in %" PRIu64 " import%s of memory of other processes on %s never closed",
             blyi_size_text(leak.bytes, size), leak.count, leak.count == 1 ? "" : "s", where);
    say_reset(&leak);
    blyi_finding_add_site(&leak, BLYI_ROLE_CREATE, group->site, NULL);
    return leak;
}

static struct blyi_finding leak_of(const struct blyi_account_group *group)
{
    const struct blyi_tally *handles = &group->handles, *reset = &group->handles_reset;
    struct blyi_finding leak = {
        .kind = BLYI_FINDING_LEAK,
        .card = group->card,
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
    blyi_finding_add_site(&leak, BLYI_ROLE_ALLOC, group->site, NULL);
    return leak;
}

/* `one` and `many` name the things. */
static struct blyi_finding leaked_ids_of(const struct blyi_account_group *group,
                                         const struct blyi_tally_ids *ids,
                                         enum blyi_finding_kind kind, const char *one,
                                         const char *many)
{
    struct blyi_finding leak = {
        .kind = kind,
        .card = group->card,
        .count = ids->live + ids->reset,
        .reset = ids->reset,
        .n_ids = ids->n_ids,
    };
    memcpy(leak.ids, ids->ids, sizeof(leak.ids));
    snprintf(leak.message, sizeof(leak.message), "%" PRIu64 " %s of card %d never destroyed",
             leak.count, leak.count == 1 ? one : many, leak.card);
    say_reset(&leak);
    blyi_finding_add_site(&leak, BLYI_ROLE_CREATE, group->site, NULL);
    return leak;
}

#define LEAKED_THINGS 6

static void say_work(struct blyi_finding *leak, const struct blyi_account_group *group)
{
    snprintf(leak->detail, sizeof(leak->detail),
             "pending: %" PRIu64 "; safe to destroy now: %" PRIu64 "\n", group->events_pending,
             leak->count - group->events_used);
}

static size_t leaked_things(const struct blyi_account *account,
                            const struct blyi_account_group *group, struct blyi_finding *out)
{
    const struct {
        const struct blyi_tally_ids *ids;
        enum blyi_finding_kind kind;
        const char *one, *many;
    } things[LEAKED_THINGS] = {
        {&group->streams, BLYI_FINDING_LEAKED_STREAM, "stream", "streams"},
        {&group->events, BLYI_FINDING_LEAKED_EVENT, "event", "events"},
        {&group->notifies, BLYI_FINDING_LEAKED_NOTIFY, "notify", "notifies"},
        {&group->graphs, BLYI_FINDING_LEAKED_GRAPH, "graph", "graphs"},
        {&group->contexts, BLYI_FINDING_LEAKED_CONTEXT, "context", "contexts"},
        {&group->queues, BLYI_FINDING_LEAKED_QUEUE, "queue", "queues"},
    };
    size_t n = 0;
    for (size_t i = 0; i < LEAKED_THINGS; i++) {
        if (things[i].ids->live + things[i].ids->reset == 0)
            continue;
        out[n] = leaked_ids_of(group, things[i].ids, things[i].kind, things[i].one, things[i].many);
        if (things[i].kind == BLYI_FINDING_LEAKED_EVENT && account->knows_work)
            say_work(&out[n], group);
        n++;
    }
    return n;
}

static struct blyi_finding access_of(const struct blyi_account_access *access)
{
    struct blyi_finding finding = {
        .kind = BLYI_FINDING_HOST_ACCESS,
        .card = access->card,
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
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, access->site, NULL);
    if (access->block_site != 0)
        blyi_finding_add_site(&finding, BLYI_ROLE_ALLOC, access->block_site, NULL);
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
    return (a->sites[0].site > b->sites[0].site) - (a->sites[0].site < b->sites[0].site);
}

bly_status blyi_findings_make(const struct blyi_account *account, struct blyi_finding **out,
                              size_t *n)
{
    size_t count = 0, max = (3 + LEAKED_THINGS) * account->n_groups + account->n_accesses + 1;
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
        if (group->imports.count + group->imports_reset.count > 0)
            list[count++] = leaked_import_of(group);
        count += leaked_things(account, group, &list[count]);
    }
    for (size_t i = 0; i < account->n_accesses; i++)
        list[count++] = access_of(&account->accesses[i]);
    qsort(list, count, sizeof(*list), finding_order);
    *out = list;
    *n = count;
    return BLY_OK;
}
