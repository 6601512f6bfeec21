/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping.h - physical memory behind reserved addresses, and who may touch it.
 */
#ifndef BLYI_MAPPING_H
#define BLYI_MAPPING_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/memory.h"

#define BLYI_LOCATION_HOST (-1) /* in place of a card: host code */

/* Maps all of a handle at a granule of a reservation. With `access` the card of the memory may
 * touch it at once (memory of the host: nobody until a grant).
 * E_INVALID  address not in a reservation, not aligned, in use (by what); offset not 0; size not
 *            that of the handle; the reservation has memory of another card
 * E_HANDLE, E_SYSTEM (budget of mappings), E_HOST_MEMORY [any] */
bly_status blyi_mapping_make(uintptr_t address, uint64_t size, uint64_t offset, void *handle,
                             bool access, uint32_t site);
/* E_INVALID: nothing is mapped from exactly there. Waits for nobody. [any] */
bly_status blyi_mapping_remove(uintptr_t address, uint32_t site);

/* Lets a card or the host read and write. E_INVALID: not exactly a mapping; E_STATE: granted to
 * it otherwise already; E_UNSUPPORTED: BELAY_PEER keeps the cards apart. Granting again is fine.
 * [any] */
bly_status blyi_mapping_grant(uintptr_t address, uint64_t size, int location);
/* Whether a location may read and write. E_INVALID: nothing is mapped there. */
bly_status blyi_mapping_access(uintptr_t address, int location, bool *granted);

struct blyi_mapping_info {
    int card;     /* of the memory; -1: the host's */
    int for_card; /* imported: whose work it is for; else as `card` */
    uintptr_t address;
    uint64_t size;
    enum blyi_page_kind page_kind;
    bool host_access;
    bool touchable; /* somebody may touch it */
    uint32_t map_site, physical_site;
    uint64_t time_ns;
};
/* The mapping around an address. [any] */
bool blyi_mapping_find(uintptr_t address, struct blyi_mapping_info *out);

struct blyi_unmapped_info {
    uintptr_t address;
    uint64_t size;
    uint32_t physical_site, unmap_site;
    uint64_t time_ns; /* of the unmap */
};
/* The last unmap, of 1024, that held the address. [any] */
bool blyi_mapping_unmapped(uintptr_t address, struct blyi_unmapped_info *out);

/* For use.c: as blyi_mem_use_by(), for addresses of this window. */
bly_status blyi_mapping_use(uintptr_t address, uint64_t size, enum blyi_access access,
                            int accessor);

#endif
