/* SPDX-License-Identifier: Apache-2.0
 * Probes reach the sinks that want them. */
#include "base_test.h"
#include "base/clock.h"
#include "base/probe.h"
#include <stdatomic.h>

static struct blyi_probe seen;
static int n_allocs, n_others;
static atomic_int n_records;

static void see_alloc(void *arg, const struct blyi_probe *probe)
{
    seen = *probe;
    ++*(int *)arg;
}

static void see_record(void *arg, const struct blyi_probe *probe)
{
    (void)probe;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static int evaluated;

static uint64_t evaluate(void)
{
    evaluated++;
    return 4096;
}

static void nobody_listens(void **state)
{
    (void)state;
    assert_false(blyi_probe_on(BLYI_PROBE_ALLOC));
    BLYI_PROBE(ALLOC, .size = evaluate());
    assert_int_equal(evaluated, 0);
}

static void sinks_get_their_kinds(void **state)
{
    (void)state;
    static struct blyi_sink allocs = {
        .kinds = BLYI_KIND(ALLOC), .probe = see_alloc, .arg = &n_allocs};
    static struct blyi_sink both = {
        .kinds = BLYI_KIND(ALLOC) | BLYI_KIND(FREE), .probe = see_alloc, .arg = &n_others};
    blyi_probe_add_sink(&allocs);
    assert_true(blyi_probe_on(BLYI_PROBE_ALLOC));
    assert_false(blyi_probe_on(BLYI_PROBE_FREE));
    blyi_probe_add_sink(&both);
    assert_true(blyi_probe_on(BLYI_PROBE_FREE));

    blyi_clock_set_virtual(true);
    BLYI_PROBE(ALLOC, .card = 3, .size = evaluate(), .aux = -7);
    BLYI_PROBE(FREE, .time_ns = 5);
    BLYI_PROBE(COPY, .size = evaluate());
    assert_int_equal(n_allocs, 1);
    assert_int_equal(n_others, 2);
    assert_int_equal(evaluated, 1);
    assert_int_equal(seen.kind, BLYI_PROBE_FREE);
    assert_int_equal(seen.time_ns, 5);
    BLYI_PROBE(ALLOC, .card = 3, .size = 12);
    assert_int_equal(seen.card, 3);
    assert_int_equal(seen.size, 12);
    assert_int_equal(seen.time_ns, 1000000000);
    blyi_clock_set_virtual(false);
}

static struct blyi_sink thread_sinks[TEST_THREADS];

static void add_and_emit(int index)
{
    thread_sinks[index] =
        (struct blyi_sink){.kinds = BLYI_KIND(RECORD), .probe = see_record, .arg = &n_records};
    blyi_probe_add_sink(&thread_sinks[index]);
    for (int i = 0; i < 100; i++)
        BLYI_PROBE(RECORD, .card = index);
}

static void sinks_come_while_others_emit(void **state)
{
    (void)state;
    run_threads(add_and_emit);
    assert_true(n_records >= TEST_THREADS * 100); /* each thread saw at least its own sink */
    int before = n_records;
    BLYI_PROBE(RECORD, .card = 0);
    assert_int_equal(n_records, before + TEST_THREADS);
}

static void kinds_have_keys(void **state)
{
    (void)state;
    assert_string_equal(blyi_probe_key(BLYI_PROBE_CARD_OPEN), "card-open");
    assert_string_equal(blyi_probe_key(BLYI_PROBE_TASK_DONE), "task-done");
    assert_string_equal(blyi_probe_key(BLYI_PROBE_COUNT), "?");
}

/* Kinds of the last word, which no probe has reached yet. */
static void kinds_lie_in_more_than_one_word(void **state)
{
    (void)state;
    const enum blyi_probe_kind last = (enum blyi_probe_kind)(64 * BLYI_KINDS_WORDS - 1);
    static struct blyi_sink sink = {.probe = see_record, .arg = &n_records};
    sink.kinds = (blyi_kinds)1 << last | BLYI_KIND(EXPORT);
    n_records = 0;
    blyi_probe_add_sink(&sink);
    assert_true(blyi_probe_on(last));
    assert_false(blyi_probe_on((enum blyi_probe_kind)(last % 64)));
    assert_true(blyi_probe_any_on((blyi_kinds)1 << last));
    assert_true(blyi_probe_any_on((blyi_kinds)3 << (last - 1)));
    assert_false(blyi_probe_any_on((blyi_kinds)1 << (last - 1) | (blyi_kinds)1 << (last % 64)));
    blyi_probe_emit_slow(&(struct blyi_probe){.kind = last});
    blyi_probe_emit_slow(&(struct blyi_probe){.kind = (enum blyi_probe_kind)(last % 64)});
    blyi_probe_emit_slow(&(struct blyi_probe){.kind = BLYI_PROBE_EXPORT});
    assert_int_equal(n_records, 2);
    blyi_probe_silence(&sink);
    blyi_probe_emit_slow(&(struct blyi_probe){.kind = last});
    assert_int_equal(n_records, 2);
    assert_true(blyi_probe_on(last)); /* what is wanted is what was wanted before the fork */
    blyi_probe_set_kinds(&sink, 0);
    assert_false(blyi_probe_on(last));
    assert_false(blyi_probe_on(BLYI_PROBE_EXPORT));
}

static int n_told;

static void tell_one(const struct blyi_sink *to)
{
    to->probe(to->arg, &(struct blyi_probe){.kind = BLYI_PROBE_ALLOC, .address = 77});
}

static void see_told(void *arg, const struct blyi_probe *probe)
{
    assert_int_equal(probe->address, 77);
    ++*(int *)arg;
}

static void sinks_change_their_kinds_and_are_told(void **state)
{
    (void)state;
    static struct blyi_sink late = {.probe = see_record, .arg = &n_records};
    static struct blyi_teller first = {.tell = tell_one}, second = {.tell = tell_one};
    n_records = 0;
    blyi_probe_add_sink(&late);
    assert_false(blyi_probe_on(BLYI_PROBE_MARK));
    blyi_probe_set_kinds(&late, BLYI_KIND(MARK));
    assert_true(blyi_probe_on(BLYI_PROBE_MARK));
    BLYI_PROBE(MARK, .event = 1);
    blyi_probe_set_kinds(&late, 0);
    assert_false(blyi_probe_on(BLYI_PROBE_MARK));
    BLYI_PROBE(MARK, .event = 1);
    assert_int_equal(n_records, 1);
    blyi_probe_add_teller(&first);
    blyi_probe_add_teller(&second);
    blyi_probe_tell(&(struct blyi_sink){.probe = see_told, .arg = &n_told});
    assert_int_equal(n_told, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(sinks_get_their_kinds),
        cmocka_unit_test(sinks_come_while_others_emit),
        cmocka_unit_test(kinds_have_keys),
        cmocka_unit_test(kinds_lie_in_more_than_one_word),
        cmocka_unit_test(sinks_change_their_kinds_and_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
