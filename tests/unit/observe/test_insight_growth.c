/* SPDX-License-Identifier: Apache-2.0
 *
 * test_insight_growth.c - saw-tooth, plateau, creep; cycles by marks, ranges and the curve; sizes
 * that grow.
 */
#include "insight_test.h"

#define KIND_OF(out, ...)                                                                          \
    do {                                                                                           \
        const uint64_t valleys_[] = {__VA_ARGS__};                                                 \
        blyi_growth_of(valleys_, sizeof(valleys_) / sizeof(valleys_[0]), out);                     \
    } while (0)

static void rows_of_valleys_are_told_apart(void **state)
{
    struct blyi_growth g;
    (void)state;
    KIND_OF(&g, 1, 2, 3); /* too few */
    assert_int_equal(g.kind, BLYI_GROWTH_UNKNOWN);
    KIND_OF(&g, 5, 5, 5, 5);
    assert_int_equal(g.kind, BLYI_GROWTH_SAWTOOTH);
    KIND_OF(&g, 5, 9, 4, 5, 8, 5);
    assert_int_equal(g.kind, BLYI_GROWTH_SAWTOOTH);
    KIND_OF(&g, 10, 20, 30, 40);
    assert_int_equal(g.kind, BLYI_GROWTH_CREEP);
    assert_int_equal(g.rises, 3);
    assert_int_equal(g.grown, 30);
    assert_int_equal(g.least, 10);
    assert_int_equal(g.most, 10);
    KIND_OF(&g, 50, 10, 11, 13, 16); /* fell once, has risen since */
    assert_int_equal(g.kind, BLYI_GROWTH_CREEP);
    assert_int_equal(g.from, 1);
    assert_int_equal(g.grown, 6);
    assert_int_equal(g.least, 1);
    assert_int_equal(g.most, 3);
    KIND_OF(&g, 1, 4, 7, 9, 9, 9, 9, 9);
    assert_int_equal(g.kind, BLYI_GROWTH_PLATEAU);
    assert_int_equal(g.from, 3);
    assert_int_equal(g.grown, 8);
    KIND_OF(&g, 1, 2, 3, 2, 3, 4, 3, 4); /* rises, not in each */
    assert_int_equal(g.kind, BLYI_GROWTH_UNEVEN);
    KIND_OF(&g, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4); /* too short a row */
    assert_int_not_equal(g.kind, BLYI_GROWTH_CREEP);
}

static void a_leak_of_each_step_creeps_and_is_named(void **state)
{
    struct story s;
    char text[32];
    (void)state;
    story_begin(&s, 0);
    uint32_t leak = site_at(&s, "leak", 1), work = site_at(&s, "work", 2);
    uint64_t at = 0x100000;
    for (uint64_t i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "step %llu", (unsigned long long)i);
        TELL(&s, MARK, .event = name_of(&s, text));
        make(&s, 0x10, 5000, work);
        make(&s, at += 0x1000, 64, leak);
        end(&s, 0x10);
    }
    look(&s);
    assert_int_equal(s.in->cycles.source, BLYI_CYCLES_MARKS);
    assert_int_equal(s.in->cycles.n, 9); /* the last is not over */
    assert_int_equal(s.in->growth.kind, BLYI_GROWTH_CREEP);
    assert_int_equal(s.in->growth.rises, 8);
    assert_int_equal(s.in->growth.grown, 8 * 64);
    assert_int_equal(s.in->growth.least, 64);
    assert_int_equal(s.in->growth.most, 64);
    assert_int_equal(s.in->growers.n, 1);
    assert_string_equal(label(&s, s.in->growers.rows[0].label), "leak story.c:1");
    assert_int_equal(s.in->growers.rows[0].second.bytes - s.in->growers.rows[0].first.bytes,
                     8 * 64);
    story_end(&s);
}

static void teardown_at_the_end_hides_no_creep(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    for (uint64_t i = 0; i < 8; i++) {
        make(&s, 0x10, 1000000, 0);
        make(&s, (i + 1) << 16, 100, 0);
        end(&s, 0x10);
    }
    for (uint64_t i = 0; i < 8; i++)
        end(&s, (i + 1) << 16);
    look(&s);
    assert_int_equal(s.in->cycles.source, BLYI_CYCLES_CURVE);
    assert_int_equal(s.in->cycles.n, 7);
    assert_int_equal(s.in->growth.kind, BLYI_GROWTH_CREEP);
    assert_int_equal(s.in->growth.grown, 600);
    story_end(&s);
}

/* O-01: what is live comes back to 0, what the pool keeps rises by 68, 70, 72 MiB. */
static void a_pool_that_caches_each_size_creeps_while_live_does_not(void **state)
{
    struct story s;
    struct blyi_cause causes[BLYI_CAUSE_COUNT];
    (void)state;
    story_begin(&s, 0);
    for (uint64_t k = 1; k <= 6; k++) {
        uint64_t size = (64 + 2 * k) * MiB;
        TELL(&s, SEGMENT, .address = k << 32, .asked = size);
        make(&s, k << 32, size, 0);
        end(&s, k << 32);
    }
    look(&s);
    assert_int_equal(s.in->cycles.n, 5);
    assert_int_equal(s.in->growth.kind, BLYI_GROWTH_SAWTOOTH);
    assert_int_equal(s.in->pool_growth.kind, BLYI_GROWTH_CREEP);
    assert_int_equal(s.in->cycles.reserved[4], 350 * MiB); /* 66 + 68 + 70 + 72 + 74 */
    assert_int_equal(s.in->pool_growth.grown, 284 * MiB);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_POOL_GROWTH], BLYI_APPLIES, "297795584 B (284 MiB)");
    assert_says(&causes[BLYI_CAUSE_CACHED], BLYI_APPLIES, "in 6 of 6 segments");
    assert_int_equal(causes[BLYI_CAUSE_CACHED].bytes, 426 * MiB);
    story_end(&s);
}

/* O-19 */
static void sizes_that_rise_by_a_step_are_named(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t site = site_at(&s, "grow", 7), other = site_at(&s, "other", 8);
    for (uint64_t i = 0; i < 64; i++) {
        make(&s, 0x100000, 8 * MiB + i * 64 * 1024, site);
        make(&s, 0x10, i % 3 + 1, other);
        end(&s, 0x10);
        end(&s, 0x100000);
    }
    look(&s);
    assert_int_equal(s.in->n_ramps, 1);
    assert_string_equal(label(&s, s.in->ramps[0].label), "grow story.c:7");
    assert_int_equal(s.in->ramps[0].n, 64);
    assert_int_equal(s.in->ramps[0].step, 65536);
    assert_int_equal(s.in->ramps[0].last, 12517376);
    assert_int_equal(s.in->peaks[0].at_peak.asked, 12517376 + 1); /* i = 63: 63 % 3 + 1 */
    story_end(&s);
}

static void ramps_keep_the_longest_of_many_sites(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    for (uint32_t k = 0; k < 12; k++) {
        uint32_t site = site_at(&s, "f", k + 1);
        for (uint64_t i = 0; i < 5 + k; i++) {
            make(&s, 0x10, 100 + i * i, site); /* no one step */
            end(&s, 0x10);
        }
    }
    look(&s);
    assert_int_equal(s.in->n_ramps, BLYI_RAMPS); /* of 9 that are long enough */
    for (size_t i = 0; i < BLYI_RAMPS; i++) {
        assert_int_equal(s.in->ramps[i].n, 16 - i);
        assert_int_equal(s.in->ramps[i].step, 0);
    }
    story_end(&s);
}

static void one_step_that_fills_memory_is_no_leak(void **state)
{
    struct story s;
    struct blyi_cause causes[BLYI_CAUSE_COUNT];
    (void)state;
    story_begin(&s, BLYI_TRACE_IMPORTED);
    for (uint64_t i = 0; i < 32; i++) { /* layers that keep activations */
        make(&s, 0x10, 10 * MiB, 0);
        make(&s, (i + 1) << 32, MiB, 0);
        end(&s, 0x10);
    }
    look(&s);
    assert_int_equal(s.in->growth.kind, BLYI_GROWTH_CREEP); /* as the curve goes */
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_CANNOT_TELL, "marks around the program's steps");
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_valleys_are_told_apart),
        cmocka_unit_test(a_leak_of_each_step_creeps_and_is_named),
        cmocka_unit_test(teardown_at_the_end_hides_no_creep),
        cmocka_unit_test(a_pool_that_caches_each_size_creeps_while_live_does_not),
        cmocka_unit_test(sizes_that_rise_by_a_step_are_named),
        cmocka_unit_test(ramps_keep_the_longest_of_many_sites),
        cmocka_unit_test(one_step_that_fills_memory_is_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
