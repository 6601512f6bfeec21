/* SPDX-License-Identifier: Apache-2.0
 *
 * account_access.c - host accesses: told in a signal handler, so without a lock or memory.
 */
#include "observe/account_inside.h"

#include <stdatomic.h>
#include "base/site.h"

static struct {
    _Atomic(const void *) pc; /* set first, by whoever takes the entry; NULL: unused */
    _Atomic bool filled;
    _Atomic uint64_t count;
    struct blyi_account_access access;
} accesses[BLYI_ACCOUNT_ACCESSES];

void blyi_account_access_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    for (size_t i = 0; i < BLYI_ACCOUNT_ACCESSES; i++) {
        const void *pc = NULL;
        if (atomic_compare_exchange_strong(&accesses[i].pc, &pc, probe->pc)) {
            accesses[i].access = (struct blyi_account_access){
                .card = probe->card,
                .block_site = probe->site,
                .is_write = probe->aux != 0,
                .address = probe->address,
                .offset = probe->other != 0 ? probe->address - probe->other : 0,
                .size = probe->asked};
            atomic_store(&accesses[i].filled, true);
        } else if (pc != probe->pc) {
            continue;
        }
        atomic_fetch_add(&accesses[i].count, 1);
        return;
    }
}

void blyi_account_copy_accesses(struct blyi_account *out)
{
    out->n_accesses = 0;
    for (size_t i = 0; i < BLYI_ACCOUNT_ACCESSES; i++) {
        if (!atomic_load(&accesses[i].filled))
            continue;
        struct blyi_account_access *to = &out->accesses[out->n_accesses++];
        *to = accesses[i].access;
        to->site = blyi_site_intern(atomic_load(&accesses[i].pc));
        to->count = atomic_load(&accesses[i].count);
    }
}
