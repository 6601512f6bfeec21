/* SPDX-License-Identifier: Apache-2.0
 *
 * cann_lane.c - streams of a vendor's card, and moments of them.
 *
 * A mark is the number of an event of its lane: of the last one that was recorded, plus one. That
 * event is recorded when somebody first asks whether the mark has passed, so a free costs nothing;
 * it then stands behind all that was queued at the free, and perhaps behind a little more.
 *
 * Threads that use a pool have set its device, and a stream is named by blyi_cann_end() before it
 * is destroyed: the runtime does not check handles.
 */
#include <inttypes.h>
#include <stdio.h>
#include "backend/cann_inside.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"

#define NAP_MOST_NS UINT64_C(1000000)

void blyi_cann_drop_records(struct blyi_cann *cann, struct blyi_list *records)
{
    BLYI_LIST_FOR_SAFE(node, records)
    {
        struct blyi_cann_record *record = BLYI_CONTAINER(node, struct blyi_cann_record, link);
        blyi_cann_expect(cann, "aclrtDestroyEvent", cann->acl.aclrtDestroyEvent(record->event));
        blyi_host_free(record);
    }
    blyi_list_init(records);
}

bly_status blyi_cann_hold(struct blyi_backend *backend, void *stream, struct blyi_lane **out)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    struct blyi_lane *lane = blyi_host_calloc(1, sizeof *lane);
    if (lane == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a stream");
    lane->stream = stream;
    lane->next = 1;
    blyi_list_init(&lane->records);
    blyi_lock_take(&cann->lock);
    blyi_list_push_back(&cann->lanes, &lane->link);
    blyi_lock_drop(&cann->lock);
    *out = lane;
    return BLY_OK;
}

void blyi_cann_let_go(struct blyi_backend *backend, struct blyi_lane *lane)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    blyi_lock_take(&cann->lock);
    blyi_list_remove(&lane->link);
    blyi_lock_drop(&cann->lock);
    blyi_cann_drop_records(cann, &lane->records);
    blyi_host_free(lane);
}

const blyi_mark *blyi_cann_marks(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    return &lane->next;
}

static struct blyi_cann_record *unused_record_locked(struct blyi_cann *cann)
{
    if (!blyi_list_empty(&cann->unused)) {
        struct blyi_cann_record *record =
            BLYI_CONTAINER(cann->unused.next, struct blyi_cann_record, link);
        blyi_list_remove(&record->link);
        return record;
    }
    struct blyi_cann_record *record = blyi_host_calloc(1, sizeof *record);
    if (record == NULL) {
        (void)blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe an event");
        return NULL;
    }
    blyi_list_init(&record->link);
    aclError error = cann->acl.aclrtCreateEventExWithFlag(&record->event, ACL_EVENT_SYNC);
    if (error == ACL_SUCCESS)
        return record;
    (void)blyi_cann_failed(cann, "aclrtCreateEventExWithFlag", error);
    blyi_host_free(record);
    return NULL;
}

/* An event for a mark, if there is none yet. False: it cannot be recorded now. */
static bool record_locked(struct blyi_cann *cann, struct blyi_lane *lane, blyi_mark at)
{
    if (at < lane->next)
        return true;
    struct blyi_cann_record *record = unused_record_locked(cann);
    if (record == NULL)
        return false;
    aclError error = cann->acl.aclrtRecordEvent(record->event, lane->stream);
    if (error != ACL_SUCCESS) {
        (void)blyi_cann_failed(cann, "aclrtRecordEvent", error);
        blyi_list_push_back(&cann->unused, &record->link);
        return false;
    }
    record->number = lane->next;
    blyi_list_push_back(&lane->records, &record->link);
    /* Release: whoever reads the new number comes behind the record. */
    __atomic_store_n(&lane->next, lane->next + 1, __ATOMIC_RELEASE);
    return true;
}

static void look_locked(struct blyi_cann *cann, struct blyi_lane *lane)
{
    while (!blyi_list_empty(&lane->records)) {
        struct blyi_cann_record *record =
            BLYI_CONTAINER(lane->records.next, struct blyi_cann_record, link);
        aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        aclError error = cann->acl.aclrtQueryEventStatus(record->event, &status);
        if (error != ACL_SUCCESS || status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
            return;
        lane->done = record->number;
        blyi_list_remove(&record->link);
        blyi_list_push_back(&cann->unused, &record->link);
    }
}

bool blyi_cann_passed(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    blyi_lock_take(&cann->lock);
    if (at > lane->done && !lane->ended && record_locked(cann, lane, at))
        look_locked(cann, lane);
    bool has = at <= lane->done || lane->ended;
    blyi_lock_drop(&cann->lock);
    return has;
}

/* Asks again and again: the event may complete, and be used anew, while somebody would sleep on it.
 */
bly_status blyi_cann_wait(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                          uint64_t limit_ns)
{
    uint64_t slept = 0, nap = 20000;
    while (!blyi_cann_passed(backend, lane, at)) {
        if (limit_ns > 0 && slept >= limit_ns)
            return blyi_fail(BLY_E_TIMEOUT, "stream %p: work has not ended within %" PRIu64 " ms",
                             lane->stream, limit_ns / 1000000);
        uint32_t never = 0;
        blyi_sys_futex_wait(&never, 0, nap);
        slept += nap;
        nap = nap * 2 < NAP_MOST_NS ? nap * 2 : NAP_MOST_NS;
    }
    return BLY_OK;
}

bly_status blyi_cann_order(struct blyi_backend *backend, struct blyi_lane *lane,
                           struct blyi_lane *other, blyi_mark at)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    bly_status status = BLY_OK;
    if (lane == other || blyi_cann_passed(backend, other, at))
        return BLY_OK;
    blyi_lock_take(&cann->lock);
    aclrtEvent event = NULL;
    BLYI_LIST_FOR(node, &other->records)
    {
        const struct blyi_cann_record *record = BLYI_CONTAINER(node, struct blyi_cann_record, link);
        if (record->number >= at) {
            event = record->event;
            break;
        }
    }
    if (event != NULL) {
        aclError error = cann->acl.aclrtStreamWaitEvent(lane->stream, event);
        if (error != ACL_SUCCESS)
            status = blyi_cann_failed(cann, "aclrtStreamWaitEvent", error);
    } else if (at > other->done && !other->ended) {
        status = BLY_E_SYSTEM; /* it could not be recorded; the sentence is there */
    }
    blyi_lock_drop(&cann->lock);
    return status;
}

/* Waits of the program between its streams are not seen here. */
bool blyi_cann_knows(struct blyi_backend *backend, struct blyi_lane *lane, struct blyi_lane *other,
                     blyi_mark at)
{
    return lane == other || blyi_cann_passed(backend, other, at);
}

void blyi_cann_awaited(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                       char *text, size_t size)
{
    (void)backend;
    snprintf(text, size, "event %" PRIu64 " of %p", at, lane->stream);
}

uint32_t blyi_cann_number(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    (void)lane;
    return 0;
}

bool blyi_cann_has_ended(struct blyi_backend *backend, struct blyi_lane *lane)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    blyi_lock_take(&cann->lock);
    bool has = lane->ended;
    blyi_lock_drop(&cann->lock);
    return has;
}

void blyi_cann_end(struct blyi_backend *backend, void *stream)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    blyi_lock_take(&cann->lock);
    BLYI_LIST_FOR(node, &cann->lanes)
    {
        struct blyi_lane *lane = BLYI_CONTAINER(node, struct blyi_lane, link);
        if (lane->stream == stream)
            lane->ended = true;
    }
    blyi_lock_drop(&cann->lock);
}
