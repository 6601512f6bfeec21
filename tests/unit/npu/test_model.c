/* SPDX-License-Identifier: Apache-2.0
 * Built-in models and model files. */
#include "mem_test.h"
#include "npu/model.h"
#include <sys/stat.h>

static struct blyi_model load(const char *what)
{
    struct blyi_model model;
    assert_ok(blyi_model_load(what, &model));
    return model;
}

static void built_in_figures(void **state)
{
    (void)state;
    struct blyi_model m = load("910");
    assert_string_equal(m.soc, "Ascend910A");
    assert_int_equal(m.memory, 32 * GiB);
    assert_int_equal(m.memory - m.reserve, 31 * GiB);
    assert_int_equal(m.giant_pages, 0);
    assert_int_equal(m.streams, 2048);
    m = load("910B");
    assert_string_equal(m.soc, "Ascend910B3");
    assert_int_equal(m.memory, 64 * GiB);
    uint64_t seen = m.memory - m.reserve, text_says = 6097 * (GiB / 100);
    assert_int_equal(seen % FRAME, 0);
    assert_true(seen <= 65466039172u && seen + FRAME > text_says);
    assert_int_equal(m.giant_pages, 1);
    assert_int_equal(m.streams, 1984);
    assert_int_equal(m.events, 65536);
    m = load("310P");
    assert_string_equal(m.soc, "Ascend310P3");
    assert_int_equal(m.memory, 24 * GiB);
    assert_int_equal(m.memory - m.reserve, 22 * GiB);
    assert_int_equal(m.events, 1023);
    for (int i = 0; blyi_model_builtin(i); i++)
        assert_int_equal(blyi_model_builtin(i)->overhead, 16 * MiB);
    assert_null(blyi_model_builtin(3));
    assert_null(blyi_model_builtin(-1));
}

static char path[] = "/tmp/belay-model-XXXXXX";

static const char *file_with(const char *text)
{
    static bool made;
    if (!made)
        close(mkstemp(path));
    made = true;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static void a_file_starts_from_a_base(void **state)
{
    (void)state;
    struct blyi_model m = load(file_with("# ours\nbase 310P\nname  mine # short\n"
                                         "memory 4GiB\n\treserve=512MiB\nstreams 7\n"));
    assert_string_equal(m.name, "mine");
    assert_string_equal(m.soc, "Ascend310P3");
    assert_int_equal(m.memory, 4 * GiB);
    assert_int_equal(m.reserve, 512 * MiB);
    assert_int_equal(m.streams, 7);
    assert_int_equal(m.events, 1023);
}

static void errors_name_line_and_cause(void **state)
{
    (void)state;
    struct blyi_model m = {.streams = 5};
    assert_fails(blyi_model_load("/nowhere", &m), BLY_E_IO, "/nowhere", "No such file");
    assert_fails(blyi_model_load(file_with("base 910\n\nsize 3\n"), &m), BLY_E_PARSE,
                 ":3:", "'size'");
    assert_fails(blyi_model_load(file_with("base 911\n"), &m), BLY_E_PARSE, ":1:", "911");
    assert_fails(blyi_model_load(file_with("base 910\nstreams many\n"), &m), BLY_E_PARSE,
                 ":2:", "'many'", "streams");
    assert_fails(blyi_model_load(file_with("base 910\nmemory -1\n"), &m), BLY_E_PARSE, "memory");
    assert_fails(blyi_model_load(file_with("memory 1GiB\n"), &m), BLY_E_INVALID, "name");
    assert_fails(blyi_model_load(file_with("base 910\nreserve 33GiB\n"), &m), BLY_E_INVALID,
                 "reserve");
    assert_fails(blyi_model_load(file_with("base 910\nmemory 9223372036854775807\n"), &m),
                 BLY_E_INVALID, "16 TiB");
    assert_fails(blyi_model_load(file_with("base 910\ngiant_pages 2\n"), &m), BLY_E_INVALID,
                 "giant_pages");
    char text[700];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_fails(blyi_model_load(file_with(text), &m), BLY_E_PARSE, "longer");
    assert_int_equal(m.streams, 5); /* written on success only */
    unlink(path);
}

/* No wait for a writer that never comes, no file without an end. */
static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct blyi_model m = {.streams = 5};
    char fifo[] = "/tmp/belay-model-XXXXXX";
    close(mkstemp(fifo));
    unlink(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(600);
    assert_fails(blyi_model_load(fifo, &m), BLY_E_IO, "no regular file");
    unlink(fifo);
    assert_fails(blyi_model_load("/tmp", &m), BLY_E_IO, "no regular file");
    assert_int_not_equal(blyi_model_load("/dev/zero", &m), BLY_OK);
    assert_int_not_equal(blyi_model_load("/dev/null", &m), BLY_OK);
    alarm(0);
    static char text[5000];
    memset(text, '\n', sizeof text - 1);
    assert_fails(blyi_model_load(file_with(text), &m), BLY_E_PARSE, "longer than 1024 lines");
    unlink(path);
    assert_int_equal(m.streams, 5);
}

static void what_cannot_be_printed_is_not(void **state)
{
    (void)state;
    struct blyi_model m = {.streams = 5};
    assert_fails(blyi_model_load(file_with("base 910\nname a\x1b[31mb\n"), &m), BLY_E_PARSE,
                 ":2:", "a\\x1b[31mb");
    assert_fails(blyi_model_load(file_with("\x01\xff 3\n"), &m), BLY_E_PARSE, "'\\x01\\xff'");
    assert_fails(blyi_model_load(file_with("base 910\nsoc \x80\n"), &m), BLY_E_PARSE, "\\x80");
    assert_fails(blyi_model_load("a\x1b", &m), BLY_E_IO, "'a\\x1b'");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_figures), cmocka_unit_test(a_file_starts_from_a_base),
        cmocka_unit_test(errors_name_line_and_cause), cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_cannot_be_printed_is_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
