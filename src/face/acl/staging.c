/* SPDX-License-Identifier: Apache-2.0
 *
 * staging.c - copies out of a buffer of ours.
 */
#include "face/acl/staging.h"

#include "base/compiler.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/graph.h"
#include "npu/pinned.h"

#define CHUNK_MAX ((size_t)1 << 20)
#define NOW_WORDS 1024

static void fill(uint32_t *words, uint32_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        words[i] = value;
}

static bly_status buffer_alloc(size_t size, uint32_t site, void **buffer)
{
    return blyi_pinned_alloc(size, blyi_align_up(size, 32), site, BLYI_MODULE_APPLICATION, buffer);
}

/* A graph that captured the copies keeps it. */
static void buffer_give(void *buffer, void *stream, bly_status status)
{
    if (status != BLY_OK || !blyi_graph_keep_buffer(stream, buffer))
        (void)blyi_pinned_free(buffer, 0); /* queued work may hold it, on purpose */
}

bly_status blyi_staging_copy(void *dst, const void *src, size_t size, void *stream, uint32_t site)
{
    void *buffer;
    bly_status status = buffer_alloc(size, site, &buffer);
    if (status != BLY_OK)
        return status;
    status = blyi_copy_own(buffer, src, size);
    if (status == BLY_OK)
        status = blyi_copy_async(dst, buffer, size, stream, site);
    buffer_give(buffer, stream, status);
    return status;
}

bly_status blyi_staging_set32(void *dst, uint32_t value, size_t n_words, void *stream,
                              uint32_t site)
{
    size_t size = n_words * sizeof(uint32_t);
    size_t chunk = size < CHUNK_MAX ? size : CHUNK_MAX;
    void *buffer;
    bly_status status = buffer_alloc(chunk, site, &buffer);
    if (status != BLY_OK)
        return status;
    fill(buffer, value, chunk / sizeof(uint32_t));
    for (size_t done = 0; done < size && status == BLY_OK; done += chunk) {
        size_t part = size - done < chunk ? size - done : chunk;
        status = blyi_copy_async((char *)dst + done, buffer, part, stream, site);
    }
    buffer_give(buffer, stream, status);
    return status;
}

bly_status blyi_staging_set32_now(void *dst, uint32_t value, size_t n_words)
{
    uint32_t words[NOW_WORDS];
    fill(words, value, n_words < NOW_WORDS ? n_words : NOW_WORDS);
    bly_status status = BLY_OK;
    for (size_t done = 0; done < n_words && status == BLY_OK; done += NOW_WORDS) {
        size_t part = n_words - done < NOW_WORDS ? n_words - done : NOW_WORDS;
        status = blyi_copy_now((uint32_t *)dst + done, words, part * sizeof(uint32_t));
    }
    return status;
}
