/* SPDX-License-Identifier: Apache-2.0
 *
 * service_test.h - what the tests of processes that ask one another have in common.
 */
#ifndef SERVICE_TEST_H
#define SERVICE_TEST_H

#include "../many/many_test.h"

#include <sys/mman.h>
#include <time.h>
#include "base/fail.h"
#include "base/reclaim.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/event.h"
#include "npu/ledger.h"
#include "npu/mailbox.h"
#include "npu/memory.h"
#include "npu/physical.h"
#include "npu/relief.h"
#include "npu/runtime.h"
#include "npu/service.h"
#include "npu/signal_inside.h"
#include "npu/stream.h"
#include "npu/tally.h"

#define GOOD(call)                                                                                 \
    do {                                                                                           \
        bly_status status_ = (call);                                                               \
        if (status_ != BLY_OK) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, blyi_fail_text());       \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define FAILS(call, code, part)                                                                    \
    do {                                                                                           \
        CHECK_EQ(call, code);                                                                      \
        if (strstr(blyi_fail_text(), part) == NULL) {                                              \
            fprintf(stderr, "%s:%d: no '%s' in: %s\n", __FILE__, __LINE__, part,                   \
                    blyi_fail_text());                                                             \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static struct blyi_card *bind_0(void)
{
    GOOD(blyi_runtime_enter());
    GOOD(blyi_device_set(0, 0));
    return blyi_card_get(0);
}

static inline bly_status take(size_t size, void **block)
{
    struct blyi_mem_request request = {
        .asked = size, .rounded = size, .policy = BLYI_MEM_HUGE_ONLY};
    return blyi_mem_alloc(blyi_card_get(0), &request, block);
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
