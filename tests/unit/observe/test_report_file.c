/* SPDX-License-Identifier: Apache-2.0
 *
 * Where reports go, and how several processes share a file.
 */
#include "observe_test.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "observe/report_file.h"
#include "observe/report_page.h"

static char folder[] = "/tmp/belay-report-XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[2][PATH_MAX];
    static unsigned n;
    char *path = paths[n++ % 2];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static char *content(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static struct blyi_report_file opened(const char *path, bool append)
{
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse(path, NULL, &file), BLY_OK);
    assert_int_equal(blyi_report_file_begin(&file, append), BLY_OK);
    return file;
}

static void add(const struct blyi_report_file *file, const char *text)
{
    assert_int_equal(blyi_report_file_add(file, text, strlen(text)), BLY_OK);
}

static void destinations_are_told_by_their_end(void **state)
{
    (void)state;
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse("-", NULL, &file), BLY_OK);
    assert_true(file.to_stderr);
    assert_int_equal(blyi_report_file_parse("a.json", NULL, &file), BLY_OK);
    assert_true(file.form == BLYI_REPORT_JSON && file.shared && file.path[0] == '/');
    assert_int_equal(blyi_report_file_parse("/x/a-%p.txt", NULL, &file), BLY_OK);
    assert_true(file.form == BLYI_REPORT_TEXT && !file.shared);
    assert_int_equal(blyi_report_file_parse("a.html", NULL, &file), BLY_OK);
    assert_true(file.form == BLYI_REPORT_PAGE && file.shared);
    assert_int_equal(blyi_report_file_parse("a.htm", NULL, &file), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "*.txt, *.json or *.html"));
    assert_int_equal(blyi_report_file_parse(".json", NULL, &file), BLY_E_INVALID);
    assert_int_equal(blyi_report_file_parse("out", NULL, &file), BLY_E_INVALID);

    struct blyi_report_files files;
    assert_int_equal(blyi_report_files_parse("-,/x/a.json,/x/b.txt", NULL, &files), BLY_OK);
    assert_int_equal(files.n, 3);
    assert_true(files.file[0].to_stderr);
    assert_string_equal(files.file[1].path, "/x/a.json");
    assert_int_equal(files.file[2].form, BLYI_REPORT_TEXT);
    assert_int_equal(blyi_report_files_parse("-,", NULL, &files), BLY_E_INVALID);
    assert_int_equal(blyi_report_files_parse("-,-,-,-,-", NULL, &files), BLY_E_INVALID);
}

static void relative_paths_begin_in_the_folder_that_is_told(void **state)
{
    (void)state;
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse("a/b.json", "/start", &file), BLY_OK);
    assert_string_equal(file.path, "/start/a/b.json");
    assert_int_equal(blyi_report_file_parse("/a/b.json", "/start", &file), BLY_OK);
    assert_string_equal(file.path, "/a/b.json");
    struct blyi_report_files files;
    assert_int_equal(blyi_report_files_parse("-,c.txt", "/start", &files), BLY_OK);
    assert_string_equal(files.file[1].path, "/start/c.txt");
}

static json_t *object(const char *path)
{
    json_error_t error;
    json_t *report = json_loads(content(path), JSON_REJECT_DUPLICATES, &error);
    if (report == NULL)
        fail_msg("%s: line %d: %s", path, error.line, error.text);
    return report;
}

static bool is_unfinished(const char *path)
{
    json_t *report = object(path);
    bool unfinished = json_is_true(json_object_get(report, "unfinished"));
    assert_true(!unfinished || json_is_string(json_object_get(report, "version")));
    json_decref(report);
    return unfinished;
}

/* What stands in the file is an object at each moment. */
static void a_json_file_is_valid_from_its_beginning(void **state)
{
    (void)state;
    const char *path = path_of("begun.json");
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse(path, NULL, &file), BLY_OK);
    assert_true(blyi_report_file_is_unused(&file));
    assert_int_equal(blyi_report_file_new(&file), BLY_OK);
    assert_true(is_unfinished(path));
    assert_true(blyi_report_file_is_unused(&file));
    assert_int_equal(blyi_report_file_begin(&file, true), BLY_OK);
    assert_int_equal(file.first, getpid());
    pid_t pid = fork();
    if (pid == 0) { /* a process that ends before the first one, whose lock a close would drop */
        struct blyi_report_file joined;
        json_t *begun = object(path);
        assert_int_equal(json_integer_value(json_object_get(begun, "pid")), getppid());
        assert_true(json_is_true(json_object_get(begun, "unfinished")));
        json_decref(begun);
        if (blyi_report_file_parse(path, NULL, &joined) != BLY_OK ||
            blyi_report_file_is_unused(&joined) ||
            blyi_report_file_begin(&joined, true) != BLY_OK || joined.first != 0)
            _exit(1);
        add(&joined, "{\n  \"pid\": 1\n}\n");
        _exit(is_unfinished(path) ? 1 : 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    add(&file, "{\n  \"pid\": 0\n}\n");
    json_t *report = object(path);
    assert_int_equal(json_integer_value(json_object_get(report, "pid")), 0);
    assert_null(json_object_get(report, "unfinished"));
    assert_int_equal(json_array_size(json_object_get(report, "children")), 1);
    json_decref(report);
    assert_false(blyi_report_file_is_unused(&file));

    struct blyi_report_file alone = opened(path_of("alone-%p.json"), false);
    char name[64];
    snprintf(name, sizeof(name), "alone-%d.json", (int)getpid());
    assert_true(is_unfinished(path_of(name)));
    add(&alone, "{\n  \"version\": 1\n}\n");
    assert_false(is_unfinished(path_of(name)));
}

static void a_text_file_begins_empty(void **state)
{
    (void)state;
    struct blyi_report_file file;
    const char *path = path_of("empty.txt");
    assert_int_equal(blyi_report_file_parse(path, NULL, &file), BLY_OK);
    assert_int_equal(blyi_report_file_new(&file), BLY_OK);
    assert_string_equal(content(path), "");
    assert_true(blyi_report_file_is_unused(&file));
    add(&file, "a section\n");
    assert_false(blyi_report_file_is_unused(&file));
}

static void a_new_run_begins_a_file_anew(void **state)
{
    (void)state;
    const char *path = path_of("anew.txt");
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct blyi_report_file file = opened(path, false);
            add(&file, "once\n");
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    assert_string_equal(content(path), "once\n");
}

/* Both children end before the process that began the file. */
static void children_come_behind(const char *name, const char *const *texts)
{
    const char *path = path_of(name);
    struct blyi_report_file file = opened(path, false);
    for (int i = 1; i < 3; i++) {
        pid_t pid = fork();
        int status = -1;
        if (pid == 0) {
            struct blyi_report_file joined = opened(path, false);
            _exit(blyi_report_file_add(&joined, texts[i], strlen(texts[i])) == BLY_OK ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
    add(&file, texts[0]);
}

static void text_sections_follow_each_other(void **state)
{
    (void)state;
    static const char *const texts[] = {"parent\n", "first\n", "second\n"};
    children_come_behind("sections.txt", texts);
    assert_string_equal(content(path_of("sections.txt")), "first\nsecond\nparent\n");
}

static void json_children_are_in_their_parents_object(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\n  \"pid\": 0,\n  \"findings\": []\n}\n",
                                        "{\n  \"pid\": 1,\n  \"findings\": []\n}\n",
                                        "{\n  \"pid\": 2,\n  \"findings\": []\n}\n"};
    children_come_behind("children.json", texts);
    json_t *report = json_loads(content(path_of("children.json")), 0, NULL);
    assert_non_null(report);
    json_t *children = json_object_get(report, "children");
    assert_int_equal(json_integer_value(json_object_get(report, "pid")), 0);
    assert_int_equal(json_array_size(children), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *pid = json_object_get(json_array_get(children, i), "pid");
        assert_int_equal(json_integer_value(pid), i + 1);
    }
    json_decref(report);
}

/* The object in a page, and the page whole around it. */
static json_t *object_in(const char *path)
{
    const char *text = content(path);
    struct blyi_slice page = {text, strlen(text)}, head = blyi_report_page_head(),
                      tail = blyi_report_page_tail(), object = blyi_report_page_object(page);
    assert_int_equal(page.length, head.length + object.length + tail.length);
    assert_memory_equal(page.text, head.text, head.length);
    assert_ptr_equal(object.text, page.text + head.length);
    assert_memory_equal(object.text + object.length, tail.text, tail.length);
    assert_null(memchr(object.text, '<', object.length));
    json_t *report = json_loadb(object.text, object.length, 0, NULL);
    assert_non_null(report);
    return report;
}

static void a_page_holds_an_object_at_each_moment(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\n  \"pid\": 0\n}\n", "{\n  \"pid\": 1\n}\n",
                                        "{\n  \"site\": \"a<b></script>\"\n}\n"};
    const char *path = path_of("page.html");
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse(path, NULL, &file), BLY_OK);
    assert_int_equal(blyi_report_file_new(&file), BLY_OK);
    json_t *begun = object_in(path);
    assert_true(json_is_true(json_object_get(begun, "unfinished")));
    json_decref(begun);
    assert_true(blyi_report_file_is_unused(&file));
    children_come_behind("page.html", texts);
    json_t *report = object_in(path), *children = json_object_get(report, "children");
    assert_int_equal(json_integer_value(json_object_get(report, "pid")), 0);
    assert_int_equal(json_array_size(children), 2);
    const char *site = json_string_value(json_object_get(json_array_get(children, 1), "site"));
    assert_string_equal(site, "a<b></script>");
    json_decref(report);
    assert_false(blyi_report_file_is_unused(&file));
}

static void another_file_is_no_page(void **state)
{
    (void)state;
    static const char text[] = "<!doctype html><p>mine";
    struct blyi_slice object = blyi_report_page_object((struct blyi_slice){text, strlen(text)});
    assert_int_equal(object.length, 0);
}

static void append_adds_to_what_is_there(void **state)
{
    (void)state;
    const char *path = path_of("append.json");
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char text[64];
            struct blyi_report_file file = opened(path, true);
            snprintf(text, sizeof(text), "{\n  \"n\": %d\n}\n", i);
            add(&file, text);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    json_t *report = json_loads(content(path), 0, NULL);
    assert_non_null(report);
    assert_int_equal(json_integer_value(json_object_get(report, "n")), 0);
    assert_int_equal(json_array_size(json_object_get(report, "children")), 2);
    json_decref(report);
}

static void pid_in_the_name_keeps_processes_apart(void **state)
{
    (void)state;
    char name[64];
    struct blyi_report_file file = opened(path_of("p-%p.txt"), false);
    add(&file, "mine\n");
    add(&file, "mine again\n");
    snprintf(name, sizeof(name), "p-%d.txt", (int)getpid());
    assert_string_equal(content(path_of(name)), "mine again\n");
}

/* Sections so large that writing them takes a while. */
static void write_until_killed(const char *path, int begun)
{
    enum { LARGE = 4 << 20 };
    char *text = malloc(LARGE + 64);
    struct blyi_report_file file = opened(path, false);
    if (text == NULL)
        _exit(1);
    memset(text, 'x', LARGE);
    memcpy(text, "{\n  \"pid\": \"", 12);
    strcpy(text + LARGE, "\"\n}\n");
    if (write(begun, "", 1) != 1)
        _exit(1);
    for (int i = 0; i < 50; i++)
        add(&file, text);
    _exit(0);
}

static void a_kill_leaves_the_file_whole(void **state)
{
    (void)state;
    const char *path = path_of("killed.json");
    for (int i = 0; i < 40; i++) {
        int ends[2], status;
        char byte;
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(path, ends[1]);
        close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        usleep((useconds_t)(i * 731) % 20000); /* anywhere; none is wrong */
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        close(ends[0]);
        json_error_t error;
        json_t *report = json_load_file(path, 0, &error);
        if (report == NULL)
            fail_msg("kill %d: line %d: %s", i, error.line, error.text);
        json_decref(report);
    }
    /* What the killed left beside is in nobody's way, and the last to leave takes it away. */
    struct blyi_report_file file = opened(path, false);
    add(&file, "{\n  \"pid\": 1\n}\n");
    assert_false(is_unfinished(path));
    assert_int_not_equal(access(path_of("killed.json.lock"), F_OK), 0);
    assert_int_not_equal(access(path_of("killed.json.new"), F_OK), 0);
}

/* It goes on as the file that it is: behind a link, under a second name, in a folder where nobody
 * may put anything. */
static void a_file_that_cannot_be_replaced_is_rewritten(void **state)
{
    (void)state;
    char real[PATH_MAX], linked[PATH_MAX];
    struct stat before, after;
    snprintf(real, sizeof(real), "%s", path_of("real.json"));
    snprintf(linked, sizeof(linked), "%s", path_of("second.json"));
    struct blyi_report_file file = opened(real, false);
    add(&file, "{\n  \"pid\": 1\n}\n");
    assert_int_equal(link(real, linked), 0);
    assert_int_equal(stat(real, &before), 0);
    file = opened(real, true);
    add(&file, "{\n  \"pid\": 2\n}\n");
    assert_int_equal(stat(linked, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    json_t *report = object(linked);
    assert_int_equal(json_array_size(json_object_get(report, "children")), 1);
    json_decref(report);

    assert_int_equal(unlink(linked), 0);
    assert_int_equal(symlink(real, linked), 0);
    file = opened(linked, true);
    add(&file, "{\n  \"pid\": 3\n}\n");
    report = object(real);
    assert_int_equal(json_array_size(json_object_get(report, "children")), 2);
    json_decref(report);
    assert_int_equal(lstat(linked, &after), 0);
    assert_true(S_ISLNK(after.st_mode));
}

static void errors_name_the_file(void **state)
{
    (void)state;
    struct blyi_report_file file;
    assert_int_equal(blyi_report_file_parse("/nonexistent/x.txt", NULL, &file), BLY_OK);
    assert_int_equal(blyi_report_file_begin(&file, false), BLY_E_IO);
    assert_non_null(strstr(bly_last_error(), "/nonexistent/x.txt"));
    assert_int_equal(blyi_report_file_add(&file, "x\n", 2), BLY_E_IO);
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
        cmocka_unit_test(destinations_are_told_by_their_end),
        cmocka_unit_test(relative_paths_begin_in_the_folder_that_is_told),
        cmocka_unit_test(a_json_file_is_valid_from_its_beginning),
        cmocka_unit_test(a_text_file_begins_empty),
        cmocka_unit_test(a_new_run_begins_a_file_anew),
        cmocka_unit_test(text_sections_follow_each_other),
        cmocka_unit_test(json_children_are_in_their_parents_object),
        cmocka_unit_test(a_page_holds_an_object_at_each_moment),
        cmocka_unit_test(another_file_is_no_page),
        cmocka_unit_test(append_adds_to_what_is_there),
        cmocka_unit_test(pid_in_the_name_keeps_processes_apart),
        cmocka_unit_test(a_kill_leaves_the_file_whole),
        cmocka_unit_test(a_file_that_cannot_be_replaced_is_rewritten),
        cmocka_unit_test(errors_name_the_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
