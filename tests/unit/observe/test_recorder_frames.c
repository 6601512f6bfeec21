/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that an interpreter runs: its lines are the sites and the heads of stacks, in the file
 * from the first event on.
 */
#include "trace_test.h"

#include "base/frame.h"

/* As an entry point of the library: its caller's place, and a block. */
__attribute__((noinline)) static void entry(uint64_t address)
{
    BLYI_PROBE(ALLOC, .card = 0, .address = address, .size = 8, .asked = 8, .rounded = 64,
               .backed = 4096, .site = BLYI_SITE_HERE());
}

__attribute__((noinline)) static void interpreter(uint64_t address)
{
    entry(address);
    __asm__ volatile("");
}

static void start_with(const char *name, uint32_t depth)
{
    bly_trace_opts opts = bly_trace_opts_default();
    opts.stack_depth = depth;
    assert_ok(bly_trace_start(in_folder(name), &opts));
}

static void check_line(const struct blyi_trace *trace, uint32_t id, const char *text)
{
    char buf[BLYI_TRACE_SITE_TEXT];
    assert_string_equal(blyi_trace_site_text(trace, id, buf), text);
}

/* Two calls from a script, one from machine code. */
static void run_script(void)
{
    uint32_t lines[] = {bly_frame("layer", "net.py", 4), bly_frame("main", "net.py", 20)};
    bly_frames at = {2, 0, lines};
    bly_frames_set(&at);
    interpreter(0x1000);
    lines[0] = bly_frame("layer", "net.py", 5);
    interpreter(0x2000);
    bly_frames_set(NULL);
    interpreter(0x3000);
}

static void a_line_is_the_site(void **state)
{
    (void)state;
    start_with("sites", 0);
    assert_int_equal(bly_frames_wanted(), 1);
    run_script();
    /* As a killed process leaves it: the names are there already. */
    struct blyi_trace *trace = open_trace("sites");
    struct blyi_trace_site site;
    check_line(trace, next_event(trace).probe.site, "layer net.py:4");
    check_line(trace, next_event(trace).probe.site, "layer net.py:5");
    struct blyi_trace_event e = next_event(trace);
    assert_true(blyi_trace_site(trace, e.probe.site, &site));
    assert_non_null(strstr(site.module, "unit_observe_recorder_frames"));
    no_more(trace);
    blyi_trace_close(trace);

    assert_ok(bly_trace_stop());
    trace = open_trace("sites");
    assert_int_equal(blyi_trace_info(trace)->n_stacks, 0);
    e = next_event(trace);
    assert_int_equal(e.stack, 0);
    assert_true(blyi_trace_site(trace, e.probe.site, &site));
    assert_string_equal(site.module, "");
    assert_string_equal(site.function, "layer");
    assert_string_equal(site.source, "net.py");
    assert_int_equal(site.line, 4);
    blyi_trace_close(trace);
}

static void lines_head_the_stack(void **state)
{
    (void)state;
    start_with("stacks", 4);
    assert_int_equal(bly_frames_wanted(), 4);
    run_script();
    assert_ok(bly_trace_stop());
    assert_int_equal(bly_frames_wanted(), 1);
    struct blyi_trace *trace = open_trace("stacks");
    struct blyi_trace_site site;
    size_t n;
    assert_int_equal(blyi_trace_info(trace)->n_stacks, 3);
    for (int i = 0; i < 2; i++) {
        struct blyi_trace_event e = next_event(trace);
        const uint32_t *sites = blyi_trace_stack(trace, e.stack, &n);
        assert_int_equal(n, 4);
        assert_int_equal(sites[0], e.probe.site);
        check_line(trace, sites[0], i == 0 ? "layer net.py:4" : "layer net.py:5");
        check_line(trace, sites[1], "main net.py:20");
        assert_true(blyi_trace_site(trace, sites[2], &site)); /* interpreter() itself */
        assert_non_null(strstr(site.module, "unit_observe_recorder_frames"));
    }
    struct blyi_trace_event e = next_event(trace);
    const uint32_t *sites = blyi_trace_stack(trace, e.stack, &n);
    assert_int_equal(n, 4);
    assert_true(blyi_trace_site(trace, sites[0], &site));
    assert_non_null(strstr(site.module, "unit_observe_recorder_frames"));
    blyi_trace_close(trace);
}

static void lines_may_fill_the_stack(void **state)
{
    (void)state;
    uint32_t lines[200];
    for (uint32_t i = 0; i < 200; i++)
        lines[i] = bly_frame("deep", "deep.py", 200 - i);
    lines[1] = 0; /* a frame that has no number is left out */
    bly_frames at = {200, 0, lines};
    start_with("deep", 3);
    bly_frames_set(&at);
    interpreter(0x1000);
    bly_frames_set(NULL);
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("deep");
    size_t n;
    const uint32_t *sites = blyi_trace_stack(trace, next_event(trace).stack, &n);
    assert_int_equal(n, 3);
    check_line(trace, sites[0], "deep deep.py:200");
    check_line(trace, sites[1], "deep deep.py:198");
    check_line(trace, sites[2], "deep deep.py:197");
    blyi_trace_close(trace);
}

/* Nothing is left of the machine here but what the libraries have. */
static void frames_of_the_interpreter_are_left_out(void **state)
{
    (void)state;
    static char no_code[] = "no code";
    struct blyi_trace_site site;
    size_t n, behind;
    assert_int_equal(bly_frames_hide(no_code), BLY_E_INVALID);
    assert_int_equal(bly_frames_hide(NULL), BLY_E_INVALID);
    assert_false(blyi_frames_hidden((const void *)(uintptr_t)&interpreter));
    for (int i = 0; i < 20; i++) /* the same module */
        assert_ok(bly_frames_hide((const void *)(uintptr_t)&interpreter));
    assert_true(blyi_frames_hidden((const void *)(uintptr_t)&interpreter));
    assert_false(blyi_frames_hidden(no_code));
    start_with("hidden", 64);
    run_script();
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("hidden");
    for (int i = 0; i < 2; i++) {
        const uint32_t *sites = blyi_trace_stack(trace, next_event(trace).stack, &n);
        assert_true(n > 2);
        check_line(trace, sites[1], "main net.py:20");
        for (behind = 2; behind < n; behind++) {
            assert_true(blyi_trace_site(trace, sites[behind], &site));
            assert_null(strstr(site.module, "unit_observe_recorder_frames"));
        }
    }
    const uint32_t *sites = blyi_trace_stack(trace, next_event(trace).stack, &n);
    assert_true(blyi_trace_site(trace, sites[0], &site)); /* no lines: nothing is left out */
    assert_non_null(strstr(site.module, "unit_observe_recorder_frames"));
    blyi_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_the_site),
        cmocka_unit_test(lines_head_the_stack),
        cmocka_unit_test(lines_may_fill_the_stack),
        cmocka_unit_test(frames_of_the_interpreter_are_left_out),
    };
    return cmocka_run_group_tests(tests, trace_setup, trace_teardown);
}
