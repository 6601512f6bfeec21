/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.c - copies and sets: what they may touch, when, and in which thread.
 */
#include "npu/copy.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/site.h"
#include "base/size.h"
#include "base/stat.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/copy_inside.h"
#include "npu/fault.h"
#include "npu/freed.h"
#include "npu/gate.h"
#include "npu/graph_inside.h"
#include "npu/guard.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/told.h"

/* What runs guarded. */
struct move {
    void *dst;
    const void *src; /* of a copy */
    uint64_t size;
    bool is_set;
    uint8_t value;
};

static void run_move(void *arg)
{
    const struct move *move = arg;
    if (move->is_set)
        blyi_set_bytes(move->dst, move->value, move->size);
    else
        blyi_copy_bytes(move->dst, move->src, move->size);
}

/* False, with *address the place, when host memory is not there. */
static bool try_move(struct move *move, uintptr_t *address)
{
    const struct blyi_fault_range ranges[2] = {
        {(uintptr_t)move->dst, move->size}, {(uintptr_t)move->src, move->is_set ? 0 : move->size}};
    uint32_t rights = blyi_guard_enter();
    bool done = blyi_fault_try(run_move, move, ranges, address);
    blyi_guard_leave(rights);
    return done;
}

/* Through the second mapping of a card, where frames that are neighbours for the program need not
 * be: in pieces that lie in a row on both sides. */
static bool try_pieces(const struct move *move, uintptr_t *address)
{
    for (uint64_t done = 0; done < move->size;) {
        struct move piece = {
            .size = move->size - done, .is_set = move->is_set, .value = move->value};
        char *dst = (char *)move->dst + done;
        const char *src = (const char *)move->src + done;
        void *from;
        *address = (uintptr_t)dst;
        piece.size = blyi_guard_way(dst, piece.size, &piece.dst);
        if (!move->is_set && piece.size > 0) {
            *address = (uintptr_t)src;
            piece.size = blyi_guard_way(src, piece.size, &from);
            piece.src = from;
        }
        if (piece.size == 0 || !try_move(&piece, address))
            return false;
        done += piece.size;
    }
    return true;
}

static bool do_move(struct move *move, uintptr_t *address)
{
    return unlikely(blyi_guard.has_alias) ? try_pieces(move, address) : try_move(move, address);
}

/* No process has memory from here on (x86-64, aarch64): what reaches so far is refused as a whole,
 * before its beginning is overwritten. */
#define ADDRESS_END ((uint64_t)1 << 48)

/* A range of a card must be live there; host memory is found out by touching it. */
static bly_status check_range(const void *address, uint64_t size, enum blyi_access access,
                              int accessor)
{
    if (unlikely(size >= ADDRESS_END || (uintptr_t)address > ADDRESS_END - size))
        return blyi_fail(BLY_E_FAULT, "%" PRIu64 " bytes from %p go beyond the end of memory", size,
                         address);
    return blyi_mem_use_by(address, size, access, accessor);
}

/* Whose rights a copy needs: those of the card that makes it (`issuer`; -1: of the thread's
 * context) when the memory of two cards is involved, else of the memory's own (-1). */
static int accessor_of(const void *dst, const void *src, int issuer)
{
    int to = -1, from = -1;
    if (blyi_place_of(dst, &to) != BLYI_PLACE_CARD ||
        blyi_place_of(src, &from) != BLYI_PLACE_CARD || to == from || to < 0 || from < 0)
        return -1;
    if (issuer < 0 && blyi_device_get(&issuer) != BLY_OK) {
        blyi_fail_clear();
        return to;
    }
    return issuer;
}

/* Of freed pinned memory: what it was. */
static void append_freed(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], when[BLYI_FREED_TEXT], site[BLYI_SITE_TEXT];
    struct blyi_freed_block was;
    if (blyi_pinned_freed(address, &was))
        blyi_fail_append("; freed %s: block 0x%" PRIxPTR " of %s made at %s",
                         blyi_freed_when(&was, when), was.address, blyi_size_text(was.asked, size),
                         blyi_site_text(was.alloc_site, site));
}

static bly_status moved(const struct move *move, bool done, uintptr_t address)
{
    if (likely(done))
        return BLY_OK;
    bool in_dst = address - (uintptr_t)move->dst < move->size;
    /* Freed or unmapped meanwhile: the check says what it was. */
    bly_status status = blyi_mem_recheck((void *)address, in_dst ? BLYI_WRITE : BLYI_READ);
    if (status != BLY_OK)
        return status;
    if (blyi_place_of((void *)address, NULL) == BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_FAULT,
                         "%s of %" PRIu64 " bytes to %p: the card's memory at 0x%" PRIxPTR
                         " was taken away and given out again while the work ran",
                         move->src != NULL ? "copy" : "set", move->size, move->dst, address);
    const struct blyi_window *window = blyi_window_find(address);
    bool is_pinned = window && window->owner == BLYI_WINDOW_PINNED;
    status =
        blyi_fail(BLY_E_FAULT,
                  "%s of %" PRIu64 " bytes to %p: %shost memory at 0x%" PRIxPTR
                  " cannot be %s, %" PRIu64 " bytes from its start",
                  move->is_set ? "set" : "copy", move->size, move->dst, is_pinned ? "pinned " : "",
                  address, in_dst ? "written" : "read",
                  (uint64_t)(address - (in_dst ? (uintptr_t)move->dst : (uintptr_t)move->src)));
    if (is_pinned)
        append_freed(address);
    return status;
}

static bly_status move_checked(struct move *move, int accessor)
{
    uintptr_t address = 0;
    bool done = false;
    uint32_t gate = blyi_gate_enter(); /* no frame moves from the check to the last byte */
    bly_status status =
        move->is_set ? BLY_OK : check_range(move->src, move->size, BLYI_READ, accessor);
    if (status == BLY_OK)
        status = check_range(move->dst, move->size, BLYI_WRITE, accessor);
    if (status == BLY_OK)
        done = do_move(move, &address);
    blyi_gate_leave(gate);
    return status == BLY_OK ? moved(move, done, address) : status;
}

bly_status blyi_copy_range(void *dst, const void *src, uint64_t size, int issuer)
{
    struct move move = {.dst = dst, .src = src, .size = size};
    bly_status status = move_checked(&move, accessor_of(dst, src, issuer));
    if (status == BLY_OK)
        blyi_stat_add(BLYI_STAT_copy_bytes, size);
    return status;
}

static bly_status set_range(void *dst, uint8_t value, uint64_t size)
{
    struct move move = {.dst = dst, .size = size, .is_set = true, .value = value};
    bly_status status = move_checked(&move, -1);
    if (status == BLY_OK)
        blyi_stat_add(BLYI_STAT_set_bytes, size);
    return status;
}

/* Bytes from the first of the first row to the last of the last; false: beyond 2^64. */
static bool span_of(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span)
{
    return !__builtin_mul_overflow(pitch, height - 1, span) &&
           !__builtin_add_overflow(*span, width, span);
}

static bly_status copy_rows(void *dst, uint64_t dpitch, const void *src, uint64_t spitch,
                            uint64_t width, uint64_t height, int issuer)
{
    int accessor = accessor_of(dst, src, issuer);
    uint64_t dspan, sspan;
    if (!span_of(dpitch, width, height, &dspan) || !span_of(spitch, width, height, &sspan))
        return blyi_fail(BLY_E_FAULT,
                         "%" PRIu64 " rows of pitch %" PRIu64 " and %" PRIu64
                         " go beyond the end of memory",
                         height, dpitch, spitch);
    /* All rows are checked before the first is written: a refused copy changes nothing. */
    for (uint64_t row = 0; row < height; row++) {
        bly_status status =
            check_range((const char *)src + row * spitch, width, BLYI_READ, accessor);
        if (status == BLY_OK)
            status = check_range((char *)dst + row * dpitch, width, BLYI_WRITE, accessor);
        if (status != BLY_OK)
            return status;
    }
    for (uint64_t row = 0; row < height; row++) {
        bly_status status = blyi_copy_range((char *)dst + row * dpitch,
                                            (const char *)src + row * spitch, width, issuer);
        if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}

static bly_status copy_at_once(void *dst, const void *src, uint64_t size, uint32_t site)
{
    blyi_copy_tell(NULL, dst, src, size, site);
    blyi_stat_add(BLYI_STAT_tasks_inline, 1);
    return blyi_copy_range(dst, src, size, -1);
}

static bly_status set_at_once(void *dst, uint8_t value, uint64_t size, uint32_t site)
{
    blyi_set_tell(NULL, dst, size, site);
    blyi_stat_add(BLYI_STAT_tasks_inline, 1);
    return set_range(dst, value, size);
}

bly_status blyi_copy_now(void *dst, const void *src, uint64_t size)
{
    return blyi_copy_now_at(dst, src, size, 0);
}

bly_status blyi_set_now(void *dst, uint8_t value, uint64_t size)
{
    return blyi_set_now_at(dst, value, size, 0);
}

bly_status blyi_copy_now_at(void *dst, const void *src, uint64_t size, uint32_t site)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK || size == 0 || dst == src)
        return status;
    status = blyi_capture_allows_now();
    return likely(status == BLY_OK) ? copy_at_once(dst, src, size, site) : status;
}

bly_status blyi_set_now_at(void *dst, uint8_t value, uint64_t size, uint32_t site)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK || size == 0)
        return status;
    status = blyi_capture_allows_now();
    return likely(status == BLY_OK) ? set_at_once(dst, value, size, site) : status;
}

bly_status blyi_copy_own(void *dst, const void *src, uint64_t size)
{
    bly_status status = blyi_snapshot_enter();
    return status != BLY_OK || size == 0 || dst == src ? status : copy_at_once(dst, src, size, 0);
}

bly_status blyi_set_own(void *dst, uint8_t value, uint64_t size)
{
    bly_status status = blyi_snapshot_enter();
    return status != BLY_OK || size == 0 ? status : set_at_once(dst, value, size, 0);
}

bly_status blyi_copy2d_now(void *dst, uint64_t dpitch, const void *src, uint64_t spitch,
                           uint64_t width, uint64_t height)
{
    return blyi_copy2d_now_at(&(struct blyi_rows){dst, dpitch, src, spitch, width, height}, 0);
}

bly_status blyi_copy2d_now_at(const struct blyi_rows *rows, uint32_t site)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK || rows->width == 0 || rows->height == 0)
        return status;
    status = blyi_capture_allows_now();
    if (unlikely(status != BLY_OK))
        return status;
    blyi_rows_tell(NULL, rows, site);
    blyi_stat_add(BLYI_STAT_tasks_inline, 1);
    return copy_rows(rows->dst, rows->dpitch, rows->src, rows->spitch, rows->width, rows->height,
                     -1);
}

bly_status blyi_copy_task(const struct blyi_stream *stream, const struct blyi_task *task)
{
    bly_status status;
    if (task->kind == BLYI_TASK_COPY)
        status = blyi_copy_range(task->u.copy.dst, task->u.copy.src, task->u.copy.size,
                                 stream->card->id);
    else if (task->kind == BLYI_TASK_COPY2D)
        status = copy_rows(task->u.copy2d.dst, task->u.copy2d.dpitch, task->u.copy2d.src,
                           task->u.copy2d.spitch, task->u.copy2d.width, task->u.copy2d.height,
                           stream->card->id);
    else
        status = set_range(task->u.set.dst, task->value, task->u.set.size);
    if (status != BLY_OK) {
        char site[BLYI_SITE_TEXT];
        blyi_fail_append("; on stream %" PRIu32 ", queued at %s", stream->id,
                         blyi_site_text(task->site, site));
    }
    return status;
}

/* Pageable memory cannot be used by a queued task. */
static bool is_pageable(const void *address)
{
    int card;
    return blyi_place_of(address, &card) == BLYI_PLACE_HOST;
}

/* Pinned memory stays until the task has run, whoever frees it meanwhile. A range that no live
 * block holds is left to the task to fail on. */
static bool hold(const void *address, uint64_t size)
{
    int card;
    return blyi_place_of(address, &card) == BLYI_PLACE_PINNED && blyi_pinned_hold(address, size);
}

static bly_status queue(struct blyi_stream *stream, struct blyi_task *task, const void *src,
                        uint64_t dspan, uint64_t sspan)
{
    bly_status status = blyi_queue_ready(stream, (enum blyi_task_kind)task->kind);
    if (status != BLY_OK)
        return status;
    if (hold(task->u.copy.dst, dspan))
        task->flags |= BLYI_TASK_HOLDS_DST;
    if (src != NULL && hold(src, sspan))
        task->flags |= BLYI_TASK_HOLDS_SRC;
    blyi_queue_put(stream, task);
    return BLY_OK;
}

/* The call's own thread does the work once the stream is quiet (reference 10.4). */
static bly_status drain(struct blyi_stream *stream)
{
    bly_status status = blyi_capture_pageable(stream);
    if (status != BLY_OK)
        return status;
    blyi_stat_add(BLYI_STAT_tasks_inline, 1);
    return blyi_queue_await(stream, blyi_queue_issued(stream), 0);
}

bly_status blyi_copy_async(void *dst, const void *src, uint64_t size, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (size != 0 && dst != src) {
        if (is_pageable(dst) || is_pageable(src)) {
            status = drain(stream);
            if (status == BLY_OK) {
                blyi_copy_tell(stream, dst, src, size, site);
                status = blyi_copy_range(dst, src, size, stream->card->id);
            }
        } else {
            struct blyi_task task = {.kind = BLYI_TASK_COPY, .site = site};
            task.u.copy.dst = dst;
            task.u.copy.src = src;
            task.u.copy.size = size;
            status = queue(stream, &task, src, size, size);
        }
    }
    blyi_stream_unpin(stream);
    return status;
}

bly_status blyi_set_async(void *dst, uint8_t value, uint64_t size, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (size != 0) {
        if (is_pageable(dst)) {
            status = drain(stream);
            if (status == BLY_OK) {
                blyi_set_tell(stream, dst, size, site);
                status = set_range(dst, value, size);
            }
        } else {
            struct blyi_task task = {.kind = BLYI_TASK_SET, .value = value, .site = site};
            task.u.set.dst = dst;
            task.u.set.size = size;
            status = queue(stream, &task, NULL, size, 0);
        }
    }
    blyi_stream_unpin(stream);
    return status;
}

bly_status blyi_copy2d_async(void *dst, uint64_t dpitch, const void *src, uint64_t spitch,
                             uint64_t width, uint64_t height, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (width != 0 && height != 0) {
        uint64_t dspan = 0, sspan = 0;
        const struct blyi_rows rows = {dst, dpitch, src, spitch, width, height};
        if (is_pageable(dst) || is_pageable(src)) {
            status = drain(stream);
            if (status == BLY_OK) {
                blyi_rows_tell(stream, &rows, site);
                status = copy_rows(dst, dpitch, src, spitch, width, height, stream->card->id);
            }
        } else {
            struct blyi_task task = {.kind = BLYI_TASK_COPY2D, .site = site};
            task.u.copy2d.dst = dst;
            task.u.copy2d.src = src;
            task.u.copy2d.dpitch = dpitch;
            task.u.copy2d.spitch = spitch;
            task.u.copy2d.width = width;
            task.u.copy2d.height = height;
            /* A span that overflows is left to the task to fail on; one byte is held. */
            if (!span_of(dpitch, width, height, &dspan))
                dspan = 1;
            if (!span_of(spitch, width, height, &sspan))
                sspan = 1;
            status = queue(stream, &task, src, dspan, sspan);
        }
    }
    blyi_stream_unpin(stream);
    return status;
}
