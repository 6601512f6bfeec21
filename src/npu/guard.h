/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - host code must not touch card memory; the library's own code must.
 *
 *   KEYS   card windows carry a protection key that threads do not hold. Engines hold it for
 *          good, a copy in the caller's thread for its duration (blyi_guard_enter).
 *   ALIAS  for hosts without keys: the windows that programs see have no access at all, and
 *          copies go through a second mapping of the card (blyi_guard_way). Functions that
 *          follow addresses of the card cannot run: blyi_guard_open() gives it up for them.
 *   OFF    nothing is guarded.
 *
 * The mode is chosen once, before the first card is opened. docs/design/guard.md.
 */
#ifndef BLYI_GUARD_H
#define BLYI_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/compiler.h"

enum blyi_guard_mode { BLYI_GUARD_OFF, BLYI_GUARD_KEYS, BLYI_GUARD_ALIAS };

/* In the order of option GUARD. */
enum blyi_guard_option {
    BLYI_GUARD_OPTION_AUTO, /* keys where the processor has them */
    BLYI_GUARD_OPTION_ON,   /* keys, else alias */
    BLYI_GUARD_OPTION_OFF,
    BLYI_GUARD_OPTION_ALIAS, /* also where there are keys */
};

/* Written by blyi_guard_start(), and `mode` by blyi_guard_open(). */
struct blyi_guard {
    enum blyi_guard_mode mode; /* of mappings that are made from now on; atomic */
    int key;
    uint32_t deny;  /* bits of the rights register that deny the key; 0: no keys in use */
    bool has_alias; /* cards have a second mapping */
};
extern struct blyi_guard blyi_guard;

/* Chooses the mode by option GUARD. Called by the runtime at its start; further calls do nothing.
 * Never fails: what the host cannot do is off, with a line of the log when it was asked for. */
void blyi_guard_start(void);
/* Whether this machine has protection keys that a process can get. Takes one and gives it back. */
bool blyi_guard_has_keys(void);

#if defined(__x86_64__)
static inline uint32_t blyi_guard_rights(void)
{
    uint32_t rights, zero;
    __asm__ volatile("rdpkru" : "=a"(rights), "=d"(zero) : "c"(0));
    return rights;
}

/* The compiler moves no access to memory across it; the processor does not either. */
static inline void blyi_guard_set_rights(uint32_t rights)
{
    __asm__ volatile("wrpkru" : : "a"(rights), "c"(0), "d"(0) : "memory");
}
#else
static inline uint32_t blyi_guard_rights(void)
{
    return 0;
}

static inline void blyi_guard_set_rights(uint32_t rights)
{
    (void)rights;
}
#endif

/* Around every touch of card memory by the library in a thread of the program's; nests. No user
 * code may run in between. Returns what blyi_guard_leave() wants. About 30 ns with keys. */
static inline uint32_t blyi_guard_enter(void)
{
    if (likely(blyi_guard.deny == 0))
        return 0;
    uint32_t before = blyi_guard_rights();
    if (before & blyi_guard.deny)
        blyi_guard_set_rights(before & ~blyi_guard.deny);
    return before;
}

static inline void blyi_guard_leave(uint32_t before)
{
    if (unlikely(before & blyi_guard.deny))
        blyi_guard_set_rights(before);
}

/* Whether a fault came from touching card memory without the right. False without keys. */
bool blyi_guard_is_denied(const siginfo_t *info);

/* The calling thread may touch card memory for good: engines, at their start. Threads that it
 * makes inherit the right, so it makes none that run user code. */
static inline void blyi_guard_hold(void)
{
    (void)blyi_guard_enter();
}

/* mmap(MAP_SHARED | MAP_FIXED) of a card's file into a window, for reading and writing, under guard
 * unless `host` code may touch it. MAP_FAILED with errno; what is there then has no access. */
void *blyi_guard_map(void *at, size_t size, int fd, off_t offset, bool host);
/* Lets host code touch what was mapped under guard. False with errno. */
bool blyi_guard_let_host(void *at, size_t size);

/* How the library's own code reaches `address`: *way. Returns how many bytes, at most `size`, can
 * be reached in a row from there; 0: no memory is behind the address. Only while has_alias; else
 * address and size themselves are right. */
uint64_t blyi_guard_way(const void *address, uint64_t size, void **way);

/* Called before the first work is queued that follows card addresses by itself (kernels,
 * reductions), with no lock held. Without keys the guard ends here: card memory is open from now
 * on, and a line of the log says so. One load afterwards. */
void blyi_guard_open(void);

#endif
