/* SPDX-License-Identifier: Apache-2.0
 *
 * early.c - what costs microseconds while the process has one thread, and later makes the kernel
 * wait for all processors, 5 to 20 ms each. So it is done as the library is loaded. A process that
 * has threads by then pays when it needs them.
 */
#include <sys/single_threaded.h>

#include "base/barrier.h"
#include "base/own_fd.h"

__attribute__((constructor)) static void begin_early(void)
{
    if (!__libc_single_threaded)
        return;
    (void)blyi_barrier_ready();
    blyi_own_fd_make_room();
}
