/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_format.h - what stands in a trace file (docs/trace-format.md), shared by those who write
 * it and the one who reads it. Numbers are little-endian, as the machines that Belay runs on.
 *
 *   header, 4096 bytes | chunk | chunk | ...        a chunk is 4096 bytes, or a row of them
 *
 * Fields and records are only ever appended; a reader skips what it does not know.
 */
#ifndef BLYI_TRACE_FORMAT_H
#define BLYI_TRACE_FORMAT_H

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "base/compiler.h"
#include "base/probe.h"

#define BLYI_TRACE_MAGIC      "BLYTRACE"
#define BLYI_TRACE_VERSION    2u /* 1: no words of SIZES and NEAR, else the same */
#define BLYI_TRACE_ORDER      0x01020304u
#define BLYI_TRACE_HEADER     4096u
#define BLYI_TRACE_CHUNK      4096u
#define BLYI_TRACE_PROGRAM    1024u
#define BLYI_TRACE_STOP_TEXT  256u
#define BLYI_TRACE_RING_MAX   ((uint64_t)1 << 32)
#define BLYI_TRACE_STACK_MAX  128u
#define BLYI_TRACE_TABLE_MIN  1024u /* entries of the first table of blocks */
#define BLYI_TRACE_CHUNK_ROOM (BLYI_TRACE_CHUNK - (uint32_t)sizeof(struct blyi_trace_chunk))

enum blyi_trace_flag {
    BLYI_TRACE_NO_HISTORY = 1, /* recording was off: a picture of one moment */
    BLYI_TRACE_LATE = 2,       /* the program had used cards before recording began */
    BLYI_TRACE_VIRTUAL = 4,    /* times are of the virtual clock */
    BLYI_TRACE_IMPORTED = 8,   /* made from a file of another tool; its name is `program` */
    BLYI_TRACE_CUT = 16,       /* a part of another trace */
    BLYI_TRACE_LOGICAL = 32,   /* times are steps, not nanoseconds */
};

enum blyi_trace_state {
    BLYI_TRACE_RUNNING = 0, /* was not closed: the process runs, or was killed or replaced */
    BLYI_TRACE_ENDED = 1,
    BLYI_TRACE_STOPPED = 2, /* stop_text says why */
    BLYI_TRACE_DUMPED = 3,  /* a copy made while recording went on */
};

struct blyi_trace_header {
    char magic[8];
    uint32_t version, order, header_size, chunk_size;
    uint64_t ring;      /* events kept; 0: all */
    uint64_t first_seq; /* number of the first event, 1 unless cut */
    uint64_t start_ns;  /* of the clock that events have */
    uint64_t start_wall_ns;
    uint32_t pid, flags, stack_depth;
    uint32_t kinds; /* how many kinds of event the writer knew */
    char program[BLYI_TRACE_PROGRAM];
    char writer[32]; /* version of Belay */
    unsigned char spare1[2048 - 1128];
    /* From here on written while recording. */
    uint64_t n_events; /* number of the last event that happened */
    unsigned char spare2[56];
    uint64_t table_at; /* of the current table of blocks; 0: none */
    uint64_t end_ns;
    uint32_t state, state_spare;
    char stop_text[BLYI_TRACE_STOP_TEXT];
    unsigned char spare3[4096 - 2392];
};
static_assert(sizeof(struct blyi_trace_header) == BLYI_TRACE_HEADER, "the header is one page");
static_assert(offsetof(struct blyi_trace_header, n_events) == 2048, "written part is apart");

enum blyi_trace_chunk_type {
    BLYI_TRACE_CHUNK_UNUSED = 0,
    BLYI_TRACE_CHUNK_EVENTS = 1,
    BLYI_TRACE_CHUNK_META = 2,  /* a piece of the stream of names */
    BLYI_TRACE_CHUNK_TABLE = 3, /* live blocks, while recording into a ring */
};

struct blyi_trace_chunk {
    uint32_t type;
    uint32_t n_chunks; /* of 4096 bytes, this one included */
    uint32_t used;     /* bytes behind this header; written last */
    uint32_t spare;
    uint64_t capacity; /* of a table: entries */
    uint64_t spare2;
};
static_assert(sizeof(struct blyi_trace_chunk) == 32, "records are 8-aligned");

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

/* Word 0: kind | card << 8 | page kind << 16 | mask << 32. Word 1: number of the event behind the
 * context's | time behind it << 32. Then one word for each bit of the mask, lowest first. */
#define BLYI_TRACE_FIELDS(X)                                                                       \
    X(PLACE)   /* site | stream << 32 */                                                           \
    X(ADDRESS) /* */                                                                               \
    X(OTHER)                                                                                       \
    X(ASKED)                                                                                       \
    X(SIZE) /* absent: as asked */                                                                 \
    X(ROUNDED)                                                                                     \
    X(BACKED)                                                                                      \
    X(AUX)                                                                                         \
    X(EVENT) /* event | stack << 32 */                                                             \
    X(PC)                                                                                          \
    X(TASK)                                                                                        \
    X(TOOK)  /* ns from the call's beginning to the event */                                       \
    X(SIZES) /* of these three, asked (32), what rounding added (8), pages of 4 KiB (24) */        \
    X(NEAR)  /* site (16) | stream << 16 (16) | event << 32, in place of PLACE and EVENT */

enum blyi_trace_field {
#define BLYI_TRACE_FIELD_ENUM(name) BLYI_TRACE_FIELD_##name,
    BLYI_TRACE_FIELDS(BLYI_TRACE_FIELD_ENUM)
#undef BLYI_TRACE_FIELD_ENUM
        BLYI_TRACE_FIELD_COUNT
};

#define BLYI_TRACE_EVENT_WORDS (2u + BLYI_TRACE_FIELD_COUNT)

/* In place of a kind: what the following events of the chunk stand on. Mask 7: number and time
 * that are counted from, thread | range << 32. A chunk of events begins with one. */
#define BLYI_TRACE_CONTEXT       0xffu
#define BLYI_TRACE_CONTEXT_WORDS 5u

struct blyi_trace_context {
    uint64_t seq, time_ns;
    uint32_t thread, range;
};

static inline void blyi_trace_put_context(uint64_t *at, const struct blyi_trace_context *context)
{
    at[0] = BLYI_TRACE_CONTEXT | (uint64_t)7 << 32;
    at[1] = 0;
    at[2] = context->seq;
    at[3] = context->time_ns;
    at[4] = context->thread | (uint64_t)context->range << 32;
}

/* Its sizes, its ids fit in one word each. That saves a third of what most events take. */
static inline bool blyi_trace_has_sizes(const struct blyi_probe *p)
{
    return p->rounded != 0 && p->asked <= UINT32_MAX && p->rounded - p->asked < 256 &&
           p->backed % 4096 == 0 && p->backed >> 36 == 0;
}

static inline bool blyi_trace_is_near(const struct blyi_probe *p, uint32_t stack)
{
    uint32_t place = p->site | p->stream;
    return p->event != 0 && stack == 0 && place != 0 && place <= UINT16_MAX;
}

/* Where a field of an event goes: its bit, its word. */
struct blyi_trace_put {
    uint64_t mask;
    uint64_t *to;
};

static inline void blyi_trace_put_if(struct blyi_trace_put *put, enum blyi_trace_field field,
                                     bool has, uint64_t value)
{
    if (has) {
        put->mask |= (uint64_t)1 << field;
        *put->to++ = value;
    }
}

/* Those of memory; true: its sizes are to come in one word. */
static inline bool blyi_trace_put_sizes(struct blyi_trace_put *put, const struct blyi_probe *p)
{
    bool sizes = blyi_trace_has_sizes(p);
    blyi_trace_put_if(put, BLYI_TRACE_FIELD_ASKED, !sizes && p->asked != 0, p->asked);
    blyi_trace_put_if(put, BLYI_TRACE_FIELD_SIZE, p->size != p->asked, p->size);
    if (!sizes) {
        blyi_trace_put_if(put, BLYI_TRACE_FIELD_ROUNDED, p->rounded != 0, p->rounded);
        blyi_trace_put_if(put, BLYI_TRACE_FIELD_BACKED, p->backed != 0, p->backed);
    }
    return sizes;
}

/* Writes one event of at most BLYI_TRACE_EVENT_WORDS and returns its words. Most events have few
 * fields, so groups of them are looked at by one branch. */
static inline size_t blyi_trace_put_event(uint64_t *at, const struct blyi_probe *p, uint32_t stack,
                                          uint32_t seq_behind, uint32_t ns_behind)
{
    struct blyi_trace_put put = {0, at + 2};
    bool near = blyi_trace_is_near(p, stack), sizes = false;
    uint64_t place = p->site | (uint64_t)p->stream << 32;
    uint64_t event = p->event | (uint64_t)stack << 32;
    if (near)
        place = event = 0;
    blyi_trace_put_if(&put, BLYI_TRACE_FIELD_PLACE, place != 0, place);
    blyi_trace_put_if(&put, BLYI_TRACE_FIELD_ADDRESS, p->address != 0, p->address);
    blyi_trace_put_if(&put, BLYI_TRACE_FIELD_OTHER, p->other != 0, p->other);
    if ((p->asked | p->size | p->rounded | p->backed) != 0)
        sizes = blyi_trace_put_sizes(&put, p);
    if (((uint64_t)p->aux | event | (uint64_t)(uintptr_t)p->pc | p->task | p->began_ns) != 0) {
        bool took = p->began_ns != 0 && p->began_ns < p->time_ns;
        blyi_trace_put_if(&put, BLYI_TRACE_FIELD_AUX, p->aux != 0, (uint64_t)p->aux);
        blyi_trace_put_if(&put, BLYI_TRACE_FIELD_EVENT, event != 0, event);
        blyi_trace_put_if(&put, BLYI_TRACE_FIELD_PC, p->pc != NULL, (uint64_t)(uintptr_t)p->pc);
        blyi_trace_put_if(&put, BLYI_TRACE_FIELD_TASK, p->task != 0, p->task);
        blyi_trace_put_if(&put, BLYI_TRACE_FIELD_TOOK, took, p->time_ns - p->began_ns);
    }
    blyi_trace_put_if(&put, BLYI_TRACE_FIELD_SIZES, sizes,
                      p->asked | (p->rounded - p->asked) << 32 | (p->backed / 4096) << 40);
    blyi_trace_put_if(&put, BLYI_TRACE_FIELD_NEAR, near,
                      p->site | (uint64_t)p->stream << 16 | (uint64_t)p->event << 32);
    at[0] = (uint64_t)p->kind | (uint64_t)(uint8_t)p->card << 8 |
            (uint64_t)(p->page_kind & 0xff) << 16 | put.mask << 32;
    at[1] = seq_behind | (uint64_t)ns_behind << 32;
    return (size_t)(put.to - at);
}

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

/* The pieces of all META chunks, in file order, are one stream of records: type u32, bytes of what
 * follows u32, then that, padded to 8. Texts are not terminated where they come last, else they
 * end with a zero. */
enum blyi_trace_meta {
    BLYI_TRACE_META_KIND = 1,    /* number u32, key: what an event's kind means in this file */
    BLYI_TRACE_META_MODULE = 2,  /* id u32, spare u32, load address u64, build id, 0, path */
    BLYI_TRACE_META_SITE = 3,    /* id u32, module u32 (0: none), offset u64 */
    BLYI_TRACE_META_SOURCE = 4,  /* site u32, line u32 (0: unknown), function, 0, file */
    BLYI_TRACE_META_STACK = 5,   /* id u32, n u32, n sites u32, innermost first */
    BLYI_TRACE_META_THREAD = 6,  /* number u32, tid u32, name */
    BLYI_TRACE_META_NAME = 7,    /* id u32, spare u32, text */
    BLYI_TRACE_META_RANGE = 8,   /* path u32, parent path u32 (0: none), name u32 */
    BLYI_TRACE_META_BLOCK = 9,   /* a struct blyi_trace_block: live when recording began */
    BLYI_TRACE_META_CARD = 10,   /* card i32, spare u32, total u64, overhead u64 */
    BLYI_TRACE_META_COMMENT = 11 /* text for people */
};

struct blyi_trace_record {
    uint32_t type, length;
};

/* ── Live blocks ──────────────────────────────────────────────────────────────────────────── */

enum blyi_trace_class { BLYI_TRACE_CARD_BLOCK, BLYI_TRACE_PINNED_BLOCK, BLYI_TRACE_HANDLE };

#define BLYI_TRACE_BEFORE 1u /* flag of a block: made before recording began */

struct blyi_trace_block {
    uint64_t address; /* or handle; in a table written last, 0: empty */
    uint64_t seq;     /* of the event that made it; 0: before recording */
    uint64_t asked, rounded, backed;
    uint64_t time_ns;
    uint32_t site, stack;
    uint32_t stream;
    uint8_t card; /* 0xff: none */
    uint8_t class_;
    uint8_t page_kind;
    uint8_t flags;
};
static_assert(sizeof(struct blyi_trace_block) == 64, "a table is an array of cache lines");

/* Class of what a kind makes or ends; -1: neither. */
static inline int blyi_trace_class_of(enum blyi_probe_kind kind, bool *makes)
{
    *makes =
        kind == BLYI_PROBE_ALLOC || kind == BLYI_PROBE_HOST_ALLOC || kind == BLYI_PROBE_PHYS_CREATE;
    switch (kind) {
    case BLYI_PROBE_ALLOC:
    case BLYI_PROBE_FREE:
    case BLYI_PROBE_RESET_FREE:
        return BLYI_TRACE_CARD_BLOCK;
    case BLYI_PROBE_HOST_ALLOC:
    case BLYI_PROBE_HOST_FREE:
        return BLYI_TRACE_PINNED_BLOCK;
    case BLYI_PROBE_PHYS_CREATE:
    case BLYI_PROBE_PHYS_FREE:
        return BLYI_TRACE_HANDLE;
    default:
        return -1;
    }
}

/* Handles are numbers of their own: told apart from addresses by a bit that no address has. */
static inline uint64_t blyi_trace_block_key(uint64_t address, int class_)
{
    return class_ == BLYI_TRACE_HANDLE ? address | (uint64_t)1 << 63 : address;
}

static inline void blyi_trace_block_make(struct blyi_trace_block *block, const struct blyi_probe *p,
                                         int class_, uint64_t seq, uint32_t stack)
{
    *block = (struct blyi_trace_block){.address = p->address,
                                       .seq = seq,
                                       .asked = p->asked,
                                       .rounded = p->rounded,
                                       .backed = p->backed,
                                       .time_ns = p->time_ns,
                                       .site = p->site,
                                       .stack = stack,
                                       .stream = p->stream,
                                       .card = (uint8_t)p->card,
                                       .class_ = (uint8_t)class_,
                                       .page_kind = (uint8_t)p->page_kind};
}

#endif
