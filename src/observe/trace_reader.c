/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reader.c - opens a trace: header, where its chunks are, the table of a ring.
 */
#include "observe/trace_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"
#include "observe/trace_inside.h"

#define TABLE_PIECE 64 /* entries read at a time */

static bly_status no_memory(const struct blyi_trace *trace)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to read it", trace->source.name);
}

/* ── The header ───────────────────────────────────────────────────────────────────────────── */

bool blyi_trace_is(const void *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, BLYI_TRACE_MAGIC, 8) == 0;
}

static bly_status check_header(const struct blyi_trace *trace, size_t got)
{
    const struct blyi_trace_header *h = &trace->header;
    const char *name = trace->source.name;
    if (!blyi_trace_is(h, got))
        return blyi_fail(BLY_E_PARSE, "%s: not a Belay trace", name);
    if (got < sizeof(*h))
        return blyi_fail(BLY_E_PARSE, "%s: the trace's header ends after %zu of %zu bytes", name,
                         got, sizeof(*h));
    if (h->order != BLYI_TRACE_ORDER)
        return blyi_fail(BLY_E_PARSE, "%s: a trace of another byte order", name);
    if (h->version < 1 || h->version > BLYI_TRACE_VERSION)
        return blyi_fail(BLY_E_PARSE, "%s: version %u of the format; this Belay reads 1 to %u",
                         name, h->version, BLYI_TRACE_VERSION);
    if (h->header_size != BLYI_TRACE_HEADER || h->chunk_size != BLYI_TRACE_CHUNK)
        return blyi_fail(BLY_E_PARSE, "%s: a header of %u and chunks of %u bytes are not known",
                         name, h->header_size, h->chunk_size);
    return BLY_OK;
}

static void fill_info(struct blyi_trace *trace)
{
    struct blyi_trace_header *h = &trace->header;
    h->program[sizeof(h->program) - 1] = '\0';
    h->writer[sizeof(h->writer) - 1] = '\0';
    h->stop_text[sizeof(h->stop_text) - 1] = '\0';
    uint64_t first = h->first_seq > 0 ? h->first_seq : 1;
    if (first > h->n_events && h->n_events < UINT64_MAX)
        first = h->n_events + 1;
    struct blyi_trace_info *info = &trace->info;
    *info = (struct blyi_trace_info){.name = trace->source.name,
                                     .program = h->program,
                                     .writer = h->writer,
                                     .version = h->version,
                                     .pid = h->pid,
                                     .flags = h->flags,
                                     .stack_depth = h->stack_depth,
                                     .state = (enum blyi_trace_state)h->state,
                                     .stop_text = h->stop_text,
                                     .ring = h->ring,
                                     .start_ns = h->start_ns,
                                     .start_wall_ns = h->start_wall_ns,
                                     .end_ns = h->end_ns,
                                     .seen = h->n_events,
                                     .first_seq = first,
                                     .cut = first - 1};
    uint64_t present = h->n_events - info->cut;
    if (h->ring > 0 && present > h->ring) {
        info->dropped = present - h->ring;
        info->first_seq += info->dropped;
    }
}

/* ── What is where ────────────────────────────────────────────────────────────────────────── */

static bly_status add_chunk(struct blyi_trace *trace, struct blyi_trace_cursor *cursor, uint64_t at)
{
    struct blyi_trace_chunk_at chunk = {.at = at};
    bly_status status = blyi_trace_cursor_open(cursor, &trace->source, at);
    if (status != BLY_OK)
        return status;
    while (blyi_trace_cursor_next(cursor)) {
        if (chunk.first_seq == 0)
            chunk.first_seq = cursor->event.seq;
        chunk.last_seq = cursor->event.seq;
    }
    trace->info.damaged += cursor->damaged;
    if (chunk.first_seq == 0 || chunk.last_seq < trace->info.first_seq ||
        chunk.first_seq > trace->info.seen)
        return BLY_OK;
    if (!blyi_trace_room(&trace->chunks, trace->n_chunks, &trace->chunks_room, sizeof(chunk)))
        return no_memory(trace);
    trace->chunks[trace->n_chunks++] = chunk;
    return BLY_OK;
}

static bly_status add_names(struct blyi_trace *trace, uint64_t at)
{
    unsigned char bytes[BLYI_TRACE_CHUNK];
    struct blyi_trace_chunk chunk;
    size_t got;
    bly_status status = blyi_trace_source_read(&trace->source, bytes, sizeof(bytes), at, &got);
    if (status != BLY_OK || got < sizeof(chunk))
        return status;
    memcpy(&chunk, bytes, sizeof(chunk));
    size_t used = chunk.used, there = got - sizeof(chunk);
    if (used > there) {
        used = there;
        trace->info.damaged++;
    }
    return blyi_trace_names_add(&trace->names, bytes + sizeof(chunk), used);
}

static bly_status scan(struct blyi_trace *trace)
{
    struct blyi_trace_cursor *cursor = blyi_host_alloc(sizeof(*cursor));
    uint64_t at = BLYI_TRACE_HEADER;
    bly_status status = cursor ? BLY_OK : no_memory(trace);
    while (status == BLY_OK && at < trace->source.size) {
        struct blyi_trace_chunk chunk;
        size_t got;
        status = blyi_trace_source_read(&trace->source, &chunk, sizeof(chunk), at, &got);
        if (status != BLY_OK || got < sizeof(chunk))
            break;
        if (chunk.type == BLYI_TRACE_CHUNK_EVENTS)
            status = add_chunk(trace, cursor, at);
        else if (chunk.type == BLYI_TRACE_CHUNK_META)
            status = add_names(trace, at);
        uint64_t n =
            chunk.type != BLYI_TRACE_CHUNK_UNUSED && chunk.n_chunks > 0 ? chunk.n_chunks : 1;
        at += n * BLYI_TRACE_CHUNK;
    }
    blyi_host_free(cursor);
    return status;
}

static bly_status read_table(struct blyi_trace *trace)
{
    struct blyi_trace_block piece[TABLE_PIECE];
    struct blyi_trace_chunk chunk;
    size_t got, room = 0;
    uint64_t at = trace->header.table_at;
    if (trace->header.ring == 0 || at < BLYI_TRACE_HEADER || at % BLYI_TRACE_CHUNK != 0)
        return BLY_OK;
    bly_status status = blyi_trace_source_read(&trace->source, &chunk, sizeof(chunk), at, &got);
    if (status != BLY_OK || got < sizeof(chunk) || chunk.type != BLYI_TRACE_CHUNK_TABLE) {
        trace->info.damaged += status == BLY_OK;
        return status;
    }
    at += sizeof(chunk);
    for (uint64_t i = 0; i < chunk.capacity; i += TABLE_PIECE, at += sizeof(piece)) {
        status = blyi_trace_source_read(&trace->source, piece, sizeof(piece), at, &got);
        if (status != BLY_OK)
            return status;
        size_t n = got / sizeof(*piece);
        if (n > chunk.capacity - i)
            n = (size_t)(chunk.capacity - i);
        for (size_t k = 0; k < n; k++) {
            if (piece[k].address == 0 || piece[k].seq > trace->info.seen)
                continue;
            if (!blyi_trace_room(&trace->table, trace->n_table, &room, sizeof(*piece)))
                return no_memory(trace);
            trace->table[trace->n_table++] = piece[k];
        }
        if (got < sizeof(piece))
            break;
    }
    return BLY_OK;
}

/* ── Open and close ───────────────────────────────────────────────────────────────────────── */

static int by_first_seq(const void *a, const void *b)
{
    const struct blyi_trace_chunk_at *x = a, *y = b;
    return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

static bly_status read_all(struct blyi_trace *trace)
{
    size_t got;
    bly_status status =
        blyi_trace_source_read(&trace->source, &trace->header, sizeof(trace->header), 0, &got);
    if (status == BLY_OK)
        status = check_header(trace, got);
    if (status != BLY_OK)
        return status;
    fill_info(trace);
    status = scan(trace);
    if (status == BLY_OK)
        status = blyi_trace_names_parse(&trace->names);
    if (status == BLY_OK)
        status = read_table(trace);
    if (status != BLY_OK)
        return status;
    struct blyi_trace_info *info = &trace->info;
    info->damaged += trace->names.damaged;
    info->n_threads = trace->names.n_threads;
    info->n_sites = trace->names.n_sites;
    info->n_stacks = trace->names.n_stacks;
    if (trace->n_chunks > 0)
        qsort(trace->chunks, trace->n_chunks, sizeof(*trace->chunks), by_first_seq);
    status = blyi_trace_find_start(trace);
    if (status == BLY_OK)
        info->lost = info->seen - (info->first_seq - 1) - info->kept;
    return status == BLY_OK ? blyi_trace_rewind(trace) : status;
}

static bly_status open_source(const struct blyi_trace_source *source, struct blyi_trace **out)
{
    struct blyi_trace *trace = blyi_host_calloc(1, sizeof(*trace));
    char *name = blyi_host_strdup(source->name);
    if (trace == NULL || name == NULL) {
        blyi_host_free(trace);
        blyi_host_free(name);
        if (source->fd >= 0)
            close(source->fd);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to read it", source->name);
    }
    trace->source = *source;
    trace->source.name = name;
    blyi_trace_names_init(&trace->names);
    bly_status status = read_all(trace);
    if (status != BLY_OK)
        blyi_trace_close(trace);
    else
        *out = trace;
    return status;
}

bly_status blyi_trace_open_fd(int fd, const char *name, struct blyi_trace **out)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return blyi_fail(BLY_E_IO, "%s: not a regular file", name);
    }
    struct blyi_trace_source source = {.name = name, .fd = fd, .size = (uint64_t)about.st_size};
    return open_source(&source, out);
}

bly_status blyi_trace_open(const char *path, struct blyi_trace **out)
{
    int fd = blyi_sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return blyi_fail(BLY_E_IO, "%s: %s", path, strerror(errno));
    return blyi_trace_open_fd(fd, path, out);
}

bly_status blyi_trace_open_memory(const void *bytes, size_t size, const char *name,
                                  struct blyi_trace **out)
{
    struct blyi_trace_source source = {.name = name, .fd = -1, .bytes = bytes, .size = size};
    return open_source(&source, out);
}

void blyi_trace_close(struct blyi_trace *trace)
{
    if (trace == NULL)
        return;
    (void)blyi_trace_rewind(trace);
    blyi_trace_names_fini(&trace->names);
    blyi_host_free(trace->heap);
    blyi_host_free(trace->chunks);
    blyi_host_free(trace->table);
    blyi_host_free(trace->start);
    if (trace->source.fd >= 0)
        close(trace->source.fd);
    blyi_host_free((char *)(uintptr_t)trace->source.name);
    blyi_host_free(trace);
}

const struct blyi_trace_info *blyi_trace_info(const struct blyi_trace *trace)
{
    return &trace->info;
}
