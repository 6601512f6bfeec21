/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the face that no program sees alone: the code table, visible ids, configurations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "face/acl/acl_error.h"
#include "face/acl/init_config.h"
#include "face/acl/visible.h"

static void every_status_has_a_code_in_every_call(void **state)
{
    (void)state;
    for (int call = 0; call < BLYI_ACL_CALL_COUNT; call++) {
        for (int status = 0; status >= BLY_E_CANCELLED; status--) {
            aclError code = blyi_acl_code((enum blyi_acl_call)call, (bly_status)status);
            if (status == BLY_OK)
                assert_int_equal(code, ACL_SUCCESS);
            else
                assert_true(code >= ACL_ERROR_INVALID_PARAM);
        }
    }
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtMalloc, (bly_status)-99), 507000);
    assert_string_equal(blyi_acl_call_name(BLYI_ACL_CALL_aclrtMalloc), "aclrtMalloc");
    assert_string_equal(blyi_acl_call_name(BLYI_ACL_CALL_COUNT), "?");
}

static void codes_depend_on_the_call(void **state)
{
    (void)state;
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtMalloc, BLY_E_NO_MEMORY), 207001);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtSetDevice, BLY_E_NO_MEMORY), 507033);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtMemcpy, BLY_E_FAULT), 107000);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtSynchronizeStream, BLY_E_FAULT), 507013);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtCreateStream, BLY_E_NO_STREAM), 207008);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtRecordEvent, BLY_E_NO_EVENT), 207007);
    assert_int_equal(blyi_acl_code(BLYI_ACL_CALL_aclrtProcessReport, BLY_E_TIMEOUT), 507012);
}

static void visible_lists(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int n_cards, n, first, last;
    } rows[] = {
        {"0", 1, 1, 0, 0},       {"1,3", 4, 2, 1, 3},
        {"0,1,2,3", 4, 4, 0, 3}, {" 0 , 2 ", 4, 2, 0, 2},
        {"0,9,1", 4, 1, 0, 0},   {"0,x", 4, 1, 0, 0},
        {"0,,1", 4, 1, 0, 0},    {"", 4, 0, -1, -1},
        {",0", 4, 0, -1, -1},    {"-1", 4, 0, -1, -1},
        {"1,0", 4, 0, -1, -1},   {"1,1", 4, 0, -1, -1},
        {"4", 4, 0, -1, -1},     {"99999999999", 4, 0, -1, -1},
        {"0,", 4, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int cards[64] = {-1};
        int n = blyi_visible_parse(rows[i].text, rows[i].n_cards, cards);
        if (n != rows[i].n)
            print_error("'%s' gives %d cards\n", rows[i].text, n);
        assert_int_equal(n, rows[i].n);
        if (n > 0) {
            assert_int_equal(cards[0], rows[i].first);
            assert_int_equal(cards[n - 1], rows[i].last);
        }
    }
}

static void equal_configurations(void **state)
{
    (void)state;
    assert_true(blyi_init_config_equal("{}", " {\n}\t"));
    assert_true(blyi_init_config_equal("{\"a\":1}", "{ \"a\" : 1 }"));
    assert_false(blyi_init_config_equal("{\"a\":1}", "{\"a\":12}"));
    assert_false(blyi_init_config_equal("{\"a b\":1}", "{\"ab\":1}"));
    assert_false(blyi_init_config_equal("{\"a\\\" \":1}", "{\"a\\\"\":1}"));
    assert_true(blyi_init_config_equal("{\"a\\\\\" : 1}", "{\"a\\\\\":1}"));
    assert_false(blyi_init_config_equal("", "{}"));
}

static void no_configuration_is_an_empty_one(void **state)
{
    (void)state;
    struct blyi_init_config config;
    assert_int_equal(blyi_init_config_read(NULL, &config), ACL_SUCCESS);
    assert_string_equal(config.text, "{}");
    assert_int_equal(config.length, 2);
    assert_int_equal(config.default_card, -1);
    blyi_init_config_free(&config);
    blyi_init_config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_code_in_every_call),
        cmocka_unit_test(codes_depend_on_the_call),
        cmocka_unit_test(visible_lists),
        cmocka_unit_test(equal_configurations),
        cmocka_unit_test(no_configuration_is_an_empty_one),
    };
    return cmocka_run_group_tests_name("inside", tests, NULL, NULL);
}
