/* SPDX-License-Identifier: Apache-2.0
 *
 * share_layout.h - memory with several holders, and the keys to it, in the ledger's file (from
 * BLYI_LEDGER_AT_SHARES on). May be garbage, as all of that file: indices are bounded by whoever
 * reads them. Written under the ledger's lock.
 *
 *   share     a block or handle whose frames belong to all its holders: its maker, importers
 *   key       what opens a share, or a part of it: 64 characters, 64 bits or 128 bytes
 */
#ifndef BLYI_SHARE_LAYOUT_H
#define BLYI_SHARE_LAYOUT_H

#include <stdint.h>
#include "npu/ledger_layout.h"

#define BLYI_SHARES     4096u
#define BLYI_KEYS       4096u
#define BLYI_KEY_PIDS   (BLYI_SLOTS - 1) /* all others */
#define BLYI_KEY_SECRET 24
#define BLYI_KEY_WHERE  128

/* FORMING ends with its maker; ENDING is finished by whoever comes next. */
enum blyi_share_state { BLYI_SHARE_EMPTY, BLYI_SHARE_FORMING, BLYI_SHARE_LIVE, BLYI_SHARE_ENDING };

#define BLYI_SHARE_PHYSICAL   1u /* of a handle, else of a block */
#define BLYI_SHARE_CONTIGUOUS 2u
#define BLYI_SHARE_READONLY   4u

#define BLYI_FRAME_NONE UINT32_MAX

struct blyi_share {
    uint32_t state; /* enum blyi_share_state. ~ */
    uint32_t card;
    uint64_t generation; /* tells two uses of one record apart. ~ */
    uint32_t maker;      /* slot */
    uint32_t maker_pid;
    uint64_t maker_cookie;
    uint64_t asked, bytes;      /* of the block or handle; bytes: as backed */
    uint64_t address;           /* of a block, in its maker */
    uint64_t pc;                /* of the call that made the memory, in its maker */
    uint64_t made_ns, freed_ns; /* CLOCK_MONOTONIC; freed_ns 0: its maker has it still */
    uint32_t page_kind, flags;
    uint32_t first, whole; /* frames, by links[] from `first` on; NONE, 0: only a tail */
    uint32_t tail_frame, tail_page, tail_pages; /* behind them, in a frame with others' pages */
    uint32_t n_keys;                            /* that are live */
    uint64_t holders[BLYI_SLOTS / 64];
};

enum blyi_key_state { BLYI_KEY_EMPTY, BLYI_KEY_LIVE, BLYI_KEY_GONE };
enum blyi_key_kind { BLYI_KEY_TEXT, BLYI_KEY_HANDLE, BLYI_KEY_FABRIC };
/* FREED_CLOSED: its maker has closed the key as well, after the memory. */
enum blyi_key_end { BLYI_KEY_CLOSED, BLYI_KEY_FREED, BLYI_KEY_DIED, BLYI_KEY_FREED_CLOSED };

struct blyi_key {
    uint32_t state;
    uint32_t kind;
    uint64_t id; /* random, not 0; also in ids[] */
    uint8_t secret[BLYI_KEY_SECRET];
    uint32_t share, card;
    uint64_t generation; /* of the share */
    uint64_t offset, length;
    uint32_t maker, maker_pid; /* slot */
    uint64_t maker_cookie;
    uint64_t gone_ns;
    uint32_t end; /* of one that is gone: enum blyi_key_end */
    uint32_t any; /* 1: any process of the user may import; 0: those of `pids` */
    uint32_t n_pids;
    int32_t pids[BLYI_KEY_PIDS];
    char where[BLYI_KEY_WHERE]; /* of the call that ended it */
};

/* n_shares and n_keys records are backed by the disk and may be read; they only grow. The cursors
 * say where to look for room, so that what ended stays readable for a while. */
struct blyi_shares {
    uint32_t n_shares, n_keys;
    uint32_t share_cursor, key_cursor;
    uint32_t live_shares, live_keys; /* hints for growing */
    uint64_t generation;
    uint64_t ids[BLYI_KEYS]; /* 0: that key is empty */
};

#define BLYI_SHARES_AT_SHARES 36864u
#define BLYI_SHARES_AT_KEYS   (BLYI_SHARES_AT_SHARES + BLYI_SHARES * sizeof(struct blyi_share))
_Static_assert(sizeof(struct blyi_shares) <= BLYI_SHARES_AT_SHARES, "the head has its room");
_Static_assert(BLYI_SHARES_AT_KEYS + BLYI_KEYS * sizeof(struct blyi_key) <= BLYI_LEDGER_SHARES_MAX,
               "shares and keys have their room");
_Static_assert(BLYI_SHARES <= BLYI_FRAME_SHARED, "a word can name every share");

#endif
