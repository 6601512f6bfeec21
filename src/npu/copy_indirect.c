/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_indirect.c - copies whose addresses lie on the card.
 */
#include "npu/copy_indirect.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/site.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/copy_inside.h"
#include "npu/memory.h"
#include "npu/queue.h"

#define MAGIC UINT64_C(0x59504f4359504f43) /* tells a descriptor from memory that was never one */

struct descriptor {
    uint64_t magic;
    const void *src;
    void *dst;
    uint64_t size;
};
_Static_assert(sizeof(struct descriptor) == BLYI_COPY_DESC_SIZE, "as the card's runtime says");

static bool is_on(const void *address, int card)
{
    int on;
    return blyi_place_of(address, &on) == BLYI_PLACE_CARD && on == card;
}

static bly_status check_aligned(const void *address, uint64_t align, const char *what)
{
    if (((uintptr_t)address & (align - 1)) == 0)
        return BLY_OK;
    return blyi_fail(BLY_E_ALIGN, "the %s at %p is not aligned to %" PRIu64 " bytes", what, address,
                     align);
}

bly_status blyi_copy_desc_set(void *desc, const void *src, void *dst, uint64_t size)
{
    int card;
    bly_status status = check_aligned(desc, BLYI_COPY_DESC_ALIGN, "descriptor");
    if (status != BLY_OK)
        return status;
    if (blyi_place_of(desc, NULL) != BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_INVALID, "the descriptor at %p is no card memory", desc);
    if (blyi_place_of(src, &card) != BLYI_PLACE_CARD || !is_on(dst, card))
        return blyi_fail(BLY_E_INVALID, "%p and %p are not both memory of one card", src, dst);
    struct descriptor descriptor = {MAGIC, src, dst, size};
    return blyi_copy_own(desc, &descriptor, sizeof(descriptor));
}

static bly_status submit(const struct blyi_task *task, const void *first, const void *second,
                         void *handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    const void *foreign = !is_on(first, stream->card->id)    ? first
                          : !is_on(second, stream->card->id) ? second
                                                             : NULL;
    if (foreign != NULL)
        status = blyi_fail(BLY_E_INVALID, "%p is no memory of card %d", foreign, stream->card->id);
    if (status == BLY_OK)
        status = blyi_queue_submit(stream, task);
    blyi_stream_unpin(stream);
    return status;
}

bly_status blyi_copy_desc_async(const void *desc, void *stream, uint32_t site)
{
    bly_status status = check_aligned(desc, BLYI_COPY_DESC_ALIGN, "descriptor");
    if (status != BLY_OK)
        return status;
    struct blyi_task task = {.kind = BLYI_TASK_COPY_INDIRECT, .site = site};
    task.u.indirect.src_word = desc;
    return submit(&task, desc, desc, stream);
}

bly_status blyi_copy_words_async(const void *dst_word, uint64_t dst_offset, const void *src_word,
                                 uint64_t src_offset, uint64_t size, void *stream, uint32_t site)
{
    bly_status status = check_aligned(dst_word, sizeof(void *), "word");
    if (status == BLY_OK)
        status = check_aligned(src_word, sizeof(void *), "word");
    if (status != BLY_OK)
        return status;
    struct blyi_task task = {.kind = BLYI_TASK_COPY_INDIRECT, .site = site};
    task.u.indirect.dst_word = dst_word;
    task.u.indirect.dst_offset = dst_offset;
    task.u.indirect.src_word = src_word;
    task.u.indirect.src_offset = src_offset;
    task.u.indirect.size = size;
    return submit(&task, dst_word, src_word, stream);
}

static bly_status read_descriptor(const void *address, int card, struct descriptor *descriptor)
{
    bly_status status = blyi_copy_range(descriptor, address, sizeof(*descriptor), card);
    if (status == BLY_OK && descriptor->magic != MAGIC)
        status = blyi_fail(BLY_E_FAULT, "there is no copy descriptor at %p", address);
    return status;
}

static bly_status read_words(const struct blyi_task *task, int card, struct descriptor *copy)
{
    uintptr_t dst = 0, src = 0, end;
    bly_status status = blyi_copy_range(&dst, task->u.indirect.dst_word, sizeof(dst), card);
    if (status == BLY_OK)
        status = blyi_copy_range(&src, task->u.indirect.src_word, sizeof(src), card);
    if (status != BLY_OK)
        return status;
    if (__builtin_add_overflow(dst, task->u.indirect.dst_offset, &end) ||
        __builtin_add_overflow(src, task->u.indirect.src_offset, &end))
        return blyi_fail(BLY_E_FAULT,
                         "0x%" PRIxPTR " and 0x%" PRIxPTR ", with their offsets, go beyond the end "
                         "of memory",
                         dst, src);
    copy->dst = (void *)(dst + task->u.indirect.dst_offset);
    copy->src = (const void *)(src + task->u.indirect.src_offset);
    copy->size = task->u.indirect.size;
    return BLY_OK;
}

bly_status blyi_copy_indirect_task(const struct blyi_stream *stream, const struct blyi_task *task)
{
    int card = stream->card->id;
    struct descriptor copy = {0};
    bly_status status = task->u.indirect.dst_word == NULL
                            ? read_descriptor(task->u.indirect.src_word, card, &copy)
                            : read_words(task, card, &copy);
    if (status == BLY_OK && (!is_on(copy.dst, card) || !is_on(copy.src, card)))
        status = blyi_fail(BLY_E_FAULT, "%p and %p are not both memory of card %d", copy.dst,
                           copy.src, card);
    if (status == BLY_OK && copy.dst != copy.src)
        status = blyi_copy_range(copy.dst, copy.src, copy.size, card);
    if (status != BLY_OK) {
        char site[BLYI_SITE_TEXT];
        blyi_fail_append("; on stream %" PRIu32 ", queued at %s", stream->id,
                         blyi_site_text(task->site, site));
    }
    return status;
}
