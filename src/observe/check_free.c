/* SPDX-License-Identifier: Apache-2.0
 *
 * check_free.c - memory that goes away: is anything still using it, and was it there at all?
 *
 * A free acts at once. It must come behind all work on the block: work that is still queued is
 * named as such, and so is work that has ended without anybody having made sure of it.
 */
#include "observe/check_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include "observe/check_leak.h"

/* ── Work that still uses it ──────────────────────────────────────────────────────────────── */

struct users {
    uint64_t n_tasks; /* queued */
    uint32_t n_sites;
    struct blyi_epoch last[4]; /* one for each site */
    bool writes[4];
    uint64_t n_streams;
    const struct blyi_area *area;
};

static void add_user(struct users *users, const struct blyi_epoch *epoch, bool writes)
{
    for (uint32_t i = 0; i < users->n_sites; i++) {
        struct blyi_epoch *of = &users->last[i];
        if (of->site != epoch->site || of->stream != epoch->stream)
            continue;
        if (epoch->task > of->task)
            *of = *epoch;
        users->writes[i] = users->writes[i] || writes;
        return;
    }
    if (users->n_sites == BLYI_COUNT(users->last))
        return;
    users->writes[users->n_sites] = writes;
    users->last[users->n_sites++] = *epoch;
}

static void add_task(struct users *users, const struct blyi_check_stream *stream,
                     struct blyi_check_task *task)
{
    uint8_t access = 0;
    for (uint32_t i = 0; i < blyi_task_ranges(task); i++)
        if (blyi_task_range(task, i)->area == users->area)
            access |= blyi_task_range(task, i)->access;
    if (access == 0)
        return;
    const struct blyi_epoch epoch = {.task = task->number,
                                     .slot = stream->slot,
                                     .stream = stream->id,
                                     .site = task->site,
                                     .work = task->work};
    users->n_tasks++;
    add_user(users, &epoch, (access & BLYI_USE_WRITE) != 0);
}

static void find_queued(const struct blyi_check *check, struct users *users)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    if (users->area->refs < 2)
        return;
    while (blyi_map_next(&check->streams, &cursor, &key, &value)) {
        const struct blyi_check_stream *stream = value;
        uint64_t before = users->n_tasks;
        for (struct blyi_check_task *task = stream->first; task != NULL; task = task->next)
            if (!task->is_dropped && !task->has_fault)
                add_task(users, stream, task);
        users->n_streams += users->n_tasks > before;
    }
}

static void add_unordered(void *arg, const struct blyi_epoch *epoch, bool write)
{
    struct users *users = arg;
    /* Another mapping of the same memory is not what goes away. */
    if (users->area->kind == BLYI_AREA_MAP && epoch->area != users->area->id)
        return;
    if (epoch->slot != 0)
        add_user(users, epoch, write);
}

static void find_unordered(const struct blyi_check *check, struct users *users)
{
    blyi_shadow_unknown(users->area->shadow, 0, users->area->reach, &check->host, add_unordered,
                        users);
}

/* ── What is said ─────────────────────────────────────────────────────────────────────────── */

static const char *call_of(const struct blyi_area *area)
{
    switch ((enum blyi_area_kind)area->kind) {
    case BLYI_AREA_MAP:
        return "unmap";
    case BLYI_AREA_IMPORT:
        return "close";
    case BLYI_AREA_REGISTERED:
        return "unregistration";
    case BLYI_AREA_BLOCK:
    case BLYI_AREA_PINNED:
        break;
    }
    return "free";
}

static const char *function_of(const struct blyi_area *area)
{
    switch ((enum blyi_area_kind)area->kind) {
    case BLYI_AREA_MAP:
        return "aclrtUnmapMem";
    case BLYI_AREA_IMPORT:
        return "aclrtIpcMemClose";
    case BLYI_AREA_REGISTERED:
        return "aclrtHostUnregister";
    case BLYI_AREA_PINNED:
        return "aclrtFreeHost";
    case BLYI_AREA_BLOCK:
        break;
    }
    return "aclrtFree";
}

static const struct blyi_epoch *latest(const struct users *users)
{
    const struct blyi_epoch *last = &users->last[0];
    for (uint32_t i = 1; i < users->n_sites; i++)
        if (users->last[i].task > last->task)
            last = &users->last[i];
    return last;
}

static void say_message(const struct blyi_check *check, struct blyi_finding *finding,
                        const struct users *users)
{
    char size[BLYI_SIZE_TEXT], stream[BLYI_STREAM_TEXT];
    const struct blyi_area *area = users->area;
    const struct blyi_epoch *last = latest(users);
    int n = snprintf(finding->message, sizeof(finding->message), "%s of 0x%" PRIx64 " (%s) ",
                     call_of(area), area->node.key, blyi_size_short(area->size, size));
    char *to = finding->message + n;
    size_t room = sizeof(finding->message) - (size_t)n;
    if (users->n_tasks > 0 && users->n_streams > 1)
        snprintf(to, room, "while %" PRIu64 " tasks on %" PRIu64 " streams still refer to it",
                 users->n_tasks, users->n_streams);
    else if (users->n_tasks > 0)
        snprintf(to, room, "while %" PRIu64 " task%s on %s still refer%s to it", users->n_tasks,
                 users->n_tasks == 1 ? "" : "s", blyi_stream_text(check, last->stream, stream),
                 users->n_tasks == 1 ? "s" : "");
    else
        snprintf(to, room,
                 "is a race: not ordered after the %s by a %s on %s, which nobody waited for",
                 users->writes[last - users->last] ? "write" : "read", blyi_work_text(last->work),
                 blyi_stream_text(check, last->stream, stream));
}

static void say_safe_point(const struct blyi_check *check, struct blyi_finding *finding,
                           const struct users *users)
{
    uint32_t stream = latest(users)->stream, graph = blyi_stream_graph(check, stream);
    blyi_found_detail(finding, "earliest safe point: behind");
    for (uint32_t i = 0; i < users->n_sites; i++)
        blyi_found_detail(finding, "%s task %" PRIu64 " of stream %" PRIu32, i > 0 ? " and" : "",
                          users->last[i].task, users->last[i].stream);
    blyi_found_detail(finding, ", once the host has waited for it\n");
    if (graph != 0)
        snprintf(finding->cure, sizeof(finding->cure),
                 "let the host wait for the run of graph %" PRIu32
                 " before %s, which acts at once: "
                 "aclrtSynchronizeStream for the stream that runs it",
                 graph, function_of(users->area));
    else
        snprintf(finding->cure, sizeof(finding->cure),
                 "call aclrtSynchronizeStream for stream %" PRIu32
                 " before %s, which acts at once; a wait put on a stream does not hold the host",
                 stream, function_of(users->area));
}

static void found_in_use(struct blyi_check *check, const struct users *users, uint32_t site)
{
    const struct blyi_area *area = users->area;
    bool map = area->kind == BLYI_AREA_MAP;
    struct blyi_finding finding = {.kind =
                                       map ? BLYI_FINDING_UNMAP_IN_USE : BLYI_FINDING_FREE_IN_USE,
                                   .card = area->card,
                                   .address = area->node.key,
                                   .bytes = area->size};
    say_message(check, &finding, users);
    for (uint32_t i = 0; i < users->n_sites && i < 3; i++) {
        char words[BLYI_FINDING_WORDS];
        snprintf(words, sizeof(words), "%s on stream %" PRIu32 ", queued at",
                 blyi_work_text(users->last[i].work), users->last[i].stream);
        blyi_finding_add_site(&finding, BLYI_ROLE_USE, users->last[i].site, words);
    }
    for (uint32_t i = 0; i < users->n_sites; i++)
        blyi_found_stream(&finding, users->last[i].stream);
    blyi_finding_add_site(&finding, map ? BLYI_ROLE_UNMAP : BLYI_ROLE_FREE, site,
                          area->kind == BLYI_AREA_REGISTERED ? "unregistered at"
                          : area->kind == BLYI_AREA_IMPORT   ? "closed at"
                                                             : NULL);
    blyi_found_area(&finding, area);
    say_safe_point(check, &finding, users);
    blyi_found(check, &finding, site, area->site);
}

static void look_for_users(struct blyi_check *check, const struct blyi_area *area, uint32_t site)
{
    struct users users = {.area = area};
    if (site == 0) /* not the program's own call */
        return;
    find_queued(check, &users);
    if (users.n_tasks == 0)
        find_unordered(check, &users);
    if (users.n_sites > 0)
        found_in_use(check, &users, site);
}

/* ── From probes ──────────────────────────────────────────────────────────────────────────── */

void blyi_free_seen(struct blyi_check *check, const struct blyi_probe *probe)
{
    bool registered = probe->kind == BLYI_PROBE_HOST_UNREGISTER;
    bool by_reset = probe->kind == BLYI_PROBE_RESET_FREE ||
                    (probe->kind == BLYI_PROBE_UNMAP && probe->aux == 1) ||
                    (probe->kind == BLYI_PROBE_IMPORT_CLOSE && probe->aux == 1);
    struct blyi_area *area = blyi_area_at(check, probe->address, registered);
    struct blyi_handle_memory *handle =
        area != NULL && !by_reset ? blyi_map_get(&check->handles, area->handle) : NULL;
    if (area == NULL)
        return;
    if (handle != NULL && area->kind == BLYI_AREA_MAP)
        handle->n_maps--;
    if (by_reset)
        blyi_leak_block(check, area, true);
    if (probe->kind == BLYI_PROBE_FREE && probe->stream != 0) {
        blyi_free_ordered(check, area, probe);
        return;
    }
    if (!by_reset && !area->is_freed)
        look_for_users(check, area, probe->site);
    if (probe->kind == BLYI_PROBE_HOST_FREE_HELD) {
        area->is_freed = true;
        area->free_site = probe->site;
    } else {
        blyi_area_end(check, area, probe->site);
    }
}

static void found_double(struct blyi_check *check, const struct blyi_probe *probe,
                         const struct blyi_was *was)
{
    char size[BLYI_SIZE_TEXT];
    struct blyi_finding finding = {.kind = BLYI_FINDING_DOUBLE_FREE,
                                   .card = was->card,
                                   .address = probe->address,
                                   .bytes = was->size};
    snprintf(finding.message, sizeof(finding.message), "0x%" PRIx64 ", a %s of %s, was %s",
             probe->address, blyi_area_noun((enum blyi_area_kind)was->kind),
             blyi_size_text(was->size, size),
             was->free_site != 0 ? "freed already" : "taken back by a device reset before");
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, probe->site, "freed again at");
    if (was->free_site != 0)
        blyi_finding_add_site(&finding, BLYI_ROLE_FREE, was->free_site, "first freed at");
    blyi_finding_add_site(&finding, BLYI_ROLE_ALLOC, was->alloc_site, NULL);
    blyi_found(check, &finding, probe->site, was->alloc_site);
}

static void found_invalid(struct blyi_check *check, const struct blyi_probe *probe,
                          const struct blyi_area *area, const struct blyi_was *was)
{
    char text[BLYI_AREA_TEXT], size[BLYI_SIZE_TEXT];
    struct blyi_finding finding = {
        .kind = BLYI_FINDING_INVALID_FREE, .card = probe->card, .address = probe->address};
    int n =
        snprintf(finding.message, sizeof(finding.message), "free of 0x%" PRIx64, probe->address);
    char *to = finding.message + n;
    size_t room = sizeof(finding.message) - (size_t)n;
    if (area != NULL && area->node.key == probe->address)
        snprintf(to, room, ", which is the %s", blyi_area_text(area, text));
    else if (area != NULL)
        snprintf(to, room, ", %" PRIu64 " bytes into the %s", probe->address - area->node.key,
                 blyi_area_text(area, text));
    else if (was != NULL)
        snprintf(to, room, ", %" PRIu64 " bytes into a %s of %s that was freed before",
                 probe->address - was->address, blyi_area_noun((enum blyi_area_kind)was->kind),
                 blyi_size_text(was->size, size));
    else
        snprintf(to, room, ", which is no block");
    blyi_finding_add_site(&finding, BLYI_ROLE_USE, probe->site, "freed at");
    if (area != NULL)
        blyi_found_area(&finding, area);
    else if (was != NULL)
        blyi_finding_add_site(&finding, BLYI_ROLE_ALLOC, was->alloc_site, NULL);
    blyi_found(check, &finding, probe->site, area != NULL ? area->site : 0);
}

void blyi_free_refused(struct blyi_check *check, const struct blyi_probe *probe)
{
    const struct blyi_area *area = blyi_area_find(check, probe->address);
    const struct blyi_was *was = area == NULL ? blyi_was_find(check, probe->address) : NULL;
    if (area != NULL && area->is_freed && area->node.key == probe->address) {
        const struct blyi_was held = {.address = probe->address,
                                      .size = area->size,
                                      .card = -1,
                                      .alloc_site = area->site,
                                      .free_site = area->free_site,
                                      .kind = area->kind};
        found_double(check, probe, &held);
    } else if (was != NULL && was->address == probe->address && was->kind != BLYI_AREA_MAP) {
        found_double(check, probe, was);
    } else if (area != NULL || was != NULL || check->opts.complete) {
        found_invalid(check, probe, area, was);
    }
}
