/* SPDX-License-Identifier: Apache-2.0
 *
 * mbuf_handle.c - shared buffers as programs hold them. Handles come and go under the lock alone.
 */
#include <inttypes.h>
#include <string.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/handle.h"
#include "npu/copy.h"
#include "npu/mbuf_inside.h"
#include "npu/runtime.h"

static void handle_gone(void *object)
{
    blyi_mbuf_unref(object);
}

/* Takes the lock, under which alone handles come and go, and pins; NULL: *status has the error,
 * and the lock is free. */
static struct blyi_mbuf *enter(const void *handle, bly_status *status)
{
    *status = blyi_runtime_enter();
    if (*status != BLY_OK)
        return NULL;
    blyi_lock_take(&blyi_queues_lock);
    struct blyi_mbuf *mbuf = blyi_handle_get(BLYI_HANDLE_MBUF, handle);
    if (mbuf == NULL) {
        blyi_lock_drop(&blyi_queues_lock);
        *status = BLY_E_HANDLE;
    }
    return mbuf;
}

static void leave(const void *handle)
{
    blyi_handle_put(handle);
    blyi_lock_drop(&blyi_queues_lock);
}

static bly_status check_head(const struct blyi_mbuf *mbuf)
{
    if (mbuf->head == mbuf)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID,
                     "the buffer is not the head of its chain of %" PRIu32 "; the head is what is "
                     "freed, appended and queued",
                     mbuf->head->n);
}

bly_status blyi_mbuf_hand_out_locked(struct blyi_mbuf *chain)
{
    bly_assert(blyi_lock_held(&blyi_queues_lock));
    for (struct blyi_mbuf *mbuf = chain; mbuf != NULL; mbuf = mbuf->next) {
        void *handle;
        bly_status status = blyi_handle_create(BLYI_HANDLE_MBUF, mbuf, handle_gone, &handle);
        if (status == BLY_OK) {
            mbuf->handle = handle;
            continue;
        }
        for (struct blyi_mbuf *undo = chain; undo != mbuf; undo = undo->next) {
            __atomic_fetch_add(&undo->refs, 1, __ATOMIC_RELAXED); /* the handle's goes */
            (void)blyi_handle_remove(BLYI_HANDLE_MBUF, undo->handle);
            undo->handle = NULL;
        }
        return status;
    }
    return BLY_OK;
}

/* The handles go, their references stay. */
static void withdraw_locked(struct blyi_mbuf *chain)
{
    for (struct blyi_mbuf *mbuf = chain; mbuf != NULL; mbuf = mbuf->next) {
        __atomic_fetch_add(&mbuf->refs, 1, __ATOMIC_RELAXED);
        bly_status status = blyi_handle_remove(BLYI_HANDLE_MBUF, mbuf->handle);
        bly_assert(status == BLY_OK); /* only removed under the lock */
        (void)status;
        mbuf->handle = NULL;
    }
}

bly_status blyi_mbuf_take_locked(void *handle, struct blyi_mbuf **chain)
{
    bly_assert(blyi_lock_held(&blyi_queues_lock));
    struct blyi_mbuf *mbuf = blyi_handle_get(BLYI_HANDLE_MBUF, handle);
    if (mbuf == NULL)
        return BLY_E_HANDLE;
    bly_status status = check_head(mbuf);
    if (status == BLY_OK) {
        withdraw_locked(mbuf);
        *chain = mbuf;
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_mbuf_check_locked(void *handle)
{
    const struct blyi_mbuf *mbuf = blyi_handle_get(BLYI_HANDLE_MBUF, handle);
    if (mbuf == NULL)
        return BLY_E_HANDLE;
    bly_status status = check_head(mbuf);
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_mbuf_alloc(uint64_t size, void **handle)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    if (size == 0 || size > BLYI_MBUF_SIZE_MAX)
        return blyi_fail(BLY_E_INVALID,
                         "size %" PRIu64 " of a shared buffer is not in 1 .. %" PRIu64, size,
                         BLYI_MBUF_SIZE_MAX);
    struct blyi_mbuf *mbuf;
    status = blyi_mbuf_make(size, true, &mbuf);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_queues_lock);
    status = blyi_mbuf_hand_out_locked(mbuf);
    if (status == BLY_OK)
        *handle = mbuf->handle;
    blyi_lock_drop(&blyi_queues_lock);
    if (status != BLY_OK)
        blyi_mbuf_drop(mbuf);
    return status;
}

bly_status blyi_mbuf_free(void *handle)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_mbuf *chain = NULL;
    blyi_lock_take(&blyi_queues_lock);
    status = blyi_mbuf_take_locked(handle, &chain);
    blyi_lock_drop(&blyi_queues_lock);
    if (status == BLY_OK)
        blyi_mbuf_drop(chain);
    return status;
}

bly_status blyi_mbuf_copy_ref(void *handle, void **copy)
{
    bly_status status;
    const struct blyi_mbuf *mbuf = enter(handle, &status);
    if (mbuf == NULL)
        return status;
    struct blyi_mbuf *made = blyi_mbuf_clone_one(mbuf);
    status = made == NULL ? blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a buffer")
                          : blyi_mbuf_hand_out_locked(made);
    if (status == BLY_OK)
        *copy = made->handle;
    leave(handle);
    if (status != BLY_OK)
        blyi_mbuf_drop(made);
    return status;
}

/* ── Data, length, the 96 bytes ───────────────────────────────────────────────────────────── */

bly_status blyi_mbuf_data(void *handle, void **data, uint64_t *size)
{
    bly_status status;
    const struct blyi_mbuf *mbuf = enter(handle, &status);
    if (mbuf == NULL)
        return status;
    *data = blyi_mbuf_bytes(mbuf);
    *size = blyi_mbuf_size(mbuf);
    leave(handle);
    return BLY_OK;
}

bly_status blyi_mbuf_set_length(void *handle, uint64_t length)
{
    bly_status status;
    struct blyi_mbuf *mbuf = enter(handle, &status);
    if (mbuf == NULL)
        return status;
    if (length > blyi_mbuf_size(mbuf))
        status = blyi_fail(BLY_E_INVALID, "length %" PRIu64 " is above the buffer's size %" PRIu64,
                           length, blyi_mbuf_size(mbuf));
    else
        mbuf->length = length;
    leave(handle);
    return status;
}

bly_status blyi_mbuf_get_length(void *handle, uint64_t *length)
{
    bly_status status;
    const struct blyi_mbuf *mbuf = enter(handle, &status);
    if (mbuf == NULL)
        return status;
    *length = mbuf->length;
    leave(handle);
    return BLY_OK;
}

static bly_status check_user(uint64_t size, uint64_t offset)
{
    if (offset <= BLYI_MBUF_USER_SIZE && size <= BLYI_MBUF_USER_SIZE - offset)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID,
                     "%" PRIu64 " bytes at %" PRIu64 ": a buffer carries %u bytes beside its data",
                     size, offset, BLYI_MBUF_USER_SIZE);
}

bly_status blyi_mbuf_set_user(void *handle, const void *from, uint64_t size, uint64_t offset)
{
    unsigned char bytes[BLYI_MBUF_USER_SIZE];
    bly_status status = check_user(size, offset);
    if (status == BLY_OK && size > 0)
        status = blyi_copy_own(bytes, from, size);
    struct blyi_mbuf *mbuf = status == BLY_OK ? enter(handle, &status) : NULL;
    if (mbuf == NULL)
        return status;
    memcpy(mbuf->user + offset, bytes, size);
    leave(handle);
    return BLY_OK;
}

bly_status blyi_mbuf_get_user(void *handle, void *to, uint64_t size, uint64_t offset)
{
    unsigned char bytes[BLYI_MBUF_USER_SIZE];
    bly_status status = check_user(size, offset);
    const struct blyi_mbuf *mbuf = status == BLY_OK ? enter(handle, &status) : NULL;
    if (mbuf == NULL)
        return status;
    memcpy(bytes, mbuf->user + offset, size);
    leave(handle);
    return size > 0 ? blyi_copy_own(to, bytes, size) : BLY_OK;
}

/* ── Chains ───────────────────────────────────────────────────────────────────────────────── */

bly_status blyi_mbuf_append(void *head_handle, void *chain_handle)
{
    bly_status status;
    struct blyi_mbuf *head = enter(head_handle, &status);
    if (head == NULL)
        return status;
    struct blyi_mbuf *chain = blyi_handle_get(BLYI_HANDLE_MBUF, chain_handle);
    if (chain == NULL) {
        leave(head_handle);
        return BLY_E_HANDLE;
    }
    if (chain == head)
        status = blyi_fail(BLY_E_INVALID, "a buffer cannot follow itself in a chain");
    if (status == BLY_OK)
        status = check_head(head);
    if (status == BLY_OK)
        status = check_head(chain);
    if (status == BLY_OK && head->n + chain->n > BLYI_MBUF_CHAIN_MAX)
        status = blyi_fail(BLY_E_INVALID,
                           "a chain of %" PRIu32 " and one of %" PRIu32 ": the longest has %u",
                           head->n, chain->n, BLYI_MBUF_CHAIN_MAX);
    if (status == BLY_OK)
        blyi_mbuf_link(head, chain);
    blyi_handle_put(chain_handle);
    leave(head_handle);
    return status;
}

bly_status blyi_mbuf_count(void *handle, uint32_t *n)
{
    bly_status status;
    const struct blyi_mbuf *head = enter(handle, &status);
    if (head == NULL)
        return status;
    status = check_head(head);
    if (status == BLY_OK)
        *n = head->n;
    leave(handle);
    return status;
}

bly_status blyi_mbuf_at(void *handle, uint32_t index, void **out)
{
    bly_status status;
    const struct blyi_mbuf *head = enter(handle, &status);
    if (head == NULL)
        return status;
    status = check_head(head);
    if (status == BLY_OK && index >= head->n)
        status = blyi_fail(BLY_E_INVALID, "index %" PRIu32 ": the chain has %" PRIu32 " buffers",
                           index, head->n);
    if (status == BLY_OK) {
        const struct blyi_mbuf *mbuf = head;
        for (; index > 0; index--)
            mbuf = mbuf->next;
        *out = mbuf->handle;
    }
    leave(handle);
    return status;
}
