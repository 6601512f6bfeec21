/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup.h - memory that the control groups of this process leave, versions 1 and 2.
 */
#ifndef BLYI_CGROUP_H
#define BLYI_CGROUP_H

#include <stdint.h>

/* Lowers *room to what the tightest group on the way to the root leaves (file cache that can be
 * dropped counted as left), and *limit to that group's limit. Which groups have a limit is
 * found once per process. Takes no lock of ours. [any] */
void blyi_cgroup_room(uint64_t *room, uint64_t *limit);

#endif
