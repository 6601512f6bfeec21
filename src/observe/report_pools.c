/* SPDX-License-Identifier: Apache-2.0
 *
 * report_pools.c - memory pools in reports: what each holds, and what of it is whose.
 */
#include "observe/report_pools.h"

#include <inttypes.h>
#include "base/size.h"

#define NS_IN_MS 1000000u
#define OFTEN    100u /* memory that goes and comes back so often is worth a word */

static void put_part(FILE *out, const char *what, uint64_t bytes)
{
    char size[BLYI_SIZE_TEXT];
    if (bytes > 0)
        fprintf(out, ", %s %s", what, blyi_size_text(bytes, size));
}

/* Of those that have any; nothing where all is of one. */
static void put_regions(FILE *out, const struct blyi_pool_row *row)
{
    char held[BLYI_SIZE_TEXT], live[BLYI_SIZE_TEXT], peak[BLYI_SIZE_TEXT];
    unsigned named = 0;
    for (unsigned i = 1; i < BLYI_POOL_ROW_REGIONS; i++)
        named += row->regions[i].live_peak > 0;
    for (unsigned i = 0; named > 0 && i < BLYI_POOL_ROW_REGIONS; i++) {
        const struct blyi_pool_region *region = &row->regions[i];
        if (region->held == 0 && region->live_peak == 0)
            continue;
        fprintf(out, "     %s: holds %s, in use %s in %" PRIu64 " block%s, at most %s",
                region->name, blyi_size_text(region->held, held),
                blyi_size_text(region->live, live), region->blocks, region->blocks == 1 ? "" : "s",
                blyi_size_text(region->live_peak, peak));
        put_part(out, "idle", region->idle);
        put_part(out, "parked", region->parked);
        put_part(out, "waiting for streams", region->waiting);
        fputc('\n', out);
    }
}

static void put_idle(FILE *out, const struct blyi_pool_row *row)
{
    char size[BLYI_SIZE_TEXT];
    for (uint32_t i = 0; i < row->n_idle_by; i++) {
        const struct blyi_pool_idle *idle = &row->idle_by[i];
        fprintf(out, "     idle of ");
        if (idle->stream > 0)
            fprintf(out, "stream %" PRIu32, idle->stream);
        else
            fprintf(out, "no stream");
        fprintf(out, ": %s in %" PRIu64 " piece%s, the oldest for %" PRIu64 " ms\n",
                blyi_size_text(idle->bytes, size), idle->pieces, idle->pieces == 1 ? "" : "s",
                idle->oldest_ns / NS_IN_MS);
    }
}

static const char *const flush_kinds[] = {
#define FLUSH_NAME(kind, name) [BLYI_FLUSH_##kind] = name,
    BLYI_FLUSH_KINDS(FLUSH_NAME)
#undef FLUSH_NAME
};

/* "at 12 ms request: asked 700 MiB, the card had ... free; ... idle in 6 pieces moved, ...". */
static void put_flush(FILE *out, const struct blyi_flush *flush)
{
    char asked[BLYI_SIZE_TEXT], free[BLYI_SIZE_TEXT], bytes[BLYI_SIZE_TEXT];
    fprintf(out, "     at %" PRIu64 " ms, %s", flush->at_ns / NS_IN_MS, flush_kinds[flush->kind]);
    if (flush->kind == BLYI_FLUSH_REQUEST)
        fprintf(out, " for %s, the card had %s free", blyi_size_text(flush->asked, asked),
                blyi_size_text(flush->card_free, free));
    if (flush->times > 1)
        fprintf(out, ", the last of %" PRIu64, flush->times);
    fprintf(out, ": %s idle %s in %" PRIu64 " piece%s", blyi_size_text(flush->bytes, bytes),
            flush->kind == BLYI_FLUSH_REQUEST ? "moved" : "went back", flush->pieces,
            flush->pieces == 1 ? "" : "s");
    if (flush->waits > 0)
        fprintf(out, ", waited for %" PRIu64 " times", flush->waits);
    fprintf(out, ", %" PRIu64 " us%s\n", flush->took_ns / 1000,
            flush->kind != BLYI_FLUSH_REQUEST ? ""
            : flush->failed                   ? "; refused"
                                              : "; served");
}

/* Whom the limit of splitting refused what was idle, and what is held for that. */
static void put_split(FILE *out, const struct blyi_pool_row *row)
{
    char bytes[BLYI_SIZE_TEXT], least[BLYI_SIZE_TEXT], most[BLYI_SIZE_TEXT], limit[BLYI_SIZE_TEXT];
    if (row->split_refused == 0)
        return;
    fprintf(out, "     %" PRIu64 " request%s (%s) %s refused reuse of an idle ", row->split_refused,
            row->split_refused == 1 ? "" : "s", blyi_size_text(row->split_refused_bytes, bytes),
            row->split_refused == 1 ? "was" : "were");
    if (row->split_idle_least < row->split_idle_most)
        fprintf(out, "block of %s to ", blyi_size_text(row->split_idle_least, least));
    fprintf(out, "%s%s by the split rule: blocks above %s are used again whole\n",
            blyi_size_text(row->split_idle_most, most),
            row->split_idle_least < row->split_idle_most ? "" : " block",
            blyi_size_text(row->split, limit));
    fprintf(out, "     without the rule %s would be held, rather than %s\n",
            blyi_size_text(row->split_without, least), blyi_size_text(row->held_peak, most));
}

/* Of a pool that has ended these are the figures of its end. */
static void put_pool(FILE *out, const struct blyi_pool_row *row)
{
    char held[BLYI_SIZE_TEXT], live[BLYI_SIZE_TEXT], idle[BLYI_SIZE_TEXT], peak[BLYI_SIZE_TEXT];
    fprintf(out, "  %" PRIu32 ". %s of card %d%s: holds %s, in use %s in %" PRIu64 " block%s",
            row->number, row->name, row->card, row->has_ended ? ", at its end" : "",
            blyi_size_text(row->held, held), blyi_size_text(row->live, live), row->blocks,
            row->blocks == 1 ? "" : "s");
    if (row->idle > 0)
        fprintf(out, ", idle in pool %s in %" PRIu64 " piece%s", blyi_size_text(row->idle, idle),
                row->pieces, row->pieces == 1 ? "" : "s");
    put_part(out, "of the idle can go now", row->idle > 0 ? row->releasable : 0);
    put_part(out, "parked in thread caches", row->parked);
    put_part(out, "waiting for streams", row->waiting);
    fprintf(out, "\n     at most %s, in use at most %s (asked %" PRIu64 " B)\n",
            blyi_size_text(row->held_peak, peak), blyi_size_text(row->live_peak, live),
            row->asked_peak);
    if (row->reserve_used > 0)
        fprintf(out, "     of its reserve of %s requests that would have failed took %s\n",
                blyi_size_text(row->reserve, held), blyi_size_text(row->reserve_used, live));
    put_split(out, row);
    put_regions(out, row);
    put_idle(out, row);
    for (uint32_t i = 0; i < row->n_flushes_seen; i++)
        put_flush(out, &row->flushes_seen[i]);
    fprintf(out,
            "     %" PRIu64 " allocations, %" PRIu64 " frees; memory mapped %" PRIu64
            " and unmapped %" PRIu64 " times, waited for %" PRIu64 " times, all given back %" PRIu64
            " times\n",
            row->allocs, row->frees, row->maps, row->unmaps, row->waits, row->flushes);
    if (row->threshold != UINT64_MAX && row->unmaps >= OFTEN && row->unmaps >= row->allocs / 10)
        fprintf(out,
                "     to do: raise the release threshold, which is %" PRIu64
                " B: what is idle beyond goes back at each wait\n",
                row->threshold);
}

void blyi_report_pools_text(const struct blyi_pool_row *rows, size_t n, FILE *out)
{
    if (n > 0)
        fputs("\nmemory pools\n", out);
    for (size_t i = 0; i < n; i++)
        put_pool(out, &rows[i]);
}

/* No limit is null: readers of JSON seldom have 64 bits without a sign. */
static void put_figure(struct blyi_json *json, const char *key, uint64_t value)
{
    if (value == UINT64_MAX)
        blyi_json_text(json, key, NULL);
    else
        blyi_json_uint(json, key, value);
}

static void put_regions_json(struct blyi_json *json, const struct blyi_pool_row *row)
{
    blyi_json_begin_array(json, "regions");
    for (unsigned i = 0; i < BLYI_POOL_ROW_REGIONS; i++) {
        const struct blyi_pool_region *region = &row->regions[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "name", region->name);
#define REGION_FIELD(field) blyi_json_uint(json, #field, region->field);
        BLYI_POOL_REGION_FIELDS(REGION_FIELD)
#undef REGION_FIELD
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_idle_json(struct blyi_json *json, const struct blyi_pool_row *row)
{
    blyi_json_begin_array(json, "idle_by_stream");
    for (uint32_t i = 0; i < row->n_idle_by; i++) {
        const struct blyi_pool_idle *idle = &row->idle_by[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_uint(json, "stream", idle->stream);
        blyi_json_uint(json, "bytes", idle->bytes);
        blyi_json_uint(json, "pieces", idle->pieces);
        blyi_json_uint(json, "oldest_ms", idle->oldest_ns / NS_IN_MS);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_flushes_json(struct blyi_json *json, const struct blyi_pool_row *row)
{
    blyi_json_begin_array(json, "timeline");
    for (uint32_t i = 0; i < row->n_flushes_seen; i++) {
        const struct blyi_flush *flush = &row->flushes_seen[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "kind", flush_kinds[flush->kind]);
        blyi_json_uint(json, "at_us", flush->at_ns / 1000);
        blyi_json_uint(json, "took_us", flush->took_ns / 1000);
        blyi_json_uint(json, "times", flush->times);
        blyi_json_uint(json, "bytes", flush->bytes);
        blyi_json_uint(json, "pieces", flush->pieces);
        if (flush->kind == BLYI_FLUSH_REQUEST) {
            blyi_json_uint(json, "asked", flush->asked);
            blyi_json_uint(json, "card_free", flush->card_free);
            blyi_json_uint(json, "waits", flush->waits);
            blyi_json_bool(json, "served", !flush->failed);
        }
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

void blyi_report_pools_json(const struct blyi_pool_row *rows, size_t n, struct blyi_json *json)
{
    blyi_json_begin_array(json, "pools");
    for (size_t i = 0; i < n; i++) {
        const struct blyi_pool_row *row = &rows[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "name", row->name);
        blyi_json_uint(json, "number", row->number);
        blyi_json_int(json, "card", row->card);
        blyi_json_bool(json, "ended", row->has_ended);
#define POOL_FIELD(field) put_figure(json, #field, row->field);
        BLYI_POOL_ROW_FIELDS(POOL_FIELD)
#undef POOL_FIELD
        put_regions_json(json, row);
        put_idle_json(json, row);
        put_flushes_json(json, row);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}
