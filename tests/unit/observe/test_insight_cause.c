/* SPDX-License-Identifier: Apache-2.0
 *
 * test_insight_cause.c - causes that apply, that do not, and that a file cannot tell; requests that
 * failed.
 */
#include "insight_test.h"

static struct blyi_cause causes[BLYI_CAUSE_COUNT];

static void card(struct story *s, int32_t number, uint64_t total, uint64_t overhead)
{
    blyi_tracewriter_card(s->w, &(struct blyi_trace_card){number, total, overhead});
}

static void refuse(struct story *s, int32_t number, uint64_t asked, bly_status status)
{
    TELL(s, ALLOC_FAIL, .card = number, .asked = asked, .aux = status, .site = 1);
}

static struct blyi_explanation explain(const struct story *s, size_t i)
{
    struct blyi_explanation e;
    assert_ok(blyi_explain(s->in, &s->in->history.refusals[i], &e));
    return e;
}

static void a_quiet_program_has_no_cause(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 1024 * MiB, 16 * MiB);
    make(&s, 0x1000, 2 * MiB, 0);
    end(&s, 0x1000);
    look(&s);
    causes_of(&s, causes);
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++)
        assert_int_not_equal(causes[i].verdict, BLYI_APPLIES);
    assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_DOES_NOT, "freed every block");
    assert_says(&causes[BLYI_CAUSE_SYNC], BLYI_CANNOT_TELL, "nobody has checked");
    story_end(&s);
}

static void an_empty_file_has_no_cause(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, BLYI_TRACE_IMPORTED);
    look(&s);
    causes_of(&s, causes);
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++)
        assert_int_not_equal(causes[i].verdict, BLYI_APPLIES);
    story_end(&s);
}

static void a_file_that_ends_with_nothing_live_has_no_leak(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, BLYI_TRACE_IMPORTED);
    make(&s, 0x1000, 2 * MiB, 0);
    end(&s, 0x1000);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_DOES_NOT, "nothing is live");
    story_end(&s);
}

static void a_leak_of_one_site_is_told_once(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    make(&s, 0x1000, 100, site_at(&s, "alpha", 1));
    look(&s);
    causes_of(&s, causes);
    assert_string_equal(causes[BLYI_CAUSE_LEAK].evidence,
                        "1 block, 100 B, never freed, of alpha story.c:1");
    story_end(&s);
}

static void leaks_are_counted_with_those_a_reset_took(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t a = site_at(&s, "alpha", 1), b = site_at(&s, "beta", 2);
    make(&s, 0x1000, 100, a);
    make(&s, 0x2000, 300, a);
    make(&s, 0x3000, 50, b);
    make(&s, 0x4000, 7, b);
    end(&s, 0x3000);
    TELL(&s, RESET_FREE, .address = 0x2000);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_APPLIES,
                "3 blocks, 407 B, never freed: 2 blocks, 400 B, of alpha story.c:1; 1 block, 7 B, "
                "of beta story.c:2");
    assert_int_equal(causes[BLYI_CAUSE_LEAK].bytes, 407);
    story_end(&s);
}

static void a_recording_that_ends_early_has_no_leak(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, BLYI_TRACE_CUT);
    make(&s, 0x1000, 100, 0);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_CANNOT_TELL, "1 block, 100 B, live");
    story_end(&s);
}

/* O-08, as far as memory of events goes. */
static void events_that_pile_up_are_counted_by_site(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t loop = site_at(&s, "loop", 9);
    TELL(&s, STREAM_CREATE, .stream = 1, .aux = 1); /* the context's own */
    TELL(&s, STREAM_CREATE, .stream = 2, .site = loop);
    TELL(&s, STREAM_DESTROY, .stream = 2);
    for (uint32_t i = 1; i <= 1024; i++)
        TELL(&s, EVENT_CREATE, .event = i, .site = loop);
    for (uint32_t round = 0; round < 100; round++) { /* ids come again */
        TELL(&s, EVENT_CREATE, .event = 2000, .site = loop);
        TELL(&s, EVENT_DESTROY, .event = 2000);
    }
    look(&s);
    assert_int_equal(s.in->n_things, 2);
    assert_int_equal(s.in->things[0].kind, BLYI_THING_EVENT);
    assert_int_equal(s.in->things[0].made, 1124);
    assert_int_equal(s.in->things[0].live, 1024);
    assert_int_equal(s.in->things[0].oldest_ns, 4000);
    assert_int_equal(s.in->history.thing_peak[BLYI_THING_EVENT], 1025);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_THINGS], BLYI_APPLIES,
                "1024 never destroyed: 1024 of 1124 events of loop story.c:9");
    story_end(&s);
}

/* O-21 */
static void handles_without_an_address_are_orphans(void **state)
{
    struct story s;
    (void)state;
    for (int freed = 0; freed < 2; freed++) {
        story_begin(&s, 0);
        card(&s, 0, 1024 * MiB, 16 * MiB);
        uint32_t site = site_at(&s, "phys", 3);
        for (uint64_t i = 1; i <= 64; i++) {
            TELL(&s, PHYS_CREATE, .address = i, .asked = 8 * MiB, .rounded = 8 * MiB,
                 .backed = 8 * MiB, .site = site);
            TELL(&s, MAP, .address = i << 32, .other = i, .asked = 8 * MiB);
            TELL(&s, UNMAP, .address = i << 32, .other = i, .asked = 8 * MiB);
            if (freed)
                TELL(&s, PHYS_FREE, .address = i);
        }
        refuse(&s, 0, 640 * MiB, BLY_E_NO_MEMORY);
        look(&s);
        causes_of(&s, causes);
        if (freed) {
            assert_says(&causes[BLYI_CAUSE_ORPHAN], BLYI_DOES_NOT, "every handle");
            assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_DOES_NOT, "freed");
        } else {
            assert_says(&causes[BLYI_CAUSE_ORPHAN], BLYI_APPLIES,
                        "64 handles, 536870912 B (512 MiB), of phys story.c:3");
            assert_says(&causes[BLYI_CAUSE_LEAK], BLYI_DOES_NOT, ""); /* one fault, one cause */
            assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_DOES_NOT, "150994944 B (144 MiB)");
            struct blyi_explanation e = explain(&s, 0);
            assert_int_equal(e.why, BLYI_WHY_FULL);
            assert_int_equal(e.free_most, (1024 - 16 - 512) * MiB);
            assert_int_equal(e.missing, (640 - 496) * MiB);
            assert_int_equal(e.holders.rows[0].first.bytes, 512 * MiB);
            blyi_explanation_fini(&e);
        }
        story_end(&s);
    }
}

/* O-03: this process took 3 x 64 MiB of a card of 1 GiB, the others had the rest. */
static void what_others_took_is_not_put_down_to_this_process(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 1024 * MiB, 16 * MiB);
    for (uint64_t i = 1; i <= 3; i++) {
        TELL(&s, PHYS_CREATE, .address = i, .asked = 64 * MiB, .rounded = 64 * MiB,
             .backed = 64 * MiB, .site = site_at(&s, "restore", 1));
        TELL(&s, MAP, .address = i << 32, .other = i, .asked = 64 * MiB);
    }
    refuse(&s, 0, 64 * MiB, BLY_E_NO_MEMORY);
    look(&s);
    struct blyi_explanation e = explain(&s, 0);
    assert_int_equal(e.why, BLYI_WHY_NOT_OURS);
    assert_int_equal(e.live.asked, 192 * MiB);
    assert_int_equal(e.taken, 192 * MiB);
    assert_int_equal(e.free_most, (1024 - 16 - 192) * MiB);
    assert_int_equal(e.missing, 0);
    assert_int_equal(e.holders.rows[0].first.count, 3);
    blyi_explanation_fini(&e);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_OTHERS], BLYI_APPLIES, "201326592 B (192 MiB)");
    assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_DOES_NOT, "0 B were missing");
    story_end(&s);
}

/* 1 GiB, of which this process took 192 MiB; then 65 MiB, 66 in pages, find no room. */
static void begin_told(struct story *s, uint64_t free, uint64_t largest)
{
    story_begin(s, 0);
    card(s, 0, 1024 * MiB, 16 * MiB);
    make(s, 0x1000, 192 * MiB, 0);
    TELL(s, ALLOC_FAIL, .card = 0, .asked = 65 * MiB, .rounded = 66 * MiB, .backed = free,
         .other = largest, .aux = BLY_E_NO_MEMORY, .site = 1);
    look(s);
    causes_of(s, causes);
}

static void what_the_card_told_is_counted_and_not_guessed(void **state)
{
    struct story s;
    (void)state;
    begin_told(&s, 10 * MiB, 10 * MiB);
    struct blyi_explanation e = explain(&s, 0);
    assert_int_equal(e.why, BLYI_WHY_NOT_OURS);
    assert_int_equal(e.free_most, 10 * MiB);
    assert_int_equal(e.others, (1024 - 16 - 192 - 10) * MiB);
    assert_int_equal(e.missing, 56 * MiB);
    blyi_explanation_fini(&e);
    assert_says(&causes[BLYI_CAUSE_OTHERS], BLYI_APPLIES, "and others 845152256 B (806 MiB)");
    assert_says(&causes[BLYI_CAUSE_FRAGMENTATION], BLYI_DOES_NOT, "");
    story_end(&s);

    begin_told(&s, 816 * MiB, 10 * MiB);
    e = explain(&s, 0);
    assert_int_equal(e.why, BLYI_WHY_SCATTERED);
    assert_int_equal(e.missing, 0);
    assert_int_equal(e.others, 0);
    blyi_explanation_fini(&e);
    assert_says(&causes[BLYI_CAUSE_FRAGMENTATION], BLYI_APPLIES,
                "69206016 B (66 MiB) in one row were asked of card 0, which had 855638016 B (816 "
                "MiB) free and room for 10485760 B (10 MiB)");
    assert_says(&causes[BLYI_CAUSE_OTHERS], BLYI_DOES_NOT, "enough free");
    assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_DOES_NOT, "");
    story_end(&s);
}

static void what_is_missing_is_counted_in_pages(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 1024 * MiB, 16 * MiB);
    make(&s, 0x1000, 1006 * MiB, 0);
    TELL(&s, ALLOC_FAIL, .card = 0, .asked = 5 * MiB, .rounded = 6 * MiB, .backed = 2 * MiB,
         .other = 2 * MiB, .aux = BLY_E_NO_MEMORY, .site = 1);
    look(&s);
    struct blyi_explanation e = explain(&s, 0);
    assert_int_equal(e.why, BLYI_WHY_FULL);
    assert_int_equal(e.missing, 4 * MiB);
    assert_int_equal(e.others, 0);
    blyi_explanation_fini(&e);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_APPLIES, "4194304 B (4 MiB) were missing");
    assert_says(&causes[BLYI_CAUSE_OTHERS], BLYI_DOES_NOT, "this process alone");
    story_end(&s);
}

static void limits_are_named_by_the_status(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 1024 * MiB, 16 * MiB);
    refuse(&s, 0, 200 * MiB, BLY_E_CAP);
    refuse(&s, 0, 200 * MiB, BLY_E_CAP);
    refuse(&s, -1, 64 * MiB, BLY_E_PIN_LIMIT);
    refuse(&s, 0, 2048 * MiB, BLY_E_NO_MEMORY);
    refuse(&s, 0, 1, BLY_E_INVALID);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_CAP], BLYI_APPLIES, "2 requests refused");
    assert_says(&causes[BLYI_CAUSE_PINNED], BLYI_APPLIES, "1 request refused");
    assert_says(&causes[BLYI_CAUSE_HOST], BLYI_DOES_NOT, "for this reason");
    assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_APPLIES, "event no. 4 2147483648 B (2 GiB)");
    struct blyi_explanation e = explain(&s, 4);
    assert_int_equal(e.why, BLYI_WHY_NOT_MEMORY);
    blyi_explanation_fini(&e);
    story_end(&s);
}

static void another_card_had_room(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 64 * MiB, 16 * MiB);
    card(&s, 1, 64 * MiB, 16 * MiB);
    make(&s, 0x1000, 40 * MiB, 0);
    refuse(&s, 0, 20 * MiB, BLY_E_NO_MEMORY);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_DEVICE], BLYI_APPLIES, "card 1 had up to 50331648 B (48 MiB)");
    assert_says(&causes[BLYI_CAUSE_OTHERS], BLYI_DOES_NOT, "41943040 B (40 MiB)");
    story_end(&s);
}

/* A pool has enough, in pieces. */
static void a_request_that_fits_in_no_idle_row_is_fragmentation(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t pin = site_at(&s, "pin", 4);
    card(&s, 0, 116 * MiB, 16 * MiB);
    for (uint64_t i = 1; i <= 5; i++) {
        TELL(&s, SEGMENT, .address = i << 32, .asked = 20 * MiB);
        make(&s, i << 32, MiB, pin);
    }
    refuse(&s, 0, 30 * MiB, BLY_E_NO_MEMORY);
    look(&s);
    struct blyi_explanation e = explain(&s, 0);
    assert_int_equal(e.why, BLYI_WHY_FULL);
    assert_int_equal(e.taken, 100 * MiB);
    assert_int_equal(e.free_most, 0);
    assert_int_equal(e.missing, 30 * MiB);
    assert_int_equal(e.pool.idle, 95 * MiB);
    assert_int_equal(e.pool.largest, 19 * MiB);
    assert_false(e.fits_if_pool_gives);
    assert_true(e.fits_if_packed);
    blyi_explanation_fini(&e);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_FRAGMENTATION], BLYI_APPLIES,
                "99614720 B (95 MiB) of 104857600 B (100 MiB)");
    assert_non_null(strstr(causes[BLYI_CAUSE_FRAGMENTATION].cure, "5 blocks (5242880 B (5 MiB))"));
    assert_non_null(strstr(causes[BLYI_CAUSE_FRAGMENTATION].cure, "expandable_segments:True"));
    assert_says(&causes[BLYI_CAUSE_CACHED], BLYI_DOES_NOT, "0 B in 0 of 5");
    assert_says(&causes[BLYI_CAUSE_TOO_SMALL], BLYI_DOES_NOT, "");
    story_end(&s);
}

static void nobody_is_told_to_do_what_is_done(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, BLYI_TRACE_IMPORTED);
    TELL(&s, SEGMENT, .address = (uint64_t)1 << 32, .asked = 20 * MiB, .aux = 1);
    make(&s, (uint64_t)1 << 32, MiB, 0);
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_FRAGMENTATION], BLYI_APPLIES, "19922944 B (19 MiB)");
    assert_null(strstr(causes[BLYI_CAUSE_FRAGMENTATION].cure, "expandable"));
    story_end(&s);
}

/* A shortage that a stream ends (O-18 has it with a pool of ours). */
static void memory_that_waits_for_a_stream_is_no_leak(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    card(&s, 0, 1024 * MiB, 16 * MiB);
    for (uint64_t i = 1; i <= 3; i++) {
        TELL(&s, SEGMENT, .address = i << 32, .asked = 300 * MiB);
        make(&s, i << 32, 300 * MiB, 0);
    }
    TELL(&s, FREE, .address = (uint64_t)1 << 32, .aux = 1);
    refuse(&s, 0, 300 * MiB, BLY_E_NO_MEMORY);
    TELL(&s, USE_DONE, .address = (uint64_t)1 << 32);
    look(&s);
    struct blyi_explanation e = explain(&s, 0);
    assert_int_equal(e.live.asked, 600 * MiB);
    assert_int_equal(e.pool.waiting, 300 * MiB);
    assert_int_equal(e.pool.idle, 0);
    assert_int_equal(e.free_most, (1024 - 16 - 900) * MiB);
    assert_true(e.fits_if_waited);
    blyi_explanation_fini(&e);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_SYNC], BLYI_APPLIES, "314572800 B (300 MiB) that were freed");
    story_end(&s);
}

static void findings_of_a_checker_are_passed_on(void **state)
{
    struct story s;
    struct blyi_order_findings found = {2, "race of a and b"}, none = {0, NULL};
    (void)state;
    story_begin(&s, 0);
    make(&s, 0x10, 1, 0);
    look(&s);
    assert_ok(blyi_causes_make(s.in, &found, causes));
    assert_says(&causes[BLYI_CAUSE_SYNC], BLYI_APPLIES, "the first: race of a and b");
    assert_ok(blyi_causes_make(s.in, &none, causes));
    assert_says(&causes[BLYI_CAUSE_SYNC], BLYI_DOES_NOT, "0 findings");
    story_end(&s);
}

static void rounding_applies_where_it_is_much(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    TELL(&s, ALLOC, .address = 0x40000000, .asked = 2 * MiB, .rounded = 2 * MiB + 32,
         .backed = 4 * MiB, .page_kind = BLYI_PAGE_HUGE, .site = site_at(&s, "huge", 3));
    look(&s);
    causes_of(&s, causes);
    assert_says(&causes[BLYI_CAUSE_ROUNDING], BLYI_APPLIES, "2097152 B (2 MiB) more than asked");
    assert_non_null(strstr(causes[BLYI_CAUSE_ROUNDING].cure,
                           "use aclrtMallocAlign32 at huge story.c:3: saves 2097152 B (2 MiB)"));
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_program_has_no_cause),
        cmocka_unit_test(an_empty_file_has_no_cause),
        cmocka_unit_test(a_file_that_ends_with_nothing_live_has_no_leak),
        cmocka_unit_test(a_leak_of_one_site_is_told_once),
        cmocka_unit_test(leaks_are_counted_with_those_a_reset_took),
        cmocka_unit_test(a_recording_that_ends_early_has_no_leak),
        cmocka_unit_test(events_that_pile_up_are_counted_by_site),
        cmocka_unit_test(handles_without_an_address_are_orphans),
        cmocka_unit_test(what_others_took_is_not_put_down_to_this_process),
        cmocka_unit_test(what_the_card_told_is_counted_and_not_guessed),
        cmocka_unit_test(what_is_missing_is_counted_in_pages),
        cmocka_unit_test(limits_are_named_by_the_status),
        cmocka_unit_test(another_card_had_room),
        cmocka_unit_test(a_request_that_fits_in_no_idle_row_is_fragmentation),
        cmocka_unit_test(nobody_is_told_to_do_what_is_done),
        cmocka_unit_test(memory_that_waits_for_a_stream_is_no_leak),
        cmocka_unit_test(findings_of_a_checker_are_passed_on),
        cmocka_unit_test(rounding_applies_where_it_is_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
