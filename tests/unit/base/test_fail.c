/* SPDX-License-Identifier: Apache-2.0
 * The sentence of an error. */
#include "base_test.h"
#include "base/fail.h"
#include "base/host.h"
#include <errno.h>
#include <pthread.h>

static void nothing_failed_yet(void **state)
{
    (void)state;
    blyi_fail_clear();
    assert_string_equal(blyi_fail_text(), "");
    assert_string_equal(bly_last_error(), "");
    assert_int_equal(blyi_fail_code(), BLY_OK);
    blyi_fail_append("; more");
    assert_string_equal(blyi_fail_text(), "");
}

static void sentence_and_code_are_kept(void **state)
{
    (void)state;
    errno = EPERM;
    assert_int_equal(blyi_fail(BLY_E_DEVICE, "card %d of %d", 3, 2), BLY_E_DEVICE);
    assert_string_equal(bly_last_error(), "card 3 of 2");
    blyi_fail_append("; held by %s", "me");
    assert_string_equal(bly_last_error(), "card 3 of 2; held by me");
    assert_int_equal(blyi_fail_code(), BLY_E_DEVICE);
    assert_int_equal(errno, EPERM);
}

static void a_sentence_may_quote_the_one_before(void **state)
{
    (void)state;
    blyi_fail(BLY_E_IO, "inner");
    blyi_fail(BLY_E_STATE, "outer: %s", blyi_fail_text());
    assert_string_equal(blyi_fail_text(), "outer: inner");
    blyi_fail_append(" (%s)", blyi_fail_text());
    assert_string_equal(blyi_fail_text(), "outer: inner (outer: inner)");
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    char longer[2 * BLYI_FAIL_MAX];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    blyi_fail(BLY_E_IO, "%s", longer);
    assert_int_equal(strlen(blyi_fail_text()), BLYI_FAIL_MAX - 1);
    blyi_fail_append("%s", longer);
    assert_int_equal(strlen(blyi_fail_text()), BLYI_FAIL_MAX - 1);
    blyi_fail(BLY_E_IO, "short");
    blyi_fail_append("%s", longer);
    assert_int_equal(strlen(blyi_fail_text()), BLYI_FAIL_MAX - 1);
}

static void fail_in_thread(int index)
{
    char want[32];
    require(blyi_fail_code() == BLY_OK);
    for (int i = 0; i < 1000; i++) {
        blyi_fail(BLY_E_STATE, "thread %d round %d", index, i);
        snprintf(want, sizeof(want), "thread %d round %d", index, i);
        require(strcmp(bly_last_error(), want) == 0);
    }
}

static void each_thread_has_its_own(void **state)
{
    (void)state;
    blyi_fail(BLY_E_IO, "main");
    run_threads(fail_in_thread);
    assert_string_equal(bly_last_error(), "main");
}

static void it_needs_no_host_memory(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    blyi_host_stats(&before);
    run_threads(fail_in_thread);
    blyi_host_stats(&after);
    assert_int_equal(after.calls, before.calls);
}

#define AT_ONCE 200 /* more than there are places beforehand */

static void *fail_and_wait(void *arg)
{
    pthread_barrier_t *barrier = arg;
    char want[32];
    (void)pthread_barrier_wait(barrier);
    snprintf(want, sizeof(want), "%p failed", (void *)&want);
    blyi_fail(BLY_E_STATE, "%s", want);
    (void)pthread_barrier_wait(barrier); /* all have failed, none has ended */
    require(strcmp(bly_last_error(), want) == 0);
    return NULL;
}

static void many_threads_at_once_have_one_each(void **state)
{
    pthread_t threads[AT_ONCE];
    pthread_barrier_t barrier;
    (void)state;
    blyi_fail(BLY_E_IO, "main");
    for (int round = 0; round < 3; round++) { /* places come back */
        assert_int_equal(pthread_barrier_init(&barrier, NULL, AT_ONCE), 0);
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, fail_and_wait, &barrier), 0);
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)pthread_barrier_destroy(&barrier);
    }
    assert_string_equal(bly_last_error(), "main");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_failed_yet),
        cmocka_unit_test(sentence_and_code_are_kept),
        cmocka_unit_test(a_sentence_may_quote_the_one_before),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(it_needs_no_host_memory),
        cmocka_unit_test(many_threads_at_once_have_one_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
