/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_card.c - the two files of a card: its words in the state folder, and its memory, which is
 * found through the descriptors of whoever has it open.
 */
#include "npu/ledger_inside.h"
#include "npu/frame.h"
#include "npu/state.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOIN_TRIES 1000 /* a millisecond each */
#define FILE_MAGIC 0x7264726163b1a5edu

static uint64_t words_end(uint32_t n_frames)
{
    uint32_t even = n_frames + (n_frames & 1);
    return sizeof(struct blyi_card_file) + (uint64_t)even * sizeof(uint32_t);
}

static uint64_t file_size(uint32_t n_frames)
{
    return words_end(n_frames) + (uint64_t)n_frames * sizeof(uint64_t);
}

static void file_name(int card, char name[24])
{
    snprintf(name, 24, "card-%d", card);
}

static void unmap(int card)
{
    struct blyi_ledger_file *file = &blyi_ledger.cards[card];
    if (file->map)
        blyi_sys_munmap(file->map, file->size);
    *file = (struct blyi_ledger_file){0};
}

/* Maps an open file of a card with so many frames; NULL when it is not that. */
static struct blyi_card_file *map_file(int card, int fd, uint32_t n_frames, uint64_t cookie)
{
    struct stat st;
    uint64_t size = file_size(n_frames);
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != size)
        return NULL;
    struct blyi_card_file *map =
        blyi_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    (void)blyi_sys_madvise(map, size, MADV_DONTFORK);
    if (map->magic != FILE_MAGIC || map->n_frames != n_frames) {
        blyi_sys_munmap(map, size);
        return NULL;
    }
    blyi_ledger.cards[card] =
        (struct blyi_ledger_file){.map = map, .size = size, .n_frames = n_frames, .cookie = cookie};
    return map;
}

struct blyi_card_file *blyi_ledger_card_locked(int card)
{
    const struct blyi_ledger_card *there = &blyi_ledger_header()->cards[card];
    struct blyi_ledger_file *file = &blyi_ledger.cards[card];
    if (likely(there->n_frames == 0))
        return NULL;
    if (likely(file->map && file->cookie == there->cookie))
        return file->map;
    if (blyi_ledger.is_private || blyi_ledger_mine()->cards[card].fd >= 0)
        return file->map; /* what we have open cannot have been made anew */
    char name[24];
    int fd;
    unmap(card);
    file_name(card, name);
    int folder = blyi_own_fd_get(&blyi_ledger.folder);
    if (folder < 0 || blyi_state_file(folder, name, false, &fd) != BLY_OK)
        return NULL;
    struct blyi_card_file *map = map_file(card, fd, there->n_frames, there->cookie);
    close(fd);
    return map;
}

uint32_t blyi_ledger_card_frames(int card)
{
    return blyi_ledger.cards[card].n_frames;
}

uint64_t *blyi_ledger_card_links(int card)
{
    const struct blyi_ledger_file *file = &blyi_ledger.cards[card];
    return (uint64_t *)(void *)((char *)file->map + words_end(file->n_frames));
}

/* The links are promised by the disk when the first share is made. */
bly_status blyi_ledger_back_links(int card)
{
    struct blyi_ledger_file *file = &blyi_ledger.cards[card];
    char name[24];
    int fd;
    bly_assert(file->map);
    if (__atomic_load_n(&file->linked, __ATOMIC_RELAXED) ||
        blyi_ledger.is_private) /* a memfd: as good as promised (host_room.h) */
        return BLY_OK;
    file_name(card, name);
    int folder = blyi_own_fd_get(&blyi_ledger.folder);
    if (folder < 0)
        return blyi_fail(BLY_E_SYSTEM,
                         "card %d: this program closed the descriptor of the state "
                         "folder",
                         card);
    bly_status status = blyi_state_file(folder, name, false, &fd);
    if (status != BLY_OK)
        return status;
    uint64_t at = words_end(file->n_frames);
    status = blyi_state_back(fd, name, at, file->size - at);
    close(fd);
    /* relaxed: two threads may ask at once, and asking twice does no harm */
    __atomic_store_n(&file->linked, status == BLY_OK, __ATOMIC_RELAXED);
    return status;
}

/* A new file of words: a new inode, since somebody may still have the old one mapped. */
static bly_status make_words(int card, uint32_t n_frames, uint64_t cookie)
{
    char name[24];
    int fd;
    struct blyi_card_file head = {
        .magic = FILE_MAGIC, .n_frames = n_frames, .least_free = n_frames};
    file_name(card, name);
    unmap(card);
    int folder = blyi_own_fd_get(&blyi_ledger.folder);
    if (!blyi_ledger.is_private && unlinkat(folder, name, 0) != 0 && errno != ENOENT)
        return blyi_fail(BLY_E_IO, "the state's file %s cannot be made anew: %s", name,
                         strerror(errno));
    bly_status status = blyi_state_file(folder, name, true, &fd);
    if (status != BLY_OK)
        return status;
    status = blyi_state_grow(fd, name, file_size(n_frames), words_end(n_frames));
    if (status == BLY_OK && blyi_sys_pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        status =
            blyi_fail(BLY_E_IO, "the state's file %s cannot be written: %s", name, strerror(errno));
    if (status == BLY_OK && !map_file(card, fd, n_frames, cookie))
        status = blyi_fail(BLY_E_SYSTEM, "the state's file %s cannot be mapped: %s", name,
                           strerror(errno));
    close(fd);
    return status;
}

static bly_status make_memory(int card, uint32_t n_frames, int *fd)
{
    char name[32], text[BLYI_SIZE_TEXT];
    snprintf(name, sizeof name, "belay-card-%d", card);
    *fd = blyi_sys_memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0)
        return blyi_fail(BLY_E_SYSTEM, "card %d: memfd_create: %s", card, strerror(errno));
    uint64_t size = n_frames * BLYI_FRAME_SIZE;
    if (blyi_sys_ftruncate(*fd, (off_t)size) == 0)
        return BLY_OK;
    int error = errno;
    close(*fd);
    return blyi_fail(BLY_E_SYSTEM, "card %d: ftruncate of its memfd to %s: %s%s", card,
                     blyi_size_text(size, text), strerror(error),
                     error == EFBIG ? " (a limit of file size, ulimit -f)" : "");
}

static bly_status make_card(int card, uint32_t n_frames, const char *model, int *fd)
{
    struct blyi_ledger_card *there = &blyi_ledger_header()->cards[card];
    struct blyi_ledger_card made = {.n_frames = n_frames};
    struct stat st;
    if (getrandom(&made.cookie, sizeof made.cookie, 0) != (ssize_t)sizeof made.cookie)
        return blyi_fail(BLY_E_SYSTEM, "card %d: getrandom: %s", card, strerror(errno));
    bly_status status = make_memory(card, n_frames, fd);
    if (status != BLY_OK)
        return status;
    snprintf(made.model, sizeof made.model, "%s", model);
    if (fstat(*fd, &st) != 0) {
        status = blyi_fail(BLY_E_SYSTEM, "card %d: fstat: %s", card, strerror(errno));
        goto close;
    }
    made.device = st.st_dev;
    made.inode = st.st_ino;
    __atomic_store_n(&there->n_frames, 0, __ATOMIC_RELAXED);
    status = make_words(card, n_frames, made.cookie);
    if (status != BLY_OK)
        goto close;
    blyi_ledger_lock();
    *there = made;
    blyi_ledger_unlock();
    return BLY_OK;

close:
    close(*fd);
    return status;
}

/* Whether a descriptor of another process is this card's memory, opened for us; if not, errno. */
static bool open_from(const struct blyi_slot *slot, int card, int *fd)
{
    const struct blyi_ledger_card *there = &blyi_ledger_header()->cards[card];
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd/%d", slot->pid, slot->cards[card].fd);
    int got = blyi_sys_open(path, O_RDWR | O_CLOEXEC, 0);
    if (got < 0)
        return false;
    if (fstat(got, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == there->device &&
        st.st_ino == there->inode &&
        (uint64_t)st.st_size == (uint64_t)there->n_frames * BLYI_FRAME_SIZE) {
        *fd = got;
        return true;
    }
    close(got);
    errno = ENOENT; /* the program closed it, and opened another one */
    return false;
}

static bool has_open(uint32_t slot, int card)
{
    return slot != blyi_ledger.slot && blyi_ledger_in_use(slot) &&
           blyi_ledger_slot_at(slot)->cards[card].fd >= 0 && blyi_ledger_is_alive(slot);
}

/* A card that others have open must be the one that we were told to have. */
static bly_status check_same(int card, uint32_t n_frames, const char *model, uint32_t other)
{
    const struct blyi_ledger_card *there = &blyi_ledger_header()->cards[card];
    const struct blyi_slot *slot = blyi_ledger_slot_at(other);
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    if (there->n_frames == n_frames && strncmp(there->model, model, sizeof there->model - 1) == 0)
        return BLY_OK;
    return blyi_fail(
        BLY_E_STATE,
        "card %d is in use by process %" PRIu32 " (%.31s) as a %.31s of %s, and this "
        "process asks for a %s of %s: give both the same BELAY_MODEL and BELAY_HBM, or "
        "this one another machine with BELAY_STATE",
        card, slot->pid, slot->name, there->model,
        blyi_size_text(there->n_frames * BLYI_FRAME_SIZE, a), model,
        blyi_size_text(n_frames * BLYI_FRAME_SIZE, b));
}

static bly_status word_closed(int card, const struct blyi_slot *holder, int error)
{
    if (holder->pid == 0)
        return blyi_fail(BLY_E_STATE,
                         "card %d: the shared state is damaged while somebody uses it: who has the "
                         "card's memory is not told; end the processes that use it and it is made "
                         "anew, or name another folder with BELAY_STATE",
                         card);
    return blyi_fail(
        BLY_E_SYSTEM,
        "card %d: its memory is in process %" PRIu32 " (%.31s), and /proc/%" PRIu32
        "/fd/%d cannot be opened: %s%s",
        card, holder->pid, holder->name, holder->pid, holder->cards[card].fd, strerror(error),
        error == EACCES || error == EPERM ? "; a process that is not dumpable cannot share a card"
        : error == ENOENT                 ? "; without /proc, or when that process has closed its "
                                            "descriptors, a card cannot be shared"
                                          : "");
}

/* *gone: a holder closed its descriptor; it may be about to end. */
static bly_status join_card(int card, uint32_t n_frames, const char *model, uint32_t first, int *fd,
                            bool *gone)
{
    bly_status status = check_same(card, n_frames, model, first);
    if (status != BLY_OK)
        return status;
    bool got = false;
    int error = 0; /* of the first */
    for (uint32_t slot = first; slot < BLYI_SLOTS && !got; slot++) {
        if (!has_open(slot, card))
            continue;
        got = open_from(blyi_ledger_slot_at(slot), card, fd);
        error = error ? error : errno;
    }
    *gone = !got && (error == ENOENT || error == ESRCH || error == 0);
    if (!got)
        return word_closed(card, blyi_ledger_slot_at(first), error);
    blyi_ledger_lock();
    struct blyi_card_file *file = blyi_ledger_card_locked(card);
    blyi_ledger_unlock();
    if (file)
        return BLY_OK;
    close(*fd);
    return blyi_fail(BLY_E_STATE, "card %d: the state's file card-%d is damaged while in use", card,
                     card);
}

/* A process that ends, or becomes another program, closes its descriptors one after the other: for
 * a moment it seems to live without the card's memory. */
static bly_status find_card(int card, uint32_t n_frames, const char *model, int *fd)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    for (int tries = 0;; tries++) {
        bool gone = false;
        uint32_t first = 0;
        while (first < BLYI_SLOTS && !has_open(first, card))
            first++;
        if (first == BLYI_SLOTS)
            return make_card(card, n_frames, model, fd);
        bly_status status = join_card(card, n_frames, model, first, fd, &gone);
        if (!gone || tries == JOIN_TRIES)
            return status;
        blyi_fail_clear();
        nanosleep(&pause, NULL);
    }
}

bly_status blyi_ledger_card_open(int card, uint32_t n_frames, const char *model,
                                 struct blyi_card_file **file, int *out)
{
    int fd = -1;
    bly_status status = blyi_ledger_begin_setup();
    if (status != BLY_OK)
        return status;
    status = find_card(card, n_frames, model, &fd);
    if (status == BLY_OK) {
        *file = blyi_ledger.cards[card].map;
        *out = fd = blyi_own_fd_take(fd).fd;
        __atomic_store_n(&blyi_ledger_mine()->cards[card].fd, fd, __ATOMIC_RELEASE);
    }
    blyi_ledger_end_setup();
    return status;
}

void blyi_ledger_card_close(int card)
{
    if (!blyi_ledger_attached())
        return;
    blyi_ledger_lock();
    struct blyi_slot_card *mine = &blyi_ledger_mine()->cards[card];
    memset(mine, 0, sizeof *mine);
    mine->fd = -1;
    unmap(card);
    blyi_ledger_unlock();
}
