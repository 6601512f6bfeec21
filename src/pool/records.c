/* SPDX-License-Identifier: Apache-2.0
 *
 * records.c - descriptions of spans and chunks. They come in pages that stay until the pool ends,
 * so a record that somebody still looks at is a record.
 */
#include "base/host.h"
#include "pool/pool.h"

#define SPANS_PAGE  64u
#define CHUNKS_PAGE 128u

struct blyi_record_page {
    struct blyi_record_page *next;
    union {
        struct blyi_span spans[SPANS_PAGE];
        struct blyi_chunk chunks[CHUNKS_PAGE];
    } u;
};

static struct blyi_record_page *add_page(bly_pool *pool)
{
    struct blyi_record_page *page = blyi_host_calloc(1, sizeof *page);
    if (page == NULL)
        return NULL;
    page->next = pool->pages;
    pool->pages = page;
    pool->is.metadata += sizeof *page;
    return page;
}

bool blyi_records_need(bly_pool *pool, unsigned n_spans)
{
    struct blyi_span *span = pool->records;
    while (n_spans > 0 && span != NULL) {
        span = span->after;
        n_spans--;
    }
    if (likely(n_spans == 0))
        return true;
    struct blyi_record_page *page = add_page(pool);
    for (unsigned i = 0; page != NULL && i < SPANS_PAGE; i++) {
        blyi_list_init(&page->u.spans[i].idle);
        for (uint32_t end = 0; end < 3; end++)
            page->u.spans[i].links[end].end = end;
        blyi_record_give(pool, &page->u.spans[i]);
    }
    return page != NULL;
}

struct blyi_span *blyi_record_take(bly_pool *pool)
{
    struct blyi_span *span = pool->records;
    pool->records = span->after;
    return span;
}

void blyi_record_give(bly_pool *pool, struct blyi_span *span)
{
    span->after = pool->records;
    pool->records = span;
}

struct blyi_chunk *blyi_chunk_take(bly_pool *pool)
{
    if (unlikely(pool->chunks == NULL)) {
        struct blyi_record_page *page = add_page(pool);
        for (unsigned i = 0; page != NULL && i < CHUNKS_PAGE; i++)
            blyi_chunk_give(pool, &page->u.chunks[i]);
        if (page == NULL)
            return NULL;
    }
    struct blyi_chunk *chunk = pool->chunks;
    pool->chunks = chunk->next;
    return chunk;
}

void blyi_chunk_give(bly_pool *pool, struct blyi_chunk *chunk)
{
    chunk->next = pool->chunks;
    pool->chunks = chunk;
}

void blyi_records_drop(bly_pool *pool)
{
    while (pool->pages != NULL) {
        struct blyi_record_page *page = pool->pages;
        pool->pages = page->next;
        blyi_host_free(page);
    }
    pool->records = NULL;
    pool->chunks = NULL;
}
