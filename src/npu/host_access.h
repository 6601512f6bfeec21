/* SPDX-License-Identifier: Apache-2.0
 *
 * host_access.h - what is told when host code touches card memory: where, whose block, from
 * which site, and by which functions.
 */
#ifndef BLYI_HOST_ACCESS_H
#define BLYI_HOST_ACCESS_H

/* From now on every fault in a card's window that nobody expects is told on stderr and to the sinks
 * of HOST_ACCESS, before it takes its course. Also without a guard, where only addresses without
 * memory fault. */
void blyi_host_access_watch(void);

#endif
