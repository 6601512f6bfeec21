/* SPDX-License-Identifier: Apache-2.0
 *
 * tell.h - what is live on the cards, told to a sink that comes late.
 */
#ifndef BLYI_TELL_H
#define BLYI_TELL_H

/* Adds the teller (probe.h); once, as the runtime starts. */
void blyi_tell_start(void);

#endif
