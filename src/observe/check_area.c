/* SPDX-License-Identifier: Apache-2.0
 *
 * check_area.c - what memory there is, and what there was.
 */
#include "observe/check_inside.h"

#include "base/host.h"
#include "observe/check_leak.h"

static struct blyi_area *area_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_area, node);
}

static void shadow_unref(struct blyi_shadow *shadow)
{
    if (shadow == NULL || --shadow->refs > 0)
        return;
    blyi_shadow_forget(shadow);
    blyi_host_free(shadow);
}

static struct blyi_shadow *shadow_make(const struct blyi_check *check, bool tracks_init)
{
    struct blyi_shadow *shadow = blyi_host_calloc(1, sizeof(*shadow));
    if (shadow != NULL) {
        shadow->refs = 1;
        shadow->tracks_init = tracks_init;
        shadow->unknown = check->unknown;
    }
    return shadow;
}

static struct blyi_area *find_in(const struct blyi_tree *tree, uint64_t address)
{
    struct blyi_area *area = area_of(blyi_tree_floor(tree, address));
    return area != NULL && address - area->node.key < area->reach ? area : NULL;
}

struct blyi_area *blyi_area_find(const struct blyi_check *check, uint64_t address)
{
    struct blyi_area *area = find_in(&check->areas, address);
    return area != NULL ? area : find_in(&check->registered, address);
}

struct blyi_area *blyi_area_at(const struct blyi_check *check, uint64_t address, bool registered)
{
    return area_of(blyi_tree_find(registered ? &check->registered : &check->areas, address, 0));
}

void blyi_area_ref(struct blyi_area *area)
{
    area->refs++;
}

void blyi_area_unref(struct blyi_area *area)
{
    if (--area->refs > 0)
        return;
    shadow_unref(area->shadow);
    blyi_host_free(area);
}

static void remember(struct blyi_check *check, const struct blyi_area *area, uint32_t free_site)
{
    check->was[check->n_was++ % BLYI_WAS_MAX] = (struct blyi_was){.address = area->node.key,
                                                                  .size = area->size,
                                                                  .reach = area->reach,
                                                                  .alloc_site = area->site,
                                                                  .free_site = free_site,
                                                                  .card = area->card,
                                                                  .kind = area->kind};
}

void blyi_area_end(struct blyi_check *check, struct blyi_area *area, uint32_t free_site)
{
    bool registered = area->kind == BLYI_AREA_REGISTERED;
    /* What was registered stays memory of the program. */
    if (!registered)
        remember(check, area, free_site);
    blyi_tree_remove(registered ? &check->registered : &check->areas, &area->node);
    area->is_gone = true;
    blyi_area_unref(area);
}

const struct blyi_was *blyi_was_find(const struct blyi_check *check, uint64_t address)
{
    uint64_t n = check->n_was < BLYI_WAS_MAX ? check->n_was : BLYI_WAS_MAX;
    for (uint64_t i = 1; i <= n; i++) {
        const struct blyi_was *was = &check->was[(check->n_was - i) % BLYI_WAS_MAX];
        if (address - was->address < was->reach)
            return was;
    }
    return NULL;
}

static enum blyi_area_kind kind_of(enum blyi_probe_kind kind)
{
    switch (kind) {
    case BLYI_PROBE_HOST_ALLOC:
        return BLYI_AREA_PINNED;
    case BLYI_PROBE_HOST_REGISTER:
        return BLYI_AREA_REGISTERED;
    case BLYI_PROBE_MAP:
        return BLYI_AREA_MAP;
    case BLYI_PROBE_IMPORT:
        return BLYI_AREA_IMPORT;
    default:
        return BLYI_AREA_BLOCK;
    }
}

/* Memory behind a handle is the same whatever addresses lead to it. */
static struct blyi_shadow *shadow_for(struct blyi_check *check, const struct blyi_probe *probe,
                                      bool before)
{
    if (probe->kind != BLYI_PROBE_MAP)
        return shadow_make(check, probe->kind == BLYI_PROBE_ALLOC && !before);
    struct blyi_handle_memory *handle = blyi_map_get(&check->handles, probe->other);
    if (handle == NULL)
        return shadow_make(check, false);
    handle->shadow->refs++;
    handle->n_maps++;
    return handle->shadow;
}

void blyi_area_made(struct blyi_check *check, const struct blyi_probe *probe, bool before)
{
    bool registered = probe->kind == BLYI_PROBE_HOST_REGISTER;
    struct blyi_area *old = blyi_area_at(check, probe->address, registered);
    if (old != NULL) /* its end is not in the recording */
        blyi_area_end(check, old, 0);
    struct blyi_area *area = blyi_host_calloc(1, sizeof(*area));
    if (area != NULL)
        area->shadow = shadow_for(check, probe, before);
    if (area == NULL || area->shadow == NULL) {
        blyi_host_free(area);
        blyi_check_stop(check);
        return;
    }
    area->shadow->is_shared = area->shadow->is_shared || probe->kind == BLYI_PROBE_IMPORT;
    area->size = probe->asked != 0 ? probe->asked : probe->size;
    area->rounded = probe->rounded > area->size ? probe->rounded : area->size;
    area->reach = probe->backed > area->rounded ? probe->backed : area->rounded;
    area->handle = probe->kind == BLYI_PROBE_MAP ? probe->other : 0;
    area->id = ++check->last_area;
    area->refs = 1;
    area->card = probe->card;
    area->site = probe->site;
    area->kind = (uint8_t)kind_of(probe->kind);
    blyi_tree_insert(registered ? &check->registered : &check->areas, &area->node, probe->address,
                     0);
    if (probe->kind == BLYI_PROBE_ALLOC && probe->stream != 0 && !before)
        blyi_area_born(check, area, probe);
}

void blyi_area_shared(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_handle_memory *handle =
        probe->other != 0 ? blyi_map_get(&check->handles, probe->other) : NULL;
    struct blyi_area *area = probe->other == 0 ? blyi_area_find(check, probe->address) : NULL;
    struct blyi_shadow *shadow = handle != NULL ? handle->shadow : NULL;
    if (area != NULL)
        shadow = area->shadow;
    if (shadow == NULL)
        return;
    shadow->tracks_init = false;
    shadow->is_shared = true;
}

void blyi_area_reached(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_area *area = blyi_area_find(check, probe->address);
    if (area == NULL)
        return;
    if (probe->aux == 0) {
        area->n_users++;
        return;
    }
    area->n_users -= area->n_users > 0; /* freed and made anew by it: 0 */
    area->used_until = ++check->moment;
}

void blyi_handle_made(struct blyi_check *check, const struct blyi_probe *probe)
{
    blyi_handle_ended(check, probe->address, false);
    struct blyi_handle_memory *handle = blyi_host_calloc(1, sizeof(*handle));
    if (handle != NULL) {
        handle->shadow = shadow_make(check, false);
        handle->size = probe->asked != 0 ? probe->asked : probe->size;
        handle->is_import = probe->kind == BLYI_PROBE_IMPORT;
        handle->card = probe->card;
        handle->site = probe->site;
    }
    if (handle != NULL && handle->shadow != NULL)
        handle->shadow->is_shared = handle->is_import;
    if (handle == NULL || handle->shadow == NULL ||
        blyi_map_put(&check->handles, probe->address, handle) != BLY_OK) {
        if (handle != NULL)
            shadow_unref(handle->shadow);
        blyi_host_free(handle);
        blyi_check_stop(check);
    }
}

void blyi_handle_ended(struct blyi_check *check, uint64_t key, bool by_reset)
{
    struct blyi_handle_memory *handle = blyi_map_remove(&check->handles, key);
    if (handle == NULL)
        return;
    if (by_reset)
        blyi_leak_handle(check, handle, true);
    shadow_unref(handle->shadow);
    blyi_host_free(handle);
}

const char *blyi_area_noun(enum blyi_area_kind kind)
{
    switch (kind) {
    case BLYI_AREA_PINNED:
        return "pinned block";
    case BLYI_AREA_REGISTERED:
        return "registered range";
    case BLYI_AREA_MAP:
        return "mapping";
    case BLYI_AREA_IMPORT:
        return "imported block";
    case BLYI_AREA_BLOCK:
        break;
    }
    return "block";
}

static void end_all(struct blyi_tree *tree)
{
    struct blyi_tree_node *node;
    while ((node = blyi_tree_first(tree)) != NULL) {
        blyi_tree_remove(tree, node);
        blyi_area_unref(area_of(node));
    }
}

void blyi_areas_fini(struct blyi_check *check)
{
    end_all(&check->areas);
    end_all(&check->registered);
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&check->handles, &cursor, &key, &value)) {
        struct blyi_handle_memory *handle = value;
        shadow_unref(handle->shadow);
        blyi_host_free(handle);
    }
    blyi_map_fini(&check->handles);
    blyi_host_free(check->was);
}
