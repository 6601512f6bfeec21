/* SPDX-License-Identifier: Apache-2.0
 * Names and texts of status codes. */
#include "base_test.h"
#include <belay/base.h>

static void each_status_has_its_name_and_text(void **state)
{
    (void)state;
#define CHECK_STATUS(name, value, text)                                                            \
    assert_int_equal(BLY_##name, value);                                                           \
    assert_string_equal(bly_status_name(BLY_##name), #name);                                       \
    assert_string_equal(bly_status_text(BLY_##name), text);
    BLY_STATUS(CHECK_STATUS)
#undef CHECK_STATUS
}

static void other_values_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(bly_status_name((bly_status)-100), "E_UNKNOWN");
    assert_string_equal(bly_status_name((bly_status)7), "E_UNKNOWN");
    assert_true(strlen(bly_status_text((bly_status)-100)) > 0);
}

static void version_is_made_of_its_numbers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", BLY_VERSION_MAJOR, BLY_VERSION_MINOR,
             BLY_VERSION_PATCH);
    assert_string_equal(bly_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_name_and_text),
        cmocka_unit_test(other_values_are_unknown),
        cmocka_unit_test(version_is_made_of_its_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
