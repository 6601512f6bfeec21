/* SPDX-License-Identifier: Apache-2.0
 *
 * report_json.c - the report for scripts. docs/report.md lists the names.
 */
#include "observe/report.h"

#include "base/json.h"
#include "base/stat.h"
#include "observe/finding_write.h"
#include "observe/report_pools.h"

static void put_tally(struct blyi_json *json, const struct blyi_tally *tally)
{
    blyi_json_uint(json, "asked", tally->asked);
    blyi_json_uint(json, "by_rule", tally->rounded);
    blyi_json_uint(json, "backed", tally->backed);
}

static void put_cards(struct blyi_json *json, const struct blyi_account *account)
{
    blyi_json_begin_array(json, "cards");
    for (int i = 0; i < BLYI_ACCOUNT_CARDS; i++) {
        const struct blyi_account_card *card = &account->cards[i];
        if (!card->opened)
            continue;
        blyi_json_begin_object(json, NULL);
        blyi_json_int(json, "card", i);
        blyi_json_uint(json, "total", card->total);
        blyi_json_uint(json, "peak", card->peak);
        blyi_json_uint(json, "live", card->live.asked);
        blyi_json_uint(json, "backed", card->live.backed);
        blyi_json_uint(json, "overhead", card->overhead);
        blyi_json_uint(json, "peak_backed", card->peak_backed);
        blyi_json_uint(json, "taken", card->taken);
        blyi_json_uint(json, "peak_taken", card->peak_taken);
        blyi_json_uint(json, "blocks", card->live.count);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

/* Leaves the object open for more. */
static void begin_totals(struct blyi_json *json, const char *key,
                         const struct blyi_account_totals *totals)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "peak", totals->peak);
    blyi_json_uint(json, "live", totals->live.asked);
    blyi_json_uint(json, "allocs", totals->all.count);
    blyi_json_uint(json, "frees", totals->frees);
    blyi_json_uint(json, "reset_freed", totals->reset);
    blyi_json_uint(json, "refused", totals->refused);
    blyi_json_uint(json, "live_backed", totals->live.backed);
    blyi_json_uint(json, "peak_backed", totals->peak_backed);
}

static void put_frees_refused(struct blyi_json *json, const struct blyi_report *report)
{
    char text[BLYI_SOURCE_TEXT];
    const struct blyi_account_refused_frees *frees = &report->account.frees;
    blyi_json_uint(json, "frees_refused", frees->count);
    if (frees->count > 0)
        blyi_json_text(json, "frees_refused_last",
                       blyi_source_text(blyi_report_source(report, frees->site), text));
}

static void put_waste(struct blyi_json *json, const struct blyi_report *report)
{
    blyi_json_begin_object(json, "waste");
    put_tally(json, &report->account.process.all);
    blyi_json_begin_object(json, "at_peak");
    put_tally(json, &report->at_peak);
    blyi_json_end_object(json);
    blyi_json_begin_object(json, "at_exit");
    put_tally(json, &report->account.process.live);
    blyi_json_end_object(json);
    blyi_json_end_object(json);
}

static void put_pages(struct blyi_json *json, const struct blyi_account *account)
{
    static const char *const names[BLYI_PAGE_KIND_COUNT] = {"4 KiB", "2 MiB", "1 GiB"};
    blyi_json_begin_array(json, "pages");
    for (int i = 0; i < BLYI_PAGE_KIND_COUNT; i++) {
        const struct blyi_account_pages *pages = &account->pages[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "page", names[i]);
        blyi_json_uint(json, "allocs", pages->all.count);
        put_tally(json, &pages->all);
        blyi_json_uint(json, "live_backed", pages->live.backed);
        blyi_json_uint(json, "peak_backed", pages->peak_backed);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_place(struct blyi_json *json, const struct blyi_source *source)
{
    blyi_json_text(json, "function", source->function);
    blyi_json_text(json, "file", source->file);
    blyi_json_uint(json, "line", source->line);
}

static void put_site(struct blyi_json *json, const struct blyi_source *source)
{
    char text[BLYI_SOURCE_TEXT];
    blyi_json_text(json, "site", blyi_source_text(source, text));
    put_place(json, source);
}

static void put_holders(struct blyi_json *json, const struct blyi_report *report)
{
    blyi_json_begin_array(json, "holders");
    for (size_t i = 0; i < report->n_holders; i++) {
        const struct blyi_holder *holder = &report->holders[i];
        blyi_json_begin_object(json, NULL);
        put_site(json, blyi_report_source(report, holder->site));
        blyi_json_uint(json, "bytes", holder->at_peak.asked);
        blyi_json_uint(json, "count", holder->at_peak.count);
        blyi_json_uint(json, "backed", holder->at_peak.backed);
        blyi_json_uint(json, "live", holder->live.asked);
        blyi_json_uint(json, "live_count", holder->live.count);
        blyi_json_uint(json, "allocs", holder->all.count);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_advice(struct blyi_json *json, const struct blyi_report *report)
{
    blyi_json_begin_array(json, "advice");
    for (size_t i = 0; i < report->account.n_groups; i++) {
        const struct blyi_account_group *group = &report->account.groups[i];
        if (group->saving_peak == 0)
            continue;
        blyi_json_begin_object(json, NULL);
        put_site(json, blyi_report_source(report, group->site));
        blyi_json_text(json, "use", "aclrtMallocAlign32");
        blyi_json_int(json, "card", group->card);
        blyi_json_uint(json, "saves", group->saving_peak);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_refused(struct blyi_json *json, const struct blyi_report *report)
{
    blyi_json_begin_array(json, "refused");
    for (size_t i = 0; i < report->account.n_groups; i++) {
        const struct blyi_account_group *group = &report->account.groups[i];
        if (group->refused == 0)
            continue;
        blyi_json_begin_object(json, NULL);
        put_site(json, blyi_report_source(report, group->site));
        blyi_json_int(json, "card", group->card);
        blyi_json_uint(json, "count", group->refused);
        blyi_json_uint(json, "largest", group->refused_largest);
        blyi_json_text(json, "status", bly_status_name((bly_status)group->refused_status));
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_objects(struct blyi_json *json, const char *key,
                        const struct blyi_account_objects *objects)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "created", objects->made);
    blyi_json_uint(json, "destroyed", objects->destroyed);
    blyi_json_uint(json, "live", objects->live);
    blyi_json_uint(json, "peak", objects->peak);
    blyi_json_end_object(json);
}

static struct blyi_source source_of(void *arg, uint32_t site)
{
    return *blyi_report_source(arg, site);
}

static void put_findings(struct blyi_json *json, const struct blyi_report *report)
{
    const struct blyi_finding_places places = {source_of, (void *)(uintptr_t)report, NULL};
    blyi_json_begin_array(json, "findings");
    for (size_t i = 0; i < report->n_findings; i++)
        blyi_finding_write_json(json, &report->findings[i], &places);
    blyi_json_end_array(json);
}

static void put_statistics(struct blyi_json *json)
{
    blyi_json_begin_object(json, "statistics");
    for (int i = 0; i < BLYI_STAT_COUNT; i++)
        blyi_json_uint(json, blyi_stat_name((enum blyi_stat)i), blyi_stat_read((enum blyi_stat)i));
    blyi_json_end_object(json);
}

void blyi_report_write_json(const struct blyi_report *report, FILE *out)
{
    const struct blyi_account *account = &report->account;
    struct blyi_json json;
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    if (blyi_report_is_unused(report))
        blyi_json_bool(&json, "unused", true); /* the first key: see unfinished.c */
    blyi_json_text(&json, "version", bly_version());
    blyi_json_text(&json, "program", report->program);
    blyi_json_int(&json, "pid", report->pid);
    put_cards(&json, account);
    begin_totals(&json, "process", &account->process);
    blyi_json_uint(&json, "untracked", account->untracked);
    put_frees_refused(&json, report);
    blyi_json_end_object(&json);
    begin_totals(&json, "pinned", &account->pinned);
    put_tally(&json, &account->pinned.all);
    blyi_json_uint(&json, "registered", account->registered.made);
    blyi_json_uint(&json, "registered_live", account->registered.live.asked);
    blyi_json_end_object(&json);
    put_waste(&json, report);
    put_pages(&json, account);
    put_objects(&json, "streams", &account->streams);
    put_objects(&json, "events", &account->events);
    put_objects(&json, "notifies", &account->notifies);
    put_objects(&json, "graphs", &account->graphs);
    put_objects(&json, "contexts", &account->contexts);
    put_objects(&json, "queues", &account->queues);
    put_holders(&json, report);
    put_advice(&json, report);
    put_refused(&json, report);
    if (report->n_pools > 0)
        blyi_report_pools_json(report->pools, report->n_pools, &json);
    put_statistics(&json);
    put_findings(&json, report);
    blyi_json_end_object(&json);
    fputc('\n', out);
}
