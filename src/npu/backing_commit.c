/* SPDX-License-Identifier: Apache-2.0
 *
 * backing_commit.c - pages of the host behind frames: booked, claimed in the frame's word, made.
 */
#include "npu/backing_inside.h"
#include "npu/bits.h"
#include "npu/frame.h"
#include "npu/host_room.h"
#include "npu/stock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/stat.h"
#include <errno.h>
#include <string.h>
#include <time.h>

/* Says what is about to be done to a frame's pages, so that nobody else does it too: a frame of a
 * share may be touched first by two processes at once. False: it has pages by now. */
static bool claim(struct blyi_backing *b, uint32_t frame)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    if (!b->words)
        return true;
    for (;;) {
        uint32_t word = blyi_backing_word(b, frame);
        if (word & BLYI_FRAME_UNSURE) {
            uint32_t slot = word >> BLYI_FRAME_SLOT_SHIFT;
            if (slot != blyi_ledger_slot() && blyi_ledger_is_alive(slot)) {
                nanosleep(&pause, NULL); /* a frame takes 0.3 ms */
                continue;
            }
        } else if (word & BLYI_FRAME_COMMITTED) {
            return false;
        }
        /* acquire, with blyi_backing_settle_claim(): what was put there before is seen */
        if (__atomic_compare_exchange_n(&b->words[frame], &word,
                                        (word & ~BLYI_UNSURE_BITS) | blyi_backing_unsure(), false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
}

void blyi_backing_settle_claim(struct blyi_backing *b, uint32_t frame, uint32_t pages)
{
    if (!b->words)
        return;
    uint32_t word = blyi_backing_word(b, frame);
    while (!__atomic_compare_exchange_n(
        &b->words[frame], &word,
        (word & ~(BLYI_UNSURE_BITS | BLYI_FRAME_COMMITTED | BLYI_FRAME_HUGE)) | pages, false,
        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* One absent frame of the caller's. False, with errno: the host gives no pages. */
static bool commit_one(struct blyi_backing *b, uint32_t frame, char *address, bool *huge)
{
    if (!claim(b, frame)) {
        *huge = blyi_backing_word(b, frame) & BLYI_FRAME_HUGE;
        return true;
    }
    bool done = blyi_commit_frame(blyi_backing_fd(b), frame, address, b->pages, huge);
    int error = errno;
    blyi_backing_settle_claim(b, frame,
                              !done ? 0 : BLYI_FRAME_COMMITTED | (*huge ? BLYI_FRAME_HUGE : 0));
    errno = error;
    return done;
}

/* Commits absent frames that are booked already; the booking of those that could not be had is
 * given back. The lock is not held while the kernel works. */
static bly_status commit_run(struct blyi_backing *b, uint32_t first, uint32_t count, char *address)
{
    uint32_t done = 0, n_huge = 0;
    for (; done < count; done++) {
        bool huge = false;
        if (!commit_one(b, first + done, address + done * BLYI_FRAME_SIZE, &huge))
            break;
        blyi_lock_take(&b->lock);
        blyi_bits_set(b->committed, first + done, first + done + 1);
        if (huge)
            blyi_bits_set(b->huge, first + done, first + done + 1);
        b->n_committed++;
        b->n_huge += huge;
        blyi_lock_drop(&b->lock);
        n_huge += huge;
    }
    int error = errno;
    blyi_stat_add(BLYI_STAT_frames_committed, done);
    blyi_stat_add(BLYI_STAT_frames_huge, n_huge);
    if (done == count)
        return BLY_OK;
    blyi_host_room_give((count - done) * BLYI_FRAME_SIZE);
    blyi_stat_add(BLYI_STAT_host_short, 1);
    char text[BLYI_HOST_ROOM_TEXT];
    return blyi_fail(BLY_E_HOST_MEMORY,
                     "%s: the host refused memory for frame %u, the %u. of %u: %s; %s", b->name,
                     first + done, done + 1, count, strerror(error), blyi_host_room_text(text));
}

/* Not under a lock: trimming takes the locks of other backings. */
static bly_status book(struct blyi_backing *b, uint32_t n_frames)
{
    uint64_t bytes = n_frames * BLYI_FRAME_SIZE;
    while (!blyi_host_room_take(bytes)) {
        if (blyi_backing_trim_all(bytes) > 0)
            continue;
        char asked[BLYI_SIZE_TEXT], text[BLYI_HOST_ROOM_TEXT];
        blyi_stat_add(BLYI_STAT_host_short, 1);
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "%s: the host, not the card, is short of memory: %s to back %u "
                         "frames of 2 MiB were asked, %s",
                         b->name, blyi_size_text(bytes, asked), n_frames,
                         blyi_host_room_text(text));
    }
    return BLY_OK;
}

bly_status blyi_backing_commit(struct blyi_backing *b, uint32_t first, uint32_t count,
                               void *address)
{
    uint32_t end = first + count;
    bly_status status = BLY_OK;
    if (b->alias != NULL)
        address = b->alias + first * BLYI_FRAME_SIZE;
    while (status == BLY_OK) {
        blyi_lock_take(&b->lock);
        uint32_t start = blyi_bits_find(b->committed, first, end, false);
        uint32_t stop = blyi_bits_find(b->committed, start, end, true);
        blyi_lock_drop(&b->lock);
        if (start == end)
            break;
        /* The frames belong to the caller and commits of a card are made under its lock, so
         * the run is still absent later. */
        status = book(b, stop - start);
        if (status != BLY_OK)
            break;
        status =
            commit_run(b, start, stop - start, (char *)address + (start - first) * BLYI_FRAME_SIZE);
    }
    return status;
}
