/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - how long a kernel may run. A thread, made at the first limit, stops those that run
 * on; in real time, whatever the clock is.
 */
#ifndef BLYI_WATCH_H
#define BLYI_WATCH_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/list.h"

/* One run, in the frame of whoever runs it. */
struct blyi_watch {
    struct blyi_list link;
    uint64_t until_ns;
    uintptr_t token;
    int32_t tid;
    bool expired;
};

/* The limit of kernels that name none, process wide; 0: none. */
void blyi_watch_set_default(uint64_t timeout_us);
uint64_t blyi_watch_default_us(void);
/* E_SYSTEM: no thread. */
bly_status blyi_watch_need(void);
void blyi_watch_begin(struct blyi_watch *watch, uint64_t timeout_us, int32_t tid, uintptr_t token);
void blyi_watch_end(struct blyi_watch *watch);

#endif
