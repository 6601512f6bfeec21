/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_writer.c - chunks are filled in memory, several at a time, so that threads which take
 * turns do not each need a context for each event.
 */
#include "observe/trace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/map.h"
#include "base/sys.h"

#define N_LANES 32u

struct lane {
    union {
        struct blyi_trace_chunk chunk;
        uint64_t words[BLYI_TRACE_CHUNK / 8];
    } at;
    size_t used; /* words, header included */
    struct blyi_trace_context context;
    bool has_context;
};

struct text {
    struct text *next; /* of the same hash */
    uint32_t id;
    size_t length;
    char bytes[];
};

struct blyi_tracewriter {
    int fd;
    char *path;
    uint64_t size; /* of the file so far */
    struct blyi_trace_header header;
    struct lane *lanes;
    struct lane names;
    struct blyi_map texts; /* hash -> text, of names, sources and stacks */
    uint32_t n_names, n_sites, n_stacks;
    bly_status status;
    char why[BLYI_FAIL_MAX];
};

static void keep_error(struct blyi_tracewriter *w, bly_status status)
{
    if (w->status != BLY_OK || status == BLY_OK)
        return;
    w->status = status;
    snprintf(w->why, sizeof(w->why), "%s", blyi_fail_text());
}

static const char *name_of(const struct blyi_tracewriter *w)
{
    return w->path ? w->path : "(memory)";
}

static void write_at(struct blyi_tracewriter *w, const void *bytes, size_t size, uint64_t at)
{
    const char *from = bytes;
    while (size > 0 && w->status == BLY_OK) {
        ssize_t n = blyi_sys_pwrite(w->fd, from, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            keep_error(w, blyi_fail(BLY_E_IO, "cannot write the trace %s: %s", name_of(w),
                                    n == 0 ? "no room" : strerror(errno)));
            return;
        }
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
}

static void lane_reset(struct lane *lane)
{
    memset(&lane->at, 0, sizeof(lane->at));
    lane->used = sizeof(lane->at.chunk) / 8;
    lane->has_context = false;
}

static void lane_flush(struct blyi_tracewriter *w, struct lane *lane,
                       enum blyi_trace_chunk_type type, size_t bytes)
{
    if (bytes == 0)
        return;
    lane->at.chunk.type = type;
    lane->at.chunk.n_chunks = 1;
    lane->at.chunk.used = (uint32_t)bytes;
    write_at(w, &lane->at, sizeof(lane->at), w->size);
    w->size += BLYI_TRACE_CHUNK;
    lane_reset(lane);
}

static void flush_events(struct blyi_tracewriter *w, struct lane *lane)
{
    lane_flush(w, lane, BLYI_TRACE_CHUNK_EVENTS, lane->used * 8 - sizeof(lane->at.chunk));
}

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

void blyi_tracewriter_event(struct blyi_tracewriter *w, const struct blyi_trace_event *e)
{
    struct lane *lane = &w->lanes[e->thread % N_LANES];
    uint64_t seq = e->seq != 0 ? e->seq : w->header.n_events + 1;
    if (seq <= w->header.n_events && w->status == BLY_OK)
        keep_error(w, blyi_fail(BLY_E_INVALID, "%s: event %llu comes after event %llu", name_of(w),
                                (unsigned long long)seq, (unsigned long long)w->header.n_events));
    if (w->status != BLY_OK)
        return;
    w->header.n_events = seq;
    if (lane->used + BLYI_TRACE_CONTEXT_WORDS + BLYI_TRACE_EVENT_WORDS > BLYI_TRACE_CHUNK / 8)
        flush_events(w, lane);
    struct blyi_trace_context *context = &lane->context;
    uint64_t seq_behind = seq - context->seq, ns_behind = e->probe.time_ns - context->time_ns;
    if (!lane->has_context || context->thread != e->thread || context->range != e->range ||
        e->probe.time_ns < context->time_ns || (seq_behind | ns_behind) > UINT32_MAX) {
        *context = (struct blyi_trace_context){seq, e->probe.time_ns, e->thread, e->range};
        blyi_trace_put_context(lane->at.words + lane->used, context);
        lane->used += BLYI_TRACE_CONTEXT_WORDS;
        seq_behind = ns_behind = 0;
        lane->has_context = true;
    }
    lane->used += blyi_trace_put_event(lane->at.words + lane->used, &e->probe, e->stack,
                                       (uint32_t)seq_behind, (uint32_t)ns_behind);
    if (e->probe.kind == BLYI_PROBE_RANGE_POP)
        lane->has_context = false; /* the outer range is not known here */
}

void blyi_tracewriter_set_start(struct blyi_tracewriter *w, uint64_t start_ns,
                                uint64_t start_wall_ns)
{
    w->header.start_ns = start_ns;
    w->header.start_wall_ns = start_wall_ns;
}

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

static void add_bytes(struct blyi_tracewriter *w, const void *bytes, size_t size)
{
    struct lane *lane = &w->names;
    const char *from = bytes;
    while (size > 0) {
        /* `used` counts words; names are whole words when a record is done, bytes in between. */
        uint32_t used = lane->at.chunk.used, room = BLYI_TRACE_CHUNK_ROOM - used;
        size_t n = size < room ? size : room;
        memcpy((char *)(&lane->at.chunk + 1) + used, from, n);
        lane->at.chunk.used += (uint32_t)n;
        from += n;
        size -= n;
        if (lane->at.chunk.used == BLYI_TRACE_CHUNK_ROOM)
            lane_flush(w, lane, BLYI_TRACE_CHUNK_META, BLYI_TRACE_CHUNK_ROOM);
    }
}

void blyi_tracewriter_meta(struct blyi_tracewriter *w, enum blyi_trace_meta type, const void *head,
                           size_t head_size, const void *tail, size_t tail_size)
{
    static const char padding[8];
    struct blyi_trace_record record = {type, (uint32_t)(head_size + tail_size)};
    add_bytes(w, &record, sizeof(record));
    add_bytes(w, head, head_size);
    add_bytes(w, tail, tail_size);
    add_bytes(w, padding, -(head_size + tail_size) & 7);
}

void blyi_tracewriter_block(struct blyi_tracewriter *w, const struct blyi_trace_block *block)
{
    blyi_tracewriter_meta(w, BLYI_TRACE_META_BLOCK, block, sizeof(*block), NULL, 0);
}

void blyi_tracewriter_card(struct blyi_tracewriter *w, const struct blyi_trace_card *card)
{
    struct {
        int32_t card;
        uint32_t spare;
        uint64_t total, overhead;
    } head = {card->card, 0, card->total, card->overhead};
    blyi_tracewriter_meta(w, BLYI_TRACE_META_CARD, &head, sizeof(head), NULL, 0);
}

/* The entry of the bytes; a new one has id 0. NULL without host memory. */
static struct text *intern(struct blyi_tracewriter *w, char kind, const void *bytes, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (unsigned char)kind;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    struct text *first = blyi_map_get(&w->texts, hash);
    for (struct text *text = first; text != NULL; text = text->next)
        if (text->length == length + 1 && text->bytes[0] == kind &&
            memcmp(text->bytes + 1, bytes, length) == 0)
            return text;
    struct text *text = blyi_host_alloc(sizeof(*text) + length + 1);
    if (text != NULL) {
        *text = (struct text){.next = first, .length = length + 1};
        text->bytes[0] = kind;
        memcpy(text->bytes + 1, bytes, length);
        if (blyi_map_put(&w->texts, hash, text) == BLY_OK)
            return text;
        blyi_host_free(text);
    }
    keep_error(w, blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for its names", name_of(w)));
    return NULL;
}

uint32_t blyi_tracewriter_name(struct blyi_tracewriter *w, const char *name)
{
    size_t length = strlen(name);
    struct text *text = length > 0 ? intern(w, 'n', name, length) : NULL;
    if (text == NULL)
        return 0;
    if (text->id == 0) {
        text->id = ++w->n_names;
        uint32_t head[2] = {text->id, 0};
        blyi_tracewriter_meta(w, BLYI_TRACE_META_NAME, head, sizeof(head), name, length);
    }
    return text->id;
}

uint32_t blyi_tracewriter_source(struct blyi_tracewriter *w, const char *function, const char *file,
                                 uint32_t line)
{
    size_t first = strlen(function) + 1, second = strlen(file);
    char *key = blyi_host_alloc(4 + first + second + 1);
    if (key == NULL) {
        keep_error(w, blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory", name_of(w)));
        return 0;
    }
    memcpy(key, &line, 4);
    memcpy(key + 4, function, first);
    memcpy(key + 4 + first, file, second + 1);
    struct text *text = intern(w, 's', key, 4 + first + second);
    if (text != NULL && text->id == 0) {
        text->id = ++w->n_sites;
        uint32_t head[2] = {text->id, line};
        blyi_tracewriter_meta(w, BLYI_TRACE_META_SOURCE, head, sizeof(head), key + 4,
                              first + second);
    }
    blyi_host_free(key);
    return text ? text->id : 0;
}

uint32_t blyi_tracewriter_stack(struct blyi_tracewriter *w, const uint32_t *sites, size_t n)
{
    struct text *text = n > 0 ? intern(w, 't', sites, n * sizeof(*sites)) : NULL;
    if (text == NULL)
        return 0;
    if (text->id == 0) {
        text->id = ++w->n_stacks;
        uint32_t head[2] = {text->id, (uint32_t)n};
        blyi_tracewriter_meta(w, BLYI_TRACE_META_STACK, head, sizeof(head), sites,
                              n * sizeof(*sites));
    }
    return text->id;
}

/* ── Beginning and end ────────────────────────────────────────────────────────────────────── */

static void release(struct blyi_tracewriter *w, bool keep_fd)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&w->texts, &cursor, &key, &value))
        for (struct text *text = value, *next; text != NULL; text = next) {
            next = text->next;
            blyi_host_free(text);
        }
    blyi_map_fini(&w->texts);
    if (w->fd >= 0 && !keep_fd)
        close(w->fd);
    blyi_host_free(w->path);
    blyi_host_free(w->lanes);
    blyi_host_free(w);
}

/* A file that is there makes room and is not cut short: somebody may have it mapped. */
static bly_status open_file(struct blyi_tracewriter *w)
{
    struct stat about;
    if (w->path != NULL && lstat(w->path, &about) == 0 && S_ISREG(about.st_mode))
        (void)unlink(w->path);
    w->fd = w->path ? blyi_sys_open(w->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                    : blyi_sys_memfd_create("belay-trace", MFD_CLOEXEC);
    if (w->fd < 0)
        return blyi_fail(BLY_E_IO, "cannot make the trace %s: %s", name_of(w), strerror(errno));
    return BLY_OK;
}

static void fill_header(struct blyi_trace_header *header, const struct blyi_tracewriter_opts *opts)
{
    header->version = BLYI_TRACE_VERSION;
    header->order = BLYI_TRACE_ORDER;
    header->header_size = BLYI_TRACE_HEADER;
    header->chunk_size = BLYI_TRACE_CHUNK;
    header->first_seq = opts->first_seq > 0 ? opts->first_seq : 1;
    header->start_ns = opts->start_ns;
    header->start_wall_ns = opts->start_wall_ns;
    header->pid = opts->pid;
    header->flags = opts->flags;
    header->kinds = BLYI_PROBE_COUNT;
    header->n_events = header->first_seq - 1;
    memcpy(header->magic, BLYI_TRACE_MAGIC, sizeof(header->magic));
    snprintf(header->program, sizeof(header->program), "%s", opts->program ? opts->program : "");
    snprintf(header->writer, sizeof(header->writer), "%s", bly_version());
}

bly_status blyi_tracewriter_new(const struct blyi_tracewriter_opts *opts,
                                struct blyi_tracewriter **out)
{
    struct blyi_tracewriter *w = blyi_host_calloc(1, sizeof(*w));
    if (w == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to write a trace");
    w->fd = -1;
    w->size = BLYI_TRACE_HEADER;
    blyi_map_init(&w->texts);
    w->path = opts->path ? blyi_host_strdup(opts->path) : NULL;
    w->lanes = blyi_host_calloc(N_LANES, sizeof(*w->lanes));
    bly_status status = BLY_OK;
    if (w->lanes == NULL || (opts->path != NULL && w->path == NULL))
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to write a trace");
    else
        status = open_file(w);
    if (status != BLY_OK) {
        release(w, false);
        return status;
    }
    for (uint32_t i = 0; i < N_LANES; i++)
        lane_reset(&w->lanes[i]);
    lane_reset(&w->names);
    fill_header(&w->header, opts);
    for (uint32_t kind = 0; kind < BLYI_PROBE_COUNT; kind++) {
        const char *key = blyi_probe_key((enum blyi_probe_kind)kind);
        blyi_tracewriter_meta(w, BLYI_TRACE_META_KIND, &kind, sizeof(kind), key, strlen(key));
    }
    *out = w;
    return BLY_OK;
}

bly_status blyi_tracewriter_finish(struct blyi_tracewriter *w, uint64_t seen, uint64_t end_ns,
                                   struct blyi_trace **trace)
{
    for (uint32_t i = 0; i < N_LANES; i++)
        flush_events(w, &w->lanes[i]);
    lane_flush(w, &w->names, BLYI_TRACE_CHUNK_META, w->names.at.chunk.used);
    if (seen > w->header.n_events)
        w->header.n_events = seen;
    w->header.end_ns = end_ns;
    w->header.state = BLYI_TRACE_ENDED;
    write_at(w, &w->header, sizeof(w->header), 0);
    bly_status status = w->status;
    if (status != BLY_OK) {
        (void)blyi_fail(status, "%s", w->why);
        blyi_tracewriter_abandon(w);
        return status;
    }
    int fd = w->fd;
    bool reopen = trace != NULL;
    if (reopen)
        status = blyi_trace_open_fd(fd, w->header.program, trace);
    release(w, reopen);
    return status;
}

void blyi_tracewriter_abandon(struct blyi_tracewriter *w)
{
    if (w == NULL)
        return;
    if (w->path != NULL && w->fd >= 0)
        (void)unlink(w->path);
    release(w, false);
}
