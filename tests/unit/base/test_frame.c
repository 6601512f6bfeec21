/* SPDX-License-Identifier: Apache-2.0
 * Lines of a script as sites. */
#include "base_test.h"
#include "base/frame.h"
#include "base/host.h"
#include "base/site.h"

__attribute__((noinline)) static uint32_t called(void)
{
    return BLYI_SITE_HERE();
}

static void the_same_line_is_the_same_number(void **state)
{
    (void)state;
    uint32_t a = bly_frame("step", "train.py", 12);
    assert_int_not_equal(a, 0);
    assert_int_equal(bly_frame("step", "train.py", 12), a);
    assert_int_not_equal(bly_frame("step", "train.py", 13), a);
    assert_int_not_equal(bly_frame("steptrain.py", "", 12), a);
    assert_int_not_equal(bly_frame("step", "other.py", 12), a);
    const struct blyi_line *line = blyi_line_of_site(a);
    assert_string_equal(line->function, "step");
    assert_string_equal(line->file, "train.py");
    assert_int_equal(line->number, 12);
    assert_null(blyi_site_pc(a)); /* nobody has called from there */
    assert_null(blyi_line_of_site(0));
    assert_null(blyi_line_of_site(UINT32_MAX));
    assert_null(blyi_line_of_site(blyi_site_intern((const void *)(uintptr_t)&called)));
}

static void texts_are_for_people(void **state)
{
    (void)state;
    char buf[BLYI_SITE_TEXT], path[400];
    uint32_t line = bly_frame("Net.forward", "/src/net.py", 4294967295u);
    assert_string_equal(blyi_site_text(line, buf), "Net.forward /src/net.py:4294967295");
    memset(path, 'd', sizeof(path) - 1);
    memcpy(path + sizeof(path) - 6, "/n.py", 6);
    line = bly_frame("f", path, 7);
    blyi_site_text(line, buf);
    assert_ptr_equal(strstr(buf, "f ...ddd"), buf); /* the end of a path tells more */
    assert_string_equal(buf + strlen(buf) - 7, "/n.py:7");
    line = bly_frame("\303\244\n\t\x7f\377", "\xe6\xbc\xa2.py", 1);
    assert_string_equal(blyi_site_text(line, buf), "\303\244???? \xe6\xbc\xa2.py:1");
}

static void what_cannot_be_a_line(void **state)
{
    (void)state;
    static char text[5000];
    assert_int_equal(bly_frame(NULL, "a.py", 1), 0);
    assert_int_equal(bly_frame("a", NULL, 1), 0);
    uint32_t empty = bly_frame("", "", 0);
    assert_string_equal(blyi_line_of_site(empty)->file, "");
    memset(text, 'x', sizeof(text) - 1);
    const struct blyi_line *line = blyi_line_of_site(bly_frame(text, text, 1));
    assert_int_equal(strlen(line->function), BLYI_FRAME_TEXT - 1);
    assert_int_equal(strlen(line->file), BLYI_FRAME_TEXT - 1);
    memcpy(text + BLYI_FRAME_TEXT - 2, "\303\244", 2); /* no half of a character is left */
    line = blyi_line_of_site(bly_frame(text, "", 1));
    assert_int_equal(strlen(line->function), BLYI_FRAME_TEXT - 2);
}

static void the_innermost_line_is_the_site(void **state)
{
    (void)state;
    uint32_t code = called();
    assert_null(blyi_line_of_site(code));
    uint32_t lines[] = {bly_frame("inner", "a.py", 1), bly_frame("outer", "a.py", 2)};
    bly_frames at = {2, 0, lines}, none = {0, 0, NULL};
    struct blyi_frames_here here;
    assert_null(bly_frames_set(&at));
    assert_int_equal(called(), lines[0]);
    assert_non_null(blyi_site_pc(lines[0])); /* where the interpreter called */
    assert_true(blyi_frames_here(lines[0], &here));
    assert_ptr_equal(here.frames, &at);
    assert_ptr_equal(here.code, blyi_site_pc(lines[0]));
    assert_false(blyi_frames_here(lines[1], &here));
    assert_false(blyi_frames_here(0, &here));
    assert_ptr_equal(bly_frames_set(&none), &at);
    assert_null(blyi_line_of_site(called()));
    lines[0] = UINT32_MAX; /* nobody's number */
    assert_ptr_equal(bly_frames_set(&at), &none);
    assert_null(blyi_line_of_site(called()));
    lines[0] = code;
    assert_null(blyi_line_of_site(called()));
    assert_ptr_equal(bly_frames_set(NULL), &at);
    assert_false(blyi_frames_here(code, &here));
}

static void host_memory_that_fails(void **state)
{
    (void)state;
    int n_failed = 0;
    for (uint32_t nth = 1; nth < 6; nth++) {
        uint32_t before = blyi_site_count();
        blyi_host_fail_nth(nth);
        uint32_t line = bly_frame("fails", "a.py", nth);
        if (blyi_host_failed()) {
            assert_int_equal(line, 0);
            assert_int_equal(blyi_site_count(), before);
            n_failed++;
        }
        blyi_host_fail_nth(0);
        assert_int_equal(bly_frame("fails", "a.py", nth), before + 1);
    }
    assert_true(n_failed > 0);
}

static uint32_t ids[TEST_THREADS][500];

static void name_all(int index)
{
    char function[32];
    uint32_t at[1];
    bly_frames frames = {1, 0, at};
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t n = index % 2 ? i : 499 - i;
        snprintf(function, sizeof(function), "f%u", n);
        at[0] = ids[index][n] = bly_frame(function, "threads.py", n);
        bly_frames_set(&frames);
        require(called() == at[0]);
    }
    bly_frames_set(NULL);
}

static void threads_agree(void **state)
{
    (void)state;
    run_threads(name_all);
    for (int i = 1; i < TEST_THREADS; i++)
        assert_memory_equal(ids[i], ids[0], sizeof(ids[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_line_is_the_same_number),
        cmocka_unit_test(texts_are_for_people),
        cmocka_unit_test(what_cannot_be_a_line),
        cmocka_unit_test(the_innermost_line_is_the_site),
        cmocka_unit_test(host_memory_that_fails),
        cmocka_unit_test(threads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
