/* SPDX-License-Identifier: Apache-2.0
 *
 * host_pages.h - pages of host memory at a reserved address: there, touched, locked where the
 * system allows it; and gone again. Books nothing (host_room.h). [any]
 */
#ifndef BLYI_HOST_PAGES_H
#define BLYI_HOST_PAGES_H

#include <belay/base.h>
#include <stdbool.h>

/* E_HOST_MEMORY, with a sentence; the range is a reservation again then, or *stuck is true and
 * blyi_host_pages_unmap() must be tried later. *locked: kept in RAM by the system. */
bly_status blyi_host_pages_map(uintptr_t address, uint64_t size, bool *locked, bool *stuck);
/* Back to a reservation. False: the kernel refused; the pages are empty at least. */
bool blyi_host_pages_unmap(uintptr_t address, uint64_t size);

#endif
