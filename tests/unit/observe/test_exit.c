/* SPDX-License-Identifier: Apache-2.0
 *
 * A report is written once, by every way that runs destructors, and changes nothing else.
 */
#include "observe_test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/belay-exit-XXXXXX";

/* Runs the fixture with its report in the folder; returns the status of the shell's child. */
static int end_by(const char *how, const char *report, const char *redirect)
{
    char command[1024];
    snprintf(command, sizeof(command),
             "cd %s && BELAY_SYMBOLIZER=%s BELAY_REPORT='%s' %s/exit_fixture %s %s", folder,
             BELAY_COMMAND, report, FIXTURES, how, redirect);
    return system(command);
}

static char *content(const char *name)
{
    static char text[65536], path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static json_t *object(const char *name)
{
    char *text = content(name);
    assert_non_null(text);
    json_t *report = json_loads(text, 0, NULL);
    assert_non_null(report);
    return report;
}

static json_int_t live(json_t *report)
{
    return json_integer_value(json_object_get(json_object_get(report, "process"), "live"));
}

static int occurrences(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        n++;
    return n;
}

static void exit_status_and_report_are_right(void **state)
{
    (void)state;
    assert_int_equal(WEXITSTATUS(end_by("exit", "exit.json", "")), 3);
    json_t *report = object("exit.json");
    assert_int_equal(live(report), 2 * MiB);
    json_t *finding = json_array_get(json_object_get(report, "findings"), 0);
    json_t *place = json_array_get(json_object_get(finding, "sites"), 0);
    assert_string_equal(json_string_value(json_object_get(place, "function")), "main");
    json_decref(report);
}

static void exit_in_a_thread_while_others_emit(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(WEXITSTATUS(end_by("thread", "thread.json", "")), 4);
        json_t *report = object("thread.json");
        assert_true(live(report) >= (json_int_t)(2 * MiB));
        json_decref(report);
    }
}

static void quick_exit_and_signals_report_nothing(void **state)
{
    (void)state;
    assert_int_equal(WEXITSTATUS(end_by("_exit", "-", "2>_exit.log")), 6);
    assert_string_equal(content("_exit.log"), "");
    assert_int_not_equal(end_by("signal", "-", "2>signal.log"), 0);
    assert_null(strstr(content("signal.log"), "Belay"));
}

static void a_json_file_is_valid_however_a_process_ends(void **state)
{
    (void)state;
    static const char *const ends[] = {"_exit", "signal", "kill"};
    for (size_t i = 0; i < BLYI_COUNT(ends); i++) {
        end_by(ends[i], "ended.json", "2>/dev/null");
        json_t *report = object("ended.json");
        assert_true(json_is_true(json_object_get(report, "unfinished")));
        assert_non_null(
            strstr(json_string_value(json_object_get(report, "program")), "exit_fixture"));
        json_decref(report);
        end_by(ends[i], "ended.txt", "2>/dev/null");
        assert_string_equal(content("ended.txt"), "");
    }
    end_by("exit", "ended.json", "");
    json_t *report = object("ended.json");
    assert_null(json_object_get(report, "unfinished"));
    assert_int_equal(live(report), 2 * MiB);
    json_decref(report);
}

static void a_relative_path_begins_where_the_program_was_started(void **state)
{
    (void)state;
    assert_int_equal(end_by("chdir", "started.json", ""), 0);
    json_t *report = object("started.json");
    assert_int_equal(live(report), 2 * MiB);
    json_decref(report);
}

static void no_card_was_used_is_told_under_belay_run(void **state)
{
    (void)state;
    assert_int_equal(WEXITSTATUS(end_by("unused", "-", "2>unused.log")), 7);
    assert_string_equal(content("unused.log"), "");
    setenv("BELAY_REPORT_APPEND", "on", 1); /* as belay run does */
    assert_int_equal(WEXITSTATUS(end_by("unused", "-,unused.json,unused.txt", "2>unused.log")), 7);
    assert_int_equal(occurrences(content("unused.log"), "no card was used\n"), 1);
    assert_int_equal(occurrences(content("unused.txt"), "no card was used\n"), 1);
    json_t *report = object("unused.json");
    assert_true(json_is_true(json_object_get(report, "unused")));
    assert_int_equal(json_array_size(json_object_get(report, "cards")), 0);
    json_decref(report);
    /* The first process that used a card takes its place. */
    end_by("exit", "unused.json", "");
    report = object("unused.json");
    assert_int_equal(live(report), 2 * MiB);
    assert_null(json_object_get(report, "children"));
    json_decref(report);
    /* It says nothing where a process has reported. */
    end_by("exit", "used.json,used.txt", "");
    end_by("unused", "used.json,used.txt", "");
    report = object("used.json");
    assert_int_equal(live(report), 2 * MiB);
    assert_null(json_object_get(report, "children"));
    json_decref(report);
    assert_int_equal(occurrences(content("used.txt"), "==== Belay"), 1);
    unsetenv("BELAY_REPORT_APPEND");
}

static void children_report_for_themselves(void **state)
{
    (void)state;
    assert_int_equal(WEXITSTATUS(end_by("children", "children.json", "")), 5);
    json_t *report = object("children.json");
    assert_int_equal(json_array_size(json_object_get(report, "children")), 1);
    assert_int_equal(live(report), 2 * MiB);
    json_decref(report);
    assert_int_equal(WEXITSTATUS(end_by("children", "-", "2>children.log")), 5);
    assert_int_equal(occurrences(content("children.log"), "==== Belay"), 2);
    end_by("children", "each-%p.txt", "");
    char command[128];
    snprintf(command, sizeof(command), "test $(ls %s/each-*.txt | wc -l) = 2", folder);
    assert_int_equal(system(command), 0);
}

static void a_reader_that_went_away_does_no_harm(void **state)
{
    (void)state;
    /* The reader ends at once; the shell tells the fixture's own status. */
    char command[1024];
    snprintf(command, sizeof(command),
             "(BELAY_REPORT=- %s/exit_fixture exit; echo $? >%s/status) 2>&1 >/dev/null | :",
             FIXTURES, folder);
    assert_int_equal(system(command), 0);
    assert_string_equal(content("status"), "3\n");
    assert_int_equal(WEXITSTATUS(end_by("exit", "-", "2>/dev/full")), 3);
    assert_int_equal(end_by("close", "-", ""), 0);
    assert_int_equal(end_by("close", "closed.json", ""), 0);
    json_t *report = object("closed.json");
    assert_int_equal(live(report), 2 * MiB);
    json_decref(report);
}

static void a_destination_that_cannot_be_is_told(void **state)
{
    (void)state;
    assert_int_equal(WEXITSTATUS(end_by("exit", "x.htm", "2>htm.log")), 3);
    assert_non_null(strstr(content("htm.log"), "*.txt, *.json or *.html"));
    assert_int_equal(WEXITSTATUS(end_by("exit", "/nonexistent/x.txt", "2>absent.log")), 3);
    assert_non_null(strstr(content("absent.log"), "/nonexistent/x.txt"));
    end_by("exit", "/nonexistent/x.txt,other.txt", "2>absent.log");
    assert_int_equal(occurrences(content("absent.log"), "/nonexistent/x.txt"), 1);
    assert_int_equal(occurrences(content("other.txt"), "==== Belay"), 1);
}

static void no_activity_is_a_short_report(void **state)
{
    (void)state;
    assert_int_equal(end_by("quiet", "quiet.txt", ""), 0);
    assert_non_null(strstr(content("quiet.txt"), "\nno card was used\n"));
    assert_non_null(strstr(content("quiet.txt"), "ERROR SUMMARY: 0 findings"));
    assert_int_equal(end_by("quiet", "", "2>empty.log"), 0);
    assert_string_equal(content("empty.log"), "");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_status_and_report_are_right),
        cmocka_unit_test(exit_in_a_thread_while_others_emit),
        cmocka_unit_test(quick_exit_and_signals_report_nothing),
        cmocka_unit_test(a_json_file_is_valid_however_a_process_ends),
        cmocka_unit_test(a_relative_path_begins_where_the_program_was_started),
        cmocka_unit_test(no_card_was_used_is_told_under_belay_run),
        cmocka_unit_test(children_report_for_themselves),
        cmocka_unit_test(a_reader_that_went_away_does_no_harm),
        cmocka_unit_test(a_destination_that_cannot_be_is_told),
        cmocka_unit_test(no_activity_is_a_short_report),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
