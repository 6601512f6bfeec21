/* SPDX-License-Identifier: Apache-2.0
 *
 * vmm.h - addresses that programs reserve, in one window shared by all cards. What is mapped
 * there is mapping.h's; the memory is physical.h's.
 */
#ifndef BLYI_VMM_H
#define BLYI_VMM_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_reservation_info {
    uintptr_t address;
    uint64_t size;
    uint32_t site;
    uint64_t time_ns;
    uint32_t n_mappings;
    bool of_pool; /* BLYI_RESERVE_POOL */
};

#define BLYI_RESERVE_GIB  1u /* size in whole GiB, at a multiple of one (NoUC addresses) */
#define BLYI_RESERVE_POOL 2u /* a pool's: probes and figures do not take it for the program's */

/* Reserves addresses, without memory behind them: whole granules, 2 MiB at least. `expect` 0: any
 * place; else exactly there. More than any card has is allowed.
 * E_INVALID     size 0; `expect` not aligned (above 512 MiB: to 1 GiB; else to the next power of
 *               two of the size, 2 MiB at least), outside the window, or in use (by what, where)
 * E_NO_MEMORY   no such range is free
 * E_SYSTEM, E_HOST_MEMORY  host side [any] */
bly_status blyi_vmm_reserve(uint64_t size, uintptr_t expect, uint32_t flags, uint32_t site,
                            uintptr_t *address);
/* E_INVALID: not the start of a reservation (what it is instead), or something is mapped in it
 * (how much, where). [any] */
bly_status blyi_vmm_release(uintptr_t address, uint32_t site);
/* The reservation around an address. [any] */
bool blyi_vmm_find(uintptr_t address, struct blyi_reservation_info *out);
/* For what a program asks for itself: E_INVALID where the address is one that a pool reserved. */
bly_status blyi_vmm_check_own(uintptr_t address);

struct blyi_vmm_figures {
    uint64_t reservations, reserved; /* how many, bytes */
    uint64_t mappings, mapped;
    uint64_t handles, handle_bytes; /* physical memory, cards and host */
    uint64_t orphans, orphan_bytes; /* of those, mapped nowhere */
    uint64_t window_base, window_size;
};
/* card -1: handles of the host's memory; reservations and mappings are of all cards. */
void blyi_vmm_figures(int card, struct blyi_vmm_figures *out);

/* Unmaps and releases everything that the process reserved, frees the host's physical memory;
 * cards have freed theirs before. */
void blyi_vmm_finalise(void);
bool blyi_vmm_audit(void);

#endif
