/* SPDX-License-Identifier: Apache-2.0
 *
 * relief.h - memory for a request that found none: first from this process (reclaim.h), then from
 * other processes that say that they hold some for reuse. Who was asked, and what came of it, is
 * part of the sentence when it was in vain.
 *
 *   struct blyi_relief relief = {0};
 *   for (;;) {
 *       try, under the card's lock; short of memory and relief.over: write the sentence
 *       if it worked, or relief.over: done
 *       blyi_relief_seek(&relief, card, bytes, capped);   no lock held; bytes of the request
 *   }
 */
#ifndef BLYI_RELIEF_H
#define BLYI_RELIEF_H

#include <stdbool.h>
#include <stdint.h>
#include "npu/service.h"

#define BLYI_RELIEF_ROWS 4

struct blyi_card;

struct blyi_relief {
    bool local, all; /* this process was asked; for everything */
    bool over;       /* nobody is left to ask */
    uint32_t n_asked;
    struct {
        uint32_t pid;
        char name[32];
        uint64_t asked, got;
        enum blyi_asked how;
    } rows[BLYI_RELIEF_ROWS]; /* of the first ones */
};

/* One step: this process, then the others, those first that hold most; they are asked for what is
 * missing, or for all of it when there is enough, but not in one piece. `capped`: only processes of
 * our cap group can help. Worth another try afterwards, whatever came. No lock. [any] */
void blyi_relief_seek(struct blyi_relief *relief, struct blyi_card *card, uint64_t bytes,
                      bool capped);
/* Adds "; asked pid 12 (serve) for 512 MiB: it gave back 256 MiB" to the thread's sentence. */
void blyi_relief_append(const struct blyi_relief *relief);

/* For reclaimers: so many bytes more (or less) of the card are held for reuse and could be given
 * back. Others read the sum. Cheap. [any] */
void blyi_idle_add(int card, int64_t bytes);
/* Where the same stands for pools, to be added to by atomics: what they hold in all, what of it is
 * in no block, what could be given back. The card is open. Not for the child of a fork. */
void blyi_pools_cells(int card, uint64_t **held, uint64_t **idle, uint64_t **spare);

#endif
