/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_label.c - see insight_label.h. All labels are made at once; looking one up cannot fail.
 */
#include "observe/insight_label.h"

#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/map.h"
#include "observe/insight_frame.h"

#define UNKNOWN "site unknown"
#define BEFORE  "made before recording, site unknown"

struct blyi_labels {
    const struct blyi_history *history;
    char **texts;
    size_t n, room;
    struct blyi_map by_hash; /* of the text -> label + 1 */
    struct blyi_map sites;   /* site and stack -> label + 1 */
    struct blyi_map names;   /* name -> label + 1 */
    struct blyi_map ranges;  /* range -> label + 1 */
    uint32_t unknown, before, no_range;
    uint32_t *of_life[BLYI_LABEL_BYS]; /* asked for again and again */
    bool ok;
};

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static uint32_t intern(struct blyi_labels *labels, const char *text)
{
    uint64_t hash = hash_of(text);
    uintptr_t known;
    while ((known = (uintptr_t)blyi_map_get(&labels->by_hash, hash)) != 0) {
        if (strcmp(labels->texts[known - 1], text) == 0)
            return (uint32_t)known - 1;
        hash++;
    }
    if (labels->n == labels->room) {
        size_t room = 2 * labels->room + 64;
        char **bigger = blyi_host_realloc(labels->texts, room * sizeof(*bigger));
        if (bigger == NULL) {
            labels->ok = false;
            return 0;
        }
        labels->texts = bigger;
        labels->room = room;
    }
    char *copy = blyi_host_strdup(text);
    if (copy == NULL || blyi_map_put(&labels->by_hash, hash, (void *)(labels->n + 1)) != BLY_OK) {
        blyi_host_free(copy);
        labels->ok = false;
        return 0;
    }
    labels->texts[labels->n] = copy;
    return (uint32_t)labels->n++;
}

static uint64_t site_key(uint32_t site, uint32_t stack)
{
    return (uint64_t)stack << 32 | site;
}

static void learn_site(struct blyi_labels *labels, uint32_t site, uint32_t stack)
{
    char text[BLYI_TRACE_SITE_TEXT];
    const struct blyi_trace *trace = labels->history->trace;
    if (site == 0 || blyi_map_get(&labels->sites, site_key(site, stack)) != NULL)
        return;
    uint32_t label =
        intern(labels, blyi_frame_text(trace, blyi_frame_telling(trace, site, stack), text));
    if (blyi_map_put(&labels->sites, site_key(site, stack), (void *)((uintptr_t)label + 1)) !=
        BLY_OK)
        labels->ok = false;
}

static void learn_name(struct blyi_labels *labels, uint32_t name)
{
    const char *text = blyi_trace_name(labels->history->trace, name);
    if (name == 0 || text[0] == '\0' || blyi_map_get(&labels->names, name) != NULL)
        return;
    if (blyi_map_put(&labels->names, name, (void *)((uintptr_t)intern(labels, text) + 1)) != BLY_OK)
        labels->ok = false;
}

static void learn_range(struct blyi_labels *labels, uint32_t range)
{
    char text[BLYI_TRACE_RANGE_TEXT];
    if (range == 0 || blyi_map_get(&labels->ranges, range) != NULL)
        return;
    uint32_t label = intern(labels, blyi_trace_range_text(labels->history->trace, range, text));
    if (blyi_map_put(&labels->ranges, range, (void *)((uintptr_t)label + 1)) != BLY_OK)
        labels->ok = false;
}

static bool find(const struct blyi_map *map, uint64_t key, uint32_t *label)
{
    uintptr_t known = key != 0 ? (uintptr_t)blyi_map_get(map, key) : 0;
    *label = (uint32_t)known - 1;
    return known != 0;
}

uint32_t blyi_label_of_site(const struct blyi_labels *labels, uint32_t site, uint32_t stack)
{
    uint32_t label;
    if (site != 0 && find(&labels->sites, site_key(site, stack), &label))
        return label;
    return labels->unknown;
}

static uint32_t site_of(const struct blyi_labels *labels, const struct blyi_life *life)
{
    uint32_t label = blyi_label_of_site(labels, life->site, life->stack);
    if (label != labels->unknown)
        return label;
    if (life->before)
        return labels->before;
    return find(&labels->names, life->name, &label) ? label : labels->unknown;
}

static uint32_t find_label(const struct blyi_labels *labels, const struct blyi_life *life,
                           enum blyi_label_by by)
{
    uint32_t label;
    if (by == BLYI_BY_RANGE)
        return find(&labels->ranges, life->range, &label) ? label : labels->no_range;
    if (by == BLYI_BY_NAME &&
        (find(&labels->names, life->tag, &label) || find(&labels->names, life->name, &label) ||
         find(&labels->ranges, life->range, &label)))
        return label;
    return site_of(labels, life);
}

static void find_all(struct blyi_labels *labels)
{
    const struct blyi_history *h = labels->history;
    for (int by = 0; by < BLYI_LABEL_BYS && labels->ok; by++) {
        labels->of_life[by] = blyi_host_alloc((h->n_lives + 1) * sizeof(uint32_t));
        labels->ok = labels->of_life[by] != NULL;
        for (size_t i = 0; labels->ok && i < h->n_lives; i++)
            labels->of_life[by][i] = find_label(labels, &h->lives[i], (enum blyi_label_by)by);
    }
}

static void learn_all(struct blyi_labels *labels)
{
    const struct blyi_history *h = labels->history;
    labels->unknown = intern(labels, UNKNOWN);
    labels->before = intern(labels, BEFORE);
    labels->no_range = intern(labels, "no range");
    for (size_t i = 0; i < h->n_lives && labels->ok; i++) {
        learn_site(labels, h->lives[i].site, h->lives[i].stack);
        learn_name(labels, h->lives[i].name);
        learn_name(labels, h->lives[i].tag);
        learn_range(labels, h->lives[i].range);
    }
    for (size_t i = 0; i < h->n_refusals && labels->ok; i++)
        learn_site(labels, h->refusals[i].site, h->refusals[i].stack);
    for (size_t i = 0; i < h->n_things && labels->ok; i++)
        learn_site(labels, h->things[i].site, 0);
}

bly_status blyi_labels_make(const struct blyi_history *history, struct blyi_labels **out)
{
    struct blyi_labels *labels = blyi_host_calloc(1, sizeof(*labels));
    if (labels != NULL) {
        labels->history = history;
        labels->ok = true;
        blyi_map_init(&labels->by_hash);
        blyi_map_init(&labels->sites);
        blyi_map_init(&labels->names);
        blyi_map_init(&labels->ranges);
        learn_all(labels);
        find_all(labels);
    }
    if (labels == NULL || !labels->ok) {
        blyi_labels_free(labels);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for the names in it",
                         blyi_trace_info(history->trace)->name);
    }
    *out = labels;
    return BLY_OK;
}

void blyi_labels_free(struct blyi_labels *labels)
{
    if (labels == NULL)
        return;
    for (size_t i = 0; i < labels->n; i++)
        blyi_host_free(labels->texts[i]);
    blyi_host_free(labels->texts);
    for (int by = 0; by < BLYI_LABEL_BYS; by++)
        blyi_host_free(labels->of_life[by]);
    blyi_map_fini(&labels->by_hash);
    blyi_map_fini(&labels->sites);
    blyi_map_fini(&labels->names);
    blyi_map_fini(&labels->ranges);
    blyi_host_free(labels);
}

uint32_t blyi_label_of(const struct blyi_labels *labels, const struct blyi_life *life,
                       enum blyi_label_by by)
{
    return labels->of_life[by][life - labels->history->lives];
}

const char *blyi_label_text(const struct blyi_labels *labels, uint32_t label)
{
    return label < labels->n ? labels->texts[label] : UNKNOWN;
}

size_t blyi_labels_count(const struct blyi_labels *labels)
{
    return labels->n;
}
