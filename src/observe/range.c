/* SPDX-License-Identifier: Apache-2.0
 *
 * range.c - two tables that only grow. Ids lead to entries through chunks that never move, so
 * that sinks, which run under other locks, can read them.
 */
#include "observe/range.h"

#include <belay/trace.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/probe.h"
#include "base/site.h"

#define PER_CHUNK 1024u
#define N_CHUNKS  1024u
#define IDS_MAX   (PER_CHUNK * N_CHUNKS)

struct name {
    struct name *next; /* of the same hash */
    uint32_t id;
    char text[];
};

struct names {
    _Atomic(const struct name *) entry[PER_CHUNK];
};

struct paths {
    struct blyi_path entry[PER_CHUNK];
};

/* Guards the maps and additions; held for nothing else. */
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_SITE);
static struct blyi_map name_of_hash, path_of_key, open_ranges;
static _Atomic(struct names *) name_chunks[N_CHUNKS];
static _Atomic(struct paths *) path_chunks[N_CHUNKS];
static _Atomic uint32_t n_names, n_paths; /* release after the entry is written */
static uint32_t last_range;
BLYI_HOT_THREAD_LOCAL uint32_t blyi_range_here;

static const char too_many[] = "(more names than are kept)";

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static const struct name *find_locked(uint64_t hash, const char *text, size_t length)
{
    const struct name *name = blyi_map_get(&name_of_hash, hash);
    while (name != NULL && (strncmp(name->text, text, length) != 0 || name->text[length] != '\0'))
        name = name->next;
    return name;
}

static struct names *name_chunk_locked(uint32_t index)
{
    struct names *chunk = atomic_load_explicit(&name_chunks[index], memory_order_relaxed);
    if (chunk == NULL) {
        chunk = blyi_host_calloc(1, sizeof(*chunk));
        atomic_store_explicit(&name_chunks[index], chunk, memory_order_release);
    }
    return chunk;
}

static const struct name *add_locked(uint64_t hash, const char *text, size_t length)
{
    uint32_t id = atomic_load_explicit(&n_names, memory_order_relaxed) + 1;
    if (id == IDS_MAX - 1) { /* the last one is for all others */
        text = too_many;
        length = strlen(too_many);
    } else if (id >= IDS_MAX) {
        return atomic_load(&atomic_load(&name_chunks[N_CHUNKS - 1])->entry[PER_CHUNK - 2]);
    }
    struct names *chunk = name_chunk_locked((id - 1) / PER_CHUNK);
    struct name *name = chunk ? blyi_host_alloc(sizeof(*name) + length + 1) : NULL;
    if (name == NULL)
        return NULL;
    name->next = blyi_map_get(&name_of_hash, hash);
    name->id = id;
    memcpy(name->text, text, length);
    name->text[length] = '\0';
    if (blyi_map_put(&name_of_hash, hash, name) != BLY_OK) {
        blyi_host_free(name);
        return NULL;
    }
    atomic_store_explicit(&chunk->entry[(id - 1) % PER_CHUNK], name, memory_order_release);
    atomic_store_explicit(&n_names, id, memory_order_release);
    return name;
}

bly_status blyi_name_intern(const char *text, uint32_t *id)
{
    if (text == NULL)
        return blyi_fail(BLY_E_INVALID, "a name is NULL");
    size_t length = strnlen(text, BLYI_NAME_MAX - 1);
    uint64_t hash = hash_of(text, length);
    blyi_lock_take(&lock);
    const struct name *name = find_locked(hash, text, length);
    if (name == NULL)
        name = add_locked(hash, text, length);
    blyi_lock_drop(&lock);
    if (name == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the name \"%.60s\"", text);
    *id = name->id;
    return BLY_OK;
}

const char *blyi_name_text(uint32_t id)
{
    if (id == 0 || id > atomic_load_explicit(&n_names, memory_order_acquire))
        return "";
    struct names *chunk =
        atomic_load_explicit(&name_chunks[(id - 1) / PER_CHUNK], memory_order_acquire);
    return atomic_load_explicit(&chunk->entry[(id - 1) % PER_CHUNK], memory_order_acquire)->text;
}

/* ── Paths ────────────────────────────────────────────────────────────────────────────────── */

static struct paths *path_chunk_locked(uint32_t index)
{
    struct paths *chunk = atomic_load_explicit(&path_chunks[index], memory_order_relaxed);
    if (chunk == NULL) {
        chunk = blyi_host_calloc(1, sizeof(*chunk));
        atomic_store_explicit(&path_chunks[index], chunk, memory_order_release);
    }
    return chunk;
}

/* 0 when there is no host memory, or no number left. */
static uint32_t add_path_locked(uint64_t key)
{
    uint32_t id = atomic_load_explicit(&n_paths, memory_order_relaxed) + 1;
    struct paths *chunk = id < IDS_MAX ? path_chunk_locked((id - 1) / PER_CHUNK) : NULL;
    if (chunk == NULL || blyi_map_put(&path_of_key, key, (void *)(uintptr_t)id) != BLY_OK)
        return 0;
    chunk->entry[(id - 1) % PER_CHUNK] = (struct blyi_path){(uint32_t)(key >> 32), (uint32_t)key};
    atomic_store_explicit(&n_paths, id, memory_order_release);
    return id;
}

static uint32_t intern_path(uint32_t parent, uint32_t name)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    blyi_lock_take(&lock);
    uint32_t id = (uint32_t)(uintptr_t)blyi_map_get(&path_of_key, key);
    if (id == 0)
        id = add_path_locked(key);
    blyi_lock_drop(&lock);
    return id;
}

struct blyi_path blyi_path_get(uint32_t path)
{
    if (path == 0 || path > atomic_load_explicit(&n_paths, memory_order_acquire))
        return (struct blyi_path){0, 0};
    struct paths *chunk =
        atomic_load_explicit(&path_chunks[(path - 1) / PER_CHUNK], memory_order_acquire);
    return chunk->entry[(path - 1) % PER_CHUNK];
}

/* ── What the program says ────────────────────────────────────────────────────────────────── */

bly_status blyi_range_push(const char *text, uint32_t site)
{
    uint32_t name;
    bly_status status = blyi_name_intern(text, &name);
    if (status != BLY_OK)
        return status;
    uint32_t path = intern_path(blyi_range_here, name);
    if (path == 0)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "no host memory for the range \"%.60s\", or %u are known already", text,
                         IDS_MAX - 1);
    blyi_range_here = path;
    BLYI_PROBE(RANGE_PUSH, .card = -1, .event = path, .site = site);
    return BLY_OK;
}

bly_status blyi_range_pop(uint32_t site)
{
    if (blyi_range_here == 0)
        return blyi_fail(BLY_E_STATE, "this thread is in no range");
    BLYI_PROBE(RANGE_POP, .card = -1, .event = blyi_range_here, .site = site);
    blyi_range_here = blyi_path_get(blyi_range_here).parent;
    return BLY_OK;
}

bly_status blyi_range_start(const char *text, uint32_t site, uint32_t *number)
{
    uint32_t name;
    bly_status status = blyi_name_intern(text, &name);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&lock);
    while (++last_range == 0 || blyi_map_get(&open_ranges, last_range) != NULL)
        ;
    uint32_t mine = last_range;
    status = blyi_map_put(&open_ranges, mine, (void *)(uintptr_t)name);
    blyi_lock_drop(&lock);
    if (status != BLY_OK)
        return status;
    BLYI_PROBE(RANGE_START, .card = -1, .event = name, .other = mine, .site = site);
    *number = mine;
    return BLY_OK;
}

bly_status blyi_range_stop(uint32_t number, uint32_t site)
{
    blyi_lock_take(&lock);
    uint32_t name = (uint32_t)(uintptr_t)blyi_map_remove(&open_ranges, number);
    blyi_lock_drop(&lock);
    if (name == 0)
        return blyi_fail(BLY_E_INVALID, "range %u is not open", number);
    BLYI_PROBE(RANGE_STOP, .card = -1, .event = name, .other = number, .site = site);
    return BLY_OK;
}

bly_status blyi_mark(const char *text, uint32_t stream, uint32_t site)
{
    uint32_t name;
    bly_status status = blyi_name_intern(text, &name);
    if (status == BLY_OK)
        BLYI_PROBE(MARK, .card = -1, .event = name, .stream = stream, .site = site);
    return status;
}

bly_status blyi_tag(const void *address, const char *text, uint32_t site)
{
    uint32_t name;
    if (address == NULL)
        return blyi_fail(BLY_E_INVALID, "a tag for the address NULL");
    bly_status status = blyi_name_intern(text, &name);
    if (status == BLY_OK)
        BLYI_PROBE(TAG, .card = -1, .event = name, .address = (uintptr_t)address, .site = site);
    return status;
}

bly_status bly_range_push(const char *name)
{
    return blyi_range_push(name, BLYI_SITE_HERE());
}

bly_status bly_range_pop(void)
{
    return blyi_range_pop(BLYI_SITE_HERE());
}

bly_status bly_mark(const char *name)
{
    return blyi_mark(name, 0, BLYI_SITE_HERE());
}

bly_status bly_tag(const void *address, const char *name)
{
    return blyi_tag(address, name, BLYI_SITE_HERE());
}
