/* SPDX-License-Identifier: Apache-2.0
 * Recorded programs against every policy. The figures but the last are those of another simulator,
 * written in another language by somebody else; the last is the exact smallest capacity, which that
 * one finds to a 400th of the peak of live bytes. */
#include "replay_test.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/belay/command.h"
#include "tools/belay/replay_input.h"
#include "tools/belay/trace_convert.h"

enum {
    EVENTS,
    ALLOCS,
    PEAK_LIVE,
    PEAK_RESERVED,
    MAPPED,
    UNMAPPED,
    PAGES_MAPPED,
    PAGES_UNMAPPED,
    CAPACITY_NEAR,
    FLUSHES_NEAR,
    CAPACITY,
    N_FIGURES
};

static const struct expected {
    const char *trace;
    const struct blyi_replay_policy *policy;
    uint64_t pad, figure[N_FIGURES];
} expected[] = {
    {"bertbase_train_real",
     &blyi_replay_caching,
     32,
     {8443, 4521, 1951716432, 2176843776, 109, 0, 1038, 0, 2128609280, 5, 2128609280}},
    {"bertbase_train_real",
     &blyi_replay_caching,
     0,
     {8443, 4521, 1951716432, 2176843776, 109, 0, 1038, 0, 2126512128, 5, 2126512128}},
    {"bertbase_train_real",
     &blyi_replay_expandable,
     32,
     {8443, 4521, 1951716432, 2036334592, 125, 0, 971, 0, 1988100096, 5, 1988100096}},
    {"bertbase_train_real",
     &blyi_replay_stock,
     0,
     {8443, 4521, 1951716432, 3051356160, 4521, 3919, 7165, 5802, 3051356160, 0, 3051356160}},
    {"bertbase_train_real",
     &blyi_replay_firstfit,
     0,
     {8443, 4521, 1951716432, 2023751680, 175, 0, 965, 0, 2023751680, 0, 2023751680}},
    {"fsdp_multistream",
     &blyi_replay_caching,
     32,
     {12573, 6043, 18816253952, 27197964288, 325, 0, 12969, 0, 19599982592, 8, 19597885440}},
    {"fsdp_multistream",
     &blyi_replay_caching,
     0,
     {12573, 6043, 18816253952, 26667384832, 325, 0, 12716, 0, 19274924032, 8, 19260243968}},
    {"fsdp_multistream",
     &blyi_replay_expandable,
     32,
     {12573, 6043, 18816253952, 22596812800, 1082, 0, 10775, 0, 19079888896, 7, 19073597440}},
    {"fsdp_multistream",
     &blyi_replay_stock,
     0,
     {12573, 6043, 18816253952, 19409141760, 6043, 6042, 118862, 118861, 19409141760, 0,
      19409141760}},
    {"fsdp_multistream",
     &blyi_replay_firstfit,
     0,
     {12573, 6043, 18816253952, 19719520256, 165, 0, 9403, 0, 19719520256, 0, 19719520256}},
    {"gpt2s_train_gradacc",
     &blyi_replay_caching,
     32,
     {14251, 7124, 26940912912, 29066526720, 102, 0, 13860, 0, 29066526720, 0, 29066526720}},
    {"gpt2s_train_gradacc",
     &blyi_replay_caching,
     0,
     {14251, 7124, 26940912912, 28913434624, 102, 0, 13787, 0, 28913434624, 0, 28913434624}},
    {"gpt2s_train_gradacc",
     &blyi_replay_expandable,
     32,
     {14251, 7124, 26940912912, 27332182016, 1306, 0, 13033, 0, 27332182016, 0, 27290238976}},
    {"gpt2s_train_gradacc",
     &blyi_replay_stock,
     0,
     {14251, 7124, 26940912912, 28544335872, 7124, 7124, 211875, 211875, 28544335872, 0,
      28544335872}},
    {"gpt2s_train_gradacc",
     &blyi_replay_firstfit,
     0,
     {14251, 7124, 26940912912, 28219277312, 155, 0, 13456, 0, 28219277312, 0, 28219277312}},
    {"resnet50_train_real",
     &blyi_replay_caching,
     32,
     {23955, 12449, 499078400, 557842432, 41, 0, 266, 0, 557842432, 0, 557842432}},
    {"resnet50_train_real",
     &blyi_replay_caching,
     0,
     {23955, 12449, 499078400, 541065216, 60, 0, 258, 0, 536870912, 3, 536870912}},
    {"resnet50_train_real",
     &blyi_replay_expandable,
     32,
     {23955, 12449, 499078400, 534773760, 39, 0, 255, 0, 534773760, 0, 534773760}},
    {"resnet50_train_real",
     &blyi_replay_stock,
     0,
     {23955, 12449, 499078400, 2225078272, 12449, 11502, 13644, 12610, 2225078272, 0, 2225078272}},
    {"resnet50_train_real",
     &blyi_replay_firstfit,
     0,
     {23955, 12449, 499078400, 526385152, 112, 0, 251, 0, 526385152, 0, 526385152}},
};

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vprint_message(fmt, args);
    va_end(args);
}

static void measure(const struct expected *e, uint64_t figure[N_FIGURES])
{
    char path[1024];
    struct blyi_replay_trace trace;
    struct blyi_replay_result open, near, least;
    snprintf(path, sizeof(path), "%s/%s.tsv.zst", TRACE_FOLDER, e->trace);
    assert_true(replay_input_read(path, EXPORT_ANY_CARD, &trace));
    struct blyi_replay_setup setup = {
        .trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED, .pad = e->pad, .lag = 32};
    assert_int_equal(blyi_replay_run(e->policy, &setup, NULL, NULL, &open), BLY_OK);
    assert_int_equal(
        blyi_replay_least(e->policy, &setup, trace.peak_live / 400, &figure[CAPACITY_NEAR], &near),
        BLY_OK);
    assert_int_equal(blyi_replay_least(e->policy, &setup, 0, &figure[CAPACITY], &least), BLY_OK);
    figure[EVENTS] = trace.n_events;
    figure[ALLOCS] = trace.n_allocs;
    figure[PEAK_LIVE] = trace.peak_live;
    figure[PEAK_RESERVED] = open.figures.peak_reserved;
    figure[MAPPED] = open.figures.handles_mapped;
    figure[UNMAPPED] = open.figures.handles_unmapped;
    figure[PAGES_MAPPED] = open.figures.pages_mapped;
    figure[PAGES_UNMAPPED] = open.figures.pages_unmapped;
    figure[FLUSHES_NEAR] = near.figures.flushes;
    setup.capacity = figure[CAPACITY] - BLYI_REPLAY_PAGE;
    assert_int_equal(blyi_replay_run(e->policy, &setup, NULL, NULL, &least), BLY_E_NO_MEMORY);
    replay_input_release(&trace);
}

static void figures_are_those_of_another_simulator(void **state)
{
    (void)state;
    for (size_t i = 0; i < BLYI_COUNT(expected); i++) {
        uint64_t figure[N_FIGURES];
        measure(&expected[i], figure);
        for (size_t f = 0; f < N_FIGURES; f++)
            if (figure[f] != expected[i].figure[f])
                fail_msg("%s, %s, pad %" PRIu64 ": figure %zu is %" PRIu64 ", not %" PRIu64,
                         expected[i].trace, expected[i].policy->name, expected[i].pad, f, figure[f],
                         expected[i].figure[f]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_another_simulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
