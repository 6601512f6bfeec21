/* SPDX-License-Identifier: Apache-2.0
 *
 * backing.h - the host memory behind a card's frames: one sparse memfd, committed frame by
 * frame at first use, kept resident a while after a frame is freed. Guards its own state
 * (rank BACKING).
 */
#ifndef BLYI_BACKING_H
#define BLYI_BACKING_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_backing;

enum blyi_backing_pages { BLYI_BACKING_HUGE, BLYI_BACKING_SMALL };

/* E_SYSTEM, E_HOST_MEMORY. Options PAGES, RESIDENT, HOST_LIMIT are read here. */
bly_status blyi_backing_create(int card, uint32_t n_frames, struct blyi_backing **out);
void blyi_backing_destroy(struct blyi_backing *backing);
int blyi_backing_fd(const struct blyi_backing *backing);

/* Makes frames [first, first + count), mapped at `address`, usable without a fault that could
 * fail. Frames that are resident cost nothing. E_HOST_MEMORY: the host cannot afford them; the
 * sentence says what is asked, what the host has and who set the limit; frames that were
 * committed before the failure stay so. */
bly_status blyi_backing_commit(struct blyi_backing *backing, uint32_t first, uint32_t count,
                               void *address);
bool blyi_backing_is_committed(const struct blyi_backing *backing, uint32_t frame);
/* The card freed these frames: they stay resident up to the limit, then the oldest are punched. */
void blyi_backing_retire(struct blyi_backing *backing, uint32_t first, uint32_t count);
/* The card took these frames again: resident ones no longer count as spare. */
void blyi_backing_reuse(struct blyi_backing *backing, uint32_t first, uint32_t count);
/* Gives spare frames back to the host; returns bytes. */
uint64_t blyi_backing_trim(struct blyi_backing *backing, uint64_t bytes);

struct blyi_backing_figures {
    uint64_t committed; /* bytes of host memory behind the card */
    uint64_t spare;     /* of those, behind free frames */
    uint64_t huge;      /* of those committed, behind one huge page each */
};
void blyi_backing_figures(const struct blyi_backing *backing, struct blyi_backing_figures *out);

/* What the host could still give: min of MemAvailable, cgroup limit and BELAY_HOST_LIMIT, less
 * a margin; bytes. Also used by pinned memory and `belay doctor`. */
uint64_t blyi_backing_host_room(void);

#endif
