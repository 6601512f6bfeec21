/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_names.c - what ids mean. Every record is checked against its own length; one that makes no
 * sense is counted and left out.
 */
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "observe/trace_inside.h"

#define STREAM_MAX ((size_t)1 << 30) /* of names: a hostile file must not ask for more */

bool blyi_trace_room(void *array, size_t n, size_t *room, size_t size)
{
    void *old, *bigger;
    if (n < *room)
        return true;
    memcpy(&old, array, sizeof(old));
    size_t more = *room * 2 + 64;
    bigger = blyi_host_realloc(old, more * size);
    if (bigger == NULL)
        return false;
    memcpy(array, &bigger, sizeof(bigger));
    *room = more;
    return true;
}

void blyi_trace_names_init(struct blyi_trace_names *names)
{
    memset(names, 0, sizeof(*names));
    names->comment = "";
}

void blyi_trace_names_fini(struct blyi_trace_names *names)
{
    struct blyi_map *maps[] = {&names->sites,  &names->modules, &names->stacks, &names->names,
                               &names->ranges, &names->threads, &names->kinds};
    for (size_t i = 0; i < BLYI_COUNT(maps); i++)
        blyi_map_fini(maps[i]);
    for (size_t i = 0; i < names->n_texts; i++)
        blyi_host_free(names->texts[i]);
    for (size_t i = 0; i < names->n_parts; i++)
        blyi_host_free(names->parts[i]);
    blyi_host_free(names->texts);
    blyi_host_free(names->parts);
    blyi_host_free(names->bytes);
    blyi_host_free(names->blocks);
    blyi_host_free(names->cards);
}

static bly_status no_memory(void)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the names of a trace");
}

bly_status blyi_trace_names_add(struct blyi_trace_names *names, const void *bytes, size_t size)
{
    if (size > STREAM_MAX - names->size) {
        names->damaged++;
        return BLY_OK;
    }
    if (names->size + size > names->room) {
        size_t room = 2 * (names->size + size) + BLYI_TRACE_CHUNK;
        unsigned char *bigger = blyi_host_realloc(names->bytes, room);
        if (bigger == NULL)
            return no_memory();
        names->bytes = bigger;
        names->room = room;
    }
    if (size > 0)
        memcpy(names->bytes + names->size, bytes, size);
    names->size += size;
    return BLY_OK;
}

/* ── Pieces of a record ───────────────────────────────────────────────────────────────────── */

struct record {
    struct blyi_trace_names *names;
    const unsigned char *at, *end;
    bool bad;
    bool short_of_memory;
};

static uint64_t number(struct record *r, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < size) {
        r->bad = true;
        return 0;
    }
    memcpy(&value, r->at, size); /* little-endian */
    r->at += size;
    return value;
}

static uint32_t number32(struct record *r)
{
    return (uint32_t)number(r, 4);
}

const char *blyi_trace_keep_text(struct blyi_trace_names *names, const void *text, size_t length)
{
    char *copy = blyi_host_alloc(length + 1);
    if (copy == NULL || !blyi_trace_room(&names->texts, names->n_texts, &names->texts_room,
                                         sizeof(*names->texts))) {
        blyi_host_free(copy);
        return NULL;
    }
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    names->texts[names->n_texts++] = copy;
    return copy;
}

/* A copy of the text that ends at a zero, or with the record. */
static const char *text(struct record *r)
{
    size_t length = strnlen((const char *)r->at, (size_t)(r->end - r->at));
    const char *copy = blyi_trace_keep_text(r->names, r->at, length);
    r->at += length < (size_t)(r->end - r->at) ? length + 1 : length;
    r->short_of_memory = r->short_of_memory || copy == NULL;
    return copy != NULL ? copy : "";
}

/* The entry of an id, made when it is new; NULL without host memory. */
static void *entry(struct record *r, struct blyi_map *map, uint32_t id, size_t size)
{
    void *part = blyi_map_get(map, id);
    if (part != NULL)
        return part;
    part = blyi_host_calloc(1, size);
    if (part == NULL ||
        !blyi_trace_room(&r->names->parts, r->names->n_parts, &r->names->parts_room,
                         sizeof(*r->names->parts)) ||
        blyi_map_put(map, id, part) != BLY_OK) {
        blyi_host_free(part);
        r->short_of_memory = true;
        return NULL;
    }
    r->names->parts[r->names->n_parts++] = part;
    return part;
}

/* ── Records ──────────────────────────────────────────────────────────────────────────────── */

static void read_kind(struct record *r)
{
    uint32_t id = number32(r);
    const char *key = text(r);
    for (int kind = 0; !r->bad && kind < BLYI_PROBE_COUNT; kind++)
        if (strcmp(key, blyi_probe_key((enum blyi_probe_kind)kind)) == 0) {
            uint32_t *known = entry(r, &r->names->kinds, id, sizeof(*known));
            if (known != NULL)
                *known = (uint32_t)kind;
            return;
        }
}

static void read_module(struct record *r)
{
    uint32_t id = number32(r);
    (void)number32(r);
    (void)number(r, 8);
    if (r->bad)
        return;
    const char *build_id = text(r), *path = text(r);
    struct blyi_trace_module *module = entry(r, &r->names->modules, id, sizeof(*module));
    if (module != NULL)
        *module = (struct blyi_trace_module){.path = path, .build_id = build_id};
}

static struct blyi_trace_site_entry *site_of(struct record *r, uint32_t id)
{
    bool is_new = blyi_map_get(&r->names->sites, id) == NULL;
    struct blyi_trace_site_entry *site = entry(r, &r->names->sites, id, sizeof(*site));
    if (site != NULL && is_new) {
        site->function = site->source = "";
        r->names->n_sites++;
    }
    return site;
}

static void read_site(struct record *r)
{
    uint32_t id = number32(r), module = number32(r);
    uint64_t offset = number(r, 8);
    struct blyi_trace_site_entry *site = r->bad ? NULL : site_of(r, id);
    if (site != NULL) {
        site->module = module;
        site->offset = offset;
    }
}

static void read_source(struct record *r)
{
    uint32_t id = number32(r), line = number32(r);
    if (r->bad)
        return;
    const char *function = text(r), *source = text(r);
    struct blyi_trace_site_entry *site = site_of(r, id);
    if (site != NULL) {
        site->line = line;
        site->function = function;
        site->source = source;
    }
}

static void read_stack(struct record *r)
{
    uint32_t id = number32(r), n = number32(r);
    if (r->bad || n > (size_t)(r->end - r->at) / 4) {
        r->bad = true;
        return;
    }
    if (blyi_map_get(&r->names->stacks, id) != NULL)
        return;
    struct blyi_trace_stack_entry *stack =
        entry(r, &r->names->stacks, id, sizeof(*stack) + n * sizeof(uint32_t));
    if (stack == NULL)
        return;
    stack->n = n;
    memcpy(stack->sites, r->at, n * sizeof(uint32_t));
    r->names->n_stacks++;
}

static void read_thread(struct record *r)
{
    uint32_t id = number32(r), tid = number32(r);
    if (r->bad)
        return;
    const char *name = text(r);
    bool is_new = blyi_map_get(&r->names->threads, id) == NULL;
    struct blyi_trace_thread *thread = entry(r, &r->names->threads, id, sizeof(*thread));
    if (thread == NULL)
        return;
    *thread = (struct blyi_trace_thread){tid, name};
    r->names->n_threads += is_new;
}

static void read_name(struct record *r)
{
    uint32_t id = number32(r);
    (void)number32(r);
    if (r->bad)
        return;
    const char **name = entry(r, &r->names->names, id, sizeof(*name));
    const char *is = text(r);
    if (name != NULL)
        *name = is;
}

/* A parent's number is below its children's in what we write; elsewhere a circle must not be. */
static void read_range(struct record *r)
{
    uint32_t id = number32(r), parent = number32(r), name = number32(r);
    if (r->bad || (parent != 0 && blyi_map_get(&r->names->ranges, parent) == NULL)) {
        r->bad = true;
        return;
    }
    if (blyi_map_get(&r->names->ranges, id) != NULL)
        return;
    struct blyi_trace_range *range = entry(r, &r->names->ranges, id, sizeof(*range));
    if (range != NULL)
        *range = (struct blyi_trace_range){parent, name};
}

static void read_block(struct record *r)
{
    struct blyi_trace_names *names = r->names;
    if ((size_t)(r->end - r->at) < sizeof(*names->blocks)) {
        r->bad = true;
        return;
    }
    if (!blyi_trace_room(&names->blocks, names->n_blocks, &names->blocks_room,
                         sizeof(*names->blocks)))
        r->short_of_memory = true;
    else
        memcpy(&names->blocks[names->n_blocks++], r->at, sizeof(*names->blocks));
}

static void read_card(struct record *r)
{
    struct blyi_trace_names *names = r->names;
    struct blyi_trace_card card = {.card = (int32_t)number32(r)};
    (void)number32(r);
    card.total = number(r, 8);
    card.overhead = number(r, 8);
    for (size_t i = 0; !r->bad && i < names->n_cards; i++)
        if (names->cards[i].card == card.card) {
            names->cards[i] = card;
            return;
        }
    if (!r->bad &&
        !blyi_trace_room(&names->cards, names->n_cards, &names->cards_room, sizeof(*names->cards)))
        r->short_of_memory = true;
    else if (!r->bad)
        names->cards[names->n_cards++] = card;
}

static void read_record(struct record *r, uint32_t type)
{
    switch (type) {
    case BLYI_TRACE_META_KIND:
        read_kind(r);
        break;
    case BLYI_TRACE_META_MODULE:
        read_module(r);
        break;
    case BLYI_TRACE_META_SITE:
        read_site(r);
        break;
    case BLYI_TRACE_META_SOURCE:
        read_source(r);
        break;
    case BLYI_TRACE_META_STACK:
        read_stack(r);
        break;
    case BLYI_TRACE_META_THREAD:
        read_thread(r);
        break;
    case BLYI_TRACE_META_NAME:
        read_name(r);
        break;
    case BLYI_TRACE_META_RANGE:
        read_range(r);
        break;
    case BLYI_TRACE_META_BLOCK:
        read_block(r);
        break;
    case BLYI_TRACE_META_CARD:
        read_card(r);
        break;
    case BLYI_TRACE_META_COMMENT:
        r->names->comment = text(r);
        break;
    default: /* of a later version */
        break;
    }
}

bly_status blyi_trace_names_parse(struct blyi_trace_names *names)
{
    size_t at = 0;
    struct blyi_trace_record head;
    while (names->size - at >= sizeof(head)) {
        memcpy(&head, names->bytes + at, sizeof(head));
        at += sizeof(head);
        if (head.length > names->size - at) {
            at -= sizeof(head);
            break; /* the process died while it wrote this one */
        }
        struct record r = {
            .names = names, .at = names->bytes + at, .end = names->bytes + at + head.length};
        read_record(&r, head.type);
        if (r.short_of_memory)
            return no_memory();
        names->damaged += r.bad;
        size_t padded = ((size_t)head.length + 7) & ~(size_t)7;
        if (padded > names->size - at) {
            at -= sizeof(head);
            break;
        }
        at += padded;
    }
    names->size = at; /* what follows is a piece of a record */
    return BLY_OK;
}
