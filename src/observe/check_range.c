/* SPDX-License-Identifier: Apache-2.0
 *
 * check_range.c - what a task is about to touch, looked at when it is submitted.
 */
#include "observe/check_work.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/host.h"

static const char *doing(uint8_t access)
{
    return access == BLYI_USE_READ    ? "reads"
           : access == BLYI_USE_WRITE ? "writes"
                                      : "reads and writes";
}

void blyi_found_who(const struct blyi_check *check, struct blyi_finding *finding,
                    const struct blyi_epoch *who)
{
    char words[BLYI_FINDING_WORDS], stream[BLYI_STREAM_TEXT];
    if (who->stream != 0 && who->task != 0)
        snprintf(words, sizeof(words), "%s %s on %s at", blyi_work_text(who->work),
                 blyi_stream_graph(check, who->stream) != 0 ? "captured" : "queued",
                 blyi_stream_text(check, who->stream, stream));
    else
        snprintf(words, sizeof(words), "%s at", blyi_work_text(who->work));
    blyi_finding_add_site(finding, BLYI_ROLE_USE, who->site, words);
    if (who->stream != 0)
        blyi_found_stream(finding, who->stream);
}

static void found_after_free(struct blyi_check *check, const struct blyi_was *was, uint64_t address,
                             uint64_t size, const struct blyi_epoch *who, uint8_t access)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    bool map = was->kind == BLYI_AREA_MAP, import = was->kind == BLYI_AREA_IMPORT;
    struct blyi_finding finding = {
        .kind = BLYI_FINDING_USE_AFTER_FREE, .card = was->card, .address = address, .bytes = size};
    snprintf(finding.message, sizeof(finding.message),
             "%s %s %s at 0x%" PRIx64 ", %" PRIu64 " bytes into %s %s of %s at 0x%" PRIx64
             " that was %s before",
             blyi_work_text(who->work), doing(access), blyi_size_text(size, a), address,
             address - was->address, import ? "an" : "a",
             blyi_area_noun((enum blyi_area_kind)was->kind), blyi_size_text(was->size, b),
             was->address,
             map      ? "unmapped"
             : import ? "closed"
                      : "freed");
    blyi_found_who(check, &finding, who);
    if (was->free_site != 0)
        blyi_finding_add_site(&finding, map ? BLYI_ROLE_UNMAP : BLYI_ROLE_FREE, was->free_site,
                              import ? "closed at" : NULL);
    blyi_finding_add_site(&finding, map ? BLYI_ROLE_MAP : BLYI_ROLE_ALLOC, was->alloc_site,
                          import ? "imported at" : NULL);
    if (import)
        snprintf(finding.cure, sizeof(finding.cure),
                 "close the import behind the last work that uses it");
    blyi_found(check, &finding, who->site, was->alloc_site);
}

static void found_outside(struct blyi_check *check, const struct blyi_area *area, uint64_t address,
                          uint64_t size, const struct blyi_epoch *who, uint8_t access)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_AREA_TEXT];
    uint64_t end = area->node.key + area->size;
    uint64_t from = address > end ? address : end;
    struct blyi_finding finding = {.kind = BLYI_FINDING_OUT_OF_BOUNDS,
                                   .card = area->card,
                                   .address = from,
                                   .bytes = address + size - from};
    snprintf(finding.message, sizeof(finding.message),
             "%s %s %s at 0x%" PRIx64 ", %" PRIu64 " of them beyond the end of the %s",
             blyi_work_text(who->work), doing(access), blyi_size_text(size, a), address,
             finding.bytes, blyi_area_text(area, b));
    if (address > end)
        blyi_found_detail(&finding, "the first is %" PRIu64 " bytes behind the end\n",
                          address - end);
    blyi_found_who(check, &finding, who);
    blyi_found_area(&finding, area);
    blyi_found(check, &finding, who->site, area->site);
}

static struct blyi_use_range *add_range(struct blyi_check *check, struct blyi_check_task *task)
{
    if (task->n_more == task->more_room) {
        uint32_t room = task->more_room > 0 ? 2 * task->more_room : 4;
        struct blyi_use_range *more = blyi_host_realloc(task->more, room * sizeof(*more));
        if (more == NULL) {
            blyi_check_stop(check);
            return NULL;
        }
        task->more = more;
        task->more_room = room;
    }
    task->more[task->n_more] = (struct blyi_use_range){0};
    return &task->more[task->n_more++];
}

static void put_range(struct blyi_use_range *range, struct blyi_area *area, uint64_t lo,
                      uint64_t hi)
{
    uint64_t end = area->node.key + area->reach;
    range->lo = lo;
    range->hi = hi < end ? hi : end;
    range->area = area;
    blyi_area_ref(area);
}

/* The rest of a range that began in a mapping: mappings that touch are one memory to the work.
 * NULL: the end was reached; else the last mapping, which is too short. */
static struct blyi_area *follow_mappings(struct blyi_check *check, struct blyi_check_task *task,
                                         struct blyi_area *area, uint64_t end, uint8_t access)
{
    while (end > area->node.key + area->size) {
        uint64_t at = area->node.key + area->size;
        struct blyi_area *next = blyi_area_at(check, at, false);
        if (next == NULL || next->kind != BLYI_AREA_MAP)
            return area;
        struct blyi_use_range *range = add_range(check, task);
        if (range == NULL)
            return NULL;
        range->access = access;
        put_range(range, next, at, end);
        area = next;
    }
    return NULL;
}

/* What of a range is memory that is followed; what is wrong with it is told. i: place in
 * task->range, or a new one behind. False: a fault. */
bool blyi_use_resolve(struct blyi_check *check, struct blyi_check_task *task, uint32_t i,
                      uint64_t address, uint64_t size, uint8_t access, const struct blyi_epoch *who)
{
    struct blyi_use_range *range = i < 2 ? &task->range[i] : add_range(check, task);
    if (range == NULL)
        return true;
    *range = (struct blyi_use_range){.access = access};
    if (size == 0 || address + size < address)
        return true;
    struct blyi_area *area = blyi_area_find(check, address);
    if (area == NULL) {
        const struct blyi_was *was = blyi_was_find(check, address);
        if (was != NULL)
            found_after_free(check, was, address, size, who, access);
        return was == NULL;
    }
    put_range(range, area, address, address + size);
    /* Kernels work in whole lines of 32 bytes, for which the rule leaves room. */
    uint64_t room = who->work == BLYI_WORK_KERNEL ? area->rounded : area->size;
    uint64_t at = address - area->node.key;
    bool fits = at <= room && size <= room - at;
    if (!fits && area->kind == BLYI_AREA_MAP) {
        struct blyi_area *last = follow_mappings(check, task, area, address + size, access);
        fits = last == NULL;
        area = last != NULL ? last : area;
    }
    if (!fits && !area->is_freed) /* that was told when it was freed */
        found_outside(check, area, address, size, who, access);
    return fits || area->is_freed;
}

/* ── Submission ───────────────────────────────────────────────────────────────────────────── */

uint8_t blyi_work_of(const struct blyi_probe *probe)
{
    switch (probe->kind) {
    case BLYI_PROBE_COPY:
        return probe->aux == 1 ? BLYI_WORK_REDUCE : BLYI_WORK_COPY;
    case BLYI_PROBE_SET:
        return BLYI_WORK_SET;
    case BLYI_PROBE_KERNEL:
    case BLYI_PROBE_KERNEL_RANGE:
        return BLYI_WORK_KERNEL;
    case BLYI_PROBE_VALUE_WRITE:
    case BLYI_PROBE_VALUE_WAIT:
        return BLYI_WORK_VALUE;
    default:
        return BLYI_WORK_OTHER;
    }
}

static uint64_t span(uint64_t pitch, uint64_t width, uint64_t rows)
{
    uint64_t sum;
    if (rows == 0 || __builtin_mul_overflow(pitch, rows - 1, &sum) ||
        __builtin_add_overflow(sum, width, &sum))
        return 0; /* the task will fail of it */
    return sum;
}

static void in_rows(struct blyi_check_task *task, uint32_t i, uint64_t pitch, uint64_t width)
{
    task->range[i].pitch = pitch;
    task->range[i].width = width;
    for (uint32_t more = 0; more < task->n_more; more++) { /* over several mappings */
        task->range[i].is_vague = true;
        task->more[more].is_vague = true;
    }
}

/* The two sides of a copy, whole or in rows. */
bool blyi_use_copy(struct blyi_check *check, struct blyi_check_task *task,
                   const struct blyi_probe *probe, const struct blyi_epoch *who)
{
    bool rows = probe->rounded != 0 && probe->asked != 0 && probe->asked < probe->size;
    uint64_t width = rows ? probe->asked : probe->size, n = probe->size / width;
    uint64_t dspan = rows ? span(probe->rounded, width, n) : width;
    uint64_t sspan = rows ? span(probe->backed, width, n) : width;
    uint8_t to = probe->aux == 1 ? BLYI_USE_READ | BLYI_USE_WRITE : BLYI_USE_WRITE;
    task->n_ranges = 2;
    bool sound = blyi_use_resolve(check, task, 0, probe->address, dspan, to, who);
    sound = blyi_use_resolve(check, task, 1, probe->other, sspan, BLYI_USE_READ, who) && sound;
    if (rows) {
        in_rows(task, 0, probe->rounded, width);
        in_rows(task, 1, probe->backed, width);
    }
    return sound;
}

void blyi_use_kernel(struct blyi_check *check, struct blyi_check_task *task,
                     const struct blyi_probe *probe, const struct blyi_epoch *who)
{
    uint8_t access = (uint8_t)(probe->aux & (BLYI_USE_READ | BLYI_USE_WRITE));
    if (!blyi_use_resolve(check, task, 2, probe->address, probe->size, access, who))
        task->has_fault = true;
}

/* A kernel says what it touches, or it may write anywhere. */
bool blyi_task_is_unknown(const struct blyi_check_task *task)
{
    if (task->kind == BLYI_PROBE_INDIRECT)
        return task->graph < BLYI_INDIRECT_GRAPH;
    if (task->kind != BLYI_PROBE_KERNEL)
        return false;
    for (uint32_t i = 0; i < task->n_more; i++)
        if (task->more[i].access & BLYI_USE_WRITE)
            return false;
    return true;
}

void blyi_task_fill(struct blyi_check *check, const struct blyi_check_stream *stream,
                    struct blyi_check_task *task, const struct blyi_probe *probe,
                    const struct blyi_epoch *who)
{
    switch (probe->kind) {
    case BLYI_PROBE_COPY:
        task->has_fault = !blyi_use_copy(check, task, probe, who);
        break;
    case BLYI_PROBE_SET:
        task->n_ranges = 1;
        task->has_fault =
            !blyi_use_resolve(check, task, 0, probe->address, probe->size, BLYI_USE_WRITE, who);
        break;
    case BLYI_PROBE_VALUE_WRITE:
    case BLYI_PROBE_VALUE_WAIT:
        task->n_ranges = 1;
        task->word = probe->address;
        task->has_fault = !blyi_use_resolve(
            check, task, 0, probe->address, probe->size,
            probe->kind == BLYI_PROBE_VALUE_WRITE ? BLYI_USE_WRITE : BLYI_USE_READ, who);
        break;
    case BLYI_PROBE_INDIRECT:
        blyi_check_graph_submitted(check, task, probe);
        break;
    default:
        break;
    }
    task->kind = (uint8_t)probe->kind;
    task->work = who->work;
    task->places = (uint8_t)probe->page_kind;
    task->is_told = true;
    blyi_order_submitted(check, stream, task, probe);
    task->n_done = check->n_done;
    task->unknown_done = check->unknown_done;
    if (blyi_task_is_unknown(task))
        check->unknown++;
}
