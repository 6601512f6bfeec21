/* SPDX-License-Identifier: Apache-2.0
 *
 * backing.c - a memfd and three bits a frame: committed, huge, spare.
 *
 * The age of spare frames is kept per word of 64, as the number of the last retirement there:
 * good enough to punch old ones first, and retiring 1 GiB writes eight words.
 */
#include "npu/backing_inside.h"
#include "npu/bits.h"
#include "npu/frame.h"
#include "npu/guard.h"
#include "npu/host_room.h"
#include "npu/stock.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BACKING_MAX 65

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
    if (blyi_sys_mmap(at + head, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->fd.fd,
                      0) == MAP_FAILED)
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

/* The host's memory is in a file of this process alone. */
static bly_status open_own(struct blyi_backing *b)
{
    char text[BLYI_SIZE_TEXT];
    int fd = blyi_sys_memfd_create("belay-host", MFD_CLOEXEC);
    if (fd < 0)
        return blyi_fail(BLY_E_SYSTEM, "%s: memfd_create: %s", b->name, strerror(errno));
    if (blyi_sys_ftruncate(fd, (off_t)(b->n_frames * BLYI_FRAME_SIZE)) == 0) {
        b->fd = blyi_own_fd_take(fd);
        return BLY_OK;
    }
    int error = errno;
    close(fd);
    return blyi_fail(BLY_E_SYSTEM, "%s: ftruncate of its memfd to %s: %s%s", b->name,
                     blyi_size_text(b->n_frames * BLYI_FRAME_SIZE, text), strerror(error),
                     error == EFBIG ? " (a limit of file size, ulimit -f)" : "");
}

bly_status blyi_backing_create(int card, uint32_t n_frames, int fd, struct blyi_stock *stock,
                               struct blyi_backing **out)
{
    bly_assert(card >= 0 && card < BACKING_MAX && n_frames > 0);
    size_t n_words = BLYI_BITS_WORDS(n_frames);
    bly_status status = BLY_OK;
    struct blyi_backing *b = blyi_host_calloc(1, sizeof *b);
    uint64_t *words = blyi_host_calloc(n_words * 4, sizeof *words);
    if (!b || !words) {
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the state of %u frames", n_frames);
        goto free;
    }
    if (card == BLYI_BACKING_HOST)
        snprintf(b->name, sizeof b->name, "host memory");
    else
        snprintf(b->name, sizeof b->name, "card %d", card);
    b->card = card;
    b->n_frames = n_frames;
    b->stock = stock;
    if (stock)
        b->fd = blyi_own_fd_adopt(fd);
    b->words = stock ? blyi_stock_file(stock)->words : NULL;
    if (!stock)
        status = open_own(b);
    if (status != BLY_OK)
        goto free;
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
    if (!stock)
        blyi_own_fd_drop(&b->fd);
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
    blyi_own_fd_drop(&b->fd);
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
        blyi_own_fd_drop(&b->fd);
    }
}

int blyi_backing_fd(struct blyi_backing *b)
{
    int fd = blyi_own_fd_get(&b->fd);
    if (unlikely(fd < 0) && b->fd.fd >= 0 && !__atomic_exchange_n(&b->told, true, __ATOMIC_RELAXED))
        blyi_log(
            BLYI_LOG_ERROR,
            "%s: this program closed descriptor %d, which is its memory; what is mapped stays, "
            "but no more can be: close descriptors before the first call, or leave this one",
            b->name, b->fd.fd);
    if (fd < 0)
        errno = EBADF;
    return fd;
}

char *blyi_backing_alias(const struct blyi_backing *b)
{
    return b->alias;
}

const uint64_t *blyi_backing_prefer(const struct blyi_backing *b)
{
    return atomic_load_explicit(&b->n_spare, memory_order_relaxed) > 0 ? b->spare : NULL;
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
        blyi_spare_store(b, w, b->spare[w] | bits);
        b->age[w] = b->retirements;
    }
    blyi_spare_add_locked(b, added);
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
        blyi_spare_store(b, w, b->spare[w] & ~bits);
    }
    blyi_spare_add_locked(b, -(int64_t)removed);
    blyi_lock_drop(&b->lock);
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
