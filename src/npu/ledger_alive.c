/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_alive.c - who is alive, and what is done for those who are not.
 */
#include "npu/ledger_inside.h"
#include "npu/share.h"
#include "npu/service.h"
#include "npu/signal.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SETUP_TRIES 10000 /* a millisecond each */
#define SETUP_WARN  1000

static struct flock record(short type, uint32_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

bool blyi_ledger_lock_byte(int fd, uint32_t byte)
{
    struct flock lock = record(F_WRLCK, byte);
    return fcntl(fd, F_SETLK, &lock) == 0;
}

void blyi_ledger_unlock_byte(int fd, uint32_t byte)
{
    struct flock lock = record(F_UNLCK, byte);
    (void)fcntl(fd, F_SETLK, &lock); /* has no failure for a lock of ours */
}

enum blyi_held blyi_ledger_byte_is_held(int fd, uint32_t byte)
{
    struct flock lock = record(F_WRLCK, byte);
    if (fcntl(fd, F_GETLK, &lock) != 0)
        return BLYI_HELD_UNKNOWN;
    return lock.l_type != F_UNLCK ? BLYI_HELD : BLYI_HELD_NOT;
}

bly_status blyi_ledger_begin_setup(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    struct flock lock = record(F_WRLCK, BLYI_SLOTS);
    int locks = blyi_own_fd_get(&blyi_ledger.locks);
    long other = 0;
    for (int i = 0; i < SETUP_TRIES; i++) {
        if (blyi_ledger_lock_byte(locks, BLYI_SLOTS))
            return BLY_OK;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return blyi_fail(BLY_E_SYSTEM, "the state's file slots cannot be locked: %s",
                             strerror(errno));
        nanosleep(&pause, NULL);
        if (i == SETUP_WARN) {
            lock = record(F_WRLCK, BLYI_SLOTS);
            other = fcntl(locks, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
            blyi_log(BLYI_LOG_WARN,
                     "waiting for process %ld, which has been setting up the shared state for a "
                     "second; is it stopped?",
                     other);
        }
    }
    return blyi_fail(BLY_E_STATE,
                     "process %ld has been setting up the shared state for 10 s; is it stopped?",
                     other);
}

void blyi_ledger_end_setup(void)
{
    blyi_ledger_unlock_byte(blyi_own_fd_get(&blyi_ledger.locks), BLYI_SLOTS);
}

bool blyi_ledger_slot_lives(int locks, uint32_t slot, const struct blyi_slot *there,
                            struct blyi_mapped ledger)
{
    enum blyi_held held = blyi_ledger_byte_is_held(locks, slot);
    return held == BLYI_HELD || blyi_ledger_process_lives(there, ledger, held == BLYI_HELD_UNKNOWN);
}

static bool is_alive(int locks, uint32_t slot)
{
    if (slot == blyi_ledger.slot)
        return true;
    return blyi_ledger_in_use(slot) &&
           blyi_ledger_slot_lives(locks, slot, blyi_ledger_slot_at(slot), blyi_ledger.mapped);
}

bool blyi_ledger_is_alive(uint32_t slot)
{
    return is_alive(blyi_own_fd_get(&blyi_ledger.locks), slot);
}

void blyi_ledger_doubt_locked(void)
{
    for (int card = 0; card < (int)BLYI_LEDGER_CARDS; card++) {
        struct blyi_card_file *file = blyi_ledger_card_locked(card);
        if (file)
            __atomic_store_n(&file->epoch, file->epoch + 1, __ATOMIC_RELAXED);
    }
}

/* Words of the dead become free. Who was making pages of a share's frame makes them no more; what
 * is unsure in a free frame is left for the next one who takes it. */
static void reap_frames_locked(struct blyi_card_file *file, uint32_t n_frames, uint32_t slot)
{
    bool changed = false;
    for (uint32_t i = 0; i < n_frames; i++) {
        uint32_t word = __atomic_load_n(&file->words[i], __ATOMIC_RELAXED);
        uint32_t owner = word & BLYI_FRAME_OWNER;
        if (owner == slot + 1)
            word &= ~BLYI_FRAME_OWNER;
        else if ((owner & BLYI_FRAME_SHARED) && (word & BLYI_FRAME_UNSURE) &&
                 word >> BLYI_FRAME_SLOT_SHIFT == slot)
            word &= ~(BLYI_FRAME_UNSURE | UINT32_C(0xff) << BLYI_FRAME_SLOT_SHIFT);
        else
            continue;
        if (!changed) /* first, so that whoever sees a changed word doubts its cache */
            __atomic_store_n(&file->epoch, file->epoch + 1, __ATOMIC_RELAXED);
        changed = true;
        __atomic_store_n(&file->words[i], word, __ATOMIC_RELAXED);
        blyi_ledger_step();
    }
}

/* Others may be looking at it, without the lock, whether it lives. */
static void clear_slot(struct blyi_slot *slot)
{
    uint64_t *words = (uint64_t *)(void *)slot;
    for (size_t i = 0; i < sizeof *slot / sizeof *words; i++)
        __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

void blyi_ledger_reap_locked(uint32_t slot)
{
    struct blyi_slot *dead = blyi_ledger_slot_at(slot);
    struct blyi_ledger *header = blyi_ledger_header();
    blyi_share_reap_locked(slot);
    for (int card = 0; card < (int)BLYI_LEDGER_CARDS; card++) {
        struct blyi_card_file *file = blyi_ledger_card_locked(card);
        if (file)
            reap_frames_locked(file, blyi_ledger_card_frames(card), slot);
    }
    blyi_signal_reap_locked(slot);
    blyi_service_reap_locked(slot);
    blyi_ledger_step();
    clear_slot(dead);
    blyi_ledger_step();
    __atomic_fetch_and(&header->used[slot / 64], ~((uint64_t)1 << (slot % 64)), __ATOMIC_RELEASE);
    header->n_deaths++;
}

uint32_t blyi_ledger_reap(void)
{
    uint32_t n = 0;
    if (!blyi_ledger_attached())
        return 0;
    int locks = blyi_own_fd_get(&blyi_ledger.locks);
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (likely(!blyi_ledger_in_use(slot)) || is_alive(locks, slot))
            continue;
        blyi_ledger_lock();
        /* Another one may have cleared it, and a third taken it, before we had the lock. */
        if (blyi_ledger_in_use(slot) && !blyi_ledger_is_alive(slot)) {
            blyi_ledger_reap_locked(slot);
            n++;
        }
        blyi_ledger_unlock();
    }
    return n;
}

void blyi_ledger_reap_in_turn(uint64_t now_ns, uint64_t since_ns)
{
    struct blyi_ledger *header = blyi_ledger_header();
    /* Relaxed: a hint. One in the future is garbage. */
    if (now_ns - __atomic_load_n(&header->looked_ns, __ATOMIC_RELAXED) < since_ns)
        return;
    if (blyi_own_fd_get(&blyi_ledger.locks) >= 0) /* else others see more than we do */
        __atomic_store_n(&header->looked_ns, now_ns, __ATOMIC_RELAXED);
    (void)blyi_ledger_reap();
}
