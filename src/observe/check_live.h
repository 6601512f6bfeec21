/* SPDX-License-Identifier: Apache-2.0
 *
 * check_live.h - the checker as a sink of probes, and what it says while the program runs.
 */
#ifndef BLYI_CHECK_LIVE_H
#define BLYI_CHECK_LIVE_H

#include "observe/check.h"
#include "observe/check_quiet.h"

/* By the options CHECK, SUPPRESSIONS and PRINT_LIMIT; nothing when CHECK is off. Once, before a
 * card is used. E_PARSE, E_IO, E_HOST_MEMORY: nothing is checked. */
bly_status blyi_check_live_start(void);
/* Groups that are looked for; 0: none, or not of this process. */
uint32_t blyi_check_live_groups(void);
const struct blyi_quiet *blyi_check_live_quiet(void);
/* A copy of what was found, to be freed with blyi_host_free(). Waits at most two seconds.
 * E_TIMEOUT, E_HOST_MEMORY. */
bly_status blyi_check_live_read(struct blyi_finding **out, size_t *n);
/* What queued work does with the account's events; nothing when nothing is checked. */
void blyi_check_live_events(struct blyi_account *account);
/* Why it stopped; NULL: it did not. */
const char *blyi_check_live_stopped(void);
bool blyi_check_live_audit(void);

#endif
