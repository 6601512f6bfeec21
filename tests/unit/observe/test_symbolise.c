/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code: by the helper for programs with known lines, by the library for itself.
 */
#include "observe_test.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "observe/symbolise.h"

static void read_command(const char *command, char *text, size_t size)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, size - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

static int plain_line, inlined_line;

/* Answers for the three addresses that the fixture prints, asked in `module`. */
static void ask(const char *module, char *text, size_t size)
{
    char command[2048], plain[32], caller[32], model[32];
    read_command(FIXTURES "/symbol_fixture", text, size);
    assert_int_equal(
        sscanf(text, "%31s %d %31s %d %31s", plain, &plain_line, caller, &inlined_line, model), 5);
    snprintf(command, sizeof(command), "%s symbolize %s/%s %s %s %s", BELAY_COMMAND, FIXTURES,
             module, plain, caller, model);
    read_command(command, text, size);
}

static void lines_are_exact_and_inlined_calls_innermost(void **state)
{
    (void)state;
    char text[4096], file[2][1024], function[2][64];
    int line[2];
    ask("symbol_fixture", text, sizeof(text));
    assert_int_equal(sscanf(text, "%63s %1023s %d %63s %1023s %d", function[0], file[0], &line[0],
                            function[1], file[1], &line[1]),
                     6);
    assert_string_equal(function[0], "plain");
    assert_int_equal(line[0], plain_line);
    assert_string_equal(function[1], "inlined");
    assert_int_equal(line[1], inlined_line);
    assert_true(file[0][0] == '/' && strstr(file[0], "/symbol_fixture.c") != NULL);
    assert_non_null(strstr(text, "\nModel::load(unsigned long)\t/"));
}

static void symbols_alone_give_functions_and_distances(void **state)
{
    (void)state;
    char text[4096];
    unsigned behind[3] = {0};
    ask("symbols_only", text, sizeof(text));
    assert_int_equal(sscanf(text,
                            "plain\t\t\t%x\ncaller\t\t\t%x\nModel::load(unsigned long)\t\t\t%x",
                            &behind[0], &behind[1], &behind[2]),
                     3);
    for (int i = 0; i < 3; i++)
        assert_true(behind[i] > 0 && behind[i] < 64);
}

static void nothing_known_is_empty(void **state)
{
    (void)state;
    char text[4096];
    ask("stripped", text, sizeof(text));
    assert_string_equal(text, "\t\t\t\n\t\t\t\n\t\t\t\n");
    ask("absent", text, sizeof(text));
    assert_string_equal(text, "\t\t\t\n\t\t\t\n\t\t\t\n");
}

static void another_build_is_not_believed(void **state)
{
    (void)state;
    char text[4096];
    read_command("printf '" FIXTURES "/symbol_fixture\\t1200\\t00ff\\n\\nx\\n' | " BELAY_COMMAND
                 " symbolize",
                 text, sizeof(text));
    assert_string_equal(text, "\t\t\t\n\t\t\t\n\t\t\t\n");
}

__attribute__((noinline)) static uint32_t intern_caller(void)
{
    uint32_t id = BLYI_SITE_HERE();
    __asm__ volatile("" : "+r"(id));
    return id;
}

#define INTERN_CALLER(line) (*(line) = __LINE__, intern_caller())

__attribute__((noinline)) static uint32_t known_place(uint32_t *line)
{
    uint32_t id = INTERN_CALLER(line);
    __asm__ volatile("" : "+r"(id));
    return id;
}

static void set_helper(const char *path)
{
    assert_int_equal(blyi_option_set(BLYI_OPT_SYMBOLIZER, path), BLY_OK);
}

static void the_library_names_its_callers(void **state)
{
    (void)state;
    struct blyi_source sources[3];
    char text[BLYI_SOURCE_TEXT];
    uint32_t line;
    uint32_t sites[3] = {0, known_place(&line), blyi_site_intern((const void *)16)};
    set_helper(BELAY_COMMAND);
    blyi_symbolise(sites, 3, sources);
    assert_string_equal(sources[0].function, "an unknown place");
    assert_string_equal(sources[1].function, "known_place");
    assert_int_equal(sources[1].line, line);
    assert_non_null(strstr(sources[1].file, "/test_symbolise.c"));
    assert_string_equal(sources[2].file, "");
    assert_non_null(strstr(blyi_source_text(&sources[1], text), "known_place /"));
    blyi_sources_fini(sources, 3);
}

/* Sites of a plug-in that is gone by the time somebody asks. */
static void call_plugin(const char *name, uint32_t sites[2])
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", FIXTURES, name);
    void *plugin = dlopen(path, RTLD_NOW);
    assert_non_null(plugin);
    void (*call)(uint32_t(*)(void), uint32_t *);
    *(void **)&call = dlsym(plugin, "plugin_call");
    call(intern_caller, sites);
    for (int i = 0; i < 2; i++)
        alloc_huge(0, 0x1000000 * (uint64_t)(i + 1), 2 * MiB, sites[i]);
    dlclose(plugin);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void plugin_scenario(void)
{
    struct blyi_source sources[2];
    uint32_t sites[2];
    set_helper(BELAY_COMMAND);
    call_plugin("plugin_fixture.so", sites);
    blyi_symbolise(sites, 2, sources);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(sources[i].function, "plugin_call");
        assert_non_null(strstr(sources[i].file, "/plugin_fixture.c"));
    }
    assert_int_equal(sources[0].line + 1, sources[1].line);
    blyi_sources_fini(sources, 2);
    set_helper("/nonexistent/belay");
    blyi_symbolise(sites, 2, sources);
    assert_non_null(strstr(sources[0].function, "(plugin_fixture.so, unloaded)"));
    blyi_sources_fini(sources, 2);
}

static void a_closed_plugin_has_its_names(void **state)
{
    (void)state;
    in_child(plugin_scenario);
}

static void plugin_symbols_scenario(void)
{
    struct blyi_source sources[2];
    uint32_t sites[2];
    set_helper(BELAY_COMMAND);
    call_plugin("plugin_symbols.so", sites);
    blyi_symbolise(sites, 2, sources);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(strncmp(sources[i].function, "plugin_call+0x", 14), 0);
        assert_string_equal(sources[i].file, "");
    }
    assert_string_not_equal(sources[0].function, sources[1].function);
    blyi_sources_fini(sources, 2);
}

static void sites_of_a_function_without_lines_differ(void **state)
{
    (void)state;
    in_child(plugin_symbols_scenario);
}

/* Whatever the helper does, there is an answer: the dynamic symbols'. */
static void expect_fallback(const char *helper)
{
    struct blyi_source source;
    uint32_t line, place = known_place(&line);
    set_helper(helper);
    blyi_symbolise(&place, 1, &source);
    assert_true(source.function[0] != '\0');
    assert_string_equal(source.file, "");
    blyi_sources_fini(&source, 1);
}

static void a_helper_that_fails_is_done_without(void **state)
{
    (void)state;
    expect_fallback("/nonexistent/belay");
    expect_fallback("/bin/false");
    expect_fallback("/etc");
    expect_fallback("/bin/true");
}

/* It takes as long as a helper may do nothing. */
static void a_helper_that_hangs_is_stopped(void **state)
{
    (void)state;
    char path[] = "/tmp/belay-helper-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, "#!/bin/sh\nexec sleep 600\n", 25) == 25);
    fchmod(fd, 0700);
    close(fd);
    expect_fallback(path);
    unlink(path);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void many_addresses_do_not_block_the_pipes(void **state)
{
    (void)state;
    enum { N = 4000 };
    static uint32_t sites[N];
    static struct blyi_source sources[N];
    uint32_t line;
    for (int i = 0; i < N; i++)
        sites[i] = known_place(&line);
    set_helper(BELAY_COMMAND);
    blyi_symbolise(sites, N, sources);
    assert_string_equal(sources[0].function, "known_place");
    assert_string_equal(sources[N - 1].function, "known_place");
    blyi_sources_fini(sources, N);
}

static void every_host_allocation_may_fail(void **state)
{
    (void)state;
    uint32_t line, place = known_place(&line);
    set_helper(BELAY_COMMAND);
    for (uint64_t n = 1;; n++) {
        struct blyi_source source;
        struct blyi_host_stats before, after;
        blyi_host_stats(&before);
        blyi_host_fail_nth(n);
        blyi_symbolise(&place, 1, &source);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_non_null(source.function);
        assert_non_null(source.file);
        blyi_sources_fini(&source, 1);
        blyi_host_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        if (!failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_exact_and_inlined_calls_innermost),
        cmocka_unit_test(symbols_alone_give_functions_and_distances),
        cmocka_unit_test(nothing_known_is_empty),
        cmocka_unit_test(another_build_is_not_believed),
        cmocka_unit_test(the_library_names_its_callers),
        cmocka_unit_test(a_closed_plugin_has_its_names),
        cmocka_unit_test(sites_of_a_function_without_lines_differ),
        cmocka_unit_test(a_helper_that_fails_is_done_without),
        cmocka_unit_test(a_helper_that_hangs_is_stopped),
        cmocka_unit_test(many_addresses_do_not_block_the_pipes),
        cmocka_unit_test(every_host_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
