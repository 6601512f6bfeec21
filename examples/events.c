/* SPDX-License-Identifier: Apache-2.0
 *
 * events.c - two streams and the event between them, with time measured on the card.
 *
 * Stream `producer` fills a buffer, stream `consumer` copies it out. Without the event the
 * consumer may copy before the producer has written; with it, it never does.
 */
#include "acl_check.h"
#include <string.h>

enum { SIZE = 32 << 20, ROUNDS = 20 };

static int wrong_bytes(const unsigned char *bytes, unsigned char expected)
{
    int wrong = 0;
    for (size_t i = 0; i < SIZE; i++)
        wrong += bytes[i] != expected;
    return wrong;
}

int main(void)
{
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    aclrtStream producer, consumer;
    CHECK_ACL(aclrtCreateStream(&producer));
    CHECK_ACL(aclrtCreateStream(&consumer));
    aclrtEvent start, filled, end;
    CHECK_ACL(aclrtCreateEventExWithFlag(&start, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventExWithFlag(&filled, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));

    void *on_card, *out;
    CHECK_ACL(aclrtMalloc(&on_card, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMallocHost(&out, SIZE));

    int wrong = 0;
    float total_ms = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        CHECK_ACL(aclrtRecordEvent(start, producer));
        CHECK_ACL(aclrtMemsetAsync(on_card, SIZE, round, SIZE, producer));
        CHECK_ACL(aclrtRecordEvent(filled, producer));

        CHECK_ACL(aclrtStreamWaitEvent(consumer, filled));
        CHECK_ACL(aclrtMemcpyAsync(out, SIZE, on_card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, consumer));
        CHECK_ACL(aclrtRecordEvent(end, consumer));
        CHECK_ACL(aclrtSynchronizeEvent(end));

        float ms = 0;
        CHECK_ACL(aclrtEventElapsedTime(&ms, start, end));
        total_ms += ms;
        wrong += wrong_bytes(out, (unsigned char)round);
    }
    printf("%d rounds of fill, wait, copy: %d wrong bytes, %.2f ms a round on the card's clock\n",
           ROUNDS, wrong, (double)(total_ms / ROUNDS));

    CHECK_ACL(aclrtFree(on_card));
    CHECK_ACL(aclrtFreeHost(out));
    CHECK_ACL(aclrtDestroyEvent(start));
    CHECK_ACL(aclrtDestroyEvent(filled));
    CHECK_ACL(aclrtDestroyEvent(end));
    CHECK_ACL(aclrtDestroyStream(producer));
    CHECK_ACL(aclrtDestroyStream(consumer));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return wrong != 0;
}
