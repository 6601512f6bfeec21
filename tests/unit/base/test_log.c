/* SPDX-License-Identifier: Apache-2.0
 * Lines to stderr or a sink. */
#include "base_test.h"
#include "base/log.h"
#include <stdatomic.h>

static atomic_int n_lines;
static char last_line[8192];
static enum blyi_log_level last_level;

static void keep_line(void *arg, enum blyi_log_level level, const char *line)
{
    assert_ptr_equal(arg, &n_lines);
    n_lines++;
    last_level = level;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static int use_sink(void **state)
{
    (void)state;
    n_lines = 0;
    last_line[0] = '\0';
    blyi_log_set_sink(keep_line, &n_lines);
    return 0;
}

static int drop_sink(void **state)
{
    (void)state;
    blyi_log_set_level(BLYI_LOG_WARN);
    blyi_log_set_sink(NULL, NULL);
    return 0;
}

static void level_decides(void **state)
{
    (void)state;
    assert_true(blyi_log_enabled(BLYI_LOG_ERROR));
    assert_true(blyi_log_enabled(BLYI_LOG_WARN));
    assert_false(blyi_log_enabled(BLYI_LOG_INFO));
    blyi_log(BLYI_LOG_INFO, "hidden");
    assert_int_equal(n_lines, 0);
    blyi_log_set_level(BLYI_LOG_DEBUG);
    blyi_log(BLYI_LOG_DEBUG, "seen %d", 1);
    assert_int_equal(n_lines, 1);
    assert_string_equal(last_line, "seen 1");
    assert_int_equal(last_level, BLYI_LOG_DEBUG);
}

static void a_line_stays_one_line(void **state)
{
    (void)state;
    blyi_log(BLYI_LOG_WARN, "a\nb\n");
    assert_string_equal(last_line, "a b ");
    char longer[6000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    blyi_log(BLYI_LOG_WARN, "%s", longer);
    assert_int_equal(n_lines, 2);
    assert_true(strlen(last_line) > 2000);
}

static void log_two_lines(void)
{
    blyi_log_set_sink(NULL, NULL);
    blyi_log(BLYI_LOG_WARN, "first %d", 1);
    blyi_log(BLYI_LOG_ERROR, "second");
}

static void stderr_is_the_default(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(run_child(log_two_lines, text, sizeof(text)), 0);
    assert_string_equal(text, "belay: warning: first 1\nbelay: error: second\n");
}

static void log_from_thread(int index)
{
    for (int i = 0; i < BLYI_LOG_BUDGET; i++)
        blyi_log(BLYI_LOG_WARN, "thread %d line %d", index, i);
}

static void count_line(void *arg, enum blyi_log_level level, const char *line)
{
    (void)level;
    atomic_fetch_add((atomic_int *)arg, 1);
    if (strstr(line, "no more"))
        atomic_fetch_add((atomic_int *)arg, 1000);
}

static void the_budget_is_kept_and_its_end_told(void **state)
{
    (void)state;
    atomic_int count = 0;
    blyi_log_set_sink(count_line, &count);
    run_threads(log_from_thread);
    /* Three lines were logged by the tests before, in this process. */
    assert_true(count > 1000 && count <= 1000 + BLYI_LOG_BUDGET + 1);
    int after = count;
    log_from_thread(0);
    assert_int_equal(count, after);
    blyi_log_set_level(BLYI_LOG_DEBUG);
    blyi_log(BLYI_LOG_DEBUG, "debug lines have no budget");
    assert_int_equal(count, after + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(level_decides, use_sink, drop_sink),
        cmocka_unit_test_setup_teardown(a_line_stays_one_line, use_sink, drop_sink),
        cmocka_unit_test(stderr_is_the_default),
        cmocka_unit_test_teardown(the_budget_is_kept_and_its_end_told, drop_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
