/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_refused.c - a request that failed, told to people.
 */
#include <inttypes.h>

#include "base/size.h"
#include "insight_input.h"
#include "insight_report.h"

#define HOLDERS 3

static const char *because(const struct blyi_explanation *e)
{
    switch (e->why) {
    case BLYI_WHY_CAP:
        return "the cap of the process, not the card";
    case BLYI_WHY_HOST:
        return "the host was short of memory, not the card";
    case BLYI_WHY_PINNED:
        return "the limit of pinned host memory, not the card";
    case BLYI_WHY_TOO_LARGE:
        return "more than the card ever has";
    case BLYI_WHY_FULL:
        return e->free_told && !e->row_told ? "the card had less free"
                                            : "this process had taken too much of the card";
    case BLYI_WHY_SCATTERED:
        return "enough was free, but not in one row";
    case BLYI_WHY_NOT_OURS:
        return e->row_told ? "others had taken too much of the card"
                           : "not for want of what this process left: others, a limit of its own, "
                             "or no one row";
    case BLYI_WHY_UNTOLD:
        return "the file does not tell how large the card is";
    default:
        return "no matter of memory";
    }
}

static void put_line(FILE *out, const char *name, uint64_t bytes)
{
    char size[BLYI_SIZE_TEXT];
    fprintf(out, "  %-10s%s\n", name, blyi_size_text(bytes, size));
}

static void put_cures(const struct blyi_explanation *e, FILE *out)
{
    char size[BLYI_SIZE_TEXT];
    if (e->missing == 0)
        return;
    if (e->why == BLYI_WHY_TOO_LARGE) {
        fprintf(out, "  would fit: on a card of %s\n",
                blyi_size_text(e->needed + e->overhead, size));
        return;
    }
    if (e->fits_if_pool_gives)
        fprintf(out, "  would fit: if the pool gave its %s without a block back\n",
                blyi_size_text(e->pool.releasable, size));
    else if (e->fits_if_packed)
        fprintf(out, "  would fit: could the pool give back all %s that are idle in it\n",
                blyi_size_text(e->pool.idle, size));
    else if (e->fits_if_waited)
        fprintf(out, "  would fit: once the streams have passed that %s wait for\n",
                blyi_size_text(e->pool.waiting, size));
    else
        fprintf(out, "  would fit: with %s less in use\n", blyi_size_text(e->missing, size));
}

static void put_pool(const struct blyi_explanation *e, FILE *out)
{
    char size[BLYI_SIZE_TEXT];
    if (e->pool.reserved == 0)
        return;
    put_line(out, "pool", e->pool.reserved);
    put_line(out, "  idle", e->pool.idle);
    fprintf(out, "  %-10s%s, the largest request that fits in it\n", "  row",
            blyi_size_text(e->pool.largest, size));
    if (e->pool.waiting > 0)
        put_line(out, "  waiting", e->pool.waiting);
}

void insight_write_refusal(const struct blyi_insight *in, const struct blyi_explanation *e,
                           FILE *out)
{
    char time[INSIGHT_TIME], size[BLYI_SIZE_TEXT], label[INSIGHT_LABEL];
    const struct blyi_refusal *refusal = e->refusal;
    uint32_t site = blyi_label_of_site(in->labels, refusal->site, refusal->stack);
    fprintf(out, "refused at %s, event no. %" PRIu64 ": %s\n", insight_time(in, refusal->ns, time),
            refusal->seq, because(e));
    put_line(out, "asked", refusal->asked);
    if (e->row_told && e->needed != refusal->asked)
        put_line(out, "in pages", e->needed);
    fprintf(out, "  %-10s%s\n", "site", insight_label(in, site, label));
    fprintf(out, "  %-10s%s in %" PRIu64 " blocks\n", "live", blyi_size_text(e->live.asked, size),
            e->live.count);
    put_pool(e, out);
    if (e->total_told) {
        fprintf(out, "  %-10s%s, ", "card", blyi_size_text(e->total, size));
        fprintf(out, "%s of it the runtime's\n", blyi_size_text(e->overhead, size));
    }
    if (e->free_told || e->total_told)
        fprintf(out, "  %-10s%s%s\n", "free", e->free_told ? "" : "at most ",
                blyi_size_text(e->free_most, size));
    if (e->why == BLYI_WHY_SCATTERED)
        put_line(out, "in a row", refusal->largest);
    if (e->row_told && e->others > 0)
        put_line(out, "others", e->others);
    if (e->missing > 0)
        put_line(out, "missing", e->missing);
    for (size_t i = 0; i < e->holders.n && i < HOLDERS && e->holders.rows[i].first.count > 0; i++)
        fprintf(out, "  %-10s%s of %s\n", i == 0 ? "holders" : "",
                blyi_size_text(e->holders.rows[i].first.bytes, size),
                insight_label(in, e->holders.rows[i].label, label));
    put_cures(e, out);
}
