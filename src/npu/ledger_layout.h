/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_layout.h - what lies in the files of the state folder. All of it may be garbage: whoever
 * reads bounds every index and trusts no text. Fields are read and written atomically where two
 * processes can meet without the ledger's lock (marked ~).
 */
#ifndef BLYI_LEDGER_LAYOUT_H
#define BLYI_LEDGER_LAYOUT_H

#include <stdint.h>

#define BLYI_LEDGER_MAGIC   0x726567646570a1ffu
#define BLYI_LEDGER_VERSION 3u

#define BLYI_SLOTS        256u
#define BLYI_LEDGER_CARDS 64u
#define BLYI_SLOT_NAME    32
#define BLYI_SLOT_ROWS    120u
#define BLYI_SLOT_CAPS    8u
#define BLYI_SLOT_SIZE    16384u

/* What a process has on a card. Written by that process alone. ~ */
struct blyi_slot_card {
    int32_t fd; /* of the card's memory in that process; -1: not open */
    uint32_t contexts;
    uint64_t live, peak;           /* backed bytes of blocks and handles that it made */
    uint64_t overhead;             /* of the runtime */
    uint64_t unused;               /* pages of its partial frames */
    uint64_t idle;                 /* of `live`: held by pools for reuse, could be given back */
    uint64_t pool_held, pool_idle; /* of `live`: in pools; of that, in no block */
    uint64_t imported;             /* bytes of others that it has open */
    uint64_t shared;               /* of `live`: in frames that a share has */
    uint64_t deferred;             /* of freed blocks that others hold, in its partial frames */
    uint32_t streams, events, notifies;
    uint32_t away; /* frames whose content is in host memory: a snapshot (away.h) */
};

enum blyi_row_kind {
    BLYI_ROW_NONE,
    BLYI_ROW_BLOCK,
    BLYI_ROW_HANDLE, /* physical memory */
    BLYI_ROW_STREAM,
    BLYI_ROW_EVENT,
    BLYI_ROW_IMPORT,
    BLYI_ROW_KINDS
};

/* What a process made at one place of its code. ~ */
struct blyi_slot_row {
    uint64_t pc;   /* in that process; its /proc/PID/maps tells the module */
    uint32_t kind; /* enum blyi_row_kind; NONE: not used */
    int32_t card;
    uint64_t bytes, count;
    uint64_t last_ns; /* CLOCK_MONOTONIC of the last one made */
};

struct blyi_slot {
    uint32_t pid;
    uint32_t reserved;
    uint64_t start;    /* of the process, clock ticks since boot (field 22 of /proc/PID/stat) */
    uint64_t cookie;   /* random: tells two users of one slot apart */
    uint64_t began_ns; /* CLOCK_MONOTONIC */
    char name[BLYI_SLOT_NAME];
    uint64_t cap;       /* BELAY_CAP; 0: none */
    uint64_t cap_group; /* the innermost of `caps`; 0: in none */
    uint64_t booked;    /* what caps count: blocks, handles, overhead. ~ */
    struct {
        uint64_t group, cap; /* 0: end of the list; inner groups first (cap_origin.h) */
    } caps[BLYI_SLOT_CAPS];
    uint64_t live, peak; /* of all cards together. ~ */
    uint32_t bell;       /* futex: raised to wake the service thread. ~ */
    uint32_t asleep;     /* its service thread waits at the bell. ~ */
    uint8_t ask[128];    /* requests and answers of the service threads (service.h) */
    struct blyi_slot_card cards[BLYI_LEDGER_CARDS];
    struct blyi_slot_row rows[BLYI_SLOT_ROWS];
    uint64_t others_bytes[BLYI_ROW_KINDS], others_count[BLYI_ROW_KINDS]; /* of further sites. ~ */
};
_Static_assert(sizeof(struct blyi_slot) <= BLYI_SLOT_SIZE, "a slot has its room");

struct blyi_ledger_card {
    uint32_t n_frames; /* 0: not made */
    uint32_t reserved;
    uint64_t device, inode; /* of the memfd, as fstat tells */
    uint64_t cookie;
    char model[BLYI_SLOT_NAME];
};

struct blyi_ledger {
    uint64_t magic;
    uint32_t version, size; /* of the layout; both differ between builds that must not meet */
    uint64_t pid_space;     /* inode of the pid namespace */
    uint64_t checksum;      /* of the four above */
    uint32_t lock;          /* futex: whose it is (below), and BLYI_LEDGER_WAITED. ~ */
    uint32_t turn;          /* odd while the lock is held. ~ */
    uint64_t used[BLYI_SLOTS / 64]; /* a bit per slot that somebody has, dead or alive. ~ */
    uint64_t n_deaths;              /* slots cleared after their process */
    uint64_t looked_ns;             /* CLOCK_MONOTONIC when one last looked who is dead. ~ */
    uint32_t has_shares;            /* their part of the file is in use (share_layout.h). ~ */
    uint32_t n_signals;             /* records that the disk has promised (signal.c) */
    uint32_t reserved;
    struct blyi_ledger_card cards[BLYI_LEDGER_CARDS];
};
/* The lock:  31       30        9  8      0
 *           [WAITED][ generation ][ slot + 1 ]
 * A generation is drawn by each who takes a slot, so that its word differs from that of the dead
 * who had the slot before. */
#define BLYI_LEDGER_WAITED 0x80000000u
#define BLYI_LEDGER_OWNER  0x1ffu

/* The file `ledger`: places of its parts. Only what is used is allocated. */
#define BLYI_LEDGER_AT_SLOTS    16384u
#define BLYI_LEDGER_AT_SHARES   (BLYI_LEDGER_AT_SLOTS + BLYI_SLOTS * BLYI_SLOT_SIZE)
#define BLYI_LEDGER_SHARES_MAX  (8u << 20) /* bytes for shares and keys (share.h) */
#define BLYI_LEDGER_AT_SIGNALS  (BLYI_LEDGER_AT_SHARES + BLYI_LEDGER_SHARES_MAX)
#define BLYI_LEDGER_SIGNALS_MAX (1u << 20) /* bytes for events and notifies (signal.h) */
#define BLYI_LEDGER_SIZE        (BLYI_LEDGER_AT_SIGNALS + BLYI_LEDGER_SIGNALS_MAX)
_Static_assert(sizeof(struct blyi_ledger) <= BLYI_LEDGER_AT_SLOTS, "the header has its room");

/* A frame:   31  24  18      17    16        15           0
 *           [slot] [UNSURE][HUGE][COMMITTED][    owner     ]
 * `slot` is who makes or takes away its pages while UNSURE is set. ~ */
#define BLYI_FRAME_OWNER      0xffffu /* 0: free; 1 + slot; SHARED | share */
#define BLYI_FRAME_SHARED     0x8000u
#define BLYI_FRAME_COMMITTED  0x10000u /* pages of the host are behind it */
#define BLYI_FRAME_HUGE       0x20000u
#define BLYI_FRAME_UNSURE     0x40000u /* there may be pages, or not */
#define BLYI_FRAME_SLOT_SHIFT 24

enum blyi_change { BLYI_CHANGE_TAKEN, BLYI_CHANGE_FREED, BLYI_CHANGE_PUNCHED };
#define BLYI_CHANGES 1024u

struct blyi_card_file {
    uint64_t magic;
    uint32_t n_frames;
    uint32_t epoch;      /* raised when words changed without a log entry */
    uint64_t n_changes;  /* ever; the next goes to changes[n_changes % BLYI_CHANGES] */
    uint32_t least_free; /* frames, since the file was made: the card's peak */
    uint32_t reserved;
    uint64_t changes[BLYI_CHANGES]; /* kind << 62 | first << 31 | count */
    uint32_t words[];               /* n_frames; then uint64_t links[n_frames] */
};
/* links[f], f the first frame of a run of a share: next run's first << 32 | this run's length; the
 * last run's next is BLYI_FRAME_NONE. */

#endif
