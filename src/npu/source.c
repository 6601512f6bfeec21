/* SPDX-License-Identifier: Apache-2.0 */
#include "npu/source.h"

#include <string.h>
#include "base/host.h"
#include "base/order.h"
#include "base/probe.h"
#include "base/sanitizer.h"
#include "npu/card.h"
#include "npu/queue.h"
#include "npu/task.h"

#define KEPT_MAX (128 * MiB)

/* Queued work may write the source while it is copied: the checker then says nothing of it, and
 * sanitizers shall not either. Their memcpy would look. */
#if BLYI_WITH_TSAN
__attribute__((no_sanitize("thread"))) static void copy(volatile unsigned char *to,
                                                        const volatile unsigned char *from,
                                                        uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        to[i] = from[i];
}

__attribute__((no_sanitize("thread"))) static bool is_same(const volatile unsigned char *a,
                                                           const volatile unsigned char *b,
                                                           uint64_t size)
{
    uint64_t i = 0;
    while (i < size && a[i] == b[i])
        i++;
    return i == size;
}
#else
static void copy(void *to, const void *from, uint64_t size)
{
    memcpy(to, from, size);
}

static bool is_same(const void *a, const void *b, uint64_t size)
{
    return memcmp(a, b, size) == 0;
}
#endif

#define SPARES    64
#define SPARE_MAX (4 * MiB) /* larger ones go back to the host */

static uint64_t kept; /* bytes, of all streams */

/* Buffers to be used again: a fresh one of a MiB costs more to touch than to fill. */
struct buffer {
    uint64_t room;
    const void *source;
    uint64_t size; /* of what is kept; counted in `kept` */
    uint32_t refs; /* atomic: tasks, and `latest` */
    _Alignas(16) unsigned char bytes[];
};
static struct buffer *spares[SPARES]; /* atomic */

static struct buffer *buffer_of(void *bytes)
{
    return BLYI_CONTAINER(bytes, struct buffer, bytes);
}

static struct buffer *take_buffer(uint64_t size)
{
    for (int i = 0; i < SPARES; i++) {
        if (__atomic_load_n(&spares[i], __ATOMIC_RELAXED) == NULL)
            continue;
        struct buffer *buffer = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);
        if (buffer != NULL && buffer->room >= size && buffer->room / 4 <= size)
            return buffer;
        blyi_host_free(buffer); /* of another time */
    }
    struct buffer *buffer = blyi_host_alloc(sizeof(*buffer) + size);
    if (buffer != NULL)
        buffer->room = size;
    return buffer;
}

static void give_buffer(struct buffer *buffer)
{
    for (int i = 0; i < SPARES && buffer != NULL && buffer->room <= SPARE_MAX; i++)
        if (__atomic_load_n(&spares[i], __ATOMIC_RELAXED) == NULL)
            buffer = __atomic_exchange_n(&spares[i], buffer, __ATOMIC_ACQ_REL);
    blyi_host_free(buffer);
}

/* What was kept last. A row of copies of one source, which is as it was, shares it: to compare
 * costs a fraction of filling memory that is in no cache. */
static struct buffer *latest; /* atomic; who takes it puts one back */

static void drop(struct buffer *buffer)
{
    if (buffer == NULL || !blyi_ref_drop(&buffer->refs))
        return;
    __atomic_sub_fetch(&kept, buffer->size, __ATOMIC_RELAXED);
    give_buffer(buffer);
}

static void put_latest(struct buffer *buffer)
{
    drop(__atomic_exchange_n(&latest, buffer, __ATOMIC_ACQ_REL));
}

/* A reference; NULL: it is of another source, or that has changed. */
static struct buffer *share_latest(const void *source, uint64_t size)
{
    struct buffer *buffer = __atomic_exchange_n(&latest, NULL, __ATOMIC_ACQUIRE);
    if (buffer == NULL)
        return NULL;
    if (buffer->source != source || buffer->size != size || !is_same(buffer->bytes, source, size)) {
        drop(buffer);
        return NULL;
    }
    __atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
    put_latest(buffer);
    return buffer;
}

static struct buffer *fill(const void *source, uint64_t size)
{
    if (size > KEPT_MAX || __atomic_add_fetch(&kept, size, __ATOMIC_RELAXED) > KEPT_MAX) {
        if (size <= KEPT_MAX)
            __atomic_sub_fetch(&kept, size, __ATOMIC_RELAXED);
        return NULL;
    }
    struct buffer *buffer = take_buffer(size);
    if (buffer == NULL) {
        __atomic_sub_fetch(&kept, size, __ATOMIC_RELAXED);
        return NULL;
    }
    copy(buffer->bytes, source, size);
    buffer->source = source;
    buffer->size = size;
    __atomic_store_n(&buffer->refs, 1, __ATOMIC_RELAXED);
    return buffer;
}

void *blyi_source_copy(const void *source, uint64_t size)
{
    if (!blyi_probe_on(BLYI_PROBE_SOURCE_CHANGED))
        return NULL;
    struct buffer *buffer = share_latest(source, size);
    if (buffer == NULL) {
        buffer = fill(source, size);
        if (buffer != NULL && size <= SPARE_MAX) {
            __atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
            put_latest(buffer);
        }
    }
    return buffer != NULL ? buffer->bytes : NULL;
}

void blyi_source_free(void *bytes)
{
    if (bytes != NULL)
        drop(buffer_of(bytes));
}

void blyi_source_keep(struct blyi_task *task)
{
    task->u.copy.kept = blyi_source_copy(task->u.copy.src, task->u.copy.size);
}

void blyi_source_compare(const struct blyi_stream *stream, const struct blyi_task *task)
{
    const unsigned char *was = task->u.copy.kept, *is = task->u.copy.src;
    uint64_t size = task->u.copy.size, n = 0, first = 0, last = 0;
    if (is_same(was, is, size))
        return;
    for (uint64_t i = 0; i < size; i++) {
        if (was[i] == is[i])
            continue;
        if (n++ == 0)
            first = i;
        last = i;
    }
    if (n == 0)
        return; /* put back while we looked */
    BLYI_PROBE(SOURCE_CHANGED, .card = stream->card->id, .stream = stream->id,
               .task = blyi_queue_completed(stream) + 1, .address = (uintptr_t)is + first,
               .other = (uintptr_t)is + last + 1, .size = n, .asked = size, .site = task->site);
}

void blyi_source_forget(struct blyi_task *task)
{
    if (likely(task->u.copy.kept == NULL))
        return;
    blyi_source_free(task->u.copy.kept);
    task->u.copy.kept = NULL;
}
