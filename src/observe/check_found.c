/* SPDX-License-Identifier: Apache-2.0
 *
 * check_found.c - findings: one for each fault and site, and what is said in it.
 */
#include "observe/check_inside.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/host.h"

void blyi_found_detail(struct blyi_finding *finding, const char *fmt, ...)
{
    size_t used = strlen(finding->detail);
    va_list args;
    va_start(args, fmt);
    vsnprintf(finding->detail + used, sizeof(finding->detail) - used, fmt, args);
    va_end(args);
}

void blyi_found_stream(struct blyi_finding *finding, uint32_t stream)
{
    for (uint32_t i = 0; i < finding->n_streams; i++)
        if (finding->streams[i] == stream)
            return;
    if (stream != 0 && finding->n_streams < BLYI_FINDING_STREAMS)
        finding->streams[finding->n_streams++] = stream;
}

const char *blyi_area_text(const struct blyi_area *area, char buf[BLYI_AREA_TEXT])
{
    char size[BLYI_SIZE_TEXT];
    int n = snprintf(buf, BLYI_AREA_TEXT, "%s of %s at 0x%" PRIx64,
                     blyi_area_noun((enum blyi_area_kind)area->kind),
                     blyi_size_text(area->size, size), area->node.key);
    if (area->card >= 0)
        snprintf(buf + n, BLYI_AREA_TEXT - (size_t)n, " of card %d", area->card);
    return buf;
}

void blyi_found_area(struct blyi_finding *finding, const struct blyi_area *area)
{
    enum blyi_role role = area->kind == BLYI_AREA_MAP ? BLYI_ROLE_MAP : BLYI_ROLE_ALLOC;
    blyi_finding_add_site(finding, role, area->site,
                          area->kind == BLYI_AREA_REGISTERED ? "registered at"
                          : area->kind == BLYI_AREA_IMPORT   ? "imported at"
                                                             : NULL);
}

const char *blyi_work_text(uint8_t work)
{
    switch ((enum blyi_work)work) {
    case BLYI_WORK_COPY:
        return "copy";
    case BLYI_WORK_SET:
        return "memset";
    case BLYI_WORK_REDUCE:
        return "reduction";
    case BLYI_WORK_KERNEL:
        return "kernel";
    case BLYI_WORK_VALUE:
        return "value task";
    case BLYI_WORK_OTHER:
        break;
    }
    return "task";
}

static struct blyi_found *find(const struct blyi_check *check, const uint64_t key[3])
{
    for (size_t i = 0; i < check->n_found; i++)
        if (memcmp(check->found[i]->key, key, sizeof(check->found[i]->key)) == 0)
            return check->found[i];
    return NULL;
}

void blyi_found(struct blyi_check *check, struct blyi_finding *finding, uint64_t key_a,
                uint64_t key_b)
{
    const uint64_t key[3] = {finding->kind, key_a < key_b ? key_a : key_b,
                             key_a < key_b ? key_b : key_a};
    if (!blyi_check_wants(check->opts.groups, finding->kind))
        return;
    struct blyi_found *found = find(check, key);
    if (found != NULL) {
        found->finding.count++;
        return;
    }
    if (check->n_found == check->found_room) {
        size_t room = check->found_room > 0 ? 2 * check->found_room : 16;
        struct blyi_found **list =
            blyi_host_realloc(check->found, room * sizeof(struct blyi_found *));
        if (list == NULL) {
            blyi_check_stop(check);
            return;
        }
        check->found = list;
        check->found_room = room;
    }
    found = blyi_host_alloc(sizeof(*found));
    if (found == NULL) {
        blyi_check_stop(check);
        return;
    }
    if (finding->count == 0)
        finding->count = 1;
    found->finding = *finding;
    memcpy(found->key, key, sizeof(key));
    check->found[check->n_found++] = found;
    if (check->opts.found != NULL)
        check->opts.found(check->opts.arg, &found->finding);
}

/* ── Races ────────────────────────────────────────────────────────────────────────────────── */

#define PLACE_TEXT (BLYI_STREAM_TEXT + 8)

static const char *place_text(const struct blyi_check *check, const struct blyi_epoch *epoch,
                              char buf[PLACE_TEXT])
{
    char stream[BLYI_STREAM_TEXT];
    if (epoch->slot == 0)
        snprintf(buf, PLACE_TEXT, "by the host");
    else
        snprintf(buf, PLACE_TEXT, "on %s", blyi_stream_text(check, epoch->stream, stream));
    return buf;
}

static void add_side(const struct blyi_check *check, struct blyi_finding *finding,
                     enum blyi_role role, const struct blyi_epoch *epoch, bool writes)
{
    char words[BLYI_FINDING_WORDS], place[PLACE_TEXT];
    snprintf(words, sizeof(words), "%s by %s %s, %s at", writes ? "write" : "read",
             blyi_work_text(epoch->work), place_text(check, epoch, place),
             epoch->slot == 0                               ? "called"
             : blyi_stream_graph(check, epoch->stream) != 0 ? "captured"
                                                            : "queued");
    blyi_finding_add_site(finding, role, epoch->site, words);
    blyi_found_stream(finding, epoch->stream);
}

/* A graph's task has no place where an event could be put once it is captured. */
static bool say_missing_edge_of_graph(const struct blyi_check *check, struct blyi_finding *finding,
                                      const struct blyi_epoch *first,
                                      const struct blyi_epoch *second)
{
    uint32_t a = blyi_stream_graph(check, first->stream);
    uint32_t b = blyi_stream_graph(check, second->stream);
    if (a == 0 && b == 0)
        return false;
    if (a == b)
        snprintf(finding->cure, sizeof(finding->cure),
                 "let one of the two streams wait for an event of the other while graph %" PRIu32
                 " is captured",
                 a);
    else
        snprintf(finding->cure, sizeof(finding->cure),
                 "put an event, or a wait of the host, between the run of graph %" PRIu32
                 " and the other access: on the stream that runs it",
                 a != 0 ? a : b);
    return true;
}

static void say_missing_edge(const struct blyi_check *check, struct blyi_finding *finding,
                             const struct blyi_epoch *first, const struct blyi_epoch *second)
{
    char a[PLACE_TEXT], b[PLACE_TEXT];
    if (say_missing_edge_of_graph(check, finding, first, second))
        return;
    if (first->slot != 0 && second->slot != 0) {
        blyi_found_detail(finding,
                          "missing: an event recorded on stream %" PRIu32 " behind task %" PRIu64
                          " and waited for on stream %" PRIu32 " before task %" PRIu64
                          ", or the other way round\n",
                          first->stream, first->task, second->stream, second->task);
        snprintf(finding->cure, sizeof(finding->cure),
                 "record an event on stream %" PRIu32 " behind the first access and let stream "
                 "%" PRIu32 " wait for it before the second (aclrtRecordEvent, "
                 "aclrtStreamWaitEvent)",
                 first->stream, second->stream);
        return;
    }
    const struct blyi_epoch *queued = first->slot != 0 ? first : second;
    blyi_found_detail(finding,
                      "missing: the host waits for task %" PRIu64 " of stream %" PRIu32
                      " before its own access (%s, %s)\n",
                      queued->task, queued->stream, place_text(check, first, a),
                      place_text(check, second, b));
    snprintf(finding->cure, sizeof(finding->cure),
             "call aclrtSynchronizeStream for stream %" PRIu32 ", or wait for an event behind the "
             "task, before the host's access",
             queued->stream);
}

void blyi_found_race(struct blyi_check *check, const struct blyi_area *area,
                     const struct blyi_epoch *now, bool now_writes,
                     const struct blyi_conflict *conflict)
{
    char place[PLACE_TEXT], other[PLACE_TEXT], what[BLYI_AREA_TEXT], size[BLYI_SIZE_TEXT];
    const struct blyi_epoch *with = &conflict->with;
    struct blyi_finding finding = {.kind = BLYI_FINDING_RACE,
                                   .card = area->card,
                                   .address = area->node.key + conflict->lo,
                                   .bytes = conflict->hi - conflict->lo};
    snprintf(finding.message, sizeof(finding.message),
             "%s %s not ordered after %s %s: %s at 0x%" PRIx64, now_writes ? "write" : "read",
             place_text(check, now, place), conflict->with_write ? "write" : "read",
             place_text(check, with, other), blyi_size_text(finding.bytes, size), finding.address);
    add_side(check, &finding, BLYI_ROLE_USE, now, now_writes);
    add_side(check, &finding, BLYI_ROLE_OTHER, with, conflict->with_write);
    blyi_found_area(&finding, area);
    blyi_found_detail(&finding, "bytes [%" PRIu64 ", %" PRIu64 ") of the %s\n", conflict->lo,
                      conflict->hi, blyi_area_text(area, what));
    say_missing_edge(check, &finding, with, now);
    blyi_found(check, &finding, now->site, with->site);
}

void blyi_found_fini(struct blyi_check *check)
{
    for (size_t i = 0; i < check->n_found; i++)
        blyi_host_free(check->found[i]);
    blyi_host_free(check->found);
    blyi_host_free(check->list);
}
