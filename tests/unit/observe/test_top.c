/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest users of memory in a recording: of all of it, and between two marks.
 */
#include "trace_test.h"

#include <belay/frame.h>
#include <belay/top.h>

static void alloc_at(uint64_t address, uint64_t asked, uint32_t site)
{
    BLYI_PROBE(ALLOC, .card = 0, .address = address, .size = asked, .asked = asked, .site = site,
               .rounded = asked, .backed = asked);
}

static uint32_t line(const char *function, uint32_t number)
{
    return bly_frame(function, "net.py", number);
}

/* before 100 | first | a 10, b 20, b freed, a2 5 | second | after 1000 */
static void record(const char *name, uint64_t ring)
{
    start(name, ring);
    alloc_at(0x1000, 100, line("before", 1));
    assert_ok(bly_mark("first"));
    assert_ok(bly_range_push("op"));
    alloc_at(0x2000, 10, line("a", 2));
    alloc_at(0x3000, 20, line("b", 3));
    assert_ok(bly_range_pop());
    emit_free(0x3000, 20);
    alloc_at(0x4000, 5, line("a", 2));
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = 7, .size = 7, .aux = BLY_E_NO_MEMORY);
    assert_ok(bly_mark("second"));
    alloc_at(0x5000, 1000, line("after", 4));
    assert_ok(bly_trace_stop());
}

static void check_row(const bly_top_row *row, const char *name, const char *from,
                      const uint64_t figures[6])
{
    assert_string_equal(row->name, name);
    assert_string_equal(row->from, from);
    assert_int_equal(row->peak_bytes, figures[0]);
    assert_int_equal(row->peak_blocks, figures[1]);
    assert_int_equal(row->total_bytes, figures[2]);
    assert_int_equal(row->total_blocks, figures[3]);
    assert_int_equal(row->left_bytes, figures[4]);
    assert_int_equal(row->left_blocks, figures[5]);
}

static void between_two_marks(void **state)
{
    (void)state;
    bly_top top;
    record("marks", 0);
    assert_ok(bly_top_read(in_folder("marks"), "first", "second", &top));
    assert_int_equal(top.n, 3);
    check_row(&top.rows[0], "before net.py:1", "before net.py:1",
              (const uint64_t[]){100, 1, 100, 1, 0, 0});
    check_row(&top.rows[1], "op", "b net.py:3", (const uint64_t[]){30, 2, 30, 2, 10, 1});
    check_row(&top.rows[2], "a net.py:2", "a net.py:2", (const uint64_t[]){0, 0, 5, 1, 5, 1});
    assert_int_equal(top.peak_bytes, 130);
    assert_int_equal(top.peak_blocks, 3);
    assert_int_equal(top.total_bytes, 135);
    assert_int_equal(top.total_blocks, 4);
    assert_int_equal(top.left_bytes, 15);
    assert_int_equal(top.left_blocks, 2);
    assert_int_equal(top.refused, 1);
    assert_int_equal(top.lost + top.dropped, 0);
    assert_ok(bly_top_order(&top, BLY_TOP_COUNT));
    assert_string_equal(top.rows[0].name, "op");
    assert_int_equal(bly_top_order(&top, (bly_top_by)3), BLY_E_INVALID);
    assert_int_equal(bly_top_order(NULL, BLY_TOP_PEAK), BLY_E_INVALID);
    bly_top_release(&top);
    assert_null(top.rows);
    bly_top_release(&top);
    bly_top_release(NULL);
}

static void all_of_it(void **state)
{
    (void)state;
    bly_top top;
    record("all", 0);
    assert_ok(bly_top_read(in_folder("all"), NULL, NULL, &top));
    assert_int_equal(top.n, 4);
    assert_int_equal(top.peak_bytes, 1115);
    assert_int_equal(top.total_bytes, 1135);
    assert_int_equal(top.left_bytes, 1115);
    check_row(&top.rows[0], "after net.py:4", "after net.py:4",
              (const uint64_t[]){1000, 1, 1000, 1, 1000, 1});
    bly_top_release(&top);
    assert_ok(bly_top_read(in_folder("all"), "second", NULL, &top));
    assert_int_equal(top.peak_bytes, 1115);
    assert_int_equal(top.left_bytes, 1000);
    bly_top_release(&top);
    assert_ok(bly_top_read(in_folder("all"), NULL, "first", &top));
    assert_int_equal(top.peak_bytes, 100);
    assert_int_equal(top.n, 1);
    bly_top_release(&top);
}

static void a_ring_that_lost_the_mark(void **state)
{
    (void)state;
    bly_top top;
    record("ring", 4);
    assert_ok(bly_top_read(in_folder("ring"), "first", NULL, &top));
    assert_true(top.dropped > 0);
    assert_int_equal(top.peak_bytes, 1115);
    bly_top_release(&top);
    assert_int_equal(bly_top_read(in_folder("ring"), NULL, "nowhere", &top), BLY_E_INVALID);
}

static void what_is_refused(void **state)
{
    (void)state;
    bly_top top = {0};
    record("refused", 0);
    const char *path = in_folder("refused");
    assert_int_equal(bly_top_read(NULL, NULL, NULL, &top), BLY_E_INVALID);
    assert_int_equal(bly_top_read(path, NULL, NULL, NULL), BLY_E_INVALID);
    assert_int_equal(bly_top_read(path, "third", NULL, &top), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "no mark \"third\" is in it"));
    assert_int_equal(bly_top_read(path, "second", "first", &top), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "the mark \"first\" comes before \"second\""));
    assert_int_equal(bly_top_read(in_folder("none"), NULL, NULL, &top), BLY_E_IO);
    FILE *file = fopen(in_folder("junk"), "w");
    assert_non_null(file);
    fputs("junk", file);
    fclose(file);
    assert_int_equal(bly_top_read(in_folder("junk"), NULL, NULL, &top), BLY_E_PARSE);
    assert_null(top.rows);
    for (uint64_t nth = 1;; nth++) {
        blyi_host_fail_nth(nth);
        bly_status status = bly_top_read(path, "first", "second", &top);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        if (!failed) {
            assert_ok(status);
            break;
        }
        if (status == BLY_OK) /* a text that could be left out */
            bly_top_release(&top);
        else
            assert_int_equal(status, BLY_E_HOST_MEMORY);
    }
    bly_top_release(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_two_marks),
        cmocka_unit_test(all_of_it),
        cmocka_unit_test(a_ring_that_lost_the_mark),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, trace_setup, trace_teardown);
}
