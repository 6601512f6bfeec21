/* SPDX-License-Identifier: Apache-2.0
 * The pool as a policy: on recorded programs, in several threads, and on cards that are too small.
 */
#include "replay_test.h"

#include <stdio.h>

#include "tools/belay/command.h"
#include "tools/belay/replay_input.h"
#include "tools/belay/replay_pool.h"
#include "tools/belay/trace_convert.h"

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprint_message(fmt, args);
    va_end(args);
}

static void read_trace(const char *name, struct blyi_replay_trace *trace)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s.tsv.zst", TRACE_FOLDER, name);
    assert_true(replay_input_read(path, EXPORT_ANY_CARD, trace));
}

static struct blyi_replay_result run_pool(const struct blyi_replay_trace *trace, uint32_t lag,
                                          uint32_t threads)
{
    struct blyi_replay_setup setup = {
        .trace = trace, .capacity = BLYI_REPLAY_UNBOUNDED, .lag = lag, .threads = threads};
    struct blyi_replay_result result;
    if (blyi_replay_run(&replay_pool, &setup, NULL, NULL, &result) != BLY_OK)
        fail_msg("%s", bly_last_error());
    return result;
}

/* Nothing overlaps and nothing is unmapped in use: the policy looks. What is held is bounded. */
static void holds_little_more_than_lives(void **state)
{
    static const char *const names[] = {"bertbase_train_real", "fsdp_multistream",
                                        "gpt2s_train_gradacc", "resnet50_train_real"};
    (void)state;
    for (size_t i = 0; i < BLYI_COUNT(names); i++) {
        struct blyi_replay_trace trace;
        read_trace(names[i], &trace);
        for (uint32_t lag = 0; lag <= 256; lag = lag * 16 + 1) {
            struct blyi_replay_result result = run_pool(&trace, lag, 1);
            uint64_t held = result.figures.peak_reserved;
            if (held > trace.peak_live + trace.peak_live / 16)
                fail_msg("%s, lag %u: %llu held of %llu live", names[i], lag,
                         (unsigned long long)held, (unsigned long long)trace.peak_live);
        }
        replay_input_release(&trace);
    }
}

static void the_same_in_every_run(void **state)
{
    struct blyi_replay_trace trace;
    (void)state;
    read_trace("fsdp_multistream", &trace);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct blyi_replay_result first = run_pool(&trace, 32, threads);
        struct blyi_replay_result second = run_pool(&trace, 32, threads);
        assert_memory_equal(&first.figures, &second.figures, sizeof(first.figures));
    }
    replay_input_release(&trace);
}

static void a_full_card_is_told_with_the_pools_words(void **state)
{
    struct blyi_replay_event events[] = {A(0, 40 * MiB, 0), A(1, 30 * MiB, 0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_result result;
    (void)state;
    assert_int_equal(run_on(&replay_pool, &trace, 64 * MiB, &result), BLY_E_NO_MEMORY);
    assert_int_equal(result.failed_at, 1);
    assert_int_equal(result.live, 40 * MiB);
    assert_non_null(
        strstr(bly_last_error(), "no room on a card of 67108864 B (64 MiB) for event 2"));
    assert_non_null(strstr(bly_last_error(), "no room for 31457280 B (30 MiB)"));
    /* 70 MiB are just enough. */
    assert_int_equal(run_on(&replay_pool, &trace, 70 * MiB, &result), BLY_OK);
    assert_int_equal(result.figures.peak_reserved, 70 * MiB);
}

static void memory_wanders_between_streams(void **state)
{
    struct blyi_replay_event events[] = {
        A(0, 40 * MiB, 0), U(0, 2), F(0), A(1, 40 * MiB, 1), F(1), S(-1), A(2, 40 * MiB, -7)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_result result;
    (void)state;
    assert_int_equal(run_on(&replay_pool, &trace, 40 * MiB, &result), BLY_OK);
    assert_int_equal(result.figures.peak_reserved, 40 * MiB);
    assert_int_equal(result.figures.pages_mapped, 60);
    assert_int_equal(result.figures.pages_unmapped, 40);
    assert_true(result.figures.waits > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_little_more_than_lives),
        cmocka_unit_test(the_same_in_every_run),
        cmocka_unit_test(a_full_card_is_told_with_the_pools_words),
        cmocka_unit_test(memory_wanders_between_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
