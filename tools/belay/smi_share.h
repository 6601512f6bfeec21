/* SPDX-License-Identifier: Apache-2.0
 *
 * smi_share.h - exported memory, as `belay smi` shows it: who made it, who has it open.
 */
#ifndef BLY_SMI_SHARE_H
#define BLY_SMI_SHARE_H

#include <jansson.h>

#include "npu/ledger_view.h"

/* A line for each of the largest exports of a card, and one for all others. */
void smi_print_shares(const struct blyi_ledger_view *view, int card);
/* All of a card; -1: of all cards. */
json_t *smi_shares_json(const struct blyi_ledger_view *view, int card);

#endif
