/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/card.h - the memory of a card as a whole: figures, and gathering what is scattered.
 *
 * Cards are numbered from 0, whatever ASCEND_RT_VISIBLE_DEVICES shows. Sizes are bytes.
 * Threads  [any] for all functions here.
 */
#ifndef BLY_CARD_H
#define BLY_CARD_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct_size comes from the caller: fields behind it are not written. Fields are only appended. */
typedef struct bly_card {
    uint32_t struct_size;
    int32_t card;
    uint64_t total, free;           /* as programs see them */
    uint64_t longest_run;           /* the longest row of free frames */
    uint64_t free_giants;           /* free aligned GiB */
    uint64_t live;                  /* behind blocks and handles */
    uint64_t blocks;                /* of aclrtMalloc: how many */
    uint64_t handles, handle_bytes; /* of aclrtMallocPhysical */
    uint64_t orphans, orphan_bytes; /* of those, reachable by no address */
    uint64_t ranges, reserved;      /* of aclrtReserveMemAddress, all cards together */
    uint64_t mappings, mapped;      /* of aclrtMapMem, all cards together */
    uint64_t fixed;                 /* bytes that defragmentation leaves where they are */
} bly_card;

/* E_INVALID struct_size below 8; E_DEVICE; E_STATE: the card is not in use by this process. */
BLY_API bly_status bly_card_info(int card, bly_card *info);

typedef struct bly_defrag {
    uint32_t struct_size;
    int32_t card;
    uint64_t want;                  /* in: a free run that is enough; 0: as much as can be had */
    uint64_t timeout_ns;            /* in: how long running tasks may take to pause; 0: 10 s */
    uint64_t moved;                 /* bytes of frames that were moved, */
    uint64_t copied;                /* of those, with content */
    uint64_t run_before, run_after; /* longest free run */
    uint64_t giants_before, giants_after; /* free aligned GiB */
    uint64_t fixed;                       /* bytes that must stay where they are */
    uint64_t time_ns;
} bly_defrag;

/* Gathers the free memory of a card: frames move to its low end, under their mappings, so that no
 * address changes. Tasks that touch card memory pause while a batch of at most 64 frames is
 * moved; work goes on in between. Contiguous (peer-to-peer) memory, 1 GiB pages and the runtime's
 * own memory stay. The results are filled also when the call fails.
 * E_INVALID    struct_size below 24
 * E_DEVICE, E_STATE  as above
 * E_NO_MEMORY  `want` was not reached: the sentence says what stays in the way
 * E_TIMEOUT    running tasks did not pause; what was moved so far is moved
 * E_HOST_MEMORY, E_SYSTEM  the host could not back or map a frame; nothing is lost */
BLY_API bly_status bly_card_defrag(bly_defrag *defrag);

/* Makes a place of card memory answer with an error that cannot be corrected, as a fault of the
 * memory itself would, so that a program's way of recovering can be tried: copies, sets and
 * reductions that touch it fail, and kernels do that declare it (belay/kernel.h). The card tells
 * of it once it was touched (aclrtGetMemUceInfo, aclrtGetErrorVerbose); repair
 * (aclrtMemUceRepair, aclrtRepairError) makes it good again, with zeros in it. The place is an
 * address: it stays when the memory is freed.
 * E_INVALID       size 0, or no card memory
 * E_FAULT         not all of it is live
 * E_MEMORY_ERROR  it touches such a place already
 * E_STATE         128 places have errors */
BLY_API bly_status bly_card_poison(const void *address, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
