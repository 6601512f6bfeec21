/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_inside.h - the records in the ledger's part for signals. What stands there may be garbage:
 * indices are bounded by their readers. Holders, lanes being given out and the state change under
 * the ledger's lock; the rest is atomic.
 */
#ifndef BLYI_SIGNAL_INSIDE_H
#define BLYI_SIGNAL_INSIDE_H

#include "npu/ledger.h"
#include "npu/signal.h"

enum blyi_signal_life { BLYI_SIGNAL_FREE, BLYI_SIGNAL_FORMING, BLYI_SIGNAL_LIVE };

struct blyi_signal_lane {
    uint32_t owner; /* slot + 1; 0: nobody's */
    uint32_t stream;
    uint32_t generation; /* raised when it is given to another stream. ~ */
    uint32_t n_open;     /* records begun and not done. ~ */
    uint64_t done;       /* records at positions below have ended. ~ */
    uint64_t lost_at;    /* those from here on never will, when lost_pid. ~ */
    uint32_t lost_pid;   /* of who died with records under way. ~ */
    uint32_t reserved;
};

struct blyi_signal_record {
    uint32_t life;       /* enum blyi_signal_life. ~ */
    uint32_t kind;       /* enum blyi_signal_kind */
    uint32_t generation; /* how often it was used */
    int32_t card;
    uint32_t maker; /* slot + 1 */
    uint32_t any_pid, n_pids;
    uint32_t turn;     /* futex: raised with each change. ~ */
    uint32_t sleepers; /* threads that wait at it. ~ */
    uint32_t value;    /* NOTIFY. ~ */
    uint32_t lost_pid; /* the last holder that died. ~ */
    uint32_t reserved;
    uint64_t last;                     /* EVENT: 0, or see pack() in signal_event.c. ~ */
    uint64_t holders[BLYI_SLOTS / 64]; /* a bit per slot. ~ */
    unsigned char secret[32];
    char lost_name[BLYI_SLOT_NAME];
    union {
        struct blyi_signal_lane lanes[BLYI_SIGNAL_LANES];
        int32_t pids[BLYI_SIGNAL_PIDS];
    };
};
#define BLYI_SIGNAL_SIZE 512u
#define BLYI_SIGNALS     (BLYI_LEDGER_SIGNALS_MAX / BLYI_SIGNAL_SIZE)
_Static_assert(sizeof(struct blyi_signal_record) <= BLYI_SIGNAL_SIZE, "a record has its room");

/* One of those that the disk has promised. */
struct blyi_signal_record *blyi_signal_record_at(uint32_t index);
/* How many that are. */
uint32_t blyi_signal_records(void);
/* The record has changed: whoever waits looks again. */
void blyi_signal_tell(struct blyi_signal *signal);
/* Whoever waits for it looks again, here as elsewhere. */
void blyi_signal_wake_locked(struct blyi_signal_record *record);
bool blyi_signal_has_holders(const struct blyi_signal_record *record);
/* A holder less; the last one frees the record. */
void blyi_signal_leave_locked(struct blyi_signal_record *record, uint32_t slot);

/* What a handle or key says. `generation`: its low 16 bits; of the secret, the first bytes. */
struct blyi_signal_name {
    enum blyi_signal_kind kind;
    uint32_t index, generation;
    const unsigned char *secret;
    size_t secret_size;
};
/* Makes this process a holder of the record, if it may be. E_INVALID, E_PERMISSION. */
bly_status blyi_signal_hold_locked(const struct blyi_signal_name *name, uint32_t *generation);
const char *blyi_signal_noun(enum blyi_signal_kind kind);
/* As blyi_signal_open_key(). `generation`: its low 16 bits; of the secret, the first bytes. */
bly_status blyi_signal_open_named(enum blyi_signal_kind kind, uint32_t index, uint32_t generation,
                                  const unsigned char *secret, size_t secret_size,
                                  struct blyi_signal **out);

static inline bool blyi_signal_has(const struct blyi_signal_record *record, uint32_t slot)
{
    return (__atomic_load_n(&record->holders[slot / 64], __ATOMIC_ACQUIRE) >> (slot % 64)) & 1;
}

#endif
