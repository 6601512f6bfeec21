/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_names.c - a file must be readable elsewhere, so what a number means stands in it before
 * the first event that uses it.
 */
#include <string.h>

#include "base/frame.h"
#include "base/host.h"
#include "base/site.h"
#include "observe/place.h"
#include "observe/range.h"
#include "observe/recorder_inside.h"
#include "observe/symbolise.h"

#define PAGE BLYI_IDSET_PAGE

struct module {
    struct module *next; /* of the same hash */
    uint32_t id;
    char *path;
    char build_id[BLYI_BUILD_ID_TEXT];
};

/* ── Sets of ids ──────────────────────────────────────────────────────────────────────────── */

/* Without host memory the record is written again. */
static void idset_add(struct blyi_idset *set, uint32_t id)
{
    _Atomic(uint8_t) *page = atomic_load_explicit(&set->pages[id / PAGE], memory_order_relaxed);
    if (page == NULL) {
        page = blyi_host_calloc(PAGE, sizeof(*page));
        atomic_store_explicit(&set->pages[id / PAGE], page, memory_order_release);
    }
    if (page != NULL)
        atomic_store_explicit(&page[id % PAGE], 1, memory_order_release);
}

static void idset_clear(struct blyi_idset *set)
{
    for (size_t i = 0; i < BLYI_COUNT(set->pages); i++) {
        _Atomic(uint8_t) *page = atomic_load_explicit(&set->pages[i], memory_order_relaxed);
        for (size_t k = 0; page != NULL && k < PAGE; k++)
            atomic_store_explicit(&page[k], 0, memory_order_relaxed);
    }
}

/* ── Records ──────────────────────────────────────────────────────────────────────────────── */

static bly_status meta(enum blyi_trace_meta type, const void *head, size_t head_size,
                       const void *tail, size_t tail_size)
{
    return blyi_recfile_meta(&blyi_rec.file, type, head, head_size, tail, tail_size);
}

bly_status blyi_rec_begin_names_locked(void)
{
    bly_status status = BLY_OK;
    for (uint32_t kind = 0; kind < BLYI_PROBE_COUNT && status == BLY_OK; kind++) {
        const char *key = blyi_probe_key((enum blyi_probe_kind)kind);
        status = meta(BLYI_TRACE_META_KIND, &kind, sizeof(kind), key, strlen(key));
    }
    return status;
}

bly_status blyi_rec_card_locked(int32_t card, uint64_t total, uint64_t overhead)
{
    struct {
        int32_t card;
        uint32_t spare;
        uint64_t total, overhead;
    } head = {card, 0, total, overhead};
    return meta(BLYI_TRACE_META_CARD, &head, sizeof(head), NULL, 0);
}

bly_status blyi_rec_name_locked(uint32_t name)
{
    if (name == 0 || blyi_idset_has(&blyi_rec.names, name))
        return BLY_OK;
    const char *text = blyi_name_text(name);
    uint32_t head[2] = {name, 0};
    bly_status status = meta(BLYI_TRACE_META_NAME, head, sizeof(head), text, strlen(text));
    if (status == BLY_OK)
        idset_add(&blyi_rec.names, name);
    return status;
}

/* Outer ranges first; a program may nest them as deep as it likes. */
bly_status blyi_rec_path_locked(uint32_t path)
{
    while (path != 0 && !blyi_idset_has(&blyi_rec.paths, path)) {
        uint32_t outermost = path, parent;
        while ((parent = blyi_path_get(outermost).parent) != 0 &&
               !blyi_idset_has(&blyi_rec.paths, parent))
            outermost = parent;
        struct blyi_path is = blyi_path_get(outermost);
        uint32_t head[3] = {outermost, is.parent, is.name};
        bly_status status = blyi_rec_name_locked(is.name);
        if (status == BLY_OK)
            status = meta(BLYI_TRACE_META_RANGE, head, sizeof(head), NULL, 0);
        if (status != BLY_OK)
            return status;
        idset_add(&blyi_rec.paths, outermost);
        if (outermost == path)
            break;
    }
    return BLY_OK;
}

/* ── Sites ────────────────────────────────────────────────────────────────────────────────── */

static uint64_t text_hash(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static uint32_t known_module(uint64_t hash, const struct blyi_module *look)
{
    const struct module *module = blyi_map_get(&blyi_rec.modules, hash);
    while (module != NULL &&
           (strcmp(module->path, look->path) != 0 || strcmp(module->build_id, look->build_id) != 0))
        module = module->next;
    return module ? module->id : 0;
}

static uint32_t keep_module(uint64_t hash, const struct blyi_module *look)
{
    struct module *module = blyi_host_calloc(1, sizeof(*module));
    char *path = blyi_host_strdup(look->path);
    if (module == NULL || path == NULL)
        goto fail;
    module->next = blyi_map_get(&blyi_rec.modules, hash);
    module->id = blyi_rec.n_modules + 1;
    module->path = path;
    memcpy(module->build_id, look->build_id, sizeof(module->build_id));
    if (blyi_map_put(&blyi_rec.modules, hash, module) != BLY_OK)
        goto fail;
    return ++blyi_rec.n_modules;

fail:
    blyi_host_free(module);
    blyi_host_free(path);
    return 0;
}

/* *id 0: no host memory to remember it. */
static bly_status module_locked(const struct blyi_module *look, uint64_t pc, uint32_t *id)
{
    uint64_t hash = text_hash(text_hash(0xcbf29ce484222325u, look->path), look->build_id);
    *id = known_module(hash, look);
    if (*id != 0 || (*id = keep_module(hash, look)) == 0)
        return BLY_OK;
    struct {
        uint32_t id, spare;
        uint64_t address;
        char build_id[BLYI_BUILD_ID_TEXT];
    } head = {.id = *id, .address = pc - look->offset};
    size_t length = strlen(look->build_id) + 1;
    memcpy(head.build_id, look->build_id, length);
    return meta(BLYI_TRACE_META_MODULE, &head, 16 + length, look->path, strlen(look->path));
}

static bly_status source_locked(uint32_t site, const struct blyi_source *source);

/* A line of a script: in no module, and what it is called is known at once. */
static bly_status line_locked(uint32_t site, const struct blyi_line *line)
{
    struct {
        uint32_t id, module;
        uint64_t offset;
    } head = {.id = site};
    struct blyi_source source = {(char *)(uintptr_t)line->function, (char *)(uintptr_t)line->file,
                                 line->number};
    bly_status status = meta(BLYI_TRACE_META_SITE, &head, sizeof(head), NULL, 0);
    if (status == BLY_OK)
        status = source_locked(site, &source);
    if (status == BLY_OK)
        idset_add(&blyi_rec.sites, site);
    return status;
}

bly_status blyi_rec_site_locked(uint32_t site)
{
    struct {
        uint32_t id, module;
        uint64_t offset;
    } head = {.id = site};
    struct blyi_module look;
    bly_status status = BLY_OK;
    if (site == 0 || blyi_idset_has(&blyi_rec.sites, site))
        return BLY_OK;
    const struct blyi_line *line = blyi_line_of_site(site);
    if (line != NULL)
        return line_locked(site, line);
    /* The offset is of the byte before: a return address may lie behind the function. */
    uint64_t pc = (uint64_t)(uintptr_t)blyi_site_pc(site) - 1;
    blyi_place_keep(site);
    head.offset = pc;
    if (blyi_place_find(site, &look)) {
        status = module_locked(&look, pc, &head.module);
        if (head.module != 0)
            head.offset = look.offset;
    }
    if (status == BLY_OK)
        status = meta(BLYI_TRACE_META_SITE, &head, sizeof(head), NULL, 0);
    if (status == BLY_OK)
        idset_add(&blyi_rec.sites, site);
    return status;
}

/* ── The end ──────────────────────────────────────────────────────────────────────────────── */

static void free_modules(void)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&blyi_rec.modules, &cursor, &key, &value))
        for (struct module *module = value, *next; module != NULL; module = next) {
            next = module->next;
            blyi_host_free(module->path);
            blyi_host_free(module);
        }
    blyi_map_fini(&blyi_rec.modules);
    blyi_map_init(&blyi_rec.modules);
}

void blyi_rec_names_reset_locked(void)
{
    idset_clear(&blyi_rec.sites);
    idset_clear(&blyi_rec.names);
    idset_clear(&blyi_rec.paths);
    free_modules();
    blyi_rec_stacks_reset_locked();
    blyi_rec.n_modules = 0;
}

static bly_status source_locked(uint32_t site, const struct blyi_source *source)
{
    uint32_t head[2] = {site, source->line};
    size_t function = strlen(source->function) + 1, file = strlen(source->file);
    char *text = blyi_host_alloc(function + file);
    if (text == NULL)
        return BLY_OK; /* the names are a convenience: the site itself is known */
    memcpy(text, source->function, function);
    memcpy(text + function, source->file, file);
    bly_status status = meta(BLYI_TRACE_META_SOURCE, head, sizeof(head), text, function + file);
    blyi_host_free(text);
    return status;
}

void blyi_rec_write_sources(uint32_t gen)
{
    uint32_t n = 0, count = blyi_site_count();
    uint32_t *sites = blyi_host_alloc((count + (size_t)1) * sizeof(*sites));
    struct blyi_source *sources = NULL;
    for (uint32_t site = 1; sites != NULL && site <= count; site++)
        if (blyi_idset_has(&blyi_rec.sites, site) && blyi_line_of_site(site) == NULL)
            sites[n++] = site;
    if (n > 0 && (sources = blyi_host_calloc(n, sizeof(*sources))) != NULL) {
        blyi_symbolise(sites, n, sources);
        blyi_lock_take(&blyi_rec.lock);
        for (uint32_t i = 0; i < n && blyi_rec_is_on(gen); i++) {
            bly_status status = source_locked(sites[i], &sources[i]);
            if (status != BLY_OK)
                blyi_rec_fail_locked(status);
        }
        blyi_lock_drop(&blyi_rec.lock);
        blyi_sources_fini(sources, n);
    }
    blyi_host_free(sources);
    blyi_host_free(sites);
}
