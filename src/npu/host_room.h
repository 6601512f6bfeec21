/* SPDX-License-Identifier: Apache-2.0
 *
 * host_room.h - how much memory of the host Belay may still take, so that no touch of card or
 * pinned memory ends in SIGBUS or the OOM killer. Takes no lock of ours. [any]
 *
 *   room = min(MemAvailable, what each cgroup above us leaves) - margin,
 *   and with BELAY_HOST_LIMIT at most that limit - what Belay holds
 */
#ifndef BLYI_HOST_ROOM_H
#define BLYI_HOST_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Books `bytes` before they are touched. False, and nothing booked, when the host cannot afford
 * them. Reads /proc once per some 100 MiB booked or 50 ms, not at every call. */
bool blyi_host_room_take(uint64_t bytes);
void blyi_host_room_give(uint64_t bytes);
/* Books bytes that the host has given already, to another process. */
void blyi_host_room_adopt(uint64_t bytes);
uint64_t blyi_host_room_held(void);

struct blyi_host_room {
    uint64_t room;         /* what could be taken now */
    uint64_t available;    /* MemAvailable */
    uint64_t cgroup;       /* what the tightest cgroup leaves; UINT64_MAX: no limit */
    uint64_t cgroup_limit; /* its limit */
    uint64_t margin;       /* kept for everybody else */
    uint64_t limit;        /* BELAY_HOST_LIMIT; 0: none */
    uint64_t held;         /* booked by this process */
    uint64_t ram;
};
/* Reads the system now. */
void blyi_host_room_read(struct blyi_host_room *out);

#define BLYI_HOST_ROOM_TEXT 512
/* "the host has 1073741824 B (1 GiB) available, ...": for sentences, read now. */
const char *blyi_host_room_text(char buf[BLYI_HOST_ROOM_TEXT]);

#endif
