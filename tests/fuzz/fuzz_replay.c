/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_replay.c - traces of any kind against every policy, on cards with and without room: what a
 * policy says it holds agrees with what it mapped and covers what lives, twice in the same way.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "tools/belay/command.h"
#include "tools/belay/replay_input.h"
#include "tools/belay/replay_pool.h"
#include "tools/belay/trace_convert.h"
#include "tools/belay/trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void say(const char *fmt, ...) /* files are not read here */
{
    (void)fmt;
    abort();
}

static void require(int cond)
{
    if (!cond)
        abort();
}

static void look(void *context, size_t event, uint64_t reserved, uint64_t live)
{
    (void)context, (void)event;
    require(reserved >= live);
}

static struct blyi_replay_result run(const struct blyi_replay_policy *policy,
                                     const struct blyi_replay_setup *setup)
{
    struct blyi_replay_result result;
    bly_status status = blyi_replay_run(policy, setup, look, NULL, &result);
    const struct blyi_replay_figures *f = &result.figures;
    require(status == BLY_OK || (status == BLY_E_NO_MEMORY && blyi_fail_text()[0] != '\0'));
    require(f->reserved == (f->pages_mapped - f->pages_unmapped) * BLYI_REPLAY_PAGE);
    require(f->reserved <= f->peak_reserved && f->peak_reserved <= setup->capacity);
    return result;
}

static void replay(const struct blyi_replay_trace *trace, const struct blyi_replay_policy *policy)
{
    const uint64_t capacities[] = {BLYI_REPLAY_UNBOUNDED, trace->peak_live + 64 * MiB,
                                   trace->peak_live / 2 + 1};
    for (size_t i = 0; i < BLYI_COUNT(capacities); i++) {
        struct blyi_replay_setup setup = {.trace = trace,
                                          .capacity = capacities[i],
                                          .pad = i == 1 ? 32 : 0,
                                          .lag = i == 1 ? 0 : 3};
        struct blyi_replay_result first = run(policy, &setup), second = run(policy, &setup);
        require(first.status == second.status && first.live == second.live);
        require(memcmp(&first.figures, &second.figures, sizeof(first.figures)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct blyi_replay_policy *const policies[] = {
        &blyi_replay_stock, &blyi_replay_caching, &blyi_replay_expandable, &blyi_replay_firstfit,
        &replay_pool};
    struct blyi_trace *trace;
    struct blyi_replay_trace events;
    if (trace_import(data, size, "input", &trace) != BLY_OK)
        return 0;
    bly_status status = replay_input_load(trace, EXPORT_ANY_CARD, &events);
    require(status == BLY_OK || status == BLY_E_INVALID);
    /* A large block is many granules of the simulated device. */
    if (status == BLY_OK && events.peak_live <= 64 * GiB)
        for (size_t i = 0; i < BLYI_COUNT(policies); i++)
            replay(&events, policies[i]);
    replay_input_release(&events);
    blyi_trace_close(trace);
    return 0;
}
