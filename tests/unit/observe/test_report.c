/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a made-up history: JSON by its names, text as a whole.
 */
#include "base/option.h"
#include "observe_test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "observe/report.h"

typedef void (*writer)(const struct blyi_report *report, FILE *out);

static char *written(writer write)
{
    struct blyi_report report;
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(blyi_report_make(&report), BLY_OK);
    FILE *out = open_memstream(&text, &length);
    write(&report, out);
    fclose(out);
    blyi_report_fini(&report);
    return text;
}

static json_t *as_json(void)
{
    json_error_t error;
    char *text = written(blyi_report_write_json);
    json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (report == NULL)
        fail_msg("line %d: %s", error.line, error.text);
    free(text);
    return report;
}

static json_t *at(json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (value == NULL)
        fail_msg("no \"%s\"", key);
    return value;
}

static uint64_t number(json_t *from, const char *key)
{
    return (uint64_t)json_integer_value(at(from, key));
}

static void history(void)
{
    card_open(0, GiB);
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    alloc_huge(0, 0x2000000, 4 * MiB, site(1));
    alloc(0, 0x3000000, 2 * MiB, 2 * MiB + 32, 4 * MiB, BLYI_PAGE_HUGE, site(2));
    release(0, 0x3000000);
    alloc(0, 0x4000000, 1000, 1056, 4096, BLYI_PAGE_NORMAL, site(3));
    release(0, 0x4000000);
    BLYI_PROBE(STREAM_CREATE, .card = 0, .stream = 3, .site = site(4));
    BLYI_PROBE(EVENT_CREATE, .card = 0, .event = 9, .site = site(5));
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = 2 * GiB, .site = site(2), .aux = BLY_E_NO_MEMORY);
}

static void json_scenario(void)
{
    history();
    json_t *report = as_json();
    json_t *card = json_array_get(at(report, "cards"), 0);
    assert_int_equal(json_array_size(at(report, "cards")), 1);
    assert_string_equal(json_string_value(at(report, "version")), bly_version());
    assert_int_equal(number(report, "pid"), getpid());
    assert_true(json_is_string(at(report, "program")));
    assert_int_equal(number(card, "card"), 0);
    assert_int_equal(number(card, "total"), GiB);
    assert_int_equal(number(card, "peak"), 8 * MiB);
    assert_int_equal(number(card, "live"), 6 * MiB);
    assert_int_equal(number(card, "backed"), 6 * MiB);
    assert_int_equal(number(card, "overhead"), 16 * MiB);
    json_t *process = at(report, "process");
    assert_int_equal(number(process, "peak"), 8 * MiB);
    assert_int_equal(number(process, "live"), 6 * MiB);
    assert_int_equal(number(process, "allocs"), 4);
    assert_int_equal(number(process, "frees"), 2);
    json_t *waste = at(report, "waste");
    assert_int_equal(number(waste, "asked"), 8 * MiB + 1000);
    assert_int_equal(number(waste, "by_rule"), 8 * MiB + 32 + 1056);
    assert_int_equal(number(waste, "backed"), 10 * MiB + 4096);
    json_t *holders = at(report, "holders");
    assert_int_equal(json_array_size(holders), 2);
    assert_int_equal(number(json_array_get(holders, 0), "bytes"), 6 * MiB);
    assert_int_equal(number(json_array_get(holders, 0), "count"), 2);
    assert_true(json_is_string(at(json_array_get(holders, 0), "site")));
    json_t *findings = at(report, "findings");
    static const char *const kinds[] = {"leak", "leaked-stream", "leaked-event"};
    assert_int_equal(json_array_size(findings), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *finding = json_array_get(findings, i);
        json_t *place = json_array_get(at(finding, "sites"), 0);
        assert_string_equal(json_string_value(at(finding, "kind")), kinds[i]);
        assert_true(json_is_string(at(finding, "message")));
        assert_string_equal(json_string_value(at(place, "role")), i == 0 ? "alloc" : "create");
        assert_true(json_is_string(at(place, "function")) && json_is_string(at(place, "file")));
        assert_true(json_is_integer(at(place, "line")));
    }
    json_t *leak = json_array_get(findings, 0);
    assert_int_equal(number(leak, "card"), 0);
    assert_int_equal(number(leak, "address"), 0x1000000);
    assert_int_equal(number(leak, "bytes"), 6 * MiB);
    assert_int_equal(number(leak, "count"), 2);
    assert_int_equal(json_array_size(at(leak, "streams")), 0);
    json_t *streams = at(json_array_get(findings, 1), "streams");
    assert_int_equal(json_integer_value(json_array_get(streams, 0)), 3);
    assert_int_equal(number(json_array_get(at(report, "advice"), 0), "saves"), 2 * MiB);
    json_decref(report);
}

static void json_has_the_names_of_the_contract(void **state)
{
    (void)state;
    in_child(json_scenario);
}

/* First line, with the program's path and process, is left out. */
static const char golden[] =
    "                                asked                  backed by pages\n"
    "card 0    peak              8388608 B (8 MiB)              10485760 B (10 MiB)\n"
    "          at exit           6291456 B (6 MiB)               6291456 B (6 MiB)\n"
    "          total     1073741824 B (1 GiB), of which the runtime takes 16777216 B (16 MiB)\n"
    "\n"
    "card memory    4 allocations, 2 frees, 0 taken back by reset or finalise, 1 refused\n"
    "streams        1 created, 0 destroyed, at most 1 at once\n"
    "events         1 created, 0 destroyed, at most 1 at once\n"
    "\n"
    "waste, in bytes       blocks            asked          by rule           backed    waste\n"
    "at the peak                3          8388608          8388640         10485760   20.0 %\n"
    "all allocations            4          8389608          8389696         10489856   20.0 %\n"
    "  on 4 KiB pages           1             1000             1056             4096   75.5 %\n"
    "  on 2 MiB pages           3          8388608          8388640         10485760   20.0 %\n"
    "\n"
    "largest holders at the peak           blocks  site\n"
    "         6291456 B (6 MiB)                 2  0x10\n"
    "         2097152 B (2 MiB)                 1  0x20\n"
    "\n"
    "what the 32 bytes that aclrtMalloc adds cost at the worst moment\n"
    "  0x20: use aclrtMallocAlign32 here, saves 2097152 B (2 MiB)\n"
    "\n"
    "refused requests\n"
    "  0x20: 1 time, the largest 2147483648 B (2 GiB), last because the card has no room for "
    "the request\n"
    "\n"
    "1. leak: 6291456 B (6 MiB) in 2 blocks of card 0 never freed\n"
    "   lowest at 0x1000000\n"
    "   allocated at 0x10\n"
    "   to do: call aclrtFree for every block before the device is reset or AscendCL finalised\n"
    "\n"
    "2. leaked-stream: 1 stream of card 0 never destroyed\n"
    "   id 3\n"
    "   created at 0x40\n"
    "   to do: call aclrtDestroyStream for every stream\n"
    "\n"
    "3. leaked-event: 1 event of card 0 never destroyed\n"
    "   id 9\n"
    "   created at 0x50\n"
    "   to do: call aclrtDestroyEvent for every event\n"
    "\n"
    "SUMMARY: peak 8388608 B (8 MiB); leaked: 6291456 B (6 MiB) in 2 blocks, 1 stream, 1 event\n"
    "ERROR SUMMARY: 3 findings\n";

static void text_scenario(void)
{
    history();
    char *text = written(blyi_report_write_text);
    const char *body = strstr(text, "\n\n");
    assert_int_equal(strncmp(text, "==== Belay ", 11), 0);
    assert_non_null(body);
    assert_string_equal(body + 2, golden);
    free(text);
}

static void text_is_as_it_was(void **state)
{
    (void)state;
    in_child(text_scenario);
}

static void quiet_scenario(void)
{
    json_t *report = as_json();
    assert_int_equal(number(at(report, "process"), "allocs"), 0);
    assert_int_equal(json_array_size(at(report, "findings")), 0);
    json_decref(report);
    char *text = written(blyi_report_write_text);
    assert_non_null(strstr(text, "\nno card was used\n"));
    assert_non_null(strstr(text, "leaked: nothing\nERROR SUMMARY: 0 findings\n"));
    free(text);
}

static void nothing_happened_is_a_report_too(void **state)
{
    (void)state;
    in_child(quiet_scenario);
}

static int occurrences(const char *text, const char *word)
{
    int n = 0;
    for (const char *found = strstr(text, word); found != NULL; found = strstr(found + 1, word))
        n++;
    return n;
}

static void pinned_alloc(uint64_t address, uint32_t where)
{
    BLYI_PROBE(HOST_ALLOC, .card = -1, .address = address, .asked = 4096, .rounded = 4096,
               .backed = 4096, .site = where);
}

static void cure_scenario(void)
{
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    alloc_huge(0, 0x2000000, 2 * MiB, site(2));
    BLYI_PROBE(RESET_FREE, .card = 0, .address = 0x2000000);
    pinned_alloc(0x7000000, site(3));
    pinned_alloc(0x7001000, site(4));
    char *text = written(blyi_report_write_text);
    assert_int_equal(occurrences(text, "to do: call aclrtFree for"), 2);
    assert_int_equal(occurrences(text, "to do: call aclrtFreeHost for every block before the "
                                       "program ends"),
                     2);
    assert_int_equal(occurrences(text, "(1 taken back by a device reset or aclFinalize)"), 1);
    free(text);
}

static void each_finding_has_the_cure_of_its_memory(void **state)
{
    (void)state;
    in_child(cure_scenario);
}

static void refused_free_scenario(void)
{
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    release(0, 0x1000000);
    BLYI_PROBE(FREE_FAIL, .card = 0, .address = 0x1000000, .site = site(2), .aux = BLY_E_INVALID);
    BLYI_PROBE(FREE_FAIL, .card = -1, .address = 0x10, .site = site(3), .aux = BLY_E_INVALID);
    char *text = written(blyi_report_write_text);
    assert_non_null(strstr(text, "frees refused  2, last at 0x30\n"));
    free(text);
    json_t *report = as_json();
    assert_int_equal(number(at(report, "process"), "frees"), 1);
    assert_int_equal(number(at(report, "process"), "frees_refused"), 2);
    assert_string_equal(json_string_value(at(at(report, "process"), "frees_refused_last")), "0x30");
    json_decref(report);
}

static void refused_frees_are_counted(void **state)
{
    (void)state;
    in_child(refused_free_scenario);
}

/* A site for each card: leaks of two cards are two findings, of one line one holder. */
static void cards_scenario(void)
{
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    alloc_huge(1, 0x9000000, 4 * MiB, site(1));
    json_t *report = as_json();
    assert_int_equal(json_array_size(at(report, "findings")), 2);
    assert_int_equal(number(json_array_get(at(report, "findings"), 0), "card"), 1);
    assert_int_equal(json_array_size(at(report, "holders")), 1);
    assert_int_equal(number(json_array_get(at(report, "holders"), 0), "bytes"), 6 * MiB);
    json_decref(report);
}

static void cards_are_told_apart_in_findings(void **state)
{
    (void)state;
    in_child(cards_scenario);
}

static void shortage_scenario(void)
{
    history();
    struct blyi_host_stats before, after;
    (void)blyi_option_int(BLYI_OPT_LOG); /* options are read, and their texts kept, at first use */
    blyi_host_stats(&before);
    for (uint64_t n = 1;; n++) {
        struct blyi_report report;
        blyi_host_fail_nth(n);
        bly_status status = blyi_report_make(&report);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_true(status == BLY_OK || status == BLY_E_HOST_MEMORY);
        if (status == BLY_OK)
            blyi_report_fini(&report);
        blyi_host_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        if (!failed)
            return;
    }
}

static void every_host_allocation_may_fail(void **state)
{
    (void)state;
    in_child(shortage_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_the_names_of_the_contract),
        cmocka_unit_test(text_is_as_it_was),
        cmocka_unit_test(nothing_happened_is_a_report_too),
        cmocka_unit_test(each_finding_has_the_cure_of_its_memory),
        cmocka_unit_test(refused_frees_are_counted),
        cmocka_unit_test(cards_are_told_apart_in_findings),
        cmocka_unit_test(every_host_allocation_may_fail),
    };
    setenv("BELAY_SYMBOLIZER", "/nonexistent", 1); /* invented addresses */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
