/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h - which file a site lay in when it was first seen: a plug-in may be gone when somebody
 * asks for the name of its code.
 */
#ifndef BLYI_PLACE_H
#define BLYI_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include "observe/module.h"

/* Remembers; further calls for a site cost a look-up. Without host memory, for an address in no
 * file, or for a line of a script, nothing is remembered. For sinks of probes: takes a lock of rank
 * SITE, and none of the dynamic linker's that a constructor of a library may be running under.
 * [any] */
void blyi_place_keep(uint32_t site);
/* What was remembered, else what is loaded there now; false when neither is known. [any] */
bool blyi_place_find(uint32_t site, struct blyi_module *out);

#endif
