/* SPDX-License-Identifier: Apache-2.0
 *
 * eject.h - ejection search: presses a plan below a capacity by putting what does not fit where
 * it hurts least and finding new places for what lay there.
 */
#ifndef BLYI_PLAN_EJECT_H
#define BLYI_PLAN_EJECT_H

#include "plan/rand.h"
#include "plan/stop.h"
#include "plan/shelf.h"

struct blyi_eject;

bly_status blyi_eject_create(const struct blyi_pack *pack, struct blyi_eject **eject);
void blyi_eject_destroy(struct blyi_eject *eject);

/* Starts from offset[0 .. n); an item at BLYI_PACK_FREE or ending above the capacity has no
 * place yet. True: offset is a plan with peak <= capacity. False: `steps` ran out, a stop
 * set, or a fixed item is in the way; offset is untouched. *steps is what is left. */
bool blyi_eject_run(struct blyi_eject *eject, int64_t capacity, struct blyi_rand *rand,
                    uint64_t *steps, struct blyi_stop *stop, int64_t *offset);

#endif
