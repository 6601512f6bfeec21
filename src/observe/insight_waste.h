/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_waste.h - what memory costs beyond what was asked for.
 */
#ifndef BLYI_INSIGHT_WASTE_H
#define BLYI_INSIGHT_WASTE_H

#include "observe/insight_peak.h"

struct blyi_waste {
    bool told;            /* the file has rounded and backed bytes of its own; else the rest is 0 */
    struct blyi_live all; /* every block of card memory: count, asked, rounded, backed */
    struct blyi_live at_peak;                     /* those live at the peak of asked bytes */
    struct blyi_live pages[BLYI_PAGE_KIND_COUNT]; /* of `all`, by kind of page */
    struct blyi_live pinned;                      /* host memory */
    uint64_t saving; /* of all sites together at one moment: what the 32 bytes cost at most */
};
void blyi_waste_make(const struct blyi_history *history, uint32_t peak_at, struct blyi_waste *out);

#endif
