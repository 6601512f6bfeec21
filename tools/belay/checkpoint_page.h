/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint_page.h - one schedule as a page that needs nothing else: memory before and after,
 * and where each buffer lies.
 */
#ifndef BELAY_CHECKPOINT_PAGE_H
#define BELAY_CHECKPOINT_PAGE_H

#include <belay/checkpoint.h>
#include <stdio.h>

bly_status checkpoint_page(FILE *out, const char *path, const bly_chain *chain,
                           const bly_ckpt_schedule *schedule);

#endif
