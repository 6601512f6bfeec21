/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_inside.h - what ledger.c, ledger_lock.c, ledger_card.c and ledger_alive.c share.
 */
#ifndef BLYI_LEDGER_INSIDE_H
#define BLYI_LEDGER_INSIDE_H

#include "npu/ledger.h"
#include "npu/ledger_process.h"
#include "base/lock.h"
#include "base/own_fd.h"

struct blyi_ledger_file { /* of a card */
    struct blyi_card_file *map;
    uint64_t size; /* bytes mapped */
    uint32_t n_frames;
    uint64_t cookie; /* of the card when it was mapped: another one is another file */
    bool linked;     /* the disk has promised the links */
};

struct blyi_ledger_inside {
    struct blyi_lock local; /* rank LEDGER */
    char *map;              /* NULL: not attached. Atomic */
    bool is_private;        /* no folder */
    struct blyi_own_fd folder, file;
    struct blyi_own_fd locks;  /* of the file `slots`: closing it would end our slot */
    struct blyi_mapped mapped; /* the file `ledger` */
    uint32_t slot;
    uint32_t word; /* of the lock, when it is ours (ledger_lock.c) */
    bool lost;     /* a file was cut short. Atomic */
    struct blyi_ledger_file cards[BLYI_LEDGER_CARDS];
};
extern struct blyi_ledger_inside blyi_ledger;

/* Record locks on bytes of the file `slots`. Byte BLYI_SLOTS is the lock of setting up. */
bool blyi_ledger_lock_byte(int fd, uint32_t byte);
void blyi_ledger_unlock_byte(int fd, uint32_t byte);
enum blyi_held { BLYI_HELD_NOT, BLYI_HELD, BLYI_HELD_UNKNOWN };
enum blyi_held blyi_ledger_byte_is_held(int fd, uint32_t byte);
/* Whether the process of a slot that is in use, and not ours, lives. */
bool blyi_ledger_slot_lives(int locks, uint32_t slot, const struct blyi_slot *there,
                            struct blyi_mapped ledger);
/* Waits for the lock of setting up. E_STATE: somebody keeps it for seconds. */
bly_status blyi_ledger_begin_setup(void);
void blyi_ledger_end_setup(void);

/* Chooses `word` for a slot; at most one process at a time may have it. */
void blyi_ledger_choose_word(uint32_t slot);
/* The lock is dropped if `slot`, whose process died, had it. */
void blyi_ledger_drop_dead(uint32_t slot);

/* The part of a header that may never differ is as it was made. */
bool blyi_ledger_is_whole(const struct blyi_ledger *header);
/* Under the lock: takes back all that a dead slot has. */
void blyi_ledger_reap_locked(uint32_t slot);
/* Somebody died inside the lock: no cache may be trusted. */
void blyi_ledger_doubt_locked(void);

#endif
