/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - hands a probe to the sinks that want its kind, without a lock.
 */
#include "base/probe.h"
#include "base/clock.h"

#include <assert.h>

static_assert(BLYI_PROBE_COUNT <= 64, "kinds are bits of a uint64_t");

uint64_t blyi_probe_wanted;
static struct blyi_sink *sinks; /* only ever grows at its front */

void blyi_probe_add_sink(struct blyi_sink *sink)
{
    sink->next = __atomic_load_n(&sinks, __ATOMIC_RELAXED);
    /* Release: who finds the sink finds its fields. */
    while (!__atomic_compare_exchange_n(&sinks, &sink->next, sink, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
    __atomic_fetch_or(&blyi_probe_wanted, sink->kinds, __ATOMIC_RELEASE);
}

void blyi_probe_emit_slow(struct blyi_probe *probe)
{
    if (probe->time_ns == 0)
        probe->time_ns = blyi_clock_ns();
    for (struct blyi_sink *sink = __atomic_load_n(&sinks, __ATOMIC_ACQUIRE); sink != NULL;
         sink = sink->next)
        if ((sink->kinds >> probe->kind) & 1)
            sink->probe(sink->arg, probe);
}

const char *blyi_probe_key(enum blyi_probe_kind kind)
{
    static const char *const keys[] = {
#define PROBE_KEY(name, key) key,
        BLYI_PROBES(PROBE_KEY)
#undef PROBE_KEY
    };
    return kind < BLYI_PROBE_COUNT ? keys[kind] : "?";
}
