/* SPDX-License-Identifier: Apache-2.0
 *
 * mbuf.c - shared buffers without their handles: areas, references, chains.
 */
#include "npu/mbuf.h"

#include <inttypes.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "npu/host_room.h"
#include "npu/mbuf_inside.h"

struct blyi_lock blyi_queues_lock = BLYI_LOCK_INIT(BLYI_RANK_QUEUES);

struct blyi_mbuf_data {
    uint32_t refs;
    uint64_t size;
    unsigned char *bytes; /* 64-aligned, behind this structure */
};

static void data_unref(struct blyi_mbuf_data *data)
{
    if (__atomic_sub_fetch(&data->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    blyi_host_room_give(data->size);
    blyi_host_free(data);
}

void blyi_mbuf_unref(struct blyi_mbuf *mbuf)
{
    if (__atomic_sub_fetch(&mbuf->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    data_unref(mbuf->data);
    blyi_host_free(mbuf);
}

static struct blyi_mbuf *new_mbuf(struct blyi_mbuf_data *data)
{
    struct blyi_mbuf *mbuf = blyi_host_calloc(1, sizeof(*mbuf));
    if (mbuf == NULL)
        return NULL;
    mbuf->refs = 1;
    mbuf->n = 1;
    mbuf->head = mbuf;
    mbuf->data = data;
    return mbuf;
}

bly_status blyi_mbuf_make(uint64_t size, bool zeroed, struct blyi_mbuf **out)
{
    char room[BLYI_HOST_ROOM_TEXT];
    if (size > BLYI_MBUF_SIZE_MAX || !blyi_host_room_take(size))
        return blyi_fail(BLY_E_HOST_MEMORY, "a message of %" PRIu64 " bytes: %s", size,
                         size > BLYI_MBUF_SIZE_MAX ? "the largest has 4 GiB"
                                                   : blyi_host_room_text(room));
    size_t bytes = sizeof(struct blyi_mbuf_data) + BLYI_CACHE_LINE + size;
    struct blyi_mbuf_data *data = zeroed ? blyi_host_calloc(1, bytes) : blyi_host_alloc(bytes);
    struct blyi_mbuf *mbuf = data == NULL ? NULL : new_mbuf(data);
    if (mbuf == NULL) {
        blyi_host_free(data);
        blyi_host_room_give(size);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a buffer of %" PRIu64 " bytes",
                         size);
    }
    data->refs = 1;
    data->size = size;
    data->bytes = (unsigned char *)(uintptr_t)blyi_align_up((uintptr_t)(data + 1), BLYI_CACHE_LINE);
    *out = mbuf;
    return BLY_OK;
}

void *blyi_mbuf_bytes(const struct blyi_mbuf *mbuf)
{
    return mbuf->data->bytes;
}

uint64_t blyi_mbuf_size(const struct blyi_mbuf *mbuf)
{
    return mbuf->data->size;
}

uint64_t blyi_mbuf_chain_length(const struct blyi_mbuf *chain)
{
    uint64_t length = 0;
    for (; chain != NULL; chain = chain->next)
        length += chain->length;
    return length;
}

void blyi_mbuf_drop(struct blyi_mbuf *chain)
{
    while (chain != NULL) {
        struct blyi_mbuf *next = chain->next;
        blyi_mbuf_unref(chain);
        chain = next;
    }
}

struct blyi_mbuf *blyi_mbuf_clone_one(const struct blyi_mbuf *mbuf)
{
    struct blyi_mbuf *copy = new_mbuf(mbuf->data);
    if (copy == NULL)
        return NULL;
    __atomic_fetch_add(&mbuf->data->refs, 1, __ATOMIC_RELAXED);
    copy->length = mbuf->length;
    memcpy(copy->user, mbuf->user, sizeof(copy->user));
    return copy;
}

void blyi_mbuf_link(struct blyi_mbuf *head, struct blyi_mbuf *chain)
{
    struct blyi_mbuf *last = head;
    while (last->next != NULL)
        last = last->next;
    last->next = chain;
    head->n += chain->n;
    for (struct blyi_mbuf *mbuf = chain; mbuf != NULL; mbuf = mbuf->next)
        mbuf->head = head;
}

struct blyi_mbuf *blyi_mbuf_clone(const struct blyi_mbuf *chain)
{
    struct blyi_mbuf *copy = blyi_mbuf_clone_one(chain);
    for (const struct blyi_mbuf *mbuf = chain->next; copy != NULL && mbuf != NULL;
         mbuf = mbuf->next) {
        struct blyi_mbuf *next = blyi_mbuf_clone_one(mbuf);
        if (next == NULL) {
            blyi_mbuf_drop(copy);
            return NULL;
        }
        blyi_mbuf_link(copy, next);
    }
    return copy;
}
