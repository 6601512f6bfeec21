/* SPDX-License-Identifier: Apache-2.0
 *
 * lasting.h - blocks that graphs know again (base/pool_blocks.h).
 */
#ifndef BLYI_LASTING_H
#define BLYI_LASTING_H

void blyi_lasting_offer(void);

#endif
