/* SPDX-License-Identifier: Apache-2.0
 *
 * attach.c - sinks of probes are added once per process.
 */
#include "face/acl/attach.h"

#include <pthread.h>

#include "observe/observe.h"

bool blyi_acl_attached;

static void attach_once(void)
{
    blyi_observe_attach();
    __atomic_store_n(&blyi_acl_attached, true, __ATOMIC_RELEASE);
}

void blyi_acl_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach_once);
}
