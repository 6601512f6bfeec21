/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - hands a probe to the sinks that want its kind, without a lock.
 */
#include "base/probe.h"
#include "base/ended.h"
#include "base/lock.h"
#include "base/stamp.h"

uint64_t blyi_probe_wanted[BLYI_KINDS_WORDS], blyi_probe_begun[BLYI_KINDS_WORDS];
static struct blyi_sink *sinks;     /* only ever grows at its front, like */
static struct blyi_teller *tellers; /* this one */
static struct blyi_lock lists = BLYI_LOCK_INIT(BLYI_RANK_SINKS); /* writers of all above */

static void publish_wanted_locked(void)
{
    for (int i = 0; i < BLYI_KINDS_WORDS; i++) {
        uint64_t wanted = 0, begun = 0;
        for (struct blyi_sink *sink = sinks; sink != NULL; sink = sink->next) {
            uint64_t kinds = __atomic_load_n(&sink->wanted[i], __ATOMIC_RELAXED);
            wanted |= kinds;
            begun |= sink->wants_began ? kinds : 0;
        }
        __atomic_store_n(&blyi_probe_begun[i], begun, __ATOMIC_RELEASE);
        __atomic_store_n(&blyi_probe_wanted[i], wanted, __ATOMIC_RELEASE);
    }
    blyi_ended_tell(blyi_probe_any_on(BLYI_KIND(ALLOC) | BLYI_KIND(FREE)));
}

static void store_kinds(struct blyi_sink *sink, blyi_kinds kinds)
{
    for (int i = 0; i < BLYI_KINDS_WORDS; i++)
        __atomic_store_n(&sink->wanted[i], BLYI_KINDS_WORD(kinds, i), __ATOMIC_RELEASE);
}

void blyi_probe_add_sink(struct blyi_sink *sink)
{
    blyi_lock_take(&lists);
    store_kinds(sink, sink->kinds);
    sink->next = sinks;
    /* Release: who finds the sink finds its fields. */
    __atomic_store_n(&sinks, sink, __ATOMIC_RELEASE);
    publish_wanted_locked();
    blyi_lock_drop(&lists);
}

void blyi_probe_set_kinds(struct blyi_sink *sink, blyi_kinds kinds)
{
    blyi_lock_take(&lists);
    store_kinds(sink, kinds);
    publish_wanted_locked();
    blyi_lock_drop(&lists);
}

void blyi_probe_silence(struct blyi_sink *sink)
{
    store_kinds(sink, 0);
}

void blyi_probe_add_teller(struct blyi_teller *teller)
{
    blyi_lock_take(&lists);
    struct blyi_teller **end = &tellers;
    while (*end != NULL)
        end = &(*end)->next;
    teller->next = NULL;
    __atomic_store_n(end, teller, __ATOMIC_RELEASE); /* as for sinks */
    blyi_lock_drop(&lists);
}

void blyi_probe_tell(const struct blyi_sink *to)
{
    for (struct blyi_teller *teller = __atomic_load_n(&tellers, __ATOMIC_ACQUIRE); teller != NULL;
         teller = __atomic_load_n(&teller->next, __ATOMIC_ACQUIRE))
        teller->tell(to);
}

void blyi_probe_emit_slow(struct blyi_probe *probe)
{
    for (struct blyi_sink *sink = __atomic_load_n(&sinks, __ATOMIC_ACQUIRE); sink != NULL;
         sink = sink->next) {
        if (!blyi_kinds_has(sink->wanted, probe->kind))
            continue;
        if (probe->time_ns == 0 && !sink->timeless)
            probe->time_ns = blyi_stamp_ns();
        sink->probe(sink->arg, probe);
    }
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
