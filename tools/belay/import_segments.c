/* SPDX-License-Identifier: Apache-2.0
 *
 * import_segments.c - the segments of a snapshot: the state at the end of its history.
 */
#include "import_snapshot.h"

/* ── The state at the end ─────────────────────────────────────────────────────────────────── */

/* Who made a block. PyTorch 2.0 wrote it into the newest entry of a history of the block's own. */
static struct pickle_value maker_of(struct pickle_value block)
{
    const struct pickle_box *history = list_of(block, "history");
    return history->n > 0 && list_of(block, "frames")->n == 0 ? history->items[0] : block;
}

static void put_block(struct import_snapshot *im, struct import_card *card, uint8_t index,
                      struct pickle_value block, uint64_t address, uint32_t stream)
{
    struct pickle_value state = {0};
    uint64_t size = number(block, "size"), asked = number(block, "requested_size");
    if (asked == 0)
        asked = number(maker_of(block), "real_size");
    (void)pickle_get(block, "state", &state);
    bool waits = pickle_is(state, "active_pending_free");
    if ((!waits && !pickle_is(state, "active_allocated")) || address == 0 ||
        blyi_map_get(&card->live, address) != NULL ||
        (waits && blyi_map_get(&card->pending, address) != NULL))
        return;
    struct blyi_trace_block told = {.address = address,
                                    .asked = asked > 0 ? asked : size,
                                    .rounded = size,
                                    .backed = size,
                                    .stream = stream,
                                    .card = index,
                                    .flags = BLYI_TRACE_BEFORE};
    told.stack = import_stack(im, list_of(maker_of(block), "frames"), &told.site);
    blyi_tracewriter_block(im->w, &told);
    if (!waits)
        return;
    struct blyi_trace_event freed = {.probe = {.kind = BLYI_PROBE_FREE,
                                               .card = index,
                                               .address = address,
                                               .asked = told.asked,
                                               .size = told.asked,
                                               .rounded = size,
                                               .backed = size,
                                               .stream = stream,
                                               .aux = 1,
                                               .time_ns = im->last_ns}};
    blyi_tracewriter_event(im->w, &freed);
}

/* The size of a block that is there at the end belongs to the last entry that made it. */
static bool learn_size(struct import_card *card, struct pickle_value block, uint64_t address)
{
    struct pickle_value state = {0};
    uintptr_t made = (uintptr_t)blyi_map_get(&card->made, address);
    uint64_t size = number(block, "size");
    (void)pickle_get(block, "state", &state);
    if (made == 0 || size == 0 || pickle_is(state, "inactive"))
        return true;
    return blyi_map_put(&card->sizes, made, (void *)(uintptr_t)size) == BLY_OK;
}

bool import_learn_sizes(struct import_snapshot *im, struct pickle_value top)
{
    const struct pickle_box *segments = list_of(top, "segments");
    bool ok = true;
    for (size_t i = 0; i < segments->n; i++) {
        struct pickle_value segment = segments->items[i];
        const struct pickle_box *blocks = list_of(segment, "blocks");
        uint64_t index = number(segment, "device"), address = number(segment, "address");
        for (size_t k = 0; index < im->n_cards && ok && k < blocks->n; k++) {
            uint64_t own = number(blocks->items[k], "address");
            ok = learn_size(&im->cards[index], blocks->items[k], own ? own : address);
            address += number(blocks->items[k], "size");
        }
    }
    return ok;
}

static void put_segment(struct import_snapshot *im, struct pickle_value segment)
{
    uint64_t index = number(segment, "device"), address = number(segment, "address");
    if (index >= im->n_cards || address == 0 ||
        blyi_map_get(&im->cards[index].segments, address) != NULL)
        return;
    struct pickle_value expandable = {0};
    (void)pickle_get(segment, "is_expandable", &expandable);
    struct blyi_trace_event event = {
        .probe = {.kind = BLYI_PROBE_SEGMENT,
                  .aux = expandable.kind == PICKLE_BOOL && expandable.is.integer != 0,
                  .card = (int32_t)index,
                  .address = address,
                  .asked = number(segment, "total_size"),
                  .size = number(segment, "total_size"),
                  .stream = import_stream(im, number(segment, "stream")),
                  .time_ns = im->start_ns}};
    blyi_tracewriter_event(im->w, &event);
}

void import_put_segments(struct import_snapshot *im, struct pickle_value top)
{
    const struct pickle_box *segments = list_of(top, "segments");
    for (size_t i = 0; i < segments->n; i++)
        put_segment(im, segments->items[i]);
}

static void put_blocks(struct import_snapshot *im, struct pickle_value segment)
{
    uint64_t index = number(segment, "device"), address = number(segment, "address");
    const struct pickle_box *blocks = list_of(segment, "blocks");
    if (index >= im->n_cards)
        return;
    uint32_t stream = import_stream(im, number(segment, "stream"));
    for (size_t i = 0; i < blocks->n; i++) {
        uint64_t own = number(blocks->items[i], "address");
        put_block(im, &im->cards[index], (uint8_t)index, blocks->items[i], own ? own : address,
                  stream);
        address += number(blocks->items[i], "size");
    }
}

void import_put_blocks(struct import_snapshot *im, struct pickle_value top)
{
    const struct pickle_box *segments = list_of(top, "segments");
    for (size_t i = 0; i < segments->n; i++)
        put_blocks(im, segments->items[i]);
}
