/* SPDX-License-Identifier: Apache-2.0
 *
 * maps.c - counts host mappings of all windows against vm.max_map_count.
 */
#include "npu/maps.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"
#include "base/sys.h"
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_MAP_COUNT "/proc/sys/vm/max_map_count"
#define DEFAULT_LIMIT 65530 /* the kernel's */

static _Atomic int64_t used; /* relaxed: a sum that orders nothing */
static uint64_t limit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_limit(void)
{
    char text[32] = "";
    limit = DEFAULT_LIMIT;
    int fd = blyi_sys_open(MAX_MAP_COUNT, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (blyi_sys_read(fd, text, sizeof text - 1) > 0)
        limit = strtoull(text, NULL, 10);
    close(fd);
}

uint64_t blyi_maps_budget(void)
{
    pthread_once(&once, read_limit);
    return limit / 4 * 3;
}

void blyi_maps_add(int64_t n)
{
    atomic_fetch_add_explicit(&used, n, memory_order_relaxed);
}

uint64_t blyi_maps_used(void)
{
    return (uint64_t)atomic_load_explicit(&used, memory_order_relaxed);
}

bool blyi_maps_allow(int64_t more)
{
    return more <= 0 || blyi_maps_used() + (uint64_t)more <= blyi_maps_budget();
}

bly_status blyi_maps_spent(const char *owner, int64_t more)
{
    uint64_t budget = blyi_maps_budget();
    return blyi_fail(BLY_E_SYSTEM,
                     "%s: host mappings ran out: %" PRIu64 " in use, %" PRId64 " more needed, "
                     "Belay allows itself %" PRIu64 ", 3/4 of vm.max_map_count %" PRIu64,
                     owner, blyi_maps_used(), more, budget, limit);
}

bly_status blyi_maps_refused(const char *owner, uint64_t bytes, int error)
{
    char text[BLYI_SIZE_TEXT];
    uint64_t budget = blyi_maps_budget();
    return blyi_fail(BLY_E_SYSTEM,
                     "%s: the kernel refused to map %s: %s; mappings in use by Belay %" PRIu64
                     " of %" PRIu64 " allowed, vm.max_map_count %" PRIu64,
                     owner, blyi_size_text(bytes, text),
                     error == EBADF ? "this program closed the descriptor of that memory"
                                    : strerror(error),
                     blyi_maps_used(), budget, limit);
}
