/* SPDX-License-Identifier: Apache-2.0
 * JSON written and read. */
#include "base_test.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/json.h"

static void written_as_expected(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct blyi_json json;
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "u", UINT64_MAX);
    blyi_json_int(&json, "i", INT64_MIN);
    blyi_json_text(&json, "t\"", "a\\b\"c\n\t\x01\xc3\xa9\xff\xf0\x9f\x98\x80");
    blyi_json_text(&json, "none", NULL);
    blyi_json_begin_array(&json, "list");
    blyi_json_bool(&json, NULL, true);
    blyi_json_begin_object(&json, NULL);
    blyi_json_end_object(&json);
    blyi_json_begin_array(&json, NULL);
    blyi_json_end_array(&json);
    blyi_json_end_array(&json);
    blyi_json_bool(&json, "b", false);
    blyi_json_end_object(&json);
    fclose(out);
    assert_string_equal(text, "{\n"
                              "  \"u\": 18446744073709551615,\n"
                              "  \"i\": -9223372036854775808,\n"
                              "  \"t\\\"\": \"a\\\\b\\\"c\\n\\t\\u0001\xc3\xa9\xef\xbf\xbd"
                              "\xf0\x9f\x98\x80\",\n"
                              "  \"none\": null,\n"
                              "  \"list\": [\n"
                              "    true,\n"
                              "    {},\n"
                              "    []\n"
                              "  ],\n"
                              "  \"b\": false\n"
                              "}\n");
    assert_int_equal(blyi_json_check(text, size, 8), BLY_OK);
    char buf[64];
    assert_true(blyi_json_lookup(text, "t\"", buf, sizeof(buf)));
    assert_string_equal(buf, "a\\b\"c\n\t\x01\xc3\xa9\xef\xbf\xbd\xf0\x9f\x98\x80");
    free(text);
}

static void nest_too_deep(void)
{
    struct blyi_json json;
    blyi_json_init(&json, stdout);
    for (int i = 0; i < 33; i++)
        blyi_json_begin_array(&json, NULL);
}

static void depth_of_the_writer_is_asserted(void **state)
{
    (void)state;
    expect_death(nest_too_deep, "depth 32", NULL);
}

static void texts_that_are_json(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        "10",
        "true",
        " null ",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2,[3,{\"a\":[]}]]",
        "{\"a\":1,\"a\":2}",
        "\"\\u00e9\\ud83d\\ude00\\n\\/\"",
        "\t\r\n[\n]\n",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
        "{\"\":{\"\":null}}",
        "[[[[[[[[1]]]]]]]]",
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++)
        if (blyi_json_check(rows[i], strlen(rows[i]), 8) != BLY_OK)
            fail_msg("%s: %s", rows[i], bly_last_error());
}

static void texts_that_are_not(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "tru",
        "True",
        "nul",
        "\"",
        "\"a",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[] []",
        "\"\\x\"",
        "\"\\",
        "\"\\u12\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\u0041\"",
        "\"\\ude00\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xc3\"",
        "\"\xe0\x80\x80\"",
        "\xef\xbb\xbf{}",
        "'a'",
        "[1 2]",
        "{\"a\" 1}",
        "NaN",
        "// c\n1",
        "[[[[[[[[[1]]]]]]]]]",
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        if (blyi_json_check(rows[i], strlen(rows[i]), 8) != BLY_E_PARSE)
            fail_msg("%s was taken", rows[i]);
        assert_non_null(strstr(bly_last_error(), "is needed"));
    }
    assert_int_equal(blyi_json_check("1\0", 2, 8), BLY_E_PARSE);
    assert_int_equal(blyi_json_check("\"\0\"", 3, 8), BLY_E_PARSE);
    assert_int_equal(blyi_json_check("[]", 2, 0), BLY_E_PARSE);
    assert_int_equal(blyi_json_check("1", 1, 0), BLY_OK);
    assert_int_equal(blyi_json_check("{\n\"a\":1,\n oops}", 16, 8), BLY_E_PARSE);
    assert_non_null(strstr(bly_last_error(), "byte 10 in line 3: a string is needed"));
}

static void depth_of_the_reader_is_bounded(void **state)
{
    (void)state;
    enum { N = 200000 };
    char *text = malloc(2 * N + 1);
    memset(text, '[', N);
    memset(text + N, ']', N);
    text[2 * N] = '\0';
    assert_int_equal(blyi_json_check(text, 2 * N, INT32_MAX), BLY_E_PARSE);
    assert_int_equal(blyi_json_check(text + N - 1024, 2048, INT32_MAX), BLY_OK);
    assert_int_equal(blyi_json_check(text + N - 1025, 2050, INT32_MAX), BLY_E_PARSE);
    free(text);
}

static void values_are_looked_up(void **state)
{
    (void)state;
    static const char text[] =
        " {\"a\" : {\"b\": 12.5e3 , \"c\": [1, {\"b\": 2}], \"d\": \"x\\ny\"},"
        "\"n\": null, \"t\": true, \"\\u00e9\": \"\\ud83d\\ude00\","
        "\"dup\": 1, \"s}\\\"\": {\"}\": \"]\"}, \"dup\": 2, \"z\":\"\\u0000\","
        "\"\": 5, \"euro\": \"\\u20AC\", \"last\":7}";
    static const struct {
        const char *path, *value; /* NULL: not found */
    } rows[] = {
        {"a.b", "12.5e3"},
        {"a.d", "x\ny"},
        {"n", "null"},
        {"t", "true"},
        {"\xc3\xa9", "\xf0\x9f\x98\x80"},
        {"dup", "2"},
        {"s}\".}", "]"},
        {"last", "7"},
        {"euro", "\xe2\x82\xac"},
        {"a", NULL},
        {"a.c", NULL},
        {"a.c.b", NULL},
        {"a.b.c", NULL},
        {"b", NULL},
        {"la", NULL},
        {"lastly", NULL},
        {"z", NULL},
        {"", NULL},
    };
    char buf[64];
    assert_int_equal(blyi_json_check(text, strlen(text), 8), BLY_OK);
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        strcpy(buf, "before");
        bool found = blyi_json_lookup(text, rows[i].path, buf, sizeof(buf));
        if (found != (rows[i].value != NULL) || strcmp(buf, found ? rows[i].value : "before") != 0)
            fail_msg("%s: %s", rows[i].path, buf);
    }
    assert_true(blyi_json_lookup("17", "", buf, sizeof(buf)));
    assert_string_equal(buf, "17");
    assert_true(blyi_json_lookup(text, "a.b", buf, 7));
    assert_false(blyi_json_lookup(text, "a.b", buf, 6));
    assert_true(blyi_json_lookup(text, "a.d", buf, 4));
    assert_false(blyi_json_lookup(text, "a.d", buf, 3));
    assert_false(blyi_json_lookup(text, "a.d", buf, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_expected),
        cmocka_unit_test(depth_of_the_writer_is_asserted),
        cmocka_unit_test(texts_that_are_json),
        cmocka_unit_test(texts_that_are_not),
        cmocka_unit_test(depth_of_the_reader_is_bounded),
        cmocka_unit_test(values_are_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
