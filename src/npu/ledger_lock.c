/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_lock.c - one word for all processes, which names its owner, so that who waits can look
 * whether it lives.
 */
#include "npu/ledger_inside.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#define SPINS    200
#define FIRST_NS 1000000u  /* then the owner is looked at; */
#define WAIT_NS  20000000u /* each time later as well */
#define WARN_AT  50        /* waits: 1 s; then each time as many again */

static uint32_t owner_of(uint32_t word)
{
    return word & BLYI_LEDGER_OWNER;
}

void blyi_ledger_choose_word(uint32_t slot)
{
    uint32_t generation = 0;
    ssize_t got = getrandom(&generation, sizeof generation, 0);
    bly_check_msg(got == (ssize_t)sizeof generation, "getrandom gave %zd bytes", got);
    blyi_ledger.word = ((generation & ~BLYI_LEDGER_OWNER) | (slot + 1)) & ~BLYI_LEDGER_WAITED;
}

void blyi_ledger_drop_dead(uint32_t slot)
{
    uint32_t *word = &blyi_ledger_header()->lock;
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (owner_of(seen) == slot + 1 &&
           !__atomic_compare_exchange_n(word, &seen, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* acquire, with the release in unlock: what the last owner wrote is seen. */
static bool swap(uint32_t *word, uint32_t *expected, uint32_t value)
{
    return __atomic_compare_exchange_n(word, expected, value, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static bool owner_died(uint32_t word)
{
    uint32_t owner = owner_of(word);
    return owner == 0 || owner > BLYI_SLOTS || /* garbage: nobody will ever drop it */
           owner - 1 == blyi_ledger.slot ||    /* we hold the process's own lock: it is a lie */
           !blyi_ledger_is_alive(owner - 1);
}

/* Returns the slot of a dead owner, whose word we have now; BLYI_SLOTS when it was dropped. */
static uint32_t lock_slowly(uint32_t *word, uint32_t mine)
{
    uint32_t seen = 0;
    for (int i = 0; i < SPINS; i++) {
        seen = 0;
        if (swap(word, &seen, mine))
            return BLYI_SLOTS;
        blyi_spin_pause();
    }
    for (int waits = 0, warn_at = WARN_AT;;) {
        seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (seen == 0) {
            if (swap(word, &seen, mine | BLYI_LEDGER_WAITED)) /* others may wait as well */
                return BLYI_SLOTS;
            continue;
        }
        if (!(seen & BLYI_LEDGER_WAITED) && !swap(word, &seen, seen | BLYI_LEDGER_WAITED))
            continue;
        seen |= BLYI_LEDGER_WAITED;
        if (blyi_sys_futex_wait_shared(word, seen, waits == 0 ? FIRST_NS : WAIT_NS) == 0)
            continue;
        uint32_t dead = owner_of(seen);
        if (owner_died(seen) && swap(word, &seen, mine | BLYI_LEDGER_WAITED))
            return dead - 1 < BLYI_SLOTS && dead - 1 != blyi_ledger.slot ? dead - 1
                                                                         : BLYI_SLOTS + 1;
        if (++waits != warn_at)
            continue;
        const struct blyi_slot *slot = blyi_ledger_slot_at((dead - 1) % BLYI_SLOTS);
        blyi_log(BLYI_LOG_WARN,
                 "waiting for %d s for process %u (%.31s), which is inside the shared state; is it "
                 "stopped?",
                 waits / WARN_AT, slot->pid, slot->name);
        warn_at *= 2;
    }
}

static void tell_lost(void)
{
    static bool told; /* under the lock of this process */
    if (!told)
        blyi_log(BLYI_LOG_ERROR, BLYI_LEDGER_LOST_TEXT);
    told = true;
}

void blyi_ledger_lock(void)
{
    struct blyi_ledger *header = blyi_ledger_header();
    uint32_t mine = blyi_ledger.word, seen = 0, dead = BLYI_SLOTS;
    blyi_lock_take(&blyi_ledger.local);
    if (unlikely(!swap(&header->lock, &seen, mine)))
        dead = lock_slowly(&header->lock, mine);
    /* A reader sees `turn` odd before it can see anything that is written inside. */
    __atomic_store_n(&header->turn, header->turn | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    if (unlikely(dead != BLYI_SLOTS)) {
        blyi_ledger_doubt_locked();
        if (dead < BLYI_SLOTS && blyi_ledger_in_use(dead))
            blyi_ledger_reap_locked(dead);
    }
    if (blyi_ledger_is_lost())
        tell_lost();
    blyi_ledger_step();
}

void blyi_ledger_unlock(void)
{
    struct blyi_ledger *header = blyi_ledger_header();
    blyi_ledger_step();
    __atomic_store_n(&header->turn, header->turn + 1, __ATOMIC_RELEASE);
    uint32_t word = __atomic_exchange_n(&header->lock, 0, __ATOMIC_RELEASE);
    if (unlikely(word & BLYI_LEDGER_WAITED))
        blyi_sys_futex_wake_shared(&header->lock, 1);
    blyi_lock_drop(&blyi_ledger.local);
}

/* Relaxed: counts down, orders nothing. Read once: steps are on the way of each allocation. */
static int64_t left = -1;

void blyi_ledger_die_at(uint64_t nth)
{
    __atomic_store_n(&left, (int64_t)nth, __ATOMIC_RELAXED);
}

void blyi_ledger_step(void)
{
    int64_t now = __atomic_load_n(&left, __ATOMIC_RELAXED);
    if (likely(now == 0))
        return;
    if (now < 0) {
        int64_t nth = blyi_option_int(BLYI_OPT_FAIL_LEDGER);
        __atomic_store_n(&left, nth, __ATOMIC_RELAXED);
        if (nth == 0)
            return;
    }
    if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0)
        kill(getpid(), SIGKILL);
}
