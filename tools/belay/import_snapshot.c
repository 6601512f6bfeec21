/* SPDX-License-Identifier: Apache-2.0
 *
 * import_snapshot.c - PyTorch's memory snapshot: per card a history, which may have lost its
 * beginning, and the segments as they are at the end. What the history does not explain was there
 * before it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "import_snapshot.h"

#define FRAMES_MAX 256
#define TEXT_MAX_  512
#define ALIGN      512u /* of PyTorch's blocks */

static void text_of(struct pickle_value dict, const char *key, char text[TEXT_MAX_])
{
    struct pickle_value value;
    size_t n = 0;
    if (pickle_get(dict, key, &value) && value.kind == PICKLE_TEXT) {
        n = value.length < TEXT_MAX_ - 1 ? value.length : TEXT_MAX_ - 1;
        if (n > 0)
            memcpy(text, value.is.text, n);
    }
    text[n] = '\0';
}

/* ── Frames and streams ───────────────────────────────────────────────────────────────────── */

uint32_t import_stack(struct import_snapshot *im, const struct pickle_box *frames, uint32_t *site)
{
    uint32_t sites[FRAMES_MAX], n = 0;
    char function[TEXT_MAX_], file[TEXT_MAX_];
    uintptr_t known = (uintptr_t)blyi_map_get(&im->stacks, (uintptr_t)frames);
    *site = (uint32_t)(known >> 32);
    if (known != 0)
        return (uint32_t)known;
    for (size_t i = 0; i < frames->n && n < FRAMES_MAX; i++) {
        text_of(frames->items[i], "name", function);
        text_of(frames->items[i], "filename", file);
        uint32_t line = (uint32_t)number(frames->items[i], "line");
        sites[n++] = blyi_tracewriter_source(im->w, function, file, line);
    }
    if (n == 0)
        return 0;
    uint32_t stack = blyi_tracewriter_stack(im->w, sites, n);
    *site = sites[0];
    (void)blyi_map_put(&im->stacks, (uintptr_t)frames,
                       (void *)((uintptr_t)sites[0] << 32 | stack)); /* only saves time */
    return stack;
}

uint32_t import_stream(struct import_snapshot *im, uint64_t handle)
{
    if (handle == 0)
        return 0;
    uintptr_t known = (uintptr_t)blyi_map_get(&im->streams, handle);
    if (known == 0 &&
        blyi_map_put(&im->streams, handle, (void *)(uintptr_t)(im->n_streams + 1)) == BLY_OK)
        known = ++im->n_streams;
    return (uint32_t)known;
}

/* ── The history ──────────────────────────────────────────────────────────────────────────── */

static bool mark_live(struct blyi_map *map, uint64_t key, bool live)
{
    if (key == 0)
        return true;
    if (live)
        return blyi_map_put(map, key, (void *)1) == BLY_OK;
    blyi_map_remove(map, key);
    return true;
}

static uint64_t time_of(struct import_snapshot *im, struct pickle_value entry)
{
    uint64_t us = number(entry, "time_us");
    if (us > UINT64_MAX / 2000)
        us = 0;
    return us > 0 ? us * 1000 : ++im->step * 1000;
}

/* A free whose completion follows at once is one event; else the uses of the block go on. */
static bool is_completed_at_once(const struct import_card *card, uint64_t address)
{
    struct pickle_value action;
    if (card->at >= card->trace->n)
        return false;
    struct pickle_value next = card->trace->items[card->at];
    return pickle_get(next, "action", &action) && pickle_is(action, "free_completed") &&
           number(next, "addr") == address;
}

/* Fills kind and fields by the entry's action; false: nothing to write. */
static bool translate(struct import_snapshot *im, struct import_card *card,
                      struct pickle_value entry, struct blyi_probe *probe, bool *ok)
{
    struct pickle_value action = {0};
    uint64_t address = number(entry, "addr"), size = number(entry, "size");
    (void)pickle_get(entry, "action", &action);
    probe->address = address;
    probe->asked = probe->size = probe->rounded = probe->backed = size;
    if (pickle_is(action, "alloc")) {
        /* The entry tells what was asked. What the block got is told of those that are there at
         * the end; of others the rule is known, but not whether a rest was too small to split. */
        uintptr_t told = (uintptr_t)blyi_map_get(&card->sizes, card->at);
        probe->kind = BLYI_PROBE_ALLOC;
        probe->rounded = probe->backed = told > 0                    ? told
                                         : size > UINT64_MAX - ALIGN ? size
                                                                     : blyi_align_up(size, ALIGN);
        *ok = mark_live(&card->live, address, true);
    } else if (pickle_is(action, "free_requested")) {
        probe->kind = BLYI_PROBE_FREE;
        *ok = mark_live(&card->live, address, false);
        if (is_completed_at_once(card, address)) {
            card->at++;
        } else {
            probe->aux = 1; /* other streams use it until it is completed */
            *ok = *ok && mark_live(&card->pending, address, true);
        }
    } else if (pickle_is(action, "free_completed")) {
        /* Of one that was freed before the history began there is nothing to tell: it was live
         * no more. */
        if (blyi_map_remove(&card->pending, address) != NULL)
            probe->kind = BLYI_PROBE_USE_DONE;
        else if (blyi_map_remove(&card->live, address) != NULL)
            probe->kind = BLYI_PROBE_FREE;
        else
            return false;
    } else if (pickle_is(action, "segment_alloc") || pickle_is(action, "segment_map")) {
        probe->kind = BLYI_PROBE_SEGMENT;
        probe->aux = pickle_is(action, "segment_map"); /* of an expandable one */
        *ok = mark_live(&card->segments, address, true);
    } else if (pickle_is(action, "segment_free") || pickle_is(action, "segment_unmap")) {
        probe->kind = BLYI_PROBE_SEGMENT_FREE;
        probe->aux = pickle_is(action, "segment_unmap");
    } else if (pickle_is(action, "oom")) {
        *probe = (struct blyi_probe){.kind = BLYI_PROBE_ALLOC_FAIL,
                                     .asked = size,
                                     .size = size,
                                     .backed = number(entry, "device_free"),
                                     .aux = BLY_E_NO_MEMORY};
    } else if (pickle_is(action, "snapshot") || pickle_is(action, "workspace_snapshot")) {
        *probe = (struct blyi_probe){.kind = BLYI_PROBE_MARK,
                                     .event = blyi_tracewriter_name(im->w, "snapshot")};
    } else {
        return false; /* of a later version */
    }
    return true;
}

static bool put_entry(struct import_snapshot *im, size_t index)
{
    struct import_card *card = &im->cards[index];
    struct pickle_value entry = card->trace->items[card->at++];
    struct blyi_trace_event event = {.probe.time_ns = time_of(im, entry)};
    uint64_t time = event.probe.time_ns;
    bool ok = true;
    if (!translate(im, card, entry, &event.probe, &ok) ||
        (event.probe.address == 0 && event.probe.kind != BLYI_PROBE_ALLOC_FAIL &&
         event.probe.kind != BLYI_PROBE_MARK))
        return ok;
    event.probe.card = (int32_t)index;
    event.probe.time_ns = im->last_ns = time;
    event.probe.stream = import_stream(im, number(entry, "stream"));
    event.stack = import_stack(im, list_of(entry, "frames"), &event.probe.site);
    blyi_tracewriter_event(im->w, &event);
    return ok;
}

/* Histories are by card; by time they are one. */
static bool put_history(struct import_snapshot *im)
{
    for (;;) {
        size_t next = CARDS_MAX;
        uint64_t earliest = UINT64_MAX;
        for (size_t i = 0; i < im->n_cards; i++) {
            const struct import_card *card = &im->cards[i];
            if (card->at >= card->trace->n)
                continue;
            uint64_t time = number(card->trace->items[card->at], "time_us");
            if (next == CARDS_MAX || time < earliest) {
                earliest = time;
                next = i;
            }
        }
        if (next == CARDS_MAX)
            return true;
        if (!put_entry(im, next))
            return false;
    }
}

/* ── All of it ────────────────────────────────────────────────────────────────────────────── */

/* When the history begins, and which segments it takes itself. */
static bool look_ahead(struct import_snapshot *im)
{
    bool ok = true;
    for (size_t c = 0; c < im->n_cards; c++) {
        uint64_t us =
            im->cards[c].trace->n > 0 ? number(im->cards[c].trace->items[0], "time_us") : 0;
        if (us > 0 && us < UINT64_MAX / 2000 && (im->start_ns == 0 || us * 1000 < im->start_ns))
            im->start_ns = us * 1000;
        for (size_t i = 0; i < im->cards[c].trace->n && ok; i++) {
            struct pickle_value entry = im->cards[c].trace->items[i], action = {0};
            (void)pickle_get(entry, "action", &action);
            if (pickle_is(action, "alloc"))
                ok = blyi_map_put(&im->cards[c].made, number(entry, "addr"), (void *)(i + 1)) ==
                     BLY_OK;
            if (pickle_is(action, "segment_alloc") || pickle_is(action, "segment_map"))
                ok = mark_live(&im->cards[c].segments, number(entry, "addr"), true);
        }
    }
    return ok;
}

static size_t count_cards(struct pickle_value top)
{
    const struct pickle_box *segments = list_of(top, "segments");
    size_t n = list_of(top, "device_traces")->n;
    for (size_t i = 0; i < segments->n; i++) {
        uint64_t device = number(segments->items[i], "device");
        if (device < CARDS_MAX && device >= n)
            n = (size_t)device + 1;
    }
    return n < CARDS_MAX ? n : CARDS_MAX;
}

static bly_status import_top(struct import_snapshot *im, struct pickle_value top)
{
    static const struct pickle_box none;
    struct pickle_value value;
    if (!pickle_get(top, "segments", &value) && !pickle_get(top, "device_traces", &value))
        return blyi_fail(BLY_E_PARSE,
                         "%s: a pickle with neither segments nor device_traces: no memory snapshot",
                         im->name);
    const struct pickle_box *traces = list_of(top, "device_traces");
    im->n_cards = count_cards(top);
    for (size_t i = 0; i < im->n_cards; i++) {
        struct import_card *card = &im->cards[i];
        bool has_trace = i < traces->n && traces->items[i].kind == PICKLE_LIST;
        card->trace = has_trace ? traces->items[i].is.box : &none;
        blyi_map_init(&card->live);
        blyi_map_init(&card->segments);
        blyi_map_init(&card->pending);
        blyi_map_init(&card->made);
        blyi_map_init(&card->sizes);
    }
    bool ok = look_ahead(im) && import_learn_sizes(im, top);
    blyi_tracewriter_set_start(im->w, im->start_ns, im->start_ns);
    if (ok)
        import_put_segments(im, top);
    ok = ok && put_history(im);
    if (ok)
        import_put_blocks(im, top);
    for (size_t i = 0; i < im->n_cards; i++) {
        blyi_map_fini(&im->cards[i].live);
        blyi_map_fini(&im->cards[i].segments);
        blyi_map_fini(&im->cards[i].pending);
        blyi_map_fini(&im->cards[i].made);
        blyi_map_fini(&im->cards[i].sizes);
    }
    return ok ? BLY_OK : blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to read it", im->name);
}

bly_status import_snapshot(const void *bytes, size_t size, const char *name,
                           struct blyi_tracewriter *w)
{
    struct pickle *pickle;
    bly_status status = pickle_read(bytes, size, name, &pickle);
    if (status != BLY_OK)
        return status;
    struct import_snapshot *im = calloc(1, sizeof(*im));
    if (im == NULL) {
        pickle_free(pickle);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to read it", name);
    }
    im->w = w;
    im->name = name;
    blyi_map_init(&im->stacks);
    blyi_map_init(&im->streams);
    status = import_top(im, pickle_top(pickle));
    blyi_map_fini(&im->stacks);
    blyi_map_fini(&im->streams);
    free(im);
    pickle_free(pickle);
    return status;
}
