/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/check_leak.h"

static const char *const group_names[BLYI_CHECK_GROUP_COUNT] = {
#define CHECK_NAME(name, bit) #name,
    BLYI_CHECK_GROUPS(CHECK_NAME)
#undef CHECK_NAME
};

#define IN(bit) (1u << BLYI_CHECK_AT_##bit)

static const uint32_t groups_of[BLYI_FINDING_KIND_COUNT] = {
    [BLYI_FINDING_LEAK] = IN(LEAK),
    [BLYI_FINDING_LEAKED_HANDLE] = IN(LEAK),
    [BLYI_FINDING_LEAKED_STREAM] = IN(LEAK),
    [BLYI_FINDING_LEAKED_EVENT] = IN(LEAK),
    [BLYI_FINDING_LEAKED_NOTIFY] = IN(LEAK),
    [BLYI_FINDING_LEAKED_GRAPH] = IN(LEAK),
    [BLYI_FINDING_LEAKED_CONTEXT] = IN(LEAK),
    [BLYI_FINDING_LEAKED_QUEUE] = IN(LEAK),
    [BLYI_FINDING_HOST_ACCESS] = IN(HOST),
    [BLYI_FINDING_DOUBLE_FREE] = IN(UAF),
    [BLYI_FINDING_INVALID_FREE] = IN(UAF),
    [BLYI_FINDING_USE_AFTER_FREE] = IN(UAF),
    [BLYI_FINDING_OUT_OF_BOUNDS] = IN(OOB),
    [BLYI_FINDING_UNINITIALISED_READ] = IN(UNINIT),
    [BLYI_FINDING_RACE] = IN(RACE),
    [BLYI_FINDING_FREE_IN_USE] = IN(UAF) | IN(RACE) | IN(PINNED),
    [BLYI_FINDING_UNMAP_IN_USE] = IN(UNMAP),
    [BLYI_FINDING_PINNED_CHANGED] = IN(PINNED),
    [BLYI_FINDING_WRONG_DEVICE] = IN(OOB) | IN(UAF),
};

static int group_of(const char *name, size_t length)
{
    for (int i = 0; i < BLYI_CHECK_GROUP_COUNT; i++)
        if (strlen(group_names[i]) == length && strncmp(group_names[i], name, length) == 0)
            return i;
    return -1;
}

bly_status blyi_check_parse(const char *text, uint32_t *groups)
{
    uint32_t sum = 0;
    if (strcmp(text, "off") == 0 || text[0] == '\0') {
        *groups = 0;
        return BLY_OK;
    }
    if (strcmp(text, "all") == 0 || strcmp(text, "on") == 0) {
        *groups = BLYI_CHECK_ALL;
        return BLY_OK;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int group = group_of(at, length);
        if (group < 0)
            return blyi_fail(
                BLY_E_PARSE,
                "CHECK '%s': '%.*s' is none of off, all, leak, uaf, oob, race, uninit, "
                "host, unmap, pinned",
                text, (int)length, at);
        sum |= 1u << group;
        at += length;
        if (*at == '\0')
            break;
    }
    *groups = sum;
    return BLY_OK;
}

bool blyi_check_wants(uint32_t groups, enum blyi_finding_kind kind)
{
    return (groups & groups_of[kind]) != 0;
}

void blyi_check_stop(struct blyi_check *check)
{
    check->stopped = "the host has no memory for it";
}

bly_status blyi_check_create(const struct blyi_check_opts *opts, struct blyi_check **out)
{
    struct blyi_check *check = blyi_host_calloc(1, sizeof(*check));
    struct blyi_was *was = blyi_host_calloc(BLYI_WAS_MAX, sizeof(*was));
    if (check == NULL || was == NULL) {
        blyi_host_free(check);
        blyi_host_free(was);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the checker");
    }
    check->opts = *opts;
    check->was = was;
    blyi_map_init(&check->handles);
    blyi_map_init(&check->streams);
    blyi_map_init(&check->events);
    blyi_map_init(&check->leaks);
    blyi_map_init(&check->things);
    *out = check;
    return BLY_OK;
}

void blyi_check_destroy(struct blyi_check *check)
{
    if (check == NULL)
        return;
    blyi_check_graph_fini(check);
    blyi_order_fini(check); /* before the areas: tasks refer to them */
    blyi_areas_fini(check);
    blyi_found_fini(check);
    blyi_leaks_fini(check);
    blyi_host_free(check);
}

static void on_made(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_event *event = blyi_check_event(check, blyi_event_key(probe->event));
    if (event == NULL)
        return;
    event->site = probe->site;
    event->card = probe->card;
}

static void on_event_reset(struct blyi_check *check, const struct blyi_probe *probe)
{
    const struct blyi_check_event *event =
        blyi_map_get(&check->events, blyi_event_key(probe->event));
    if (event != NULL)
        blyi_leak_event(check, event, probe->event, true);
}

void blyi_check_probe(struct blyi_check *check, const struct blyi_probe *probe)
{
    if (check->stopped != NULL)
        return;
    switch (probe->kind) {
    case BLYI_PROBE_ALLOC:
    case BLYI_PROBE_HOST_ALLOC:
    case BLYI_PROBE_HOST_REGISTER:
    case BLYI_PROBE_MAP:
        blyi_area_made(check, probe, false);
        break;
    case BLYI_PROBE_FREE:
    case BLYI_PROBE_RESET_FREE:
    case BLYI_PROBE_HOST_FREE:
    case BLYI_PROBE_HOST_FREE_HELD:
    case BLYI_PROBE_HOST_UNREGISTER:
    case BLYI_PROBE_UNMAP:
        blyi_free_seen(check, probe);
        break;
    case BLYI_PROBE_FREE_FAIL:
        blyi_free_refused(check, probe);
        break;
    case BLYI_PROBE_PHYS_CREATE:
        blyi_handle_made(check, probe);
        break;
    case BLYI_PROBE_IMPORT:
        if (probe->other != 0)
            blyi_handle_made(check, probe);
        else
            blyi_area_made(check, probe, true);
        break;
    case BLYI_PROBE_IMPORT_CLOSE:
        if (probe->other != 0)
            blyi_handle_ended(check, probe->address, probe->aux == 1);
        else
            blyi_free_seen(check, probe);
        break;
    case BLYI_PROBE_PHYS_FREE:
        blyi_handle_ended(check, probe->address, probe->aux == 1);
        break;
    case BLYI_PROBE_STREAM_CREATE:
        blyi_stream_made(check, probe);
        break;
    case BLYI_PROBE_STREAM_DESTROY:
        blyi_stream_gone(check, probe);
        break;
    case BLYI_PROBE_EVENT_CREATE:
        on_made(check, probe);
        break;
    case BLYI_PROBE_EVENT_DESTROY:
        if (probe->aux == 1)
            on_event_reset(check, probe);
        blyi_event_gone(check, blyi_event_key(probe->event));
        break;
    case BLYI_PROBE_NOTIFY_CREATE:
    case BLYI_PROBE_GRAPH_CREATE:
    case BLYI_PROBE_CONTEXT_CREATE:
    case BLYI_PROBE_CONTEXT_DESTROY:
    case BLYI_PROBE_QUEUE_CREATE:
    case BLYI_PROBE_QUEUE_DESTROY:
        blyi_leak_thing(check, probe);
        break;
    case BLYI_PROBE_GRAPH_DESTROY:
        blyi_leak_thing(check, probe);
        blyi_event_gone(check, blyi_check_graph_key(probe->event));
        break;
    case BLYI_PROBE_LINE_BEGIN:
        blyi_check_graph_line_begins(check, probe);
        break;
    case BLYI_PROBE_LINE_END:
        blyi_check_graph_line_ends(check, probe);
        break;
    case BLYI_PROBE_STALE_USE:
        blyi_check_graph_stale(check, probe);
        break;
    case BLYI_PROBE_NOTIFY_DESTROY:
        blyi_leak_thing(check, probe);
        blyi_event_gone(check, blyi_notify_key(probe->event));
        break;
    case BLYI_PROBE_COPY:
    case BLYI_PROBE_SET:
    case BLYI_PROBE_RECORD:
    case BLYI_PROBE_WAIT:
    case BLYI_PROBE_CALLBACK:
    case BLYI_PROBE_NOTIFY_RECORD:
    case BLYI_PROBE_NOTIFY_WAIT:
    case BLYI_PROBE_KERNEL:
    case BLYI_PROBE_KERNEL_RANGE:
    case BLYI_PROBE_VALUE_WRITE:
    case BLYI_PROBE_VALUE_WAIT:
    case BLYI_PROBE_INDIRECT:
        blyi_work_submitted(check, probe);
        break;
    case BLYI_PROBE_SIGNAL:
        blyi_order_signal(check, probe);
        break;
    case BLYI_PROBE_CALLBACK_RUN:
        blyi_order_callback(check, probe);
        break;
    case BLYI_PROBE_STREAM_SYNC:
        blyi_order_stream_sync(check, probe);
        break;
    case BLYI_PROBE_EVENT_SYNC:
        blyi_order_event_sync(check, probe);
        break;
    case BLYI_PROBE_USE:
        blyi_area_used(check, probe);
        break;
    case BLYI_PROBE_EXPORT:
        blyi_area_shared(check, probe);
        break;
    case BLYI_PROBE_TASK_DONE:
        blyi_work_done(check, probe);
        break;
    case BLYI_PROBE_PEER_FAIL:
        blyi_work_refused(check, probe);
        break;
    case BLYI_PROBE_HOST_ACCESS:
        blyi_leak_access(check, probe);
        break;
    case BLYI_PROBE_CALLBACK_REACH:
        blyi_area_reached(check, probe);
        break;
    case BLYI_PROBE_SOURCE_CHANGED:
        blyi_work_source_changed(check, probe);
        break;
    default:
        break;
    }
}

void blyi_check_was_there(struct blyi_check *check, const struct blyi_probe *made)
{
    if (check->stopped != NULL)
        return;
    if (made->kind == BLYI_PROBE_PHYS_CREATE)
        blyi_handle_made(check, made);
    else
        blyi_area_made(check, made, true);
}

const struct blyi_finding *blyi_check_findings(const struct blyi_check *check, size_t *n)
{
    struct blyi_check *own = (struct blyi_check *)(uintptr_t)check;
    *n = 0;
    blyi_host_free(own->list);
    own->list = blyi_host_alloc((check->n_found + 1) * sizeof(*own->list));
    if (own->list == NULL)
        return NULL;
    for (size_t i = 0; i < check->n_found; i++)
        own->list[i] = check->found[i]->finding;
    *n = check->n_found;
    return own->list;
}

const char *blyi_check_stopped(const struct blyi_check *check)
{
    return check->stopped;
}

bool blyi_check_audit(const struct blyi_check *check)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&check->areas); node != NULL;
         node = blyi_tree_next(node)) {
        const struct blyi_area *area = BLYI_CONTAINER(node, struct blyi_area, node);
        if (area->refs == 0 || area->is_gone || !blyi_shadow_audit(area->shadow))
            return false;
    }
    return blyi_tree_audit(&check->areas) && blyi_map_audit(&check->streams) &&
           blyi_map_audit(&check->events);
}
