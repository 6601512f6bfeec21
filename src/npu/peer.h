/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.h - which cards can reach each other's memory (option PEER), and for which ordered pairs
 * the program enabled it.
 */
#ifndef BLYI_PEER_H
#define BLYI_PEER_H

#include <belay/base.h>
#include <stdbool.h>

/* Whether `card` and `peer` share a switch; a card does with itself. E_PARSE: option PEER. [any] */
bly_status blyi_peer_can(int card, int peer, bool *can);
/* E_UNSUPPORTED, with the reason, when they do not. */
bly_status blyi_peer_check(int card, int peer);
/* `card` may touch all memory of `peer` from now on; that way only. Enabling twice is fine. The
 * cards differ. E_UNSUPPORTED. [any] */
bly_status blyi_peer_enable(int card, int peer);
void blyi_peer_disable(int card, int peer);
bool blyi_peer_enabled(int card, int peer);
/* For use.c: whether work of `accessor` may touch memory of aclrtMalloc on `owner`. E_FAULT. */
bly_status blyi_peer_use(int accessor, int owner);
/* Forgets what was enabled (finalise). */
void blyi_peer_reset(void);

#endif
