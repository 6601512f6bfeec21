/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_clock.h"

#include <string.h>
#include "base/host.h"

void blyi_vc_fini(struct blyi_vc *vc)
{
    blyi_host_free(vc->at);
    *vc = (struct blyi_vc){NULL, 0, 0};
}

static bool reach(struct blyi_vc *vc, uint32_t n)
{
    if (n <= vc->n)
        return true;
    if (n > vc->room) {
        uint32_t room = n + n / 2 + 4;
        uint64_t *at = blyi_host_realloc(vc->at, room * sizeof(*at));
        if (at == NULL)
            return false;
        vc->at = at;
        vc->room = room;
    }
    memset(vc->at + vc->n, 0, (n - vc->n) * sizeof(*vc->at));
    vc->n = n;
    return true;
}

bool blyi_vc_raise(struct blyi_vc *vc, uint32_t slot, uint64_t value)
{
    if (value <= blyi_vc_get(vc, slot))
        return true;
    if (!reach(vc, slot + 1))
        return false;
    vc->at[slot] = value;
    return true;
}

static bool join_from(struct blyi_vc *vc, const struct blyi_vc *other, uint32_t first,
                      bool *changed)
{
    if (!reach(vc, other->n))
        return false;
    for (uint32_t i = first; i < other->n; i++) {
        if (other->at[i] > vc->at[i]) {
            vc->at[i] = other->at[i];
            *changed = true;
        }
    }
    return true;
}

bool blyi_vc_join(struct blyi_vc *vc, const struct blyi_vc *other)
{
    bool changed;
    return join_from(vc, other, 0, &changed);
}

bool blyi_vc_join_streams(struct blyi_vc *vc, const struct blyi_vc *other, bool *changed)
{
    return join_from(vc, other, BLYI_SLOT_MOMENT + 1, changed);
}
