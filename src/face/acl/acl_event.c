/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_event.c - events: order between streams, waiting by the host, timing.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/pools.h"
#include "npu/card.h"
#include "npu/event.h"
#include "npu/tally.h"

aclError bly_acl_aclrtCreateEvent(aclrtEvent *event)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtCreateEvent, "event");
    return acl_result(aclrtCreateEvent, blyi_event_create(BLYI_EVENT_SYNC | BLYI_EVENT_TIME_LINE,
                                                          false, site, event));
}

aclError bly_acl_aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtCreateEventWithFlag, "event");
    return acl_result(aclrtCreateEventWithFlag, blyi_event_create(flag, false, site, event));
}

aclError bly_acl_aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtCreateEventExWithFlag, "event");
    return acl_result(aclrtCreateEventExWithFlag, blyi_event_create(flag, true, site, event));
}

aclError bly_acl_aclrtDestroyEvent(aclrtEvent event)
{
    if (event == NULL)
        return acl_null(aclrtDestroyEvent, "event");
    return acl_result(aclrtDestroyEvent, blyi_event_destroy(event));
}

aclError bly_acl_aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtRecordEvent, "event");
    return acl_result(aclrtRecordEvent, blyi_event_record(event, stream, site));
}

aclError bly_acl_aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtRecordEventWithFlag, "event");
    if (flag == ACL_EVENT_RECORD_EXTERNAL)
        return acl_result(aclrtRecordEventWithFlag,
                          blyi_event_record_external(event, stream, site));
    if (flag != ACL_EVENT_RECORD_DEFAULT)
        return acl_reject(aclrtRecordEventWithFlag, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %" PRIu32 " is not 0 or 1", flag);
    return acl_result(aclrtRecordEventWithFlag, blyi_event_record(event, stream, site));
}

aclError bly_acl_aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtStreamWaitEvent, "event");
    return acl_result(aclrtStreamWaitEvent, blyi_event_wait(event, stream, 0, site));
}

aclError bly_acl_aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                 int32_t timeout)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtStreamWaitEventWithTimeout, "event");
    if (timeout < 0)
        return acl_reject(aclrtStreamWaitEventWithTimeout, ACL_ERROR_RT_PARAM_INVALID,
                          "timeout %" PRId32 " s is below 0", timeout);
    return acl_result(aclrtStreamWaitEventWithTimeout,
                      blyi_event_wait(event, stream, (uint32_t)timeout, site));
}

aclError bly_acl_aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                              uint32_t timeout, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtStreamWaitEventWithFlag, "event");
    if (flag != ACL_EVENT_WAIT_DEFAULT && flag != ACL_EVENT_WAIT_EXTERNAL)
        return acl_reject(aclrtStreamWaitEventWithFlag, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %" PRIu32 " is not 0 or 1", flag);
    if (flag == ACL_EVENT_WAIT_DEFAULT)
        return acl_result(aclrtStreamWaitEventWithFlag,
                          blyi_event_wait(event, stream, timeout, site));
    if (timeout != 0)
        return acl_reject(aclrtStreamWaitEventWithFlag, ACL_ERROR_RT_PARAM_INVALID,
                          "timeout %" PRIu32 " s: an external wait has none", timeout);
    return acl_result(aclrtStreamWaitEventWithFlag, blyi_event_wait_external(event, stream, site));
}

aclError bly_acl_aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (event == NULL)
        return acl_null(aclrtResetEvent, "event");
    return acl_result(aclrtResetEvent, blyi_event_reset(event, stream, site));
}

/* Both pointers of a call that asks an event. */
static aclError check_both(enum blyi_acl_call call, const void *event, const void *out,
                           const char *name)
{
    if (event != NULL && out != NULL)
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                           event == NULL ? "event" : name);
}

/* `yes` or `no` into *status, three enumerations being one int here. */
static aclError query(enum blyi_acl_call call, bly_status (*fn)(void *event, bool *complete),
                      aclrtEvent event, int *status, int yes, int no)
{
    bool complete;
    aclError error = check_both(call, event, status, "status");
    if (error != ACL_SUCCESS)
        return error;
    bly_status result = fn(event, &complete);
    if (result == BLY_OK)
        *status = complete ? yes : no;
    return blyi_acl_result(call, result);
}

aclError bly_acl_aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    return query(BLYI_ACL_CALL_aclrtQueryEventStatus, blyi_event_query, event, (int *)status,
                 ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_RECORDED_STATUS_NOT_READY);
}

aclError bly_acl_aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
    return query(BLYI_ACL_CALL_aclrtQueryEventWaitStatus, blyi_event_query_wait, event,
                 (int *)status, ACL_EVENT_WAIT_STATUS_COMPLETE, ACL_EVENT_WAIT_STATUS_NOT_READY);
}

aclError bly_acl_aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    return query(BLYI_ACL_CALL_aclrtQueryEvent, blyi_event_query_wait, event, (int *)status,
                 ACL_EVENT_STATUS_COMPLETE, ACL_EVENT_STATUS_NOT_READY);
}

aclError bly_acl_aclrtSynchronizeEvent(aclrtEvent event)
{
    if (event == NULL)
        return acl_null(aclrtSynchronizeEvent, "event");
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeEvent, blyi_event_sync(event, 0));
}

aclError bly_acl_aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
    uint64_t timeout_ns;
    if (event == NULL)
        return acl_null(aclrtSynchronizeEventWithTimeout, "event");
    aclError error = blyi_acl_check_timeout(BLYI_ACL_CALL_aclrtSynchronizeEventWithTimeout, timeout,
                                            ACL_ERROR_RT_PARAM_INVALID, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeEventWithTimeout,
                           blyi_event_sync(event, timeout_ns));
}

aclError bly_acl_aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    if (ms == NULL || startEvent == NULL || endEvent == NULL)
        return acl_reject(aclrtEventElapsedTime, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          ms == NULL           ? "ms"
                          : startEvent == NULL ? "startEvent"
                                               : "endEvent");
    int64_t ns;
    bly_status status = blyi_event_elapsed(startEvent, endEvent, &ns);
    if (status == BLY_OK)
        *ms = (float)((double)ns / 1e6);
    return acl_result(aclrtEventElapsedTime, status);
}

aclError bly_acl_aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
    uint64_t ns;
    aclError error =
        check_both(BLYI_ACL_CALL_aclrtEventGetTimestamp, event, timestamp, "timestamp");
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_event_timestamp(event, &ns);
    if (status == BLY_OK)
        *timestamp = ns / 1000;
    return acl_result(aclrtEventGetTimestamp, status);
}

aclError bly_acl_aclrtGetEventId(aclrtEvent event, uint32_t *eventId)
{
    aclError error = check_both(BLYI_ACL_CALL_aclrtGetEventId, event, eventId, "eventId");
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtGetEventId, blyi_event_id(event, eventId));
}

aclError bly_acl_aclrtGetEventAvailNum(uint32_t *eventCount)
{
    if (eventCount == NULL)
        return acl_null(aclrtGetEventAvailNum, "eventCount");
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtGetEventAvailNum, &card);
    if (error != ACL_SUCCESS)
        return error;
    uint64_t used = blyi_tally_used(card->id, BLYI_LIMIT_EVENTS);
    *eventCount = used < card->model.events ? (uint32_t)(card->model.events - used) : 0;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSetOpWaitTimeout(uint32_t timeout)
{
    blyi_event_set_wait_timeout(timeout);
    return ACL_SUCCESS;
}
