/* SPDX-License-Identifier: Apache-2.0
 *
 * backing.c - a memfd and three bits a frame: committed, huge, spare.
 *
 * The age of spare frames is kept per word of 64, as the number of the last retirement there:
 * good enough to punch old ones first, and retiring 1 GiB writes eight words.
 */
#include "npu/backing.h"
#include "npu/bits.h"
#include "npu/commit.h"
#include "npu/frame.h"
#include "npu/guard.h"
#include "npu/host_room.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/option.h"
#include "base/size.h"
#include "base/stat.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BACKING_MAX 65

struct blyi_backing {
    int card, fd;
    char *alias;   /* all of it, mapped for the library alone; NULL: none */
    char name[32]; /* for sentences */
    enum blyi_commit_pages pages;
    uint32_t n_frames, n_words;
    uint64_t resident_limit; /* bytes that may stay spare */
    struct blyi_lock lock;   /* guards all below */
    uint32_t n_committed, n_huge;
    _Atomic uint32_t n_spare; /* also read as a hint without the lock */
    uint64_t retirements;
    uint64_t *committed, *huge, *spare; /* bits; `spare` is read as a hint without the lock */
    uint64_t *age;                      /* per word of `spare` */
};

/* Who can be trimmed when the host is short. Entries come and go at card open and close;
 * release/acquire makes a backing visible only as a whole. */
static _Atomic(struct blyi_backing *) backings[BACKING_MAX];

/* Whole frames of the file at whole frames of addresses, so that huge pages fit. */
static bly_status map_alias(struct blyi_backing *b)
{
    uint64_t size = b->n_frames * BLYI_FRAME_SIZE, whole = size + BLYI_FRAME_SIZE;
    char text[BLYI_SIZE_TEXT];
    if (!blyi_guard.has_alias)
        return BLY_OK;
    char *at =
        blyi_sys_mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        goto fail;
    uint64_t head = blyi_align_up((uintptr_t)at, BLYI_FRAME_SIZE) - (uintptr_t)at;
    if (blyi_sys_mmap(at + head, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->fd, 0) ==
        MAP_FAILED)
        goto unmap;
    (void)blyi_sys_madvise(at + head, size, MADV_DONTDUMP); /* best effort, as in window.c */
    if (head > 0)
        blyi_sys_munmap(at, head);
    blyi_sys_munmap(at + head + size, BLYI_FRAME_SIZE - head);
    b->alias = at + head;
    return BLY_OK;

unmap:
    blyi_sys_munmap(at, whole);
fail:
    return blyi_fail(BLY_E_SYSTEM,
                     "%s: the guard without protection keys (BELAY_GUARD) maps the memory a "
                     "second time; %s of addresses were refused: %s",
                     b->name, blyi_size_text(size, text), strerror(errno));
}

bly_status blyi_backing_create(int card, uint32_t n_frames, struct blyi_backing **out)
{
    bly_assert(card >= 0 && card < BACKING_MAX && n_frames > 0);
    size_t n_words = BLYI_BITS_WORDS(n_frames);
    char name[32], text[BLYI_SIZE_TEXT];
    bly_status status;

    if (card == BLYI_BACKING_HOST)
        snprintf(name, sizeof name, "host memory");
    else
        snprintf(name, sizeof name, "card %d", card);
    struct blyi_backing *b = blyi_host_calloc(1, sizeof *b);
    uint64_t *words = blyi_host_calloc(n_words * 4, sizeof *words);
    if (!b || !words) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for the state of %u frames", name,
                           n_frames);
        goto free;
    }
    memcpy(b->name, name, sizeof name);
    snprintf(name, sizeof name, "belay-card-%d", card);
    b->fd = blyi_sys_memfd_create(card == BLYI_BACKING_HOST ? "belay-host" : name, MFD_CLOEXEC);
    if (b->fd < 0) {
        status = blyi_fail(BLY_E_SYSTEM, "%s: memfd_create: %s", b->name, strerror(errno));
        goto free;
    }
    if (blyi_sys_ftruncate(b->fd, (off_t)(n_frames * BLYI_FRAME_SIZE)) != 0) {
        status = blyi_fail(BLY_E_SYSTEM, "%s: ftruncate of its memfd to %s: %s", b->name,
                           blyi_size_text(n_frames * BLYI_FRAME_SIZE, text), strerror(errno));
        goto close;
    }
    b->card = card;
    b->n_frames = n_frames;
    status = map_alias(b);
    if (status != BLY_OK)
        goto close;
    b->n_words = (uint32_t)n_words;
    b->pages = (enum blyi_commit_pages)blyi_option_int(BLYI_OPT_PAGES);
    b->resident_limit = (uint64_t)blyi_option_int(BLYI_OPT_RESIDENT);
    b->committed = words;
    b->huge = words + n_words;
    b->spare = words + n_words * 2;
    b->age = words + n_words * 3;
    blyi_lock_init(&b->lock, BLYI_RANK_BACKING);
    atomic_store_explicit(&backings[card], b, memory_order_release);
    *out = b;
    return BLY_OK;

close:
    close(b->fd);
free:
    blyi_host_free(words);
    blyi_host_free(b);
    return status;
}

void blyi_backing_destroy(struct blyi_backing *b)
{
    if (!b)
        return;
    atomic_store_explicit(&backings[b->card], NULL, memory_order_release);
    blyi_host_room_give(b->n_committed * BLYI_FRAME_SIZE);
    if (b->alias != NULL)
        blyi_sys_munmap(b->alias, b->n_frames * BLYI_FRAME_SIZE);
    close(b->fd);
    blyi_lock_fini(&b->lock);
    blyi_host_free(b->committed);
    blyi_host_free(b);
}

void blyi_backing_forget_all(void)
{
    for (int i = 0; i < BACKING_MAX; i++) {
        struct blyi_backing *b = atomic_exchange(&backings[i], NULL);
        if (!b)
            continue;
        if (b->alias != NULL)
            blyi_sys_munmap(b->alias, b->n_frames * BLYI_FRAME_SIZE);
        close(b->fd);
        b->fd = -1;
    }
}

int blyi_backing_fd(const struct blyi_backing *b)
{
    return b->fd;
}

char *blyi_backing_alias(const struct blyi_backing *b)
{
    return b->alias;
}

const uint64_t *blyi_backing_prefer(const struct blyi_backing *b)
{
    return atomic_load_explicit(&b->n_spare, memory_order_relaxed) > 0 ? b->spare : NULL;
}

/* relaxed: readers without the lock (blyi_backing_prefer) take it as a hint */
static void spare_store(struct blyi_backing *b, uint32_t word, uint64_t bits)
{
    __atomic_store_n(&b->spare[word], bits, __ATOMIC_RELAXED);
}

static void spare_add_locked(struct blyi_backing *b, int64_t n)
{
    uint32_t now = atomic_load_explicit(&b->n_spare, memory_order_relaxed);
    atomic_store_explicit(&b->n_spare, (uint32_t)(now + n), memory_order_relaxed);
}

/* Commits absent frames that are booked already; the booking of those that could not be had
 * is given back. */
static bly_status commit_run_locked(struct blyi_backing *b, uint32_t first, uint32_t count,
                                    char *address)
{
    uint32_t done = 0, n_huge = 0;
    for (; done < count; done++) {
        bool huge;
        if (!blyi_commit_frame(b->fd, first + done, address + done * BLYI_FRAME_SIZE, b->pages,
                               &huge))
            break;
        blyi_bits_set(b->committed, first + done, first + done + 1);
        if (huge) {
            blyi_bits_set(b->huge, first + done, first + done + 1);
            n_huge++;
        }
    }
    int error = errno;
    b->n_committed += done;
    b->n_huge += n_huge;
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
         * the run is still absent when the lock is taken again. */
        status = book(b, stop - start);
        if (status != BLY_OK)
            break;
        blyi_lock_take(&b->lock);
        status = commit_run_locked(b, start, stop - start,
                                   (char *)address + (start - first) * BLYI_FRAME_SIZE);
        blyi_lock_drop(&b->lock);
    }
    return status;
}

bool blyi_backing_is_committed(struct blyi_backing *b, uint32_t frame)
{
    blyi_lock_take(&b->lock);
    bool committed = blyi_bits_get(b->committed, frame);
    blyi_lock_drop(&b->lock);
    return committed;
}

uint32_t blyi_backing_span(struct blyi_backing *b, uint32_t first, uint32_t count, bool *committed)
{
    blyi_lock_take(&b->lock);
    *committed = blyi_bits_get(b->committed, first);
    uint32_t stop = blyi_bits_find(b->committed, first, first + count, !*committed);
    blyi_lock_drop(&b->lock);
    return stop - first;
}

void blyi_backing_retire(struct blyi_backing *b, uint32_t first, uint32_t count)
{
    uint32_t added = 0;
    blyi_lock_take(&b->lock);
    b->retirements++;
    for (uint32_t end = first + count; first < end; first = blyi_bits_next(first)) {
        uint32_t w = first / 64;
        uint64_t bits = b->committed[w] & blyi_bits_mask(first, end);
        if (bits == 0)
            continue;
        added += (uint32_t)__builtin_popcountll(bits & ~b->spare[w]);
        spare_store(b, w, b->spare[w] | bits);
        b->age[w] = b->retirements;
    }
    spare_add_locked(b, added);
    blyi_lock_drop(&b->lock);
}

void blyi_backing_reuse(struct blyi_backing *b, uint32_t first, uint32_t count)
{
    uint32_t removed = 0;
    blyi_lock_take(&b->lock);
    for (uint32_t end = first + count; first < end; first = blyi_bits_next(first)) {
        uint32_t w = first / 64;
        uint64_t bits = b->spare[w] & blyi_bits_mask(first, end);
        removed += (uint32_t)__builtin_popcountll(bits);
        spare_store(b, w, b->spare[w] & ~bits);
    }
    spare_add_locked(b, -(int64_t)removed);
    blyi_lock_drop(&b->lock);
}

/* Punches spare frames [first, end). False, and nothing changed, when the kernel refuses. */
static bool punch_locked(struct blyi_backing *b, uint32_t first, uint32_t end)
{
    uint32_t n = end - first;
    if (b->fd < 0) /* in the child of a fork */
        return false;
    if (blyi_sys_fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           (off_t)(first * BLYI_FRAME_SIZE), (off_t)(n * BLYI_FRAME_SIZE)) != 0)
        return false;
    b->n_committed -= n;
    b->n_huge -= blyi_bits_count(b->huge, first, end);
    blyi_bits_clear(b->committed, first, end);
    blyi_bits_clear(b->huge, first, end);
    for (uint32_t at = first; at < end; at = blyi_bits_next(at))
        spare_store(b, at / 64, b->spare[at / 64] & ~blyi_bits_mask(at, end));
    spare_add_locked(b, -(int64_t)n);
    blyi_host_room_give(n * BLYI_FRAME_SIZE);
    blyi_stat_add(BLYI_STAT_frames_punched, n);
    return true;
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

void blyi_backing_settle(struct blyi_backing *b)
{
    uint64_t limit = b->resident_limit / BLYI_FRAME_SIZE;
    /* relaxed: a thread that retires sees its own count, and that of others is settled by them */
    if (likely(atomic_load_explicit(&b->n_spare, memory_order_relaxed) <= limit))
        return;
    blyi_lock_take(&b->lock);
    uint32_t n_spare = atomic_load_explicit(&b->n_spare, memory_order_relaxed);
    if (n_spare > limit)
        trim_locked(b, n_spare - limit);
    blyi_lock_drop(&b->lock);
}

uint64_t blyi_backing_trim(struct blyi_backing *b, uint64_t bytes)
{
    blyi_lock_take(&b->lock);
    uint64_t frames = trim_locked(b, blyi_align_up(bytes, BLYI_FRAME_SIZE) / BLYI_FRAME_SIZE);
    blyi_lock_drop(&b->lock);
    return frames * BLYI_FRAME_SIZE;
}

uint64_t blyi_backing_trim_all(uint64_t bytes)
{
    uint64_t given = 0;
    for (int i = 0; i < BACKING_MAX && given < bytes; i++) {
        struct blyi_backing *b = atomic_load_explicit(&backings[i], memory_order_acquire);
        if (b)
            given += blyi_backing_trim(b, bytes - given);
    }
    return given;
}

void blyi_backing_figures(struct blyi_backing *b, struct blyi_backing_figures *out)
{
    blyi_lock_take(&b->lock);
    out->committed = b->n_committed * BLYI_FRAME_SIZE;
    out->huge = b->n_huge * BLYI_FRAME_SIZE;
    out->spare = atomic_load_explicit(&b->n_spare, memory_order_relaxed) * BLYI_FRAME_SIZE;
    blyi_lock_drop(&b->lock);
}

/* Counts agree with the bits; spare and huge frames are committed. */
bool blyi_backing_audit(struct blyi_backing *b)
{
    blyi_lock_take(&b->lock);
    uint32_t spare = atomic_load_explicit(&b->n_spare, memory_order_relaxed);
    bool sound = blyi_bits_count(b->committed, 0, b->n_frames) == b->n_committed &&
                 blyi_bits_count(b->huge, 0, b->n_frames) == b->n_huge &&
                 blyi_bits_count(b->spare, 0, b->n_frames) == spare;
    for (uint32_t w = 0; w < b->n_words && sound; w++)
        sound = ((b->huge[w] | b->spare[w]) & ~b->committed[w]) == 0;
    blyi_lock_drop(&b->lock);
    return sound;
}
