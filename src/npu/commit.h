/* SPDX-License-Identifier: Apache-2.0
 *
 * commit.h - how frames of a memfd get pages of the host: one huge page each by collapsing,
 * else 4 KiB pages. Decides nothing about how many (host_room.h). No lock, no state but
 * whether the kernel can collapse.
 */
#ifndef BLYI_COMMIT_H
#define BLYI_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of option PAGES. */
enum blyi_commit_pages { BLYI_COMMIT_AUTO, BLYI_COMMIT_HUGE, BLYI_COMMIT_SMALL };

/* Backs one frame, absent so far and mapped at `address`. False, with errno, when the host gives
 * no pages; none are left behind then. */
bool blyi_commit_frame(int fd, uint32_t frame, char *address, enum blyi_commit_pages pages,
                       bool *huge);

/* Whether collapsing works here, as far as it was tried: -1 not yet, 0 no, 1 yes. */
int blyi_commit_collapses(void);

#endif
