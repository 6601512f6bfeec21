/* SPDX-License-Identifier: Apache-2.0
 *
 * backing_trim.c - pages behind free frames: known of, forgotten, given back to the host.
 */
#include "npu/backing_inside.h"
#include "npu/bits.h"
#include "npu/frame.h"
#include "npu/host_room.h"
#include "npu/stock.h"
#include "base/compiler.h"
#include "base/stat.h"
#include "base/sys.h"
#include <fcntl.h>

static bool punch_file(struct blyi_backing *b, uint32_t first, uint32_t count)
{
    return blyi_sys_fallocate(blyi_backing_fd(b), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              (off_t)(first * BLYI_FRAME_SIZE),
                              (off_t)(count * BLYI_FRAME_SIZE)) == 0;
}

/* Forgets what is known of pages. Returns how many frames had some. */
static uint32_t forget_locked(struct blyi_backing *b, uint32_t first, uint32_t end)
{
    uint32_t n = blyi_bits_count(b->committed, first, end);
    uint32_t n_spare = blyi_bits_count(b->spare, first, end);
    if (n == 0)
        return 0;
    b->n_committed -= n;
    b->n_huge -= blyi_bits_count(b->huge, first, end);
    blyi_bits_clear(b->committed, first, end);
    blyi_bits_clear(b->huge, first, end);
    for (uint32_t at = first; at < end; at = blyi_bits_next(at))
        blyi_spare_store(b, at / 64, b->spare[at / 64] & ~blyi_bits_mask(at, end));
    blyi_spare_add_locked(b, -(int64_t)n_spare);
    blyi_host_room_give(n * BLYI_FRAME_SIZE);
    return n;
}

/* Punches spare frames [first, end), of a card inside the ledger's lock. False, and nothing
 * changed, when the kernel refuses. */
static bool punch_locked(struct blyi_backing *b, uint32_t first, uint32_t end)
{
    if (blyi_own_fd_get(&b->fd) < 0) /* closed, or in the child of a fork */
        return false;
    for (uint32_t i = first; i < end && b->words; i++)
        __atomic_fetch_or(&b->words[i], blyi_backing_unsure(), __ATOMIC_RELAXED);
    blyi_ledger_step();
    bool done = punch_file(b, first, end - first);
    blyi_ledger_step();
    for (uint32_t i = first; i < end && b->words; i++)
        blyi_backing_settle_claim(
            b, i, done ? 0 : blyi_backing_word(b, i) & (BLYI_FRAME_COMMITTED | BLYI_FRAME_HUGE));
    if (!done)
        return false;
    if (b->stock)
        blyi_stock_log_locked(b->stock, BLYI_CHANGE_PUNCHED, first, end - first);
    forget_locked(b, first, end);
    blyi_stat_add(BLYI_STAT_frames_punched, end - first);
    return true;
}

void blyi_backing_make_sure(struct blyi_backing *b, uint32_t frame)
{
    /* Refused, the pages that may be there are found by the commit, which writes into the frame
     * before anybody else does. */
    (void)punch_file(b, frame, 1);
    blyi_backing_settle_claim(b, frame, 0);
}

void blyi_backing_lose(struct blyi_backing *b, uint32_t first, uint32_t count)
{
    blyi_lock_take(&b->lock);
    forget_locked(b, first, first + count);
    blyi_lock_drop(&b->lock);
}

/* Bits of a free frame as its word says. */
static void gain_locked(struct blyi_backing *b, uint32_t frame)
{
    uint32_t word = blyi_backing_word(b, frame);
    if ((word & (BLYI_FRAME_COMMITTED | BLYI_FRAME_UNSURE)) != BLYI_FRAME_COMMITTED)
        return;
    blyi_bits_set(b->committed, frame, frame + 1);
    b->n_committed++;
    if (word & BLYI_FRAME_HUGE) {
        blyi_bits_set(b->huge, frame, frame + 1);
        b->n_huge++;
    }
    blyi_spare_store(b, frame / 64, b->spare[frame / 64] | (uint64_t)1 << (frame % 64));
    b->age[frame / 64] = b->retirements;
    blyi_spare_add_locked(b, 1);
    blyi_host_room_adopt(BLYI_FRAME_SIZE);
}

void blyi_backing_gain(struct blyi_backing *b, uint32_t first, uint32_t count)
{
    blyi_lock_take(&b->lock);
    b->retirements++;
    forget_locked(b, first, first + count);
    for (uint32_t i = first; i < first + count; i++)
        gain_locked(b, i);
    blyi_lock_drop(&b->lock);
}

/* Frames of ours and of shares stay as they are known; the rest is as its word says. */
void blyi_backing_reread(struct blyi_backing *b)
{
    blyi_lock_take(&b->lock);
    b->retirements++;
    for (uint32_t i = 0; i < b->n_frames; i++) {
        uint32_t owner = blyi_backing_word(b, i) & BLYI_FRAME_OWNER;
        if (owner == blyi_ledger_slot() + 1 || (owner & BLYI_FRAME_SHARED))
            continue;
        forget_locked(b, i, i + 1);
        if (owner == 0)
            gain_locked(b, i);
    }
    blyi_lock_drop(&b->lock);
}

/* The word that was retired to longest ago; n_words when no frame is spare. */
static uint32_t oldest_locked(const struct blyi_backing *b)
{
    uint32_t oldest = b->n_words;
    for (uint32_t w = 0; w < b->n_words; w++)
        if (b->spare[w] != 0 && (oldest == b->n_words || b->age[w] < b->age[oldest]))
            oldest = w;
    return oldest;
}

static uint64_t trim_locked(struct blyi_backing *b, uint64_t n_frames)
{
    uint64_t done = 0;
    while (done < n_frames) {
        uint32_t w = oldest_locked(b);
        if (w == b->n_words)
            break;
        uint32_t end = (w + 1) * 64 < b->n_frames ? (w + 1) * 64 : b->n_frames;
        uint32_t first = blyi_bits_find(b->spare, w * 64, end, true);
        uint32_t stop = blyi_bits_find(b->spare, first, end, false);
        if (stop - first > n_frames - done)
            stop = first + (uint32_t)(n_frames - done);
        if (!punch_locked(b, first, stop))
            break;
        done += stop - first;
    }
    return done;
}

/* Spare frames of a card are everybody's. */
static void enter(struct blyi_backing *b)
{
    if (b->stock)
        blyi_stock_enter(b->stock);
    blyi_lock_take(&b->lock);
}

static void leave(struct blyi_backing *b)
{
    blyi_lock_drop(&b->lock);
    if (b->stock)
        blyi_stock_leave(b->stock);
}

void blyi_backing_settle(struct blyi_backing *b)
{
    uint64_t limit = b->resident_limit / BLYI_FRAME_SIZE;
    /* relaxed: a thread that retires sees its own count, and that of others is settled by them */
    if (likely(atomic_load_explicit(&b->n_spare, memory_order_relaxed) <= limit))
        return;
    enter(b);
    uint32_t n_spare = atomic_load_explicit(&b->n_spare, memory_order_relaxed);
    if (n_spare > limit)
        trim_locked(b, n_spare - limit);
    leave(b);
}

uint64_t blyi_backing_trim(struct blyi_backing *b, uint64_t bytes)
{
    enter(b);
    uint64_t frames = trim_locked(b, blyi_align_up(bytes, BLYI_FRAME_SIZE) / BLYI_FRAME_SIZE);
    leave(b);
    return frames * BLYI_FRAME_SIZE;
}
