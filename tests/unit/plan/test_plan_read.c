/* SPDX-License-Identifier: Apache-2.0
 * Buffers and traces from text, and the step that a trace repeats. */
#include "plan_test.h"

#include <string.h>

#include "base/host.h"

static bly_status parse(const char *text, bly_plan_input *input)
{
    return bly_plan_parse(text, strlen(text), "t.csv", input);
}

static void all_columns(void **state)
{
    (void)state;
    bly_plan_input in;
    assert_ok(parse("# a comment\r\n"
                    "gaps,size,id,lower,upper,alignment,offset,hint\r\n"
                    "2-4 5-6@1:3,10,b1,0,9,4,-1,\r\n"
                    "\r\n"
                    ",7,b2,-3,2,,8,16\r\n",
                    &in));
    assert_int_equal(in.n, 2);
    assert_string_equal(in.ids[1], "b2");
    assert_int_equal(in.buffers[0].n_gaps, 2);
    assert_int_equal(in.buffers[0].gaps[1].keep_upper, 3);
    assert_int_equal(in.buffers[0].align, 4);
    assert_int_equal(in.buffers[0].offset, BLY_PLAN_FREE);
    assert_int_equal(in.buffers[1].lower, -3);
    assert_int_equal(in.buffers[1].offset, 8);
    assert_int_equal(in.buffers[1].hint, 16);
    bly_plan_input_release(&in);
    assert_ok(parse("buffer_id,start,end,size\nx,0,4,1\n", &in));
    assert_int_equal(in.buffers[0].upper, 5); /* an end is part of the lifetime */
    bly_plan_input_release(&in);
    assert_ok(parse("id,lower,upper,size\n", &in));
    assert_int_equal(in.n, 0);
    bly_plan_input_release(&in);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no header"},
        {"id,lower,upper,size,colour\n", "t.csv:1: unknown column \"colour\""},
        {"id,lower,upper\n", "column \"size\" is missing"},
        {"id,lower,upper,size,id\n", "twice"},
        {"id,lower,upper,size\na,0,1,2\nb,0,1\n", "t.csv:3: fewer fields"},
        {"id,lower,upper,size\na,0,1,2,3\n", "more fields"},
        {"id,lower,upper,size\na,0,1,nan\n", "t.csv:2: size \"nan\" is not an integer"},
        {"id,lower,upper,size\na,0,1,99999999999999999999\n", "not an integer"},
        {"id,lower,upper,size\na,0,1,-5\n", "not above 0"},
        {"id,lower,upper,size\na,0,1,0\n", "not above 0"},
        {"id,lower,upper,size\na,3,3,5\n", "lifetime [3, 3) is empty"},
        {"id,lower,upper,size,hint\na,0,3,5,-2\n", "below 0"},
        {"id,lower,upper,size,gaps\na,0,3,5,1:2\n", "gaps \"1:2\" is not"},
        {"time\tx\n", "not the header of a trace"},
        {"time_us\top\tid\tbytes\n1\tf\t4\t0\n", "t.csv:2: a free of an id"},
        {"time_us\top\tid\tbytes\n1\ta\t4\t0\n", "an allocation of no bytes"},
        {"time_us\top\tid\tbytes\n1\ta\t4\t9\n2\tf\t4\t0\n3\tf\t4\t0\n",
         "t.csv:4: a free of an id that was freed before"},
        {"time_us\top\tid\tbytes\n1\ta\t4\n", "fewer than 4"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        bly_plan_input in;
        assert_int_equal(parse(cases[c].text, &in), BLY_E_PARSE);
        if (strstr(bly_last_error(), cases[c].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", bly_last_error(), cases[c].says);
    }
}

static void traces(void **state)
{
    (void)state;
    bly_plan_input in;
    assert_ok(parse("# trace: x\n"
                    "time_us\top\tid\tbytes\tstream\ttag\n"
                    "5\ta\t7\t100\t0\tempty\n"
                    "5\te\t0\t0\t0\titer0\n"
                    "6\ta\t8\t50\t3\t-\n"
                    "7\tu\t7\t0\t1\t-\n"
                    "8\tf\t7\t0\t0\t-\n"
                    "9\ta\t9\t10\t0\t-\n"
                    "9\td\t7\t0\t0\t-\n",
                    &in));
    assert_int_equal(in.n, 3);
    assert_true(in.is_trace);
    assert_int_equal(in.buffers[0].lower, 0);
    assert_int_equal(in.buffers[0].upper, 4); /* until its use on the other stream ended */
    assert_int_equal(in.buffers[1].upper, 5); /* never freed */
    assert_int_equal(in.streams[0], 0);
    assert_int_equal(in.streams[1], 3);
    bly_plan_input_release(&in);
}

static void steps_are_found(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { STEP = 50, N_STEPS = 6, EXTRA = 9 };
    bly_plan_buffer b[STEP * N_STEPS + EXTRA], step[STEP];
    plan_random(&seed, step, STEP, 100, 1000);
    plan_random(&seed, b, EXTRA, 20, 77);
    for (size_t i = 0; i < STEP * N_STEPS; i++) {
        int64_t start = 20 + 100 * (int64_t)(i / STEP);
        b[EXTRA + i] = step[i % STEP];
        b[EXTRA + i].lower += start;
        b[EXTRA + i].upper += start;
    }
    bly_plan_period period;
    assert_ok(bly_plan_find_period(b, STEP * N_STEPS + EXTRA, &period));
    assert_int_equal(period.length, 100);
    assert_int_equal(period.n_buffers, STEP);
    assert_true(period.n_steps >= N_STEPS - 1);
    plan_random(&seed, b, 200, 100000, 100000);
    assert_int_equal(bly_plan_find_period(b, 200, &period), BLY_E_STATE);
}

enum { VARIED = 40, VARIED_STEPS = 5 };

/* Steps of one shape whose sizes all grow from step to step; of each buffer in `kept`, none is
 * freed. */
static size_t make_varied(bly_plan_buffer *b, size_t kept)
{
    uint64_t seed = plan_seed();
    bly_plan_buffer step[VARIED];
    plan_random(&seed, step, VARIED, 100, 1000);
    for (size_t i = 0; i < VARIED * VARIED_STEPS; i++) {
        int64_t start = 100 * (int64_t)(i / VARIED);
        b[i] = step[i % VARIED];
        b[i].size *= i / VARIED + 1;
        b[i].lower += start;
        b[i].upper = i % VARIED < kept ? 100 * VARIED_STEPS : b[i].upper + start;
    }
    return VARIED * VARIED_STEPS;
}

static void steps_of_other_sizes_are_found(void **state)
{
    (void)state;
    bly_plan_buffer b[VARIED * VARIED_STEPS];
    bly_plan_period period;
    size_t n = make_varied(b, 0);
    assert_ok(bly_plan_find_period(b, n, &period));
    assert_true(period.sizes_differ);
    assert_int_equal(period.n_buffers, VARIED);
    assert_int_equal(period.length, 100);
    assert_true(period.n_steps >= VARIED_STEPS - 1);
}

/* What only ever takes is no step, however often it is repeated. */
static void what_keeps_growing_is_no_step(void **state)
{
    (void)state;
    bly_plan_buffer b[VARIED * VARIED_STEPS];
    bly_plan_period period;
    size_t n = make_varied(b, VARIED / 4);
    assert_int_equal(bly_plan_find_period(b, n, &period), BLY_E_STATE);
    assert_non_null(strstr(bly_last_error(), "no step is repeated"));
}

static void reading_survives_faults(void **state)
{
    (void)state;
    const char *texts[] = {"id,lower,upper,size,gaps\na,0,9,2,1-2\nb,0,9,2,1-2 4-5\n",
                           "time_us\top\tid\tbytes\n1\ta\t4\t1\n1\tf\t4\t0\n"};
    struct blyi_host_stats before, after;
    blyi_host_stats(&before);
    for (size_t t = 0; t < 2; t++) {
        for (uint64_t nth = 1;; nth++) {
            bly_plan_input in;
            blyi_host_fail_nth(nth);
            bly_status status = parse(texts[t], &in);
            int failed = blyi_host_failed();
            blyi_host_fail_nth(0);
            assert_int_equal(status, failed ? BLY_E_HOST_MEMORY : BLY_OK);
            if (status == BLY_OK)
                bly_plan_input_release(&in);
            blyi_host_stats(&after);
            assert_int_equal(before.live_blocks, after.live_blocks);
            if (!failed)
                break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_columns),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(traces),
        cmocka_unit_test(steps_are_found),
        cmocka_unit_test(steps_of_other_sizes_are_found),
        cmocka_unit_test(what_keeps_growing_is_no_step),
        cmocka_unit_test(reading_survives_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
