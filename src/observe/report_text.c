/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.c - the report for people: figures first, then what to do about them.
 */
#include "observe/report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "base/size.h"
#include "observe/finding_write.h"
#include "observe/report_pools.h"

#define MAX_HOLDERS  10
#define MAX_ADVICE   5
#define MAX_REFUSED  5
#define MAX_FINDINGS 20

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static const char *site_text(const struct blyi_report *report, uint32_t site,
                             char buf[BLYI_SOURCE_TEXT])
{
    char folder[PATH_MAX];
    struct blyi_source source = *blyi_report_source(report, site);
    if (getcwd(folder, sizeof(folder)) != NULL)
        source.file += blyi_short_file(source.file, folder) - source.file;
    return blyi_source_text(&source, buf);
}

#define COLUMN 14 /* characters behind the exact bytes; 0 at the end of a line */

/* "    432537600 B (412.5 MiB)": exact bytes to the right, the short form behind. */
static void put_size(FILE *out, uint64_t bytes, int width)
{
    char brief[BLYI_SIZE_TEXT], text[BLYI_SIZE_TEXT + 3] = "";
    if (bytes >= 1024)
        snprintf(text, sizeof(text), " (%s)", blyi_size_short(bytes, brief));
    fprintf(out, "%16" PRIu64 " B%-*s", bytes, width, text);
}

static void put_row(FILE *out, const char *name, const char *what, uint64_t asked, uint64_t backed)
{
    fprintf(out, "%-9s %-9s", name, what);
    put_size(out, asked, COLUMN);
    put_size(out, backed, 0);
    fputc('\n', out);
}

static void put_totals(FILE *out, const char *name, const struct blyi_account_totals *totals)
{
    put_row(out, name, "peak", totals->peak, totals->peak_backed);
    put_row(out, "", "at exit", totals->live.asked, totals->live.backed);
}

static void write_figures(const struct blyi_report *report, FILE *out)
{
    const struct blyi_account *account = &report->account;
    char total[BLYI_SIZE_TEXT], overhead[BLYI_SIZE_TEXT], name[24];
    int n_cards = 0;
    fprintf(out, "%-19s%18s%33s\n", "", "asked", "backed by pages");
    for (int i = 0; i < BLYI_ACCOUNT_CARDS; i++) {
        const struct blyi_account_card *card = &account->cards[i];
        if (!card->opened)
            continue;
        n_cards++;
        snprintf(name, sizeof(name), "card %d", i);
        put_row(out, name, "peak", card->peak, card->peak_backed);
        put_row(out, "", "at exit", card->live.asked, card->live.backed);
        fprintf(out, "%-9s %-9s %s, of which the runtime takes %s\n", "", "total",
                blyi_size_text(card->total, total), blyi_size_text(card->overhead, overhead));
    }
    if (n_cards != 1)
        put_totals(out, "all cards", &account->process);
    if (account->pinned.all.count + account->registered.made > 0)
        put_totals(out, "pinned", &account->pinned);
}

static void put_objects(FILE *out, const char *name, const struct blyi_account_objects *objects)
{
    if (objects->made > 0)
        fprintf(out,
                "%-15s%" PRIu64 " created, %" PRIu64 " destroyed, at most %" PRIu64 " at once\n",
                name, objects->made, objects->destroyed, objects->peak);
}

static void write_calls(const struct blyi_report *report, FILE *out)
{
    char site[BLYI_SOURCE_TEXT];
    const struct blyi_account *account = &report->account;
    const struct blyi_account_totals *card = &account->process, *pinned = &account->pinned;
    fprintf(out,
            "\ncard memory    %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64
            " taken back by reset or finalise, %" PRIu64 " refused\n",
            card->all.count, plural(card->all.count), card->frees, plural(card->frees), card->reset,
            card->refused);
    if (pinned->all.count + pinned->refused > 0)
        fprintf(out,
                "pinned memory  %" PRIu64 " allocation%s, %" PRIu64 " free%s, %" PRIu64
                " refused\n",
                pinned->all.count, plural(pinned->all.count), pinned->frees, plural(pinned->frees),
                pinned->refused);
    if (account->registered.made > 0)
        fprintf(out,
                "registered     %" PRIu64 " range%s of the program's own memory, %" PRIu64
                " still registered\n",
                account->registered.made, plural(account->registered.made),
                account->registered.live.count);
    if (account->frees.count > 0)
        fprintf(out, "frees refused  %" PRIu64 ", last at %s\n", account->frees.count,
                site_text(report, account->frees.site, site));
    put_objects(out, "streams", &account->streams);
    put_objects(out, "events", &account->events);
    put_objects(out, "notifies", &account->notifies);
    put_objects(out, "graphs", &account->graphs);
    put_objects(out, "contexts", &account->contexts);
    put_objects(out, "queues", &account->queues);
    if (account->untracked > 0)
        fprintf(out, "untracked      %" PRIu64 " things have no site: host memory was short\n",
                account->untracked);
}

/* Rounded down; sums of a long run may be large, so no product of two of them. */
static uint64_t permille_of(uint64_t part, uint64_t whole)
{
    return whole < UINT64_MAX / 1000 ? part * 1000 / whole : part / (whole / 1000);
}

static void put_waste(FILE *out, const char *name, const struct blyi_tally *tally)
{
    uint64_t waste = tally->backed - tally->asked;
    if (tally->count == 0)
        return;
    /* In integers: "%f" writes what the program's locale says. */
    uint64_t permille = tally->backed == 0 ? 0 : permille_of(waste, tally->backed);
    fprintf(out,
            "%-18s%10" PRIu64 "%17" PRIu64 "%17" PRIu64 "%17" PRIu64 "%5" PRIu64 ".%" PRIu64
            " %%\n",
            name, tally->count, tally->asked, tally->rounded, tally->backed, permille / 10,
            permille % 10);
}

static void write_waste(const struct blyi_report *report, FILE *out)
{
    static const char *const pages[BLYI_PAGE_KIND_COUNT] = {"  on 4 KiB pages", "  on 2 MiB pages",
                                                            "  on 1 GiB pages"};
    const struct blyi_account *account = &report->account;
    if (account->process.all.count + account->pinned.all.count == 0)
        return;
    fprintf(out, "\n%-18s%10s%17s%17s%17s%9s\n", "waste, in bytes", "blocks", "asked", "by rule",
            "backed", "waste");
    put_waste(out, "at the peak", &report->at_peak);
    put_waste(out, "all allocations", &account->process.all);
    for (int i = 0; i < BLYI_PAGE_KIND_COUNT; i++)
        put_waste(out, pages[i], &account->pages[i].all);
    put_waste(out, "pinned memory", &account->pinned.all);
}

static void write_holders(const struct blyi_report *report, FILE *out)
{
    char site[BLYI_SOURCE_TEXT];
    if (report->n_holders > 0)
        fprintf(out, "\n%-32s%12s  %s\n", "largest holders at the peak", "blocks", "site");
    for (size_t i = 0; i < report->n_holders && i < MAX_HOLDERS; i++) {
        const struct blyi_holder *holder = &report->holders[i];
        put_size(out, holder->at_peak.asked, COLUMN);
        fprintf(out, "%12" PRIu64 "  %s\n", holder->at_peak.count,
                site_text(report, holder->site, site));
    }
    if (report->n_holders > MAX_HOLDERS)
        fprintf(out, "%44s  and %zu more\n", "", report->n_holders - MAX_HOLDERS);
}

typedef uint64_t (*group_weight)(const struct blyi_account_group *group);

/* The heaviest group behind `last` (NULL: of all) by falling weight, NULL when none is left;
 * equal weights keep the order of the groups. */
static const struct blyi_account_group *next_heaviest(const struct blyi_account *account,
                                                      group_weight weight,
                                                      const struct blyi_account_group *last)
{
    const struct blyi_account_group *best = NULL;
    for (size_t i = 0; i < account->n_groups; i++) {
        const struct blyi_account_group *group = &account->groups[i];
        uint64_t w = weight(group);
        bool behind = last == NULL || w < weight(last) || (w == weight(last) && group > last);
        if (w > 0 && behind && (best == NULL || w > weight(best)))
            best = group;
    }
    return best;
}

static uint64_t saving_weight(const struct blyi_account_group *group)
{
    return group->saving_peak;
}

static uint64_t refused_weight(const struct blyi_account_group *group)
{
    return group->refused;
}

static void write_advice(const struct blyi_report *report, FILE *out)
{
    char site[BLYI_SOURCE_TEXT], size[BLYI_SIZE_TEXT];
    const struct blyi_account_group *group = NULL;
    for (int n = 0; n < MAX_ADVICE; n++) {
        group = next_heaviest(&report->account, saving_weight, group);
        if (group == NULL)
            return;
        if (n == 0)
            fprintf(out, "\nwhat the 32 bytes that aclrtMalloc adds cost at the worst moment\n");
        fprintf(out, "  %s: use aclrtMallocAlign32 here, saves %s\n",
                site_text(report, group->site, site), blyi_size_text(group->saving_peak, size));
    }
}

static void write_refused(const struct blyi_report *report, FILE *out)
{
    char site[BLYI_SOURCE_TEXT], size[BLYI_SIZE_TEXT];
    const struct blyi_account_group *group = NULL;
    for (int n = 0; n < MAX_REFUSED; n++) {
        group = next_heaviest(&report->account, refused_weight, group);
        if (group == NULL)
            return;
        if (n == 0)
            fprintf(out, "\nrefused requests\n");
        fprintf(out, "  %s: %" PRIu64 " time%s, the largest %s, last because %s\n",
                site_text(report, group->site, site), group->refused, plural(group->refused),
                blyi_size_text(group->refused_largest, size),
                bly_status_text((bly_status)group->refused_status));
    }
}

static struct blyi_source source_of(void *arg, uint32_t site)
{
    return *blyi_report_source(arg, site);
}

static void write_findings(const struct blyi_report *report, FILE *out)
{
    char folder[PATH_MAX];
    const struct blyi_finding_places places = {source_of, (void *)(uintptr_t)report,
                                               getcwd(folder, sizeof(folder))};
    for (size_t i = 0; i < report->n_findings && i < MAX_FINDINGS; i++)
        blyi_finding_write_text(out, i + 1, &report->findings[i], &places);
    if (report->n_findings > MAX_FINDINGS)
        fprintf(out, "\n... and %zu more; a report in JSON has all\n",
                report->n_findings - MAX_FINDINGS);
}

static void put_more(char *text, size_t size, uint64_t n, const char *one, const char *many)
{
    size_t length = strlen(text);
    if (n > 0)
        snprintf(text + length, size - length, ", %" PRIu64 " %s", n, n == 1 ? one : many);
}

static void write_summary(const struct blyi_report *report, FILE *out)
{
    uint64_t count[BLYI_FINDING_KIND_COUNT] = {0}, bytes = 0;
    size_t n_leaks = 0;
    char leaked[BLYI_SIZE_TEXT], peak[BLYI_SIZE_TEXT];
    for (size_t i = 0; i < report->n_findings; i++) {
        enum blyi_finding_kind kind = report->findings[i].kind;
        if (!blyi_finding_is_leak(kind))
            continue;
        n_leaks++;
        count[kind] += report->findings[i].count;
        bytes += report->findings[i].bytes;
    }
    fprintf(out,
            "\nSUMMARY: peak %s; leaked: ", blyi_size_text(report->account.process.peak, peak));
    uint64_t handles = count[BLYI_FINDING_LEAKED_HANDLE];
    char in_handles[64] = "";
    if (handles > 0)
        snprintf(in_handles, sizeof(in_handles), " and %" PRIu64 " handle%s", handles,
                 plural(handles));
    char and_more[160] = "";
    put_more(and_more, sizeof(and_more), count[BLYI_FINDING_LEAKED_NOTIFY], "notify", "notifies");
    put_more(and_more, sizeof(and_more), count[BLYI_FINDING_LEAKED_GRAPH], "graph", "graphs");
    put_more(and_more, sizeof(and_more), count[BLYI_FINDING_LEAKED_CONTEXT], "context", "contexts");
    put_more(and_more, sizeof(and_more), count[BLYI_FINDING_LEAKED_QUEUE], "queue", "queues");
    if (n_leaks == 0)
        fputs("nothing\n", out);
    else
        fprintf(out, "%s in %" PRIu64 " block%s%s, %" PRIu64 " stream%s, %" PRIu64 " event%s%s\n",
                blyi_size_text(bytes, leaked), count[BLYI_FINDING_LEAK],
                plural(count[BLYI_FINDING_LEAK]), in_handles, count[BLYI_FINDING_LEAKED_STREAM],
                plural(count[BLYI_FINDING_LEAKED_STREAM]), count[BLYI_FINDING_LEAKED_EVENT],
                plural(count[BLYI_FINDING_LEAKED_EVENT]), and_more);
    fprintf(out, "ERROR SUMMARY: %zu finding%s\n", report->n_findings, plural(report->n_findings));
}

void blyi_report_write_text(const struct blyi_report *report, FILE *out)
{
    fprintf(out, "==== Belay %s: memory of %s, process %d ====\n\n", bly_version(), report->program,
            report->pid);
    if (blyi_report_is_unused(report)) {
        fputs("no card was used\n", out);
    } else {
        write_figures(report, out);
        write_calls(report, out);
        write_waste(report, out);
        write_holders(report, out);
        blyi_report_pools_text(report->pools, report->n_pools, out);
        write_advice(report, out);
        write_refused(report, out);
        write_findings(report, out);
    }
    write_summary(report, out);
}
