/* SPDX-License-Identifier: Apache-2.0
 *
 * away_copy.c - content of frames to host memory and back, through mappings of its own: nobody's
 * rights are needed. Frames that nobody has touched have no content, and take no host memory.
 */
#include "npu/away_inside.h"
#include "npu/backing.h"
#include "npu/bits.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/host_room.h"
#include "npu/maps.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define BATCH 64u /* frames mapped at a time */

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Room to map a batch at a frame's alignment: whole huge pages. */
struct place {
    void *mapping;
    char *at;
};

static bly_status open_place(struct place *place)
{
    size_t size = (BATCH + 1) * BLYI_FRAME_SIZE;
    place->mapping = blyi_sys_mmap(NULL, size, PROT_NONE, RESERVED, -1, 0);
    if (place->mapping == MAP_FAILED)
        return blyi_maps_refused("snapshot", size, errno);
    place->at = (char *)blyi_align_up((uintptr_t)place->mapping, BLYI_FRAME_SIZE);
    return BLY_OK;
}

static void close_place(const struct place *place)
{
    blyi_sys_munmap(place->mapping, (BATCH + 1) * BLYI_FRAME_SIZE);
}

static bly_status map_batch(const struct blyi_away *away, const struct place *place, uint32_t first,
                            uint32_t n, int prot)
{
    size_t size = n * BLYI_FRAME_SIZE;
    void *at =
        blyi_sys_mmap(place->at, size, prot, MAP_SHARED | MAP_FIXED,
                      blyi_backing_fd(away->card->backing), (off_t)(first * BLYI_FRAME_SIZE));
    return at == MAP_FAILED ? blyi_maps_refused("snapshot", size, errno) : BLY_OK;
}

/* Called for frames in a row, at most BATCH, whose content is alike in being there or not; `index`
 * is the number of the first. */
typedef bly_status piece_fn(struct blyi_away *away, const struct place *place, uint32_t index,
                            uint32_t first, uint32_t n);

static char *content_of(const struct blyi_away *away, uint32_t index)
{
    return away->content + blyi_bits_count(away->saved, 0, index) * BLYI_FRAME_SIZE;
}

static bly_status mark(struct blyi_away *away, const struct place *place, uint32_t index,
                       uint32_t first, uint32_t n)
{
    bool committed;
    (void)place;
    for (uint32_t i = 0, same; i < n; i += same) {
        same = blyi_backing_span(away->card->backing, first + i, n - i, &committed);
        if (committed)
            blyi_bits_set(away->saved, index + i, index + i + same);
    }
    return BLY_OK;
}

static bly_status copy_out(struct blyi_away *away, const struct place *place, uint32_t index,
                           uint32_t first, uint32_t n)
{
    bly_status status = map_batch(away, place, first, n, PROT_READ);
    if (status == BLY_OK)
        blyi_copy_bytes(content_of(away, index), place->at, n * BLYI_FRAME_SIZE);
    return status;
}

static bly_status copy_in(struct blyi_away *away, const struct place *place, uint32_t index,
                          uint32_t first, uint32_t n)
{
    bly_status status = map_batch(away, place, first, n, PROT_READ | PROT_WRITE);
    if (status == BLY_OK)
        status = blyi_backing_commit(away->card->backing, first, n, place->at);
    if (status == BLY_OK)
        blyi_copy_bytes(place->at, content_of(away, index), n * BLYI_FRAME_SIZE);
    return status;
}

static bly_status each_saved(struct blyi_away *away, const struct place *place, uint32_t index,
                             struct blyi_run run, piece_fn *fn)
{
    bly_status status = BLY_OK;
    uint32_t end = index + run.count;
    for (uint32_t at = index; at < end && status == BLY_OK;) {
        at = blyi_bits_find(away->saved, at, end, true);
        uint32_t stop = blyi_bits_find(away->saved, at, end, false);
        if (stop - at > BATCH)
            stop = at + BATCH;
        if (stop > at)
            status = fn(away, place, at, run.first + (at - index), stop - at);
        at = stop;
    }
    return status;
}

static bly_status each_run(struct blyi_away *away, const struct place *place, bool fresh_only,
                           piece_fn *fn)
{
    bly_status status = BLY_OK;
    for (uint32_t u = 0; u < away->n_units; u++) {
        const struct blyi_away_unit *unit = &away->units[u];
        uint32_t index = unit->at;
        if (fresh_only && !unit->fresh)
            continue;
        for (uint32_t r = 0; r < unit->n_runs && status == BLY_OK; r++) {
            struct blyi_run run = unit->runs[r];
            status = fn == mark ? mark(away, place, index, run.first, run.count)
                                : each_saved(away, place, index, run, fn);
            index += run.count;
        }
    }
    return status;
}

static bly_status take_content(struct blyi_away *away, uint64_t bytes)
{
    char a[BLYI_SIZE_TEXT], text[BLYI_HOST_ROOM_TEXT];
    while (!blyi_host_room_take(bytes))
        if (blyi_backing_trim_all(bytes) == 0)
            return blyi_fail(BLY_E_HOST_MEMORY,
                             "card %d: the host is short of memory to hold the %s that are on the "
                             "card: %s",
                             away->card->id, blyi_size_text(bytes, a), blyi_host_room_text(text));
    uint64_t room = bytes + BLYI_FRAME_SIZE;
    void *mapping = blyi_sys_mmap(NULL, room, PROT_READ | PROT_WRITE, RESERVED, -1, 0);
    if (mapping == MAP_FAILED) {
        int error = errno;
        blyi_host_room_give(bytes);
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to hold %s: %s",
                         away->card->id, blyi_size_text(bytes, a), strerror(error));
    }
    away->mapping = mapping;
    away->content = (char *)blyi_align_up((uintptr_t)mapping, BLYI_FRAME_SIZE);
    away->content_bytes = bytes;
    /* Best effort: with small pages a backup takes three times as long (bench/snapshot.c). */
    (void)blyi_sys_madvise(away->content, bytes, MADV_HUGEPAGE);
    return BLY_OK;
}

bly_status blyi_away_copy_out(struct blyi_away *away)
{
    struct place place;
    if (away->n_frames == 0)
        return BLY_OK;
    (void)each_run(away, NULL, false, mark);
    uint64_t bytes = blyi_bits_count(away->saved, 0, away->n_frames) * BLYI_FRAME_SIZE;
    if (bytes == 0)
        return BLY_OK;
    bly_status status = take_content(away, bytes);
    if (status == BLY_OK)
        status = open_place(&place);
    if (status != BLY_OK)
        return status;
    status = each_run(away, &place, false, copy_out);
    close_place(&place);
    return status;
}

bly_status blyi_away_copy_in(struct blyi_away *away)
{
    struct place place;
    if (away->content_bytes == 0)
        return BLY_OK;
    bly_status status = open_place(&place);
    if (status != BLY_OK)
        return status;
    status = each_run(away, &place, true, copy_in);
    close_place(&place);
    return status;
}

void blyi_away_free(struct blyi_away *away)
{
    if (!away)
        return;
    if (away->content) {
        blyi_sys_munmap(away->mapping, away->content_bytes + BLYI_FRAME_SIZE);
        blyi_host_room_give(away->content_bytes);
    }
    for (uint32_t i = 0; i < away->n_units; i++)
        blyi_host_free(away->units[i].runs);
    blyi_host_free(away->units);
    blyi_host_free(away->saved);
    blyi_host_free(away);
}
