/* SPDX-License-Identifier: Apache-2.0
 *
 * barrier.h - making every running thread of this process pass a memory barrier (membarrier(2)).
 * Who publishes with two plain stores can so be stopped by another thread at no cost of its own.
 */
#ifndef BLYI_BARRIER_H
#define BLYI_BARRIER_H

#include <stdbool.h>

/* Whether the kernel can; registers the process. The first time is cheap while the process has one
 * thread (early.c), else it waits for all processors: 5 to 20 ms. [any] */
bool blyi_barrier_ready(void);
/* False: it cannot. It can once it was ready. [any] */
bool blyi_barrier_all(void);

#endif
