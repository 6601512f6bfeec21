/* SPDX-License-Identifier: Apache-2.0
 *
 * registered.h - host memory of the program that it registered for cards. Book-keeping: nothing
 * is moved, locked or mapped anew, and the device address is the host address (vmm.md).
 */
#ifndef BLYI_REGISTERED_H
#define BLYI_REGISTERED_H

#include <belay/base.h>
#include <stdbool.h>

#define BLYI_REGISTER_MAPPED   1u /* cards may touch it */
#define BLYI_REGISTER_IO       2u /* memory of another device */
#define BLYI_REGISTER_READONLY 4u
#define BLYI_REGISTER_PINNED   8u

struct blyi_registered {
    uintptr_t address;
    uint64_t size, pinned; /* as asked; whole pages from the start */
    uint32_t flags, site;
    uint64_t time_ns;
};

/* E_ALIGN       the address is not a multiple of option PIN_ALIGN (offset, nearest)
 * E_REGISTERED  some of it is registered already (which, where)
 * E_INVALID     size 0 or beyond the end of memory; memory of a card, outside one pinned block,
 *               or nothing is mapped there
 * E_PIN_LIMIT, E_HOST_MEMORY [any] */
bly_status blyi_registered_add(void *address, uint64_t size, uint32_t flags, uint32_t site);
/* E_NOT_REGISTERED: not the start of a registration (what it is instead). [any] */
bly_status blyi_registered_remove(void *address, uint32_t site);

/* The registration around an address; `out` may be NULL. [any] */
bool blyi_registered_find(uintptr_t address, struct blyi_registered *out);
/* Whether anything is registered: one load. */
bool blyi_registered_any(void);

struct blyi_registered_figures {
    uint64_t count, bytes;
};
void blyi_registered_figures(struct blyi_registered_figures *out);
bool blyi_registered_audit(void);

#endif
