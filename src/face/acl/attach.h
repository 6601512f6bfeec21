/* SPDX-License-Identifier: Apache-2.0
 *
 * attach.h - what must be in place before the first thing happens on a card: sinks of probes
 * and the log level that the environment asks for. Costs one load afterwards. [any]
 */
#ifndef BLYI_ACL_ATTACH_H
#define BLYI_ACL_ATTACH_H

#include <stdbool.h>
#include "base/compiler.h"

extern bool blyi_acl_attached; /* read without a lock: set once, after all is in place */
void blyi_acl_attach(void);

static inline void blyi_acl_enter(void)
{
    if (unlikely(!__atomic_load_n(&blyi_acl_attached, __ATOMIC_ACQUIRE)))
        blyi_acl_attach();
}

#endif
