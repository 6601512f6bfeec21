/* SPDX-License-Identifier: Apache-2.0
 *
 * trimmer.h - the thread that trims pools with opts.trim_ms. It is there while such pools are.
 */
#ifndef BLYI_TRIMMER_H
#define BLYI_TRIMMER_H

#include "pool/pool.h"

/* E_SYSTEM: no thread can be made. */
bly_status blyi_trimmer_add(bly_pool *pool);
void blyi_trimmer_remove(bly_pool *pool); /* waits for a trim in progress */

#endif
