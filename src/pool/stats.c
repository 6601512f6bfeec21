/* SPDX-License-Identifier: Apache-2.0
 *
 * stats.c - a pool's figures under the names that PyTorch gives them.
 *
 *   PyTorch                    here
 *   allocated, active          live; and what waits for streams
 *   requested                  asked
 *   reserved                   reserved
 *   inactive_split             idle and parked
 *   segment                    not counted: memory has no segments here
 *   num_device_alloc, _free    ranges mapped, unmapped
 *   num_alloc_retries          flushes
 *   num_ooms                   requests refused
 *   (none)                     region.<name>.*
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/size.h"
#include "pool/pool.h"
#include "pool/regions.h"

/* Of those with a peak of their own; the others' peak is not kept. */
static void put_bytes(struct blyi_json *json, const char *name, uint64_t current, uint64_t peak)
{
    char key[64];
    snprintf(key, sizeof(key), "%s.all.current", name);
    blyi_json_uint(json, key, current);
    if (peak == UINT64_MAX)
        return;
    snprintf(key, sizeof(key), "%s.all.peak", name);
    blyi_json_uint(json, key, peak);
}

/* Not of PyTorch, in its manner. */
static void put_region_json(struct blyi_json *json, const bly_pool_region_info *info)
{
    const struct {
        const char *name;
        uint64_t current, peak;
    } figures[] = {{"reserved_bytes", info->reserved, UINT64_MAX},
                   {"allocated_bytes", info->live, info->live_peak},
                   {"requested_bytes", info->asked, UINT64_MAX},
                   {"inactive_split_bytes", info->idle + info->parked, UINT64_MAX}};
    char name[48];
    for (unsigned i = 0; i < BLYI_COUNT(figures); i++) {
        snprintf(name, sizeof(name), "region.%s.%s", blyi_region_name(info->region),
                 figures[i].name);
        put_bytes(json, name, figures[i].current, figures[i].peak);
    }
}

static void put_json(const bly_pool_info *info, const bly_pool_region_info *regions, FILE *out)
{
    struct blyi_json json;
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "allocation.all.current", info->blocks);
    blyi_json_uint(&json, "allocation.all.allocated", info->allocs);
    blyi_json_uint(&json, "allocation.all.freed", info->frees);
    put_bytes(&json, "allocated_bytes", info->live, info->live_peak);
    put_bytes(&json, "active_bytes", info->live + info->waiting, UINT64_MAX);
    put_bytes(&json, "requested_bytes", info->asked, info->asked_peak);
    put_bytes(&json, "reserved_bytes", info->reserved, info->reserved_peak);
    put_bytes(&json, "inactive_split_bytes", info->idle + info->parked, UINT64_MAX);
    blyi_json_uint(&json, "num_alloc_retries", info->flushes);
    blyi_json_uint(&json, "num_ooms", info->refused);
    blyi_json_uint(&json, "num_sync_all_streams", info->waits);
    blyi_json_uint(&json, "num_device_alloc", info->maps);
    blyi_json_uint(&json, "num_device_free", info->unmaps);
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++)
        put_region_json(&json, &regions[i]);
    blyi_json_end_object(&json);
    fputc('\n', out);
}

#define UNKNOWN UINT64_MAX

/* One row of the table: bytes, or counts. */
struct row {
    const char *name;
    bool counts;
    uint64_t current, peak, allocated, freed;
};

static const char *cell(uint64_t value, bool counts, char text[BLYI_SIZE_TEXT])
{
    if (value == UNKNOWN)
        return "-";
    if (!counts)
        return blyi_size_short(value, text);
    snprintf(text, BLYI_SIZE_TEXT, "%" PRIu64, value);
    return text;
}

static void put_row(FILE *out, const struct row *row)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    fprintf(out, "| %-21s | %10s | %10s | %10s | %10s |\n", row->name,
            cell(row->current, row->counts, a), cell(row->peak, row->counts, b),
            cell(row->allocated, row->counts, c), cell(row->freed, row->counts, d));
}

static void put_bytes_row(FILE *out, const char *name, uint64_t current, uint64_t peak)
{
    put_row(out, &(struct row){name, false, current, peak, UNKNOWN, UNKNOWN});
}

#define TABLE_WIDTH 75 /* between the bars at its sides; as PyTorch's */

static void put_line(FILE *out, int c)
{
    fputc('|', out);
    for (int i = 0; i < TABLE_WIDTH; i++)
        fputc(c, out);
    fputs("|\n", out);
}

static void put_centred(FILE *out, int width, const char *text)
{
    int length = (int)strlen(text), left = length < width ? (width - length) / 2 : 0;
    fprintf(out, "|%*s%-*s", left, "", width - left, text);
}

static void put_head(const bly_pool *pool, const bly_pool_info *info, FILE *out)
{
    char text[TABLE_WIDTH + 1];
    put_line(out, '=');
    snprintf(text, sizeof text, "NPU memory summary, device ID %d, pool %.25s", pool->device,
             pool->name); /* a longer name would make the line wider */
    put_centred(out, TABLE_WIDTH, text);
    fputs("|\n", out);
    put_line(out, '-');
    snprintf(text, sizeof text, "NPU OOMs: %" PRIu64, info->refused);
    put_centred(out, 36, text);
    snprintf(text, sizeof text, "npuMalloc retries: %" PRIu64, info->flushes);
    put_centred(out, 38, text);
    fputs("|\n", out);
    put_line(out, '=');
    fputs("|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n", out);
    put_line(out, '-');
}

static void put_region(FILE *out, const bly_pool_region_info *info)
{
    char name[48];
    snprintf(name, sizeof(name), "%s: live", blyi_region_name(info->region));
    put_bytes_row(out, name, info->live, info->live_peak);
    snprintf(name, sizeof(name), "%s: reserved", blyi_region_name(info->region));
    put_bytes_row(out, name, info->reserved, UNKNOWN);
    snprintf(name, sizeof(name), "%s: idle", blyi_region_name(info->region));
    put_bytes_row(out, name, info->idle + info->parked, UNKNOWN);
}

static void put_summary(const bly_pool *pool, const bly_pool_info *info,
                        const bly_pool_region_info *regions, FILE *out)
{
    put_head(pool, info, out);
    put_bytes_row(out, "Allocated memory", info->live, info->live_peak);
    put_bytes_row(out, "Active memory", info->live + info->waiting, UNKNOWN);
    put_bytes_row(out, "Requested memory", info->asked, info->asked_peak);
    put_bytes_row(out, "NPU reserved memory", info->reserved, info->reserved_peak);
    put_bytes_row(out, "Non-releasable memory", info->idle - info->releasable + info->parked,
                  UNKNOWN);
    put_bytes_row(out, "Releasable memory", info->releasable, UNKNOWN);
    put_line(out, '-');
    put_row(out,
            &(struct row){"Allocations", true, info->blocks, UNKNOWN, info->allocs, info->frees});
    put_row(out, &(struct row){"Ranges mapped", true, UNKNOWN, UNKNOWN, info->maps, info->unmaps});
    put_line(out, '-');
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++)
        put_region(out, &regions[i]);
    put_line(out, '=');
}

bly_status bly_pool_text(bly_pool *pool, bly_pool_form form, char *text, size_t size,
                         size_t *length)
{
    bly_pool_info info = {.struct_size = sizeof(info)};
    bly_pool_region_info regions[BLY_POOL_REGIONS];
    char *made = NULL;
    size_t n = 0;
    if (length == NULL || (text == NULL && size > 0) || (unsigned)form > BLY_POOL_SUMMARY)
        return blyi_fail(BLY_E_INVALID, "length or text is NULL, or form %d is unknown", (int)form);
    bly_status status = blyi_pool_check(pool);
    if (status != BLY_OK)
        return status;
    blyi_pool_fill_info(pool, &info, regions);
    FILE *out = open_memstream(&made, &n);
    if (out == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a text");
    if (form == BLY_POOL_STATS)
        put_json(&info, regions, out);
    else
        put_summary(pool, &info, regions, out);
    if (fclose(out) != 0) {
        free(made);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a text");
    }
    if (size > 0) {
        size_t fit = n < size ? n : size - 1;
        memcpy(text, made, fit);
        text[fit] = '\0';
    }
    free(made);
    *length = n;
    return BLY_OK;
}
