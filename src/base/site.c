/* SPDX-License-Identifier: Apache-2.0
 *
 * site.c - ids for return addresses.
 *
 * Known addresses are found without a lock in an open-addressing table that only gains
 * entries. Lock SITE guards additions and growth. A table that was outgrown stays alive,
 * because somebody may be reading it: all together they are less than twice the last one.
 * Ids lead back to addresses through chunks that never move.
 */
#include "base/site.h"
#include "base/compiler.h"
#include "base/frame.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/symtab.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_SITES 1024u
#define N_CHUNKS    1024u
#define TABLE_MIN   1024u

struct entry {
    /* Release after id, acquire before it: who finds the address finds its id. */
    _Atomic(const void *) pc;
    uint32_t id;
};

struct table {
    struct table *outgrown;
    size_t capacity; /* a power of two, at most half full */
    struct entry entries[];
};

static struct blyi_lock grow_lock = BLYI_LOCK_INIT(BLYI_RANK_SITE);
static _Atomic(struct table *) current;
static _Atomic(const void **) chunks[N_CHUNKS];
/* Release after the chunk's entry is written. */
static _Atomic uint32_t n_sites;

static size_t hash(const void *pc)
{
    uint64_t key = (uint64_t)(uintptr_t)pc * 0x9e3779b97f4a7c15u;
    return (size_t)(key >> 32);
}

/* The entry of pc, or the empty one where it belongs. */
static struct entry *probe(struct table *table, const void *pc, const void **found)
{
    size_t mask = table->capacity - 1, i = hash(pc) & mask;
    while ((*found = atomic_load_explicit(&table->entries[i].pc, memory_order_acquire)) != NULL &&
           *found != pc)
        i = (i + 1) & mask;
    return &table->entries[i];
}

static uint32_t lookup(struct table *table, const void *pc)
{
    const void *found = NULL;
    struct entry *entry = table ? probe(table, pc, &found) : NULL;
    return found ? entry->id : 0;
}

static void insert(struct table *table, const void *pc, uint32_t id)
{
    const void *found;
    struct entry *entry = probe(table, pc, &found);
    entry->id = id;
    atomic_store_explicit(&entry->pc, pc, memory_order_release);
}

/* What was interned. */
static const void *key_of(uint32_t site)
{
    if (site == 0 || site > blyi_site_count())
        return NULL;
    const void **chunk =
        atomic_load_explicit(&chunks[(site - 1) / CHUNK_SITES], memory_order_acquire);
    return chunk[(site - 1) % CHUNK_SITES];
}

/* The table with room for one more, NULL when host memory is short. */
static struct table *roomy_table_locked(uint32_t count)
{
    struct table *old = atomic_load_explicit(&current, memory_order_relaxed);
    if (old && 2 * ((size_t)count + 1) <= old->capacity)
        return old;
    size_t capacity = old ? 2 * old->capacity : TABLE_MIN;
    struct table *table = blyi_host_calloc(1, sizeof(*table) + capacity * sizeof(struct entry));
    if (table == NULL)
        return NULL;
    table->outgrown = old;
    table->capacity = capacity;
    for (uint32_t id = 1; id <= count; id++)
        insert(table, key_of(id), id);
    atomic_store_explicit(&current, table, memory_order_release);
    return table;
}

static const void **roomy_chunk_locked(uint32_t count)
{
    if (count / CHUNK_SITES >= N_CHUNKS)
        return NULL;
    _Atomic(const void **) *place = &chunks[count / CHUNK_SITES];
    const void **chunk = atomic_load_explicit(place, memory_order_relaxed);
    if (chunk == NULL) {
        chunk = blyi_host_calloc(CHUNK_SITES, sizeof(*chunk));
        atomic_store_explicit(place, chunk, memory_order_release);
    }
    return chunk;
}

static uint32_t intern_new(const void *pc)
{
    blyi_lock_take(&grow_lock);
    uint32_t id = lookup(atomic_load_explicit(&current, memory_order_relaxed), pc);
    if (id == 0) {
        uint32_t count = atomic_load_explicit(&n_sites, memory_order_relaxed);
        const void **chunk = roomy_chunk_locked(count);
        struct table *table = chunk ? roomy_table_locked(count) : NULL;
        if (table != NULL) {
            id = count + 1;
            chunk[count % CHUNK_SITES] = pc;
            atomic_store_explicit(&n_sites, id, memory_order_release);
            insert(table, pc, id);
        }
    }
    blyi_lock_drop(&grow_lock);
    return id;
}

uint32_t blyi_site_intern(const void *pc)
{
    if (unlikely(pc == NULL))
        return 0;
    uint32_t id = lookup(atomic_load_explicit(&current, memory_order_acquire), pc);
    return likely(id != 0) ? id : intern_new(pc);
}

const struct blyi_line *blyi_line_of_site(uint32_t site)
{
    return blyi_line_of_key(key_of(site));
}

const void *blyi_site_pc(uint32_t site)
{
    const void *key = key_of(site);
    const struct blyi_line *line = blyi_line_of_key(key);
    return line ? atomic_load_explicit(&line->code, memory_order_relaxed) : key;
}

uint32_t blyi_site_count(void)
{
    return atomic_load_explicit(&n_sites, memory_order_acquire);
}

/* Writes the text of a place; slow the first time a module is looked into. */
static void describe(const char *pc, char buf[BLYI_SITE_TEXT])
{
    Dl_info info;
    /* One byte back: a return address behind a last call may belong to the next function. */
    if (dladdr(pc - 1, &info) == 0 || info.dli_fname == NULL) {
        snprintf(buf, BLYI_SITE_TEXT, "%p", (const void *)pc);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/'), *module = slash ? slash + 1 : info.dli_fname;
    char name[BLYI_SYMTAB_NAME];
    uint64_t offset;
    if (blyi_symtab_find(pc - 1, name, &offset))
        snprintf(buf, BLYI_SITE_TEXT, "%s+0x%" PRIx64 " (%.64s)", name, offset + 1, module);
    else if (info.dli_sname && info.dli_saddr)
        snprintf(buf, BLYI_SITE_TEXT, "%.160s+0x%tx (%.64s)", info.dli_sname,
                 pc - (const char *)info.dli_saddr, module);
    else
        snprintf(buf, BLYI_SITE_TEXT, "0x%tx (%.64s)", pc - (const char *)info.dli_fbase, module);
}

/* Errors come in bursts from few places, so texts are kept; the oldest makes room. */
enum { KEPT = 32 };
static struct {
    uint32_t site;
    char text[BLYI_SITE_TEXT];
} kept[KEPT];
static unsigned next_kept;
static struct blyi_lock kept_lock = BLYI_LOCK_INIT(BLYI_RANK_SITE);

static bool recall(uint32_t site, char buf[BLYI_SITE_TEXT])
{
    bool found = false;
    blyi_lock_take(&kept_lock);
    for (unsigned i = 0; i < KEPT && !found; i++) {
        found = kept[i].site == site;
        if (found)
            memcpy(buf, kept[i].text, BLYI_SITE_TEXT);
    }
    blyi_lock_drop(&kept_lock);
    return found;
}

static void keep(uint32_t site, const char *text)
{
    blyi_lock_take(&kept_lock);
    /* Never a site with another's text, in the child of a fork either. */
    __atomic_store_n(&kept[next_kept].site, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    snprintf(kept[next_kept].text, BLYI_SITE_TEXT, "%s", text);
    __atomic_store_n(&kept[next_kept].site, site, __ATOMIC_RELEASE);
    next_kept = (next_kept + 1) % KEPT;
    blyi_lock_drop(&kept_lock);
}

/* Of a long path the end tells more. */
static void line_text(const struct blyi_line *line, char buf[BLYI_SITE_TEXT])
{
    enum { FUNCTION = 100, FILE_NAME = 140 };
    size_t n = strlen(line->file);
    const char *file = n > FILE_NAME ? line->file + n - (FILE_NAME - 3) : line->file;
    snprintf(buf, BLYI_SITE_TEXT, "%.*s %s%s:%" PRIu32, FUNCTION, line->function,
             n > FILE_NAME ? "..." : "", file, line->number);
}

const char *blyi_site_text(uint32_t site, char buf[BLYI_SITE_TEXT])
{
    const char *pc = blyi_site_pc(site);
    const struct blyi_line *line = blyi_line_of_site(site);
    if (line != NULL) {
        line_text(line, buf);
    } else if (pc == NULL) {
        snprintf(buf, BLYI_SITE_TEXT, "an unknown place");
    } else if (!recall(site, buf)) {
        describe(pc, buf);
        keep(site, buf);
    }
    return buf;
}

static _Atomic(blyi_site_describer *) describer;

void blyi_site_set_describer(blyi_site_describer *better)
{
    atomic_store_explicit(&describer, better, memory_order_release);
}

void blyi_site_describe(const uint32_t *sites, size_t n, blyi_site_line *line, void *arg)
{
    blyi_site_describer *better = atomic_load_explicit(&describer, memory_order_acquire);
    char text[BLYI_SITE_TEXT];
    if (better != NULL) {
        better(sites, n, line, arg);
        return;
    }
    for (size_t i = 0; i < n; i++)
        line(arg, i, blyi_site_text(sites[i], text));
}
