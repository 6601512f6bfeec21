/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - see replay.h.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"
#include "replay/replay.h"

/* ---- live bytes -------------------------------------------------------------------------- */

/* Bytes asked for, by block: a FREE does not tell them. */
static uint64_t *sizes_of(const struct blyi_replay_trace *trace)
{
    uint64_t *sizes = blyi_host_calloc((size_t)trace->n_blocks + 1, sizeof(*sizes));
    if (sizes == NULL) {
        blyi_fail_put(BLY_E_HOST_MEMORY, "no host memory for the sizes of %u blocks",
                      trace->n_blocks);
        return NULL;
    }
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i].op == BLYI_REPLAY_ALLOC)
            sizes[trace->events[i].block] = trace->events[i].bytes;
    return sizes;
}

static uint64_t live_after(uint64_t live, const uint64_t *sizes,
                           const struct blyi_replay_event *event)
{
    if (event->op == BLYI_REPLAY_ALLOC)
        return live + event->bytes;
    return event->op == BLYI_REPLAY_FREE ? live - sizes[event->block] : live;
}

/* ---- one run ----------------------------------------------------------------------------- */

static bly_status no_room(const struct blyi_replay_policy *policy,
                          const struct blyi_replay_setup *setup,
                          const struct blyi_replay_result *result)
{
    char asked[BLYI_SIZE_TEXT], reserved[BLYI_SIZE_TEXT], live[BLYI_SIZE_TEXT];
    char idle[BLYI_SIZE_TEXT], capacity[BLYI_SIZE_TEXT];
    bool is_limited = setup->capacity != BLYI_REPLAY_UNBOUNDED;
    const struct blyi_replay_event *event = &setup->trace->events[result->failed_at];
    uint64_t held = result->figures.reserved;
    char told[512];
    snprintf(told, sizeof(told), "%s%s", policy->tells ? ": " : "",
             policy->tells ? blyi_fail_text() : "");
    return blyi_fail(
        BLY_E_NO_MEMORY,
        "%s: no room on a card %s%s for event %zu, which asks for %s on stream %d (reserved %s, "
        "live %s, idle %s)%s",
        policy->name, is_limited ? "of " : "without limit",
        is_limited ? blyi_size_text(setup->capacity, capacity) : "", result->failed_at + 1,
        blyi_size_text(event->bytes, asked), event->stream, blyi_size_text(held, reserved),
        blyi_size_text(result->live, live),
        blyi_size_text(held > result->live ? held - result->live : 0, idle), told);
}

static void play(const struct blyi_replay_policy *policy, const struct blyi_replay_setup *setup,
                 void *state, const uint64_t *sizes, blyi_replay_watch *watch, void *context,
                 struct blyi_replay_result *result)
{
    const struct blyi_replay_trace *trace = setup->trace;
    for (size_t i = 0; i < trace->n_events; i++) {
        result->status = policy->step(state, i, &trace->events[i]);
        if (result->status != BLY_OK) {
            result->failed_at = i;
            return;
        }
        result->live = live_after(result->live, sizes, &trace->events[i]);
        if (watch != NULL) {
            policy->figures(state, &result->figures);
            watch(context, i, result->figures.reserved, result->live);
        }
    }
}

bly_status blyi_replay_run(const struct blyi_replay_policy *policy,
                           const struct blyi_replay_setup *setup, blyi_replay_watch *watch,
                           void *context, struct blyi_replay_result *result)
{
    void *state;
    *result = (struct blyi_replay_result){.status = BLY_E_HOST_MEMORY};
    uint64_t *sizes = sizes_of(setup->trace);
    if (sizes == NULL)
        return BLY_E_HOST_MEMORY;
    result->status = policy->make(setup, &state);
    if (result->status == BLY_OK) {
        uint64_t start = blyi_clock_ns();
        play(policy, setup, state, sizes, watch, context, result);
        result->ns = blyi_clock_ns() - start;
        policy->figures(state, &result->figures);
        policy->drop(state);
    }
    blyi_host_free(sizes);
    return result->status == BLY_E_NO_MEMORY ? no_room(policy, setup, result) : result->status;
}

/* ---- the smallest capacity --------------------------------------------------------------- */

static bly_status try_pages(const struct blyi_replay_policy *policy,
                            const struct blyi_replay_setup *setup, uint64_t pages,
                            struct blyi_replay_result *result)
{
    struct blyi_replay_setup tried = *setup;
    tried.capacity = pages * BLYI_REPLAY_PAGE;
    return blyi_replay_run(policy, &tried, NULL, NULL, result);
}

/* From the peak on a card without limit upwards: a policy may do worse where that is all there is.
 */
static bly_status find_any(const struct blyi_replay_policy *policy,
                           const struct blyi_replay_setup *setup, uint64_t *fails, uint64_t *works,
                           struct blyi_replay_result *result)
{
    uint64_t all = BLYI_REPLAY_UNBOUNDED / BLYI_REPLAY_PAGE, more = 1;
    bly_status status = try_pages(policy, setup, all, result);
    if (status != BLY_OK)
        return status;
    *works = result->figures.peak_reserved / BLYI_REPLAY_PAGE;
    while ((status = try_pages(policy, setup, *works, result)) == BLY_E_NO_MEMORY && *works < all) {
        *fails = *works;
        *works = more < all - *works ? *works + more : all;
        more *= 2;
    }
    return status;
}

bly_status blyi_replay_least(const struct blyi_replay_policy *policy,
                             const struct blyi_replay_setup *setup, uint64_t within,
                             uint64_t *capacity, struct blyi_replay_result *result)
{
    struct blyi_replay_result tried;
    uint64_t step = within > BLYI_REPLAY_PAGE ? within / BLYI_REPLAY_PAGE : 1;
    uint64_t works, fails = setup->trace->peak_live / BLYI_REPLAY_PAGE;
    if (setup->trace->peak_live % BLYI_REPLAY_PAGE == 0 && fails > 0)
        fails--; /* that would be just enough */
    bly_status status = find_any(policy, setup, &fails, &works, result);
    while (status == BLY_OK && works - fails > step) {
        uint64_t pages = fails + (works - fails) / 2;
        bly_status half = try_pages(policy, setup, pages, &tried);
        if (half == BLY_OK) {
            works = pages;
            *result = tried;
        } else if (half == BLY_E_NO_MEMORY) {
            fails = pages;
        } else {
            status = half;
        }
    }
    if (status == BLY_OK)
        *capacity = works * BLYI_REPLAY_PAGE;
    return status;
}
