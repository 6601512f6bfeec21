/* SPDX-License-Identifier: Apache-2.0
 *
 * order_test.h - what the tests of contexts, streams, events and copies share.
 */
#ifndef ORDER_TEST_H
#define ORDER_TEST_H

#include "../base/base_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/stat.h"
#include "base/sys.h"
#include "npu/tally.h"
#include "npu/callback.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/copy.h"
#include "npu/event.h"
#include "npu/fault.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/runtime.h"
#include "npu/stream.h"

#define assert_status(call, wanted)                                                                \
    do {                                                                                           \
        bly_status status_ = (call);                                                               \
        if (status_ != (wanted))                                                                   \
            fail_msg("%s: %s, not %s: %s", #call, bly_status_name(status_), #wanted,               \
                     blyi_fail_text());                                                            \
    } while (0)

#define assert_sentence(part)                                                                      \
    do {                                                                                           \
        if (strstr(blyi_fail_text(), (part)) == NULL)                                              \
            fail_msg("\"%s\" is not in \"%s\"", (part), blyi_fail_text());                         \
    } while (0)

#define MODERN    true
#define LEGACY    false
#define SYNC_TIME (BLYI_EVENT_SYNC | BLYI_EVENT_TIME_LINE)
#define PLAIN     (SYNC_TIME | BLYI_EVENT_CAPTURE_PROGRESS)

static inline void *new_stream(void)
{
    void *stream = NULL;
    assert_ok(blyi_stream_create(0, 0, 0, &stream));
    return stream;
}

static inline void *new_event(bool modern)
{
    void *event = NULL;
    assert_ok(blyi_event_create(PLAIN, modern, 0, &event));
    return event;
}

static inline void *card_alloc(uint64_t size)
{
    struct blyi_card *card;
    struct blyi_mem_request request = {.asked = size, .rounded = size, .module = 33};
    void *address = NULL;
    assert_ok(blyi_context_here_card(&card));
    assert_ok(blyi_mem_alloc(card, &request, &address));
    return address;
}

static inline void *pinned_alloc(uint64_t size)
{
    void *address = NULL;
    assert_ok(blyi_pinned_alloc(size, size, 0, 33, &address));
    return address;
}

static inline bool is_done(void *event)
{
    bool complete = false;
    assert_ok(blyi_event_query(event, &complete));
    return complete;
}

static inline bool is_idle(void *stream)
{
    bool complete = false;
    assert_ok(blyi_stream_query(stream, &complete));
    return complete;
}

static inline uint64_t pending(void *stream)
{
    uint64_t n = 0;
    assert_ok(blyi_stream_pending(stream, &n));
    return n;
}

/* cmocka puts handlers of its own over ours before each test. Called in main() first, then in
 * each test that faults. */
static inline void keep_fault_handler(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    static struct sigaction ours[BLYI_COUNT(signals)];
    if (ours[0].sa_sigaction == NULL) {
        if (blyi_fault_install_kernel() != BLY_OK)
            abort();
        for (size_t i = 0; i < BLYI_COUNT(signals); i++)
            sigaction(signals[i], NULL, &ours[i]);
    }
    for (size_t i = 0; i < BLYI_COUNT(signals); i++)
        sigaction(signals[i], &ours[i], NULL);
}

/* In another thread, which sets no device; the test waits for it. */
static inline void in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, NULL);
}

/* Each test begins with one card set and ends with nothing. */
static inline int begin(void **state)
{
    (void)state;
    return blyi_device_set(0, 0) == BLY_OK ? 0 : -1;
}

static inline int finish(void **state)
{
    (void)state;
    blyi_clock_set_virtual(false);
    blyi_host_fail_nth(0);
    blyi_sys_fail_nth(0, 0);
    blyi_runtime_finalise();
    return 0;
}

#define order_test(fn) cmocka_unit_test_setup_teardown(fn, begin, finish)
#define bare_test(fn)  cmocka_unit_test_setup_teardown(fn, NULL, finish)

#endif
