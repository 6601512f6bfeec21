/* SPDX-License-Identifier: Apache-2.0
 *
 * observe.h - the door of src/observe: what is watched in this process, as the options say.
 */
#ifndef BLYI_OBSERVE_H
#define BLYI_OBSERVE_H

/* Adds the sinks that the options ask for (REPORT: the account), so that the report is written
 * when the process exits. Must come before the first probe that shall count; later calls do
 * nothing. [any] */
void blyi_observe_attach(void);

#endif
