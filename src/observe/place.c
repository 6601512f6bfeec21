/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - a record for each site, a record for each file. Neither is ever given back.
 */
#include "observe/place.h"

#include <string.h>
#include "base/frame.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/site.h"

struct image {
    struct image *next;
    char build_id[BLYI_BUILD_ID_TEXT];
    char path[];
};

struct place {
    const struct image *image;
    uint64_t offset;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_SITE); /* guards all below */
static struct blyi_map places;                                 /* site -> struct place */
static struct image *images;

/* A return address may lie behind the call's line, even behind the function. Lines of a script lie
 * in no module. */
static bool look_up(uint32_t site, struct blyi_module *out)
{
    const char *pc = blyi_site_pc(site);
    return pc != NULL && blyi_line_of_site(site) == NULL && blyi_module_find(pc - 1, out);
}

static const struct image *image_locked(const struct blyi_module *module)
{
    for (const struct image *image = images; image != NULL; image = image->next)
        if (strcmp(image->path, module->path) == 0 &&
            strcmp(image->build_id, module->build_id) == 0)
            return image;
    size_t size = strlen(module->path) + 1;
    struct image *image = blyi_host_alloc(sizeof(*image) + size);
    if (image == NULL)
        return NULL;
    memcpy(image->path, module->path, size);
    memcpy(image->build_id, module->build_id, sizeof(image->build_id));
    image->next = images;
    images = image;
    return image;
}

static void keep_locked(uint32_t site, const struct blyi_module *module)
{
    const struct image *image = image_locked(module);
    struct place *place = image ? blyi_host_alloc(sizeof(*place)) : NULL;
    if (place == NULL)
        return;
    *place = (struct place){.image = image, .offset = module->offset};
    if (blyi_map_get(&places, site) != NULL || blyi_map_put(&places, site, place) != BLY_OK)
        blyi_host_free(place);
}

static const struct place *get(uint32_t site)
{
    blyi_lock_take(&lock);
    const struct place *place = blyi_map_get(&places, site);
    blyi_lock_drop(&lock);
    return place;
}

void blyi_place_keep(uint32_t site)
{
    struct blyi_module module;
    if (site == 0 || get(site) != NULL || !look_up(site, &module))
        return;
    blyi_lock_take(&lock);
    keep_locked(site, &module);
    blyi_lock_drop(&lock);
}

bool blyi_place_find(uint32_t site, struct blyi_module *out)
{
    const struct place *place = get(site);
    if (place == NULL)
        return look_up(site, out);
    size_t size = strlen(place->image->path) + 1; /* it was of a PATH_MAX, too */
    memcpy(out->path, place->image->path, size);
    memcpy(out->build_id, place->image->build_id, sizeof(out->build_id));
    out->offset = place->offset;
    return true;
}
