/* SPDX-License-Identifier: Apache-2.0
 *
 * recorded.c - reads recorded programs.
 */
#include "recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/map.h"

struct recorded recorded_read(const char *path)
{
    char line[4096], command[4200];
    struct recorded t = {0};
    size_t room = 0;
    snprintf(command, sizeof command, "zstdcat '%s'", path);
    FILE *in = popen(command, "r");
    struct blyi_map map;
    blyi_map_init(&map);
    uint64_t live = 0;
    while (in && fgets(line, sizeof line, in)) {
        uint64_t time;
        char op;
        int64_t stream;
        uint64_t id, bytes;
        if (line[0] == '#' || sscanf(line, "%" SCNu64 "\t%c\t%" SCNu64 "\t%" SCNu64 "\t%" SCNd64,
                                     &time, &op, &id, &bytes, &stream) != 5)
            continue;
        if (t.n == room) {
            room = room ? 2 * room : 65536;
            t.events = realloc(t.events, room * sizeof *t.events);
        }
        t.events[t.n++] =
            (struct recorded_event){op, (uint32_t)(stream < 0 ? RECORDED_ALL : stream), id, bytes};
        if (op == 'a') {
            t.allocs++;
            live += bytes;
            blyi_map_put(&map, id, (void *)(uintptr_t)bytes);
            t.peak = live > t.peak ? live : t.peak;
        } else if (op == 'f') {
            live -= (uintptr_t)blyi_map_remove(&map, id);
        }
    }
    blyi_map_fini(&map);
    if (in)
        pclose(in);
    return t;
}
