/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/check_live.h"
#include "observe/module.h"

#define POOLS_MAX 64

static int site_order(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static size_t site_index(const struct blyi_report *report, uint32_t site)
{
    uint32_t *found = bsearch(&site, report->sites, report->n_sites, sizeof(site), site_order);
    return (size_t)(found - report->sites);
}

const struct blyi_source *blyi_report_source(const struct blyi_report *report, uint32_t site)
{
    return &report->sources[site_index(report, site)];
}

static bly_status name_sites(struct blyi_report *report)
{
    size_t n_groups = report->account.n_groups;
    size_t n_accesses = report->account.n_accesses, n_all = n_groups + 2 * n_accesses + 1;
    size_t n_account = n_all;
    n_all += report->n_checked * BLYI_FINDING_SITES;
    report->sites = blyi_host_alloc((n_all + 1) * sizeof(*report->sites));
    report->sources = blyi_host_calloc(n_all + 1, sizeof(*report->sources));
    if (report->sites == NULL || report->sources == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the names of %zu sites", n_all);
    for (size_t i = 0; i < n_groups; i++)
        report->sites[i] = report->account.groups[i].site;
    for (size_t i = 0; i < n_accesses; i++) {
        report->sites[n_groups + 2 * i] = report->account.accesses[i].site;
        report->sites[n_groups + 2 * i + 1] = report->account.accesses[i].block_site;
    }
    report->sites[n_account - 1] = report->account.frees.site; /* 0 when none was refused */
    for (size_t i = 0; i < report->n_checked; i++)
        for (uint32_t s = 0; s < BLYI_FINDING_SITES; s++)
            report->sites[n_account++] = report->checked[i].sites[s].site;
    qsort(report->sites, n_all, sizeof(*report->sites), site_order);
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (n == 0 || report->sites[n - 1] != report->sites[i])
            report->sites[n++] = report->sites[i];
    report->n_sites = n;
    blyi_symbolise(report->sites, n, report->sources);
    return BLY_OK;
}

/* ---- one line, one site ---- */

static int source_compare(const struct blyi_source *a, const struct blyi_source *b)
{
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    int order = strcmp(a->file, b->file);
    return order != 0 ? order : strcmp(a->function, b->function);
}

static int by_source(const void *left, const void *right, void *arg)
{
    const struct blyi_report *report = arg;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int order = source_compare(&report->sources[a], &report->sources[b]);
    return order != 0 ? order : (a > b) - (a < b);
}

/* A compiler copies a call when it unrolls a loop; for the reader it is one place. Fills
 * first[i] with the index of the lowest site that has the same function, file and line. */
static void same_lines(const struct blyi_report *report, size_t *first, size_t *order)
{
    for (size_t i = 0; i < report->n_sites; i++)
        order[i] = i;
    qsort_r(order, report->n_sites, sizeof(*order), by_source, (void *)(uintptr_t)report);
    for (size_t i = 0; i < report->n_sites; i++) {
        const struct blyi_source *source = &report->sources[order[i]];
        bool same = i > 0 && source->file[0] != '\0' &&
                    source_compare(source, &report->sources[order[i - 1]]) == 0;
        first[order[i]] = same ? first[order[i - 1]] : order[i];
    }
}

static void tally_add(struct blyi_tally *to, const struct blyi_tally *size)
{
    to->count += size->count;
    to->asked += size->asked;
    to->rounded += size->rounded;
    to->backed += size->backed;
}

static void ids_add(struct blyi_tally_ids *to, const struct blyi_tally_ids *from)
{
    to->made += from->made;
    to->live += from->live;
    to->reset += from->reset;
    for (uint32_t i = 0; i < from->n_ids && to->n_ids < BLYI_ACCOUNT_IDS; i++)
        to->ids[to->n_ids++] = from->ids[i];
    qsort(to->ids, to->n_ids, sizeof(to->ids[0]), site_order);
}

static void group_add(struct blyi_account_group *to, const struct blyi_account_group *from)
{
    tally_add(&to->all, &from->all);
    tally_add(&to->live, &from->live);
    tally_add(&to->at_peak, &from->at_peak);
    tally_add(&to->reset, &from->reset);
    if (from->first_address != 0 &&
        (to->first_address == 0 || from->first_address < to->first_address))
        to->first_address = from->first_address;
    to->saving += from->saving;
    to->saving_peak += from->saving_peak;
    to->refused += from->refused;
    if (from->refused_largest > to->refused_largest)
        to->refused_largest = from->refused_largest;
    if (from->refused != 0)
        to->refused_status = from->refused_status;
    ids_add(&to->streams, &from->streams);
    ids_add(&to->events, &from->events);
    to->events_pending += from->events_pending;
    to->events_used += from->events_used;
    ids_add(&to->notifies, &from->notifies);
    ids_add(&to->graphs, &from->graphs);
    ids_add(&to->contexts, &from->contexts);
    ids_add(&to->queues, &from->queues);
}

static int group_order(const void *left, const void *right)
{
    const struct blyi_account_group *a = left, *b = right;
    if (a->card != b->card)
        return a->card < b->card ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

static bly_status merge_lines(struct blyi_report *report)
{
    struct blyi_account *account = &report->account;
    size_t *scratch = blyi_host_alloc((2 * report->n_sites + 1) * sizeof(*scratch));
    if (scratch == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to sort %zu sites", report->n_sites);
    same_lines(report, scratch, scratch + report->n_sites);
    for (size_t i = 0; i < account->n_groups; i++) {
        struct blyi_account_group *group = &account->groups[i];
        group->site = report->sites[scratch[site_index(report, group->site)]];
    }
    blyi_host_free(scratch);

    qsort(account->groups, account->n_groups, sizeof(*account->groups), group_order);
    size_t n = 0;
    for (size_t i = 0; i < account->n_groups; i++) {
        struct blyi_account_group *group = &account->groups[i];
        if (n > 0 && group_order(&account->groups[n - 1], group) == 0)
            group_add(&account->groups[n - 1], group);
        else
            account->groups[n++] = *group;
    }
    account->n_groups = n;
    return BLY_OK;
}

/* ---- holders ---- */

static int holder_by_site(const void *left, const void *right)
{
    const struct blyi_holder *a = left, *b = right;
    return (a->site > b->site) - (a->site < b->site);
}

static int holder_by_size(const void *left, const void *right)
{
    const struct blyi_holder *a = left, *b = right;
    if (a->at_peak.asked != b->at_peak.asked)
        return a->at_peak.asked > b->at_peak.asked ? -1 : 1;
    return holder_by_site(left, right);
}

static bly_status list_holders(struct blyi_report *report)
{
    const struct blyi_account *account = &report->account;
    struct blyi_holder *list = blyi_host_alloc((account->n_groups + 1) * sizeof(*list));
    if (list == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu holders", account->n_groups);
    size_t n = 0;
    for (size_t i = 0; i < account->n_groups; i++) {
        const struct blyi_account_group *group = &account->groups[i];
        if (group->card != BLYI_ACCOUNT_PINNED)
            list[n++] = (struct blyi_holder){.site = group->site,
                                             .at_peak = group->at_peak,
                                             .live = group->live,
                                             .all = group->all};
    }
    qsort(list, n, sizeof(*list), holder_by_site);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        tally_add(&report->at_peak, &list[i].at_peak);
        if (list[i].at_peak.count == 0)
            continue;
        if (kept > 0 && list[kept - 1].site == list[i].site) {
            tally_add(&list[kept - 1].at_peak, &list[i].at_peak);
            tally_add(&list[kept - 1].live, &list[i].live);
            tally_add(&list[kept - 1].all, &list[i].all);
        } else {
            list[kept++] = list[i];
        }
    }
    qsort(list, kept, sizeof(*list), holder_by_size);
    report->holders = list;
    report->n_holders = kept;
    return BLY_OK;
}

static struct blyi_source source_of(void *arg, uint32_t site)
{
    return *blyi_report_source(arg, site);
}

/* What the account tells and what the checker found, but for what nobody wants to hear of. */
static bly_status list_findings(struct blyi_report *report)
{
    struct blyi_finding *list;
    const struct blyi_finding_places places = {source_of, report, NULL};
    const struct blyi_quiet *quiet = blyi_check_live_quiet();
    size_t n, kept = 0;
    bly_status status = blyi_findings_make(&report->account, &list, &n);
    if (status != BLY_OK)
        return status;
    report->findings = blyi_host_realloc(list, (n + report->n_checked + 1) * sizeof(*list));
    if (report->findings == NULL) {
        blyi_host_free(list);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu findings",
                         n + report->n_checked);
    }
    if (report->n_checked > 0)
        memcpy(report->findings + n, report->checked, report->n_checked * sizeof(*list));
    for (size_t i = 0; i < n + report->n_checked; i++)
        if (!blyi_quiet_fits(quiet, &report->findings[i], &places))
            report->findings[kept++] = report->findings[i];
    report->n_findings = kept;
    return BLY_OK;
}

static bly_status list_pools(struct blyi_report *report)
{
    report->pools = blyi_host_calloc(POOLS_MAX, sizeof(*report->pools));
    if (report->pools == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the pools of the report");
    report->n_pools = blyi_pool_rows(report->pools, POOLS_MAX, false);
    return BLY_OK;
}

bly_status blyi_report_make(struct blyi_report *out)
{
    memset(out, 0, sizeof(*out));
    out->pid = (int)getpid();
    blyi_module_program(out->program);

    bly_status status = blyi_account_read(&out->account);
    if (status == BLY_OK)
        status = blyi_check_live_read(&out->checked, &out->n_checked);
    if (status == BLY_OK)
        blyi_check_live_events(&out->account);
    if (status == BLY_OK)
        status = name_sites(out);
    if (status == BLY_OK)
        status = merge_lines(out);
    if (status == BLY_OK)
        status = list_holders(out);
    if (status == BLY_OK)
        status = list_findings(out);
    if (status == BLY_OK)
        status = list_pools(out);
    if (status != BLY_OK)
        blyi_report_fini(out);
    return status;
}

bool blyi_report_is_unused(const struct blyi_report *report)
{
    const struct blyi_account *account = &report->account;
    const struct blyi_account_totals *card = &account->process, *pinned = &account->pinned;
    for (int i = 0; i < BLYI_ACCOUNT_CARDS; i++)
        if (account->cards[i].opened)
            return false;
    return card->all.count + card->refused + pinned->all.count + pinned->refused +
               account->frees.count ==
           0;
}

void blyi_report_fini(struct blyi_report *report)
{
    blyi_host_free(report->findings);
    blyi_host_free(report->pools);
    blyi_host_free(report->checked);
    blyi_host_free(report->holders);
    if (report->sources != NULL)
        blyi_sources_fini(report->sources, report->n_sites);
    blyi_host_free(report->sources);
    blyi_host_free(report->sites);
    blyi_account_fini(&report->account);
    memset(report, 0, sizeof(*report));
}
