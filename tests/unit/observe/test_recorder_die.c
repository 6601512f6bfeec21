/* SPDX-License-Identifier: Apache-2.0
 *
 * A process may die at any instruction, and a file may lose any of its bytes: what is there is
 * read, what is not is counted.
 */
#include "trace_test.h"

#include <sys/mman.h>
#include <sched.h>

#define BLOCKS 32

/* What the child has done, in memory that its parent sees. */
static struct progress {
    _Atomic uint64_t n_events; /* of finished emits */
} * progress;

/* Event i: blocks are made and freed in a fixed order. */
static void emit_nth(uint64_t i)
{
    uint64_t block = i % BLOCKS;
    if (i / BLOCKS % 2 == 1)
        emit_free((block + 1) << 21, block + 1);
    else
        emit_alloc((block + 1) << 21, block + 1);
}

/* Live blocks after the first n events. */
static bool is_live(uint64_t block, uint64_t n)
{
    uint64_t last = n > block ? (n - 1 - block) / BLOCKS : UINT64_MAX; /* its last event's round */
    return last != UINT64_MAX && last % 2 == 0;
}

static void check_prefix(struct blyi_trace *trace, uint64_t at_least)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct blyi_trace_event e;
    bool live[BLOCKS] = {false};
    size_t n;
    assert_int_equal(info->damaged, 0);
    assert_true(info->lost <= 1); /* the one that had a number and was being written */
    assert_true(info->seen >= at_least && info->seen <= at_least + 1);
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    for (size_t i = 0; i < n; i++)
        live[(blocks[i].address >> 21) - 1] = true;
    for (uint64_t block = 0; block < BLOCKS; block++)
        assert_int_equal(live[block], is_live(block, info->first_seq - 1));
    uint64_t seq = info->first_seq;
    for (; blyi_trace_next(trace, &e); seq++) {
        assert_int_equal(e.seq, seq);
        assert_int_equal(e.probe.address >> 21, (seq - 1) % BLOCKS + 1);
        assert_int_equal(e.probe.kind == BLYI_PROBE_FREE, (seq - 1) / BLOCKS % 2);
    }
    assert_int_equal(seq - 1, info->seen - info->lost);
}

static void killed_while_recording(uint64_t ring, unsigned delay)
{
    progress->n_events = 0;
    unlink(in_folder("killed"));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        start("killed", ring);
        for (uint64_t i = 0;; i++) {
            emit_nth(i);
            progress->n_events = i + 1;
        }
    }
    while (progress->n_events < delay)
        sched_yield();
    kill(pid, SIGKILL);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    struct blyi_trace *trace = open_trace("killed");
    assert_int_equal(blyi_trace_info(trace)->state, BLYI_TRACE_RUNNING);
    check_prefix(trace, progress->n_events);
    blyi_trace_close(trace);
}

static void a_killed_process_leaves_all_events(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    for (int i = 0; i < 30; i++)
        killed_while_recording(0, (unsigned)rng_below(&rng, 20000) + 1);
}

static void a_killed_process_leaves_its_ring(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    for (int i = 0; i < 60; i++)
        killed_while_recording(1 + rng_below(&rng, 300), (unsigned)rng_below(&rng, 20000) + 1);
}

/* ── Torn files ───────────────────────────────────────────────────────────────────────────── */

/* Reads whatever can be; the sums of info must hold. */
static void read_through(const unsigned char *bytes, size_t size)
{
    struct blyi_trace *trace;
    struct blyi_trace_event e;
    char text[BLYI_TRACE_RANGE_TEXT], site[BLYI_TRACE_SITE_TEXT];
    bly_status status = blyi_trace_open_memory(bytes, size, "torn", &trace);
    if (status != BLY_OK) {
        assert_int_equal(status, BLY_E_PARSE);
        assert_int_not_equal(blyi_fail_text()[0], '\0');
        return;
    }
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    assert_int_equal(info->cut + info->dropped + info->kept + info->lost, info->seen);
    uint64_t n = 0, last = 0;
    while (blyi_trace_next(trace, &e)) {
        assert_true(e.seq > last);
        last = e.seq;
        n++;
        blyi_trace_range_text(trace, e.range, text);
        blyi_trace_site_text(trace, e.probe.site, site);
    }
    assert_int_equal(n, info->kept - info->unknown);
    blyi_trace_close(trace);
}

static void record_small(const char *name, uint64_t ring)
{
    start(name, ring);
    for (uint64_t i = 0; i < 150; i++) {
        if (i % 50 == 0)
            assert_ok(bly_range_push("range"));
        BLYI_PROBE(RECORD, .card = 0, .event = 5, .stream = 1, .site = BLYI_SITE_HERE());
        emit_nth(i);
    }
    for (int i = 0; i < 3; i++)
        assert_ok(bly_range_pop());
    assert_ok(bly_trace_stop());
}

static void a_file_cut_at_every_byte(void **state)
{
    (void)state;
    for (int ring = 0; ring < 2; ring++) {
        size_t size;
        record_small("whole", ring ? 40 : 0);
        unsigned char *bytes = slurp(in_folder("whole"), &size);
        uint64_t kept = 0;
        for (size_t cut = 0; cut <= size; cut += cut < 4200 || size - cut < 200 ? 1 : 17) {
            unsigned char *exact = malloc(cut + 1);
            assert_non_null(exact);
            memcpy(exact, bytes, cut); /* so that a sanitizer sees one byte too far */
            read_through(exact, cut);
            free(exact);
        }
        struct blyi_trace *trace;
        assert_ok(blyi_trace_open_memory(bytes, size, "whole", &trace));
        kept = blyi_trace_info(trace)->kept;
        assert_int_equal(kept, ring ? 40 : 306);
        blyi_trace_close(trace);
        free(bytes);
    }
}

static void a_file_with_wrong_bytes(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    size_t size;
    record_small("whole", 40);
    unsigned char *bytes = slurp(in_folder("whole"), &size);
    for (int i = 0; i < 4000; i++) {
        unsigned char old[8];
        size_t at = (size_t)rng_below(&rng, size - sizeof(old)), n = 1 + rng_below(&rng, 8);
        if (i % 4 == 0)
            at = 4096 + (size_t)rng_below(&rng, 300);
        memcpy(old, bytes + at, sizeof(old));
        for (size_t k = 0; k < n; k++)
            bytes[at + k] = (unsigned char)(rng_below(&rng, 3) ? rng_below(&rng, 256) : 255);
        read_through(bytes, size);
        memcpy(bytes + at, old, sizeof(old));
    }
    free(bytes);
}

/* Its kinds are called otherwise: they are counted and left out, numbers stay. */
static void kinds_of_a_later_version(void **state)
{
    (void)state;
    size_t size;
    struct blyi_trace *trace;
    record_small("later", 0);
    unsigned char *bytes = slurp(in_folder("later"), &size);
    unsigned char *key = memmem(bytes + BLYI_TRACE_HEADER, size - BLYI_TRACE_HEADER, "record", 6);
    assert_non_null(key);
    memcpy(key, "novel!", 6);
    assert_ok(blyi_trace_open_memory(bytes, size, "later", &trace));
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    assert_int_equal(info->seen, 306);
    assert_int_equal(info->kept, 306);
    assert_int_equal(info->unknown, 150);
    assert_int_equal(info->lost + info->damaged, 0);
    struct blyi_trace_event e;
    int n = 0;
    while (blyi_trace_next(trace, &e)) {
        assert_int_not_equal(e.probe.kind, BLYI_PROBE_RECORD);
        n++;
    }
    assert_int_equal(n, 156);
    blyi_trace_close(trace);
    free(bytes);
}

/* ── fork and exec ────────────────────────────────────────────────────────────────────────── */

static void a_forked_child_writes_nothing_to_it(void **state)
{
    int status;
    (void)state;
    start("parent", 0);
    emit_alloc(0x1000, 1);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        emit_alloc(0x2000, 2);
        if (bly_trace_start(in_folder("parent"), NULL) != BLY_OK) /* parent.1 */
            _exit(1);
        emit_alloc(0x3000, 3);
        _exit(bly_trace_stop() == BLY_OK ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    emit_free(0x1000, 1);
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("parent");
    assert_int_equal(blyi_trace_info(trace)->seen, 2);
    assert_int_equal(blyi_trace_info(trace)->lost, 0);
    assert_int_equal(next_event(trace).probe.address, 0x1000);
    blyi_trace_close(trace);
    trace = open_trace("parent.1");
    assert_int_equal(blyi_trace_info(trace)->seen, 1);
    assert_int_equal(blyi_trace_info(trace)->pid, pid);
    assert_int_equal(next_event(trace).probe.address, 0x3000);
    blyi_trace_close(trace);
}

static void names_are_spared_as_asked(void **state)
{
    (void)state;
    char path[128];
    struct blyi_recorder_opts opts = {.path = in_folder("own.%p"), .spare = BLYI_SPARE_OWN};
    snprintf(path, sizeof(path), "%s/own.%d", trace_folder, (int)getpid());
    assert_ok(blyi_recorder_start(&opts));
    assert_string_equal(blyi_recorder_path(), path);
    assert_ok(bly_trace_stop());
    assert_ok(blyi_recorder_start(&opts)); /* as after an exec */
    strcat(path, ".1");
    assert_string_equal(blyi_recorder_path(), path);
    assert_ok(bly_trace_stop());
    opts.spare = BLYI_SPARE_ALL;
    assert_ok(blyi_recorder_start(&opts));
    path[strlen(path) - 1] = '2';
    assert_string_equal(blyi_recorder_path(), path);
    assert_ok(bly_trace_stop());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_leaves_all_events),
        cmocka_unit_test(a_killed_process_leaves_its_ring),
        cmocka_unit_test(a_file_cut_at_every_byte),
        cmocka_unit_test(a_file_with_wrong_bytes),
        cmocka_unit_test(kinds_of_a_later_version),
        cmocka_unit_test(a_forked_child_writes_nothing_to_it),
        cmocka_unit_test(names_are_spared_as_asked),
    };
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return progress == MAP_FAILED ||
           cmocka_run_group_tests(tests, trace_setup, trace_teardown) != 0;
}
