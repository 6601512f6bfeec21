/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h - blocks of card memory: allocation by page kind, free, lookup, figures, and the
 * check that every copy, set and task makes before it touches an address.
 */
#ifndef BLYI_MEMORY_H
#define BLYI_MEMORY_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/probe.h"

struct blyi_card;

enum blyi_mem_policy {
    BLYI_MEM_HUGE_FIRST, /* normal pages up to 1 MiB, above that huge, else normal */
    BLYI_MEM_HUGE_ONLY,
    BLYI_MEM_NORMAL_ONLY,
    BLYI_MEM_GIANT_ONLY,
};

#define BLYI_MEM_CONTIGUOUS 1u /* physically contiguous (peer-to-peer policies) */
#define BLYI_MEM_LOW        2u /* in the card's first 4 GiB (task scheduler) */
#define BLYI_MEM_READONLY   4u /* kernels and copies may read only */

#define BLYI_MEM_HUGE_ABOVE MiB /* HUGE_FIRST takes huge pages above this rounded size */

struct blyi_mem_request {
    uint64_t asked;   /* as the program wrote it */
    uint64_t rounded; /* by round.h */
    enum blyi_mem_policy policy;
    uint32_t flags;
    uint32_t site;
    uint16_t module; /* for usage by module; 33 is the application */
};

/* Allocates on a card. The address is aligned to 512 at least (in fact to the page).
 * E_NO_MEMORY   the card; sentence: asked, free, largest usable, biggest holders by site
 * E_CAP         BELAY_CAP; sentence: cap, used, left, asked, short by, the card's own free
 * E_UNSUPPORTED 1 GiB pages on a model without
 * E_HOST_MEMORY, E_SYSTEM  host side, told as such
 * Tries reclaim once before E_NO_MEMORY and E_CAP. [any] */
bly_status blyi_mem_alloc(struct blyi_card *card, const struct blyi_mem_request *request,
                          void **address);

/* Frees at once, whatever still uses it. E_INVALID with a sentence that tells apart: not card
 * memory, inside a block (which, offset), freed already (where), never allocated. [any] */
bly_status blyi_mem_free(void *address, uint32_t site);

/* Takes back every block of the card (device reset); emits RESET_FREE. */
void blyi_mem_free_all(struct blyi_card *card);

struct blyi_mem_block {
    int card;
    uintptr_t address;
    uint64_t asked, rounded, backed;
    enum blyi_page_kind page_kind;
    uint32_t site;
    uint16_t module;
    uint64_t time_ns;
    uint64_t serial; /* of this block and no other */
};
/* As blyi_mem_free(), of that block alone: E_INVALID also when another lies there by now. [any] */
bly_status blyi_mem_free_block(const struct blyi_mem_block *block, uint32_t site);
/* The last block freed, of 1024, that held the address on that card. [any] */
struct blyi_freed_block;
bool blyi_mem_freed(int card, uintptr_t address, struct blyi_freed_block *out);
/* The live block around an address. [any] */
bool blyi_mem_find(const void *address, struct blyi_mem_block *out);
uint64_t blyi_page_bytes(enum blyi_page_kind kind);

enum blyi_access { BLYI_READ = 1, BLYI_WRITE = 2 };

/* Where a range lies and whether work may touch it. */
enum blyi_place { BLYI_PLACE_HOST, BLYI_PLACE_PINNED, BLYI_PLACE_CARD };

/* Classifies one address: card window (card id in *card, also for freed addresses; NULL is
 * allowed), pinned window, or plain host memory. Reserved addresses are those of what is mapped
 * there; with nothing mapped a card's, *card is -1. Registered host memory counts as pinned. A
 * lock only for host memory while something is registered. */
enum blyi_place blyi_place_of(const void *address, int *card);

/* Checks that every page of [address, address + size) in a card window is live and allows
 * `access`, and commits its frames, so that touching it cannot fail. No lock when all frames
 * are committed and whole. Addresses outside card windows are passed: they are not for here.
 * E_FAULT        sentence: the address, the nearest block and how far outside, or when freed
 * E_HOST_MEMORY  the host cannot back the frames
 * E_MEMORY_ERROR a place in it has an error (poison.h) */
bly_status blyi_mem_use(const void *address, uint64_t size, enum blyi_access access);
/* The same for a card that touches the memory of another: it needs the right, enabled for all
 * memory (peer.h) or granted for a mapping. accessor -1: the card of the memory itself. */
bly_status blyi_mem_use_by(const void *address, uint64_t size, enum blyi_access access,
                           int accessor);
/* After a touch that faulted: why one byte may not be touched, once a change under way has ended
 * (a free or unmap first takes the memory away and then says so). */
bly_status blyi_mem_recheck(const void *address, enum blyi_access access);

struct blyi_mem_figures {
    uint64_t total;       /* bytes that programs see */
    uint64_t free;        /* whole free frames + unused pages of partial frames */
    uint64_t huge_free;   /* whole free frames */
    uint64_t giant_free;  /* free aligned GiB */
    uint64_t normal_free; /* unused pages of partial frames */
    uint64_t largest_run; /* longest contiguous free run */
    uint64_t live;        /* backed bytes of live blocks and physical handles */
    uint64_t peak;        /* largest `live` so far */
    uint64_t overhead;    /* of the runtime */
    uint64_t blocks;
    uint64_t physical; /* of `live`, behind handles */
    uint64_t handles;
    uint64_t orphans; /* handles that no address reaches, and their bytes */
    uint64_t orphan_bytes;
};
void blyi_mem_figures(struct blyi_card *card, struct blyi_mem_figures *out);

/* Bytes of this process on all cards that count toward BELAY_CAP: live blocks (backed) and the
 * runtime's overhead. */
uint64_t blyi_mem_cap_used(void);

struct blyi_mem_usage { /* by driver module */
    char name[32];
    uint64_t live, peak;
};
/* Rows by falling live bytes; returns how many there are, writes at most `max`. */
size_t blyi_mem_usage(struct blyi_card *card, struct blyi_mem_usage *rows, size_t max);

bool blyi_mem_audit(struct blyi_card *card);

#endif
