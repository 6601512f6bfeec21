/* SPDX-License-Identifier: Apache-2.0
 *
 * check_parts.c - lists of groups, suppressions, the shadow of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/compiler.h"
#include "observe/check.h"
#include "observe/check_quiet.h"
#include "observe/check_shadow.h"

static void groups(void **state)
{
    uint32_t got = 99;
    (void)state;
    assert_int_equal(blyi_check_parse("off", &got), BLY_OK);
    assert_int_equal(got, 0);
    assert_int_equal(blyi_check_parse("all", &got), BLY_OK);
    assert_int_equal(got, BLYI_CHECK_ALL);
    assert_int_equal(blyi_check_parse("race,oob", &got), BLY_OK);
    assert_int_equal(got, 1u << BLYI_CHECK_AT_RACE | 1u << BLYI_CHECK_AT_OOB);
    assert_true(blyi_check_wants(got, BLYI_FINDING_RACE));
    assert_true(blyi_check_wants(got, BLYI_FINDING_FREE_IN_USE));
    assert_false(blyi_check_wants(got, BLYI_FINDING_UNMAP_IN_USE));
    for (int i = 0; i < BLYI_FINDING_KIND_COUNT; i++)
        assert_true(blyi_check_wants(BLYI_CHECK_ALL, (enum blyi_finding_kind)i));
    const char *const wrong[] = {"rac", "race,", ",", "race,,oob", "All", "race;oob"};
    for (size_t i = 0; i < BLYI_COUNT(wrong); i++) {
        assert_int_equal(blyi_check_parse(wrong[i], &got), BLY_E_PARSE);
        assert_non_null(strstr(bly_last_error(), wrong[i]));
    }
}

static struct blyi_source at_line(void *arg, uint32_t site)
{
    (void)arg;
    static char names[2][16] = {"work", "main"}, files[2][16] = {"src/a.c", "src/main.c"};
    return (struct blyi_source){names[site & 1], files[site & 1], 7};
}

static void suppressions(void **state)
{
    char path[] = "/tmp/belay-quiet-XXXXXX";
    struct blyi_quiet quiet;
    const struct blyi_finding_places places = {at_line, NULL, NULL};
    struct blyi_finding race = {.kind = BLYI_FINDING_RACE};
    struct blyi_finding leak = {.kind = BLYI_FINDING_LEAK};
    (void)state;
    blyi_finding_add_site(&race, BLYI_ROLE_USE, 0, NULL);
    blyi_finding_add_site(&race, BLYI_ROLE_OTHER, 0, NULL);
    blyi_finding_add_site(&leak, BLYI_ROLE_ALLOC, 1, NULL);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const struct {
        const char *text;
        bool race, leak, may;
    } rows[] = {
        {"# nothing\n\n", false, false, false},         {"race\n", true, false, true},
        {"race w*k */a.c # mine\n", true, false, true}, {"race main\n", false, false, true},
        {"* main src/main.c\n", false, true, true},     {"l??k\nrace nobody\n", false, true, true},
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, rows[i].text, strlen(rows[i].text), 0),
                         (int)strlen(rows[i].text));
        assert_int_equal(blyi_quiet_read(path, &quiet), BLY_OK);
        assert_int_equal(blyi_quiet_fits(&quiet, &race, &places), rows[i].race);
        assert_int_equal(blyi_quiet_fits(&quiet, &leak, &places), rows[i].leak);
        assert_int_equal(blyi_quiet_may(&quiet, BLYI_FINDING_RACE), i > 0 && rows[i].may);
        blyi_quiet_fini(&quiet);
    }
    const char wrong[] = "race\nraces main\n";
    assert_int_equal(pwrite(fd, wrong, sizeof(wrong) - 1, 0), (int)sizeof(wrong) - 1);
    assert_int_equal(blyi_quiet_read(path, &quiet), BLY_E_PARSE);
    assert_non_null(strstr(bly_last_error(), ":2: there is no kind of finding 'races'"));
    close(fd);
    unlink(path);
    assert_int_equal(blyi_quiet_read(path, &quiet), BLY_E_IO);
}

/* Random writes, reads and unwritten bytes beside one array. */
static void shadow_of_bytes(void **state)
{
    static bool written[200];
    struct blyi_shadow shadow = {.tracks_init = true};
    struct blyi_vc known = {NULL, 0, 0};
    struct blyi_gap gaps[BLYI_GAPS];
    uint64_t seed = 88172645463325252u;
    (void)state;
    assert_true(blyi_vc_raise(&known, 1, 1000000));
    for (uint32_t round = 0; round < 20000; round++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t lo = seed % 190, hi = lo + 1 + seed / 190 % 10;
        struct blyi_conflict conflicts[BLYI_CONFLICTS];
        const struct blyi_epoch epoch = {.clock = round + 1, .slot = 1, .site = 1};
        uint32_t n = 0, n_gaps;
        switch (seed / 4096 % 4) {
        case 0:
            assert_true(blyi_shadow_access(&shadow, lo, hi, &epoch, &known, true, conflicts, &n));
            memset(written + lo, 1, hi - lo);
            break;
        case 1:
            assert_true(blyi_shadow_access(&shadow, lo, hi, &epoch, &known, false, conflicts, &n));
            break;
        case 2:
            assert_true(blyi_shadow_unwrite(&shadow, lo, hi));
            memset(written + lo, 0, hi - lo);
            break;
        default:
            assert_true(blyi_shadow_fill(&shadow, lo, hi, 0));
            memset(written + lo, 1, hi - lo);
            break;
        }
        assert_int_equal(n, 0); /* all of it is known */
        uint64_t sum = 0, bytes = blyi_shadow_gaps(&shadow, lo / 2, hi, gaps, &n_gaps);
        for (uint64_t i = lo / 2; i < hi; i++)
            sum += !written[i];
        if (bytes != 0 || n_gaps > 0)
            assert_int_equal(bytes, sum);
        assert_true(blyi_shadow_audit(&shadow));
    }
    blyi_shadow_forget(&shadow);
    blyi_vc_fini(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(suppressions),
                                       cmocka_unit_test(shadow_of_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
