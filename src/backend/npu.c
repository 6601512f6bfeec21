/* SPDX-License-Identifier: Apache-2.0
 *
 * npu.c - the software card as a backend: reserved addresses, handles of physical memory, and
 * positions in the rings of streams. Its memory is a pool's, not the program's: probes and figures
 * do not take it for the program's own handles and mappings.
 */
#include <inttypes.h>
#include <stdio.h>
#include "backend/backend.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/site.h"
#include "base/size.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/event.h"
#include "npu/known.h"
#include "npu/mapping.h"
#include "npu/memory.h"
#include "npu/physical.h"
#include "npu/pinned.h"
#include "npu/queue.h"
#include "npu/relief.h"
#include "npu/runtime.h"
#include "npu/shortage.h"
#include "npu/snapshot.h"
#include "npu/vmm.h"

struct npu {
    struct blyi_backend backend;
    struct blyi_card *card;
    uint64_t resets; /* of the card, when it was opened */
};

struct blyi_lane {
    struct blyi_stream *stream; /* one reference */
};

static struct npu *npu_of(struct blyi_backend *backend)
{
    return BLYI_CONTAINER(backend, struct npu, backend);
}

static bool is_alive(const struct npu *npu)
{
    return !blyi_runtime_is_forked() &&
           __atomic_load_n(&npu->card->resets, __ATOMIC_ACQUIRE) == npu->resets;
}

static void describe(struct blyi_backend *backend, struct blyi_backend_info *info)
{
    const struct blyi_card *card = npu_of(backend)->card;
    *info = (struct blyi_backend_info){.name = "npu",
                                       .device = card->id,
                                       .granule = BLYI_GRANULE,
                                       .total = card->total,
                                       .free = blyi_stock_free(card->stock) * BLYI_FRAME_SIZE};
}

static void close_npu(struct blyi_backend *backend)
{
    blyi_host_free(npu_of(backend));
}

static bly_status alive(struct blyi_backend *backend)
{
    const struct npu *npu = npu_of(backend);
    bly_status status = blyi_runtime_check();
    if (status != BLY_OK || likely(is_alive(npu)))
        return status;
    return blyi_fail(BLY_E_STATE, "card %d was reset: all memory on it was freed", npu->card->id);
}

static bool may_change(struct blyi_backend *backend)
{
    (void)backend;
    return blyi_snapshot_passes();
}

static bly_status pass(struct blyi_backend *backend)
{
    (void)backend;
    return blyi_snapshot_pass();
}

static bly_status create(struct blyi_backend *backend, uint64_t size, uint64_t *handle)
{
    struct blyi_physical_request request = {
        .card = npu_of(backend)->card, .size = size, .page_kind = BLYI_PAGE_HUGE, .of_pool = true};
    void *made;
    bly_status status = alive(backend);
    blyi_snapshot_begun(true);
    if (status == BLY_OK)
        status = blyi_physical_create(&request, &made);
    blyi_snapshot_begun(false);
    if (status == BLY_OK)
        *handle = (uintptr_t)made;
    return status;
}

/* For what cannot fail unless the card's memory went away meanwhile. */
static void expect(const struct npu *npu, bly_status status)
{
    bly_check_msg(status == BLY_OK || !is_alive(npu), "%s", blyi_fail_text());
    if (status != BLY_OK)
        blyi_fail_clear();
}

static void release(struct blyi_backend *backend, uint64_t handle)
{
    struct npu *npu = npu_of(backend);
    if (is_alive(npu))
        expect(npu, blyi_physical_release_pooled((void *)(uintptr_t)handle));
}

/* Whether a cap is in the way of so much more. */
static bool is_capped(uint64_t bytes)
{
    struct blyi_cap_view view;
    blyi_cap_view(bytes, &view);
    return view.cap != 0 && (view.used > view.cap || view.cap - view.used < bytes);
}

static uint64_t relieve(struct blyi_backend *backend, uint64_t bytes)
{
    struct blyi_card *card = npu_of(backend)->card;
    struct blyi_relief relief = {0};
    uint64_t before = blyi_stock_free(card->stock);
    bool capped = is_capped(bytes);
    while (!relief.over && (capped || blyi_stock_free(card->stock) * BLYI_FRAME_SIZE < bytes)) {
        blyi_relief_seek(&relief, card, bytes, capped);
        capped = is_capped(bytes);
    }
    uint64_t after = blyi_stock_free(card->stock);
    return after > before ? (after - before) * BLYI_FRAME_SIZE : 0;
}

/* Of caps the one that is in the way. */
static void append_cap(const struct blyi_card *card, uint64_t size)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    char e[BLYI_SIZE_TEXT];
    struct blyi_cap_view view;
    blyi_cap_view(size, &view);
    uint64_t left = view.cap > view.used ? view.cap - view.used : 0;
    if (view.cap == 0 || left >= size)
        return;
    blyi_fail_append("; the cap BELAY_CAP is in the way, not the card: cap %s, used %s of which %s "
                     "are the runtime's overhead, left %s, short by %s",
                     blyi_size_text(view.cap, a), blyi_size_text(view.used, b),
                     blyi_size_text(card->overhead, c), blyi_size_text(left, d),
                     blyi_size_text(size - left, e));
}

static void shortage(struct blyi_backend *backend, uint64_t size)
{
    struct blyi_card *card = npu_of(backend)->card;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    blyi_fail_append("; card %d: %s free of %s", card->id,
                     blyi_size_text(blyi_stock_free(card->stock) * BLYI_FRAME_SIZE, a),
                     blyi_size_text(card->total, b));
    append_cap(card, size);
    blyi_shortage_append_others(card);
}

static bly_status reserve(struct blyi_backend *backend, uint64_t size, uintptr_t *address)
{
    bly_status status = alive(backend);
    blyi_snapshot_begun(true);
    if (status == BLY_OK)
        status = blyi_vmm_reserve(size, 0, BLYI_RESERVE_POOL, 0, address);
    blyi_snapshot_begun(false);
    return status;
}

static void unreserve(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct npu *npu = npu_of(backend);
    struct blyi_reservation_info info;
    (void)size;
    if (blyi_runtime_is_forked() || !blyi_vmm_find(address, &info)) /* finalised meanwhile */
        return;
    blyi_snapshot_begun(true);
    expect(npu, blyi_vmm_release(address, 0));
    blyi_snapshot_begun(false);
}

static bly_status map(struct blyi_backend *backend, uintptr_t address, uint64_t size,
                      uint64_t handle)
{
    bly_status status = alive(backend);
    if (status != BLY_OK)
        return status;
    blyi_snapshot_begun(true);
    status = blyi_mapping_make(address, size, 0, (void *)(uintptr_t)handle, true, 0);
    blyi_snapshot_begun(false);
    return status;
}

static void unmap(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct npu *npu = npu_of(backend);
    (void)size;
    blyi_snapshot_begun(true);
    if (is_alive(npu))
        expect(npu, blyi_mapping_remove(address, 0));
    blyi_snapshot_begun(false);
}

static bly_status hold(struct blyi_backend *backend, void *handle, struct blyi_lane **out)
{
    struct blyi_stream *stream;
    (void)backend;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_lane *lane = blyi_host_alloc(sizeof *lane);
    if (lane != NULL) {
        blyi_queue_ref(stream);
        lane->stream = stream;
        *out = lane;
    }
    blyi_stream_unpin(stream);
    return lane != NULL ? BLY_OK
                        : blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a stream");
}

static void let_go(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    if (!blyi_runtime_is_forked()) /* the memory of its ring is the parent's */
        blyi_queue_unref(lane->stream);
    blyi_host_free(lane);
}

static const blyi_mark *marks(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    return &lane->stream->issued;
}

static bool passed(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at)
{
    (void)backend;
    return at == 0 || blyi_queue_passed(lane->stream, at - 1) || blyi_runtime_is_forked();
}

static bly_status wait_mark(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                            uint64_t limit_ns)
{
    const struct blyi_stream *stream = lane->stream;
    if (passed(backend, lane, at))
        return BLY_OK;
    bly_status status = blyi_queue_await_real(lane->stream, at, limit_ns);
    if (status == BLY_E_TIMEOUT)
        return blyi_fail(status, "stream %" PRIu32 ": work has not ended within %" PRIu64 " ms",
                         stream->id, limit_ns / 1000000);
    if (status == BLY_E_STATE)
        return blyi_fail(status, "stream %" PRIu32 " waits for user code that the thread runs",
                         stream->id);
    return status;
}

/* An event recorded now is behind the mark too. */
static bly_status order(struct blyi_backend *backend, struct blyi_lane *lane,
                        struct blyi_lane *other, blyi_mark at)
{
    void *event;
    if (lane == other || passed(backend, other, at))
        return BLY_OK;
    if (blyi_queue_is_diverted(lane->stream) || blyi_queue_is_diverted(other->stream))
        return blyi_fail(BLY_E_CAPTURING, "stream %" PRIu32 " or %" PRIu32 " is captured",
                         lane->stream->id, other->stream->id);
    bly_status status = blyi_event_create(BLYI_EVENT_SYNC, true, 0, &event);
    if (status != BLY_OK)
        return status;
    status = blyi_event_record(event, other->stream->handle, 0);
    if (status == BLY_OK)
        status = blyi_event_wait(event, lane->stream->handle, 0, 0);
    (void)blyi_event_destroy(event);
    return status;
}

static bool knows(struct blyi_backend *backend, struct blyi_lane *lane, struct blyi_lane *other,
                  blyi_mark at)
{
    blyi_known_want(); /* of waits from now on */
    return lane == other || passed(backend, other, at) ||
           blyi_known_has(lane->stream, other->stream->id, at - 1);
}

static void awaited(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at, char *text,
                    size_t size)
{
    char site[BLYI_SITE_TEXT];
    uint32_t made = blyi_queue_site(lane->stream, at - 1);
    (void)backend;
    if (made != 0)
        snprintf(text, size, "task %" PRIu64 " (queued at %s)", at, blyi_site_text(made, site));
    else
        snprintf(text, size, "task %" PRIu64, at);
}

static uint32_t number(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    return lane->stream->id;
}

static bool ended(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    return (blyi_queue_control(lane->stream) & BLYI_CONTROL_DEAD) != 0;
}

static void cells(struct blyi_backend *backend, struct blyi_cells *out)
{
    blyi_pools_cells(npu_of(backend)->card->id, &out->held, &out->idle, &out->spare);
}

static bly_status pin(struct blyi_backend *backend, uint64_t size, void **address)
{
    uintptr_t at;
    bly_status status = alive(backend);
    if (status == BLY_OK)
        status = blyi_pinned_alloc(size, size, 0, BLYI_MODULE_APPLICATION, (void **)&at);
    if (status == BLY_OK)
        *address = (void *)at;
    return status;
}

static void unpin(struct blyi_backend *backend, void *address, uint64_t size)
{
    (void)size;
    if (!blyi_runtime_is_forked())
        expect(npu_of(backend), blyi_pinned_free(address, 0));
}

static const struct blyi_backend_ops npu_ops = {
    .describe = describe,
    .close = close_npu,
    .alive = alive,
    .may_change = may_change,
    .pass = pass,
    .create = create,
    .release = release,
    .relieve = relieve,
    .shortage = shortage,
    .reserve = reserve,
    .unreserve = unreserve,
    .map = map,
    .unmap = unmap,
    .hold = hold,
    .let_go = let_go,
    .marks = marks,
    .passed = passed,
    .wait = wait_mark,
    .order = order,
    .awaited = awaited,
    .knows = knows,
    .number = number,
    .ended = ended,
    .cells = cells,
    .pin = pin,
    .unpin = unpin,
};

bly_status blyi_backend_npu(int device, struct blyi_backend **out)
{
    struct blyi_card *card;
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK && device < 0)
        status = blyi_device_get(&device);
    if (status == BLY_OK)
        status = blyi_card_open(device, &card);
    if (status != BLY_OK)
        return status;
    struct npu *npu = blyi_host_calloc(1, sizeof *npu);
    if (npu == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a card");
    npu->backend.ops = &npu_ops;
    npu->backend.still = &blyi_snapshot_now;
    npu->card = card;
    npu->resets = __atomic_load_n(&card->resets, __ATOMIC_ACQUIRE);
    *out = &npu->backend;
    return BLY_OK;
}
