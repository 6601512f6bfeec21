/* SPDX-License-Identifier: Apache-2.0
 * Options: from the environment, from tools, and back to text. */
#include "base_test.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>

static char warnings[8192];
static int n_warnings;

static void keep_warning(void *arg, enum blyi_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    n_warnings++;
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof(warnings) - used, "%s\n", line);
    blyi_option_int(BLYI_OPT_CARDS); /* a sink may ask for an option */
}

static int start(void **state)
{
    (void)state;
    n_warnings = 0;
    warnings[0] = '\0';
    blyi_log_set_sink(keep_warning, NULL);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        unsetenv(blyi_option_info((enum blyi_option)i)->variable);
    unsetenv("BELAY_TYPO");
    blyi_option_reload();
    blyi_host_fail_nth(0);
    blyi_sys_fail_nth(0, 0);
    blyi_log_set_sink(NULL, NULL);
    return 0;
}

static void defaults_stand(void **state)
{
    (void)state;
    blyi_option_reload();
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 1);
    assert_int_equal(blyi_option_int(BLYI_OPT_PIN_ALIGN), 4096);
    assert_int_equal(blyi_option_int(BLYI_OPT_STRICT_DEVICE), 1);
    assert_int_equal(blyi_option_int(BLYI_OPT_PAGES), 0);
    assert_int_equal(blyi_option_int(BLYI_OPT_LOG), BLYI_LOG_WARN);
    assert_string_equal(blyi_option_text(BLYI_OPT_MODEL), "910B");
    assert_string_equal(blyi_option_text(BLYI_OPT_REPORT), "");
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        assert_true(blyi_option_is_default((enum blyi_option)i));
    assert_int_equal(n_warnings, 0);
}

static void the_environment_counts(void **state)
{
    (void)state;
    setenv("BELAY_CARDS", "8", 1);
    setenv("BELAY_HBM", "60.97GiB", 1);
    setenv("BELAY_STRICT_DEVICE", "off", 1);
    setenv("BELAY_PAGES", "huge", 1);
    setenv("BELAY_MODEL", "/tmp/my model", 1);
    setenv("BELAY_REPORT", "", 1); /* as if not there */
    setenv("BELAY_ALLOC", "", 1);
    blyi_fail(BLY_E_IO, "an error of the caller");
    blyi_option_reload();
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 8);
    assert_int_equal(blyi_option_int(BLYI_OPT_HBM), 65466039009);
    assert_int_equal(blyi_option_int(BLYI_OPT_STRICT_DEVICE), 0);
    assert_int_equal(blyi_option_int(BLYI_OPT_PAGES), 1);
    assert_string_equal(blyi_option_text(BLYI_OPT_MODEL), "/tmp/my model");
    assert_false(blyi_option_is_default(BLYI_OPT_CARDS));
    assert_true(blyi_option_is_default(BLYI_OPT_REPORT));
    assert_int_equal(n_warnings, 0);
    setenv("BELAY_CARDS", "9", 1); /* too late */
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 8);
    assert_string_equal(bly_last_error(), "an error of the caller");
}

static void bad_values_are_told_and_ignored(void **state)
{
    (void)state;
    setenv("BELAY_CARDS", "100", 1);
    setenv("BELAY_HBM", "big", 1);
    setenv("BELAY_STRICT_DEVICE", "maybe", 1);
    setenv("BELAY_PAGES", "heap", 1);
    setenv("BELAY_TYPO", "1", 1);
    blyi_fail(BLY_E_IO, "an error of the caller");
    blyi_option_reload();
    assert_int_equal(n_warnings, 5);
    assert_non_null(strstr(warnings, "BELAY_CARDS is \"100\"; allowed is a number from 1 to 64"));
    assert_non_null(strstr(warnings, "BELAY_HBM is \"big\"; allowed is a size from 0 B to 16 TiB"));
    assert_non_null(strstr(warnings, "BELAY_STRICT_DEVICE is \"maybe\"; allowed is on or off"));
    assert_non_null(strstr(warnings, "BELAY_PAGES is \"heap\"; allowed is one of auto|huge|small"));
    assert_non_null(strstr(warnings, "BELAY_TYPO is not an option"));
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 1);
    assert_true(blyi_option_is_default(BLYI_OPT_CARDS));
    assert_int_equal(n_warnings, 5); /* once */
    assert_string_equal(bly_last_error(), "an error of the caller");
}

static void tools_may_set(void **state)
{
    (void)state;
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, "2"), BLY_OK);
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 2);
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, "0"), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "BELAY_CARDS is \"0\""));
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, "two"), BLY_E_PARSE);
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, "99999999999999999999"), BLY_E_PARSE);
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, "-"), BLY_E_PARSE);
    assert_int_equal(blyi_option_set(BLYI_OPT_CARDS, ""), BLY_E_PARSE);
    assert_int_equal(blyi_option_set(BLYI_OPT_HBM, "17TiB"), BLY_E_INVALID);
    assert_int_equal(blyi_option_set(BLYI_OPT_PAGES, "HUGE"), BLY_OK);
    assert_int_equal(blyi_option_int(BLYI_OPT_PAGES), 1);
    assert_int_equal(blyi_option_set(BLYI_OPT_PAGES, "hug"), BLY_E_PARSE);
    assert_int_equal(blyi_option_int(BLYI_OPT_CARDS), 2);
    assert_int_equal(blyi_option_set(BLYI_OPT_REPORT, "a.json"), BLY_OK);
    const char *first = blyi_option_text(BLYI_OPT_REPORT);
    assert_int_equal(blyi_option_set(BLYI_OPT_REPORT, "b.json"), BLY_OK);
    assert_string_equal(first, "a.json"); /* who holds the old text may go on */
    assert_string_equal(blyi_option_text(BLYI_OPT_REPORT), "b.json");
    assert_int_equal(blyi_option_set(BLYI_OPT_REPORT, ""), BLY_OK);
    assert_string_equal(blyi_option_text(BLYI_OPT_REPORT), "");
}

static void what_is_formatted_can_be_set(void **state)
{
    (void)state;
    char buf[128];
    assert_string_equal(blyi_option_format(BLYI_OPT_PIN_ALIGN, buf, sizeof(buf)), "4KiB");
    assert_string_equal(blyi_option_format(BLYI_OPT_RESIDENT, buf, sizeof(buf)), "4GiB");
    assert_string_equal(blyi_option_format(BLYI_OPT_HBM, buf, sizeof(buf)), "0");
    assert_string_equal(blyi_option_format(BLYI_OPT_STRICT_DEVICE, buf, sizeof(buf)), "on");
    assert_string_equal(blyi_option_format(BLYI_OPT_LOG, buf, sizeof(buf)), "warn");
    assert_string_equal(blyi_option_format(BLYI_OPT_MODEL, buf, 4), "910");
    blyi_option_set(BLYI_OPT_HBM, "1025");
    assert_string_equal(blyi_option_format(BLYI_OPT_HBM, buf, sizeof(buf)), "1025");
    for (int i = 0; i < BLYI_OPTION_COUNT; i++) {
        blyi_option_format((enum blyi_option)i, buf, sizeof(buf));
        int64_t before = blyi_option_int((enum blyi_option)i);
        assert_int_equal(blyi_option_set((enum blyi_option)i, buf), BLY_OK);
        assert_int_equal(blyi_option_int((enum blyi_option)i), before);
    }
}

static void names_are_found(void **state)
{
    (void)state;
    assert_int_equal(blyi_option_find("PIN_LIMIT"), BLYI_OPT_PIN_LIMIT);
    assert_int_equal(blyi_option_find("BELAY_PIN_LIMIT"), BLYI_OPT_PIN_LIMIT);
    assert_int_equal(blyi_option_find("pin-limit"), BLYI_OPT_PIN_LIMIT);
    assert_int_equal(blyi_option_find("pin"), -1);
    assert_int_equal(blyi_option_find(""), -1);
    const struct blyi_option_info *info = blyi_option_info(BLYI_OPT_PIN_LIMIT);
    assert_string_equal(info->name, "PIN_LIMIT");
    assert_string_equal(info->variable, "BELAY_PIN_LIMIT");
    assert_string_equal(info->flag, "pin-limit");
    assert_int_equal(info->type, BLYI_OPTION_SIZE);
}

static void options_of_this_layer_take_effect(void **state)
{
    (void)state;
    setenv("BELAY_LOG", "info", 1);
    setenv("BELAY_VIRTUAL_CLOCK", "on", 1);
    setenv("BELAY_MODEL", "910", 1); /* reading this text is not what fails */
    setenv("BELAY_FAIL_HOST", "2", 1);
    setenv("BELAY_FAIL_SYSTEM", "1", 1);
    blyi_option_reload();
    assert_true(blyi_log_enabled(BLYI_LOG_INFO));
    assert_true(blyi_clock_is_virtual());
    assert_string_equal(blyi_option_text(BLYI_OPT_MODEL), "910");
    void *first = blyi_host_alloc(1);
    assert_non_null(first);
    assert_null(blyi_host_alloc(1));
    blyi_host_free(first);
    assert_int_equal(blyi_sys_open("/dev/null", O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(blyi_option_set(BLYI_OPT_LOG, "warn"), BLY_OK);
    assert_false(blyi_log_enabled(BLYI_LOG_INFO));
    assert_int_equal(blyi_option_set(BLYI_OPT_VIRTUAL_CLOCK, "off"), BLY_OK);
    assert_false(blyi_clock_is_virtual());
}

static void host_memory_that_fails(void **state)
{
    (void)state;
    assert_int_equal(blyi_option_set(BLYI_OPT_MODEL, "910"), BLY_OK);
    blyi_host_fail_nth(1);
    assert_int_equal(blyi_option_set(BLYI_OPT_MODEL, "310P"), BLY_E_HOST_MEMORY);
    assert_string_equal(blyi_option_text(BLYI_OPT_MODEL), "910");
    setenv("BELAY_MODEL", "310P", 1);
    blyi_host_fail_nth(1);
    blyi_option_reload();
    assert_string_equal(blyi_option_text(BLYI_OPT_MODEL), "910B");
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warnings, "BELAY_MODEL: no host memory"));
}

static void use_first(int index)
{
    require(blyi_option_int(BLYI_OPT_CARDS) == 3);
    require(strcmp(blyi_option_text(BLYI_OPT_MODEL), "310P") == 0);
    for (int i = 0; i < 100; i++) {
        require(blyi_option_set(BLYI_OPT_REPORT, index % 2 ? "x" : "y") == BLY_OK);
        const char *text = blyi_option_text(BLYI_OPT_REPORT);
        require(strcmp(text, "x") == 0 || strcmp(text, "y") == 0);
    }
}

static void threads_may_come_first(void **state)
{
    (void)state;
    run_threads(use_first);
    assert_int_equal(n_warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_may_come_first, start, finish),
        cmocka_unit_test_setup_teardown(defaults_stand, start, finish),
        cmocka_unit_test_setup_teardown(the_environment_counts, start, finish),
        cmocka_unit_test_setup_teardown(bad_values_are_told_and_ignored, start, finish),
        cmocka_unit_test_setup_teardown(tools_may_set, start, finish),
        cmocka_unit_test_setup_teardown(what_is_formatted_can_be_set, start, finish),
        cmocka_unit_test_setup_teardown(names_are_found, start, finish),
        cmocka_unit_test_setup_teardown(options_of_this_layer_take_effect, start, finish),
        cmocka_unit_test_setup_teardown(host_memory_that_fails, start, finish),
    };
    for (char **entry = environ; *entry; entry++) /* none of the caller's */
        if (strncmp(*entry, "BELAY_", 6) == 0)
            **entry = '_';
    setenv("BELAY_CARDS", "3", 1); /* for threads_may_come_first */
    setenv("BELAY_MODEL", "310P", 1);
    setenv("BELAY_TYPO", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
