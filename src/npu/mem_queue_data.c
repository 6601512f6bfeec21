/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_queue_data.c - messages by value: bytes of the host or of a card, in and out of a queue.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/copy.h"
#include "npu/mbuf_inside.h"
#include "npu/mem_queue.h"
#include "npu/runtime.h"

bly_status blyi_mem_queue_put_data(struct blyi_queue_ref ref, const void *data, uint64_t size,
                                   const void *user, uint64_t user_size, uint64_t deadline)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    if (user_size > BLYI_MBUF_USER_SIZE)
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes beside a message: at most %u", user_size,
                         BLYI_MBUF_USER_SIZE);
    struct blyi_mbuf *mbuf;
    status = blyi_mbuf_make(size, false, &mbuf);
    if (status != BLY_OK)
        return status;
    mbuf->length = size;
    status = blyi_copy_own(blyi_mbuf_bytes(mbuf), data, size);
    if (status == BLY_OK && user_size > 0)
        status = blyi_copy_own(mbuf->user, user, user_size);
    if (status == BLY_OK)
        status = blyi_mem_queue_put(ref, mbuf, deadline);
    if (status != BLY_OK)
        blyi_mbuf_drop(mbuf);
    return status;
}

/* The message is not in the queue meanwhile: two who take at once get two messages. */
bly_status blyi_mem_queue_take_data(struct blyi_queue_ref ref, void *data, uint64_t size,
                                    uint64_t *taken, void *user, uint64_t user_size,
                                    uint64_t deadline)
{
    struct blyi_mbuf *chain;
    if (user_size > BLYI_MBUF_USER_SIZE)
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes beside a message: at most %u", user_size,
                         BLYI_MBUF_USER_SIZE);
    bly_status status = blyi_mem_queue_take(ref, &chain, deadline);
    if (status != BLY_OK)
        return status;
    uint64_t length = blyi_mbuf_chain_length(chain), at = 0;
    if (length > size)
        status =
            blyi_fail(BLY_E_INVALID, "the message has %" PRIu64 " bytes, the place for it %" PRIu64,
                      length, size);
    for (const struct blyi_mbuf *mbuf = chain; status == BLY_OK && mbuf != NULL;
         mbuf = mbuf->next) {
        if (mbuf->length > 0)
            status = blyi_copy_own((char *)data + at, blyi_mbuf_bytes(mbuf), mbuf->length);
        at += mbuf->length;
    }
    if (status == BLY_OK && user_size > 0)
        status = blyi_copy_own(user, chain->user, user_size);
    if (status == BLY_OK) {
        *taken = length;
        blyi_mbuf_drop(chain);
    } else if (blyi_mem_queue_untake(ref, chain) != BLY_OK) {
        blyi_mbuf_drop(chain); /* the queue is gone, and its messages with it */
    }
    return status;
}
