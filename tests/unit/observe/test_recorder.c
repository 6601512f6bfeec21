/* SPDX-License-Identifier: Apache-2.0
 *
 * What is recorded is what happened: fields, order, rings, names, and what was there before.
 */
#include "trace_test.h"

#include <sys/resource.h>
#include "observe/range.h"

static int a_number; /* its address is a site */

static void every_field_comes_back(void **state)
{
    (void)state;
    start("fields", 0);
    uint32_t here = blyi_site_intern((const void *)(uintptr_t)&every_field_comes_back);
    BLYI_PROBE(ALLOC, .card = 3, .address = 0x1000, .size = 7, .asked = 7, .rounded = 64,
               .backed = 4096, .page_kind = BLYI_PAGE_GIANT, .site = here, .aux = -5,
               .time_ns = 100);
    BLYI_PROBE(COPY, .card = -1, .stream = 9, .address = 1, .other = UINT64_MAX, .size = 12,
               .time_ns = 100 + 5000000000u);
    BLYI_PROBE(WAIT, .card = 63, .stream = UINT32_MAX, .event = 77, .time_ns = 50);
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = 5, .size = 0, .aux = BLY_E_NO_MEMORY);
    assert_ok(bly_trace_stop());
    BLYI_PROBE(WAIT, .card = 1); /* nobody listens any more */

    struct blyi_trace *trace = open_trace("fields");
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    assert_int_equal(info->seen, 4);
    assert_int_equal(info->kept, 4);
    assert_int_equal(info->lost + info->dropped + info->damaged + info->unknown, 0);
    assert_int_equal(info->pid, getpid());
    assert_int_equal(info->state, BLYI_TRACE_ENDED);
    struct blyi_trace_event e = next_event(trace);
    assert_int_equal(e.seq, 1);
    assert_int_equal(e.probe.kind, BLYI_PROBE_ALLOC);
    assert_int_equal(e.probe.card, 3);
    assert_int_equal(e.probe.address, 0x1000);
    assert_int_equal(e.probe.size, 7);
    assert_int_equal(e.probe.asked, 7);
    assert_int_equal(e.probe.rounded, 64);
    assert_int_equal(e.probe.backed, 4096);
    assert_int_equal(e.probe.page_kind, BLYI_PAGE_GIANT);
    assert_int_equal(e.probe.aux, -5);
    assert_int_equal(e.probe.time_ns, 100);
    struct blyi_trace_site site;
    assert_true(blyi_trace_site(trace, e.probe.site, &site));
    assert_non_null(strstr(site.module, "unit_observe_recorder"));
    struct blyi_trace_thread thread;
    assert_true(blyi_trace_thread(trace, e.thread, &thread));
    assert_int_equal(thread.tid, getpid());
    e = next_event(trace);
    assert_int_equal(e.probe.kind, BLYI_PROBE_COPY);
    assert_int_equal(e.probe.card, -1);
    assert_int_equal(e.probe.stream, 9);
    assert_int_equal(e.probe.other, UINT64_MAX);
    assert_int_equal(e.probe.size, 12);
    assert_int_equal(e.probe.asked, 0);
    assert_int_equal(e.probe.time_ns, 5000000100u); /* more than 32 bits behind the first */
    e = next_event(trace);
    assert_int_equal(e.probe.card, 63);
    assert_int_equal(e.probe.stream, UINT32_MAX);
    assert_int_equal(e.probe.event, 77);
    assert_int_equal(e.probe.time_ns, 50); /* time may go back, numbers do not */
    e = next_event(trace);
    assert_int_equal(e.probe.asked, 5);
    assert_int_equal(e.probe.size, 0);
    assert_int_equal(e.probe.aux, BLY_E_NO_MEMORY);
    no_more(trace);
    blyi_trace_close(trace);
}

/* What is written in short where it fits, on both sides of where it does. */
static void sizes_and_ids_at_their_bounds_come_back(void **state)
{
    static const uint64_t asked[] = {0, 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1};
    static const uint64_t added[] = {0, 32, 255, 256};
    static const uint64_t backed[] = {0, 4096, 4097, ((uint64_t)1 << 36) - 4096, (uint64_t)1 << 36};
    static const uint32_t ids[] = {0, 1, UINT16_MAX, UINT16_MAX + 1, UINT32_MAX};
    uint32_t site = blyi_site_intern((const void *)(uintptr_t)&a_number);
    struct blyi_probe sent[512];
    size_t n = 0;
    (void)state;
    for (size_t a = 0; a < BLYI_COUNT(asked); a++)
        for (size_t d = 0; d < BLYI_COUNT(added); d++)
            for (size_t b = 0; b < BLYI_COUNT(backed); b++)
                sent[n++] = (struct blyi_probe){.kind = BLYI_PROBE_USE,
                                                .asked = asked[a],
                                                .rounded = asked[a] + added[d],
                                                .backed = backed[b],
                                                .size = b % 3 == 0 ? 7 : asked[a]};
    for (size_t s = 0; s < BLYI_COUNT(ids); s++)
        for (size_t e = 0; e < BLYI_COUNT(ids); e++)
            sent[n++] = (struct blyi_probe){.kind = BLYI_PROBE_RECORD,
                                            .site = e % 2 == 0 ? site : 0,
                                            .stream = ids[s],
                                            .event = ids[e],
                                            .rounded = e % 2, /* less than asked */
                                            .asked = 5,
                                            .size = 5};
    assert_true(n <= BLYI_COUNT(sent));
    start("bounds", 0);
    for (size_t i = 0; i < n; i++) {
        struct blyi_probe probe = sent[i];
        blyi_probe_emit_slow(&probe);
    }
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("bounds");
    for (size_t i = 0; i < n; i++) {
        struct blyi_trace_event got = next_event(trace);
        assert_int_equal(got.probe.kind, sent[i].kind);
        assert_int_equal(got.probe.asked, sent[i].asked);
        assert_int_equal(got.probe.size, sent[i].size);
        assert_int_equal(got.probe.rounded, sent[i].rounded);
        assert_int_equal(got.probe.backed, sent[i].backed);
        assert_int_equal(got.probe.site != 0, sent[i].site != 0);
        assert_int_equal(got.probe.stream, sent[i].stream);
        assert_int_equal(got.probe.event, sent[i].event);
    }
    no_more(trace);
    blyi_trace_close(trace);
}

static void set_version(const char *path, uint32_t version)
{
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &version, sizeof(version), 8), sizeof(version));
    close(fd);
}

/* An older one is the same without some words; a newer one may mean anything. */
static void versions_are_told_apart(void **state)
{
    const char *path = in_folder("version");
    struct blyi_trace *trace = NULL;
    (void)state;
    start("version", 0);
    bly_trace_stop();
    assert_ok(blyi_trace_open(path, &trace));
    assert_int_equal(blyi_trace_info(trace)->version, 2);
    blyi_trace_close(trace);
    set_version(path, 1);
    assert_ok(blyi_trace_open(path, &trace));
    blyi_trace_close(trace);
    set_version(path, 3);
    assert_int_equal(blyi_trace_open(path, &trace), BLY_E_PARSE);
    assert_non_null(strstr(blyi_fail_text(), "version 3 of the format; this Belay reads 1 to 2"));
    set_version(path, 0);
    assert_int_equal(blyi_trace_open(path, &trace), BLY_E_PARSE);
}

static void a_ring_keeps_the_last(void **state)
{
    (void)state;
    start("ring", 100);
    emit_alloc(0x100000, 4096); /* stays, and is dropped from the ring */
    for (uint64_t i = 0; i < 500; i++) {
        emit_alloc(0x200000, 10 + i);
        emit_free(0x200000, 10 + i);
    }
    assert_true(blyi_recorder_audit());
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("ring");
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    assert_int_equal(info->seen, 1001);
    assert_int_equal(info->kept, 100);
    assert_int_equal(info->dropped, 901);
    assert_int_equal(info->first_seq, 902);
    assert_int_equal(info->lost, 0);
    /* No. 902 is the allocation of round 451, so one block was live. */
    size_t n;
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    assert_int_equal(n, 1);
    assert_int_equal(blocks[0].address, 0x100000);
    assert_int_equal(blocks[0].seq, 1);
    assert_int_equal(blocks[0].flags, 0);
    for (uint64_t seq = 902; seq <= 1001; seq++)
        assert_int_equal(next_event(trace).seq, seq);
    no_more(trace);
    blyi_trace_close(trace);
}

/* ── Names ────────────────────────────────────────────────────────────────────────────────── */

static void ranges_marks_and_tags_have_names(void **state)
{
    char text[BLYI_TRACE_RANGE_TEXT];
    (void)state;
    assert_ok(bly_range_push("before"));
    start("names", 0);
    emit_alloc(0x1000, 1);
    assert_ok(bly_range_push("step"));
    emit_alloc(0x2000, 2);
    assert_ok(bly_mark("here"));
    assert_ok(bly_range_pop());
    assert_ok(bly_tag((const void *)0x2000, "weights"));
    assert_ok(bly_range_pop());
    emit_alloc(0x3000, 3);
    assert_int_equal(bly_range_pop(), BLY_E_STATE);
    assert_int_equal(bly_range_push(NULL), BLY_E_INVALID);
    assert_int_equal(bly_tag(NULL, "x"), BLY_E_INVALID);
    assert_ok(bly_trace_stop());

    struct blyi_trace *trace = open_trace("names");
    struct {
        enum blyi_probe_kind kind;
        const char *range;
        const char *name;
    } want[] = {
        {BLYI_PROBE_ALLOC, "before", ""},          {BLYI_PROBE_RANGE_PUSH, "before/step", ""},
        {BLYI_PROBE_ALLOC, "before/step", ""},     {BLYI_PROBE_MARK, "before/step", "here"},
        {BLYI_PROBE_RANGE_POP, "before/step", ""}, {BLYI_PROBE_TAG, "before", "weights"},
        {BLYI_PROBE_RANGE_POP, "before", ""},      {BLYI_PROBE_ALLOC, "", ""},
    };
    for (size_t i = 0; i < BLYI_COUNT(want); i++) {
        struct blyi_trace_event e = next_event(trace);
        assert_int_equal(e.probe.kind, want[i].kind);
        assert_string_equal(blyi_trace_range_text(trace, e.range, text), want[i].range);
        if (want[i].name[0])
            assert_string_equal(blyi_trace_name(trace, e.probe.event), want[i].name);
    }
    no_more(trace);
    blyi_trace_close(trace);
}

static void names_are_interned_once(void **state)
{
    uint32_t a, b, c;
    char longer[3000];
    (void)state;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_ok(blyi_name_intern("alpha", &a));
    assert_ok(blyi_name_intern("beta", &b));
    assert_ok(blyi_name_intern("alpha", &c));
    assert_int_equal(a, c);
    assert_int_not_equal(a, b);
    assert_ok(blyi_name_intern(longer, &a));
    assert_int_equal(strlen(blyi_name_text(a)), BLYI_NAME_MAX - 1);
    assert_string_equal(blyi_name_text(0), "");
    assert_string_equal(blyi_name_text(UINT32_MAX), "");
}

/* ── State ────────────────────────────────────────────────────────────────────────────────── */

static void tell_two(const struct blyi_sink *to)
{
    struct blyi_probe card = {
        .kind = BLYI_PROBE_CARD_OPEN, .card = 0, .size = GiB, .aux = (int64_t)(16 * MiB)};
    struct blyi_probe block = {.kind = BLYI_PROBE_ALLOC,
                               .card = 0,
                               .address = 0xa00000,
                               .asked = 10 * MiB,
                               .rounded = 10 * MiB + 32,
                               .backed = 12 * MiB,
                               .site = 1};
    struct blyi_probe handle = {
        .kind = BLYI_PROBE_PHYS_CREATE, .card = 0, .address = 0xa00000, .asked = 1, .backed = 1};
    to->probe(to->arg, &card);
    to->probe(to->arg, &block);
    to->probe(to->arg, &handle);
}

/* flags of the block: once it is freed, a ring has forgotten when it was made. */
static void check_told(const char *name, size_t n_events, uint32_t flags)
{
    struct blyi_trace *trace = open_trace(name);
    size_t n;
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    assert_int_equal(n, 2);
    assert_int_equal(blocks[0].address, 0xa00000);
    assert_int_equal(blocks[0].class_, BLYI_TRACE_CARD_BLOCK);
    assert_int_equal(blocks[0].asked, 10 * MiB);
    assert_int_equal(blocks[0].site, 0);
    assert_int_equal(blocks[0].flags, flags);
    assert_int_equal(blocks[1].class_, BLYI_TRACE_HANDLE);
    const struct blyi_trace_card *cards = blyi_trace_cards(trace, &n);
    assert_int_equal(n, 1);
    assert_int_equal(cards[0].total, GiB);
    assert_int_equal(cards[0].overhead, 16 * MiB);
    assert_true(blyi_trace_info(trace)->flags & BLYI_TRACE_LATE);
    assert_int_equal(blyi_trace_info(trace)->kept, n_events);
    assert_int_equal(blyi_trace_info(trace)->lost, 0);
    blyi_trace_close(trace);
}

static void what_was_there_is_told(void **state)
{
    (void)state;
    static struct blyi_teller teller = {.tell = tell_two};
    blyi_probe_add_teller(&teller);
    start("told", 0);
    emit_alloc(0x1000, 5);
    emit_free(0xa00000, 10 * MiB);
    assert_ok(bly_trace_stop());
    check_told("told", 2, BLYI_TRACE_BEFORE);
    start("told-ring", 10);
    for (int i = 0; i < 50; i++) {
        emit_alloc(0x1000, 5);
        emit_free(0x1000, 5);
    }
    assert_ok(bly_trace_dump(in_folder("told-dump")));
    assert_ok(bly_mark("so that the ring begins with an allocation"));
    emit_free(0xa00000, 10 * MiB);
    assert_ok(bly_trace_stop());
    check_told("told-dump", 10, BLYI_TRACE_BEFORE);
    check_told("told-ring", 10, 0);
}

static void a_dump_without_recording_is_the_state(void **state)
{
    (void)state;
    assert_ok(bly_trace_dump(in_folder("state")));
    check_told("state", 0, BLYI_TRACE_BEFORE);
    struct blyi_trace *trace = open_trace("state");
    assert_true(blyi_trace_info(trace)->flags & BLYI_TRACE_NO_HISTORY);
    no_more(trace);
    blyi_trace_close(trace);
}

static void a_recording_into_memory_is_dumped(void **state)
{
    (void)state;
    start(NULL, 0);
    emit_alloc(0x1000, 5);
    assert_ok(bly_trace_dump(in_folder("memory")));
    emit_free(0x1000, 5);
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("memory");
    assert_int_equal(blyi_trace_info(trace)->state, BLYI_TRACE_DUMPED);
    assert_int_equal(next_event(trace).probe.kind, BLYI_PROBE_ALLOC);
    no_more(trace);
    blyi_trace_close(trace);
}

static void out_of_memory_dumps_a_ring(void **state)
{
    (void)state;
    start("oom", 4);
    for (int i = 0; i < 6; i++) {
        emit_alloc(0x1000, 5);
        emit_free(0x1000, 5);
    }
    (void)blyi_fail(BLY_E_NO_MEMORY, "the program's sentence");
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = GiB, .aux = BLY_E_INVALID);
    assert_int_equal(access(in_folder("oom.oom"), F_OK), -1);
    for (int i = 0; i < 6; i++)
        BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = GiB, .aux = BLY_E_NO_MEMORY);
    assert_string_equal(blyi_fail_text(), "the program's sentence");
    assert_ok(bly_trace_stop());
    assert_int_equal(access(in_folder("oom.oom4"), F_OK), 0);
    assert_int_equal(access(in_folder("oom.oom5"), F_OK), -1);
    struct blyi_trace *trace = open_trace("oom.oom");
    assert_int_equal(blyi_trace_info(trace)->seen, 14);
    next_event(trace);
    assert_int_equal(next_event(trace).probe.kind, BLYI_PROBE_FREE);
    next_event(trace);
    assert_int_equal(next_event(trace).probe.aux, BLY_E_NO_MEMORY);
    blyi_trace_close(trace);
}

/* ── Stacks ───────────────────────────────────────────────────────────────────────────────── */

__attribute__((noinline)) static void inner(void)
{
    BLYI_PROBE(ALLOC, .card = 0, .address = 0x1000, .asked = 1, .site = BLYI_SITE_HERE());
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer(void)
{
    inner();
    __asm__ volatile("" ::: "memory");
}

static void stacks_are_kept_once(void **state)
{
    (void)state;
    bly_trace_opts opts = bly_trace_opts_default();
    opts.stack_depth = 3;
    assert_ok(bly_trace_start(in_folder("stacks"), &opts));
    for (int i = 0; i < 100; i++)
        outer();
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace = open_trace("stacks");
    assert_int_equal(blyi_trace_info(trace)->n_stacks, 1);
    struct blyi_trace_event e = next_event(trace);
    size_t n;
    const uint32_t *sites = blyi_trace_stack(trace, e.stack, &n);
    assert_int_equal(n, 3);
    assert_int_equal(sites[0], e.probe.site);
    struct blyi_trace_site site;
    assert_true(blyi_trace_site(trace, sites[0], &site));
    assert_non_null(strstr(site.module, "unit_observe_recorder"));
    assert_true(blyi_trace_site(trace, sites[1], &site));
    blyi_trace_close(trace);
}

/* ── Size ─────────────────────────────────────────────────────────────────────────────────── */

/* A reader's memory depends on threads and live blocks, not on the length of the trace. */
static void a_million_events_need_little_memory(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    struct blyi_trace_event e;
    start("million", 0);
    for (uint64_t i = 0; i < 500000; i++) {
        emit_alloc((i % 1000 + 1) << 21, i + 1);
        emit_free((i % 1000 + 1) << 21, i + 1);
    }
    assert_ok(bly_trace_stop());
    blyi_host_stats(&before);
    struct blyi_trace *trace = open_trace("million");
    assert_int_equal(blyi_trace_info(trace)->kept, 1000000);
    assert_int_equal(blyi_trace_info(trace)->lost, 0);
    uint64_t seq = 0;
    while (blyi_trace_next(trace, &e)) {
        seq++;
        if (e.seq != seq || e.probe.asked != (seq + 1) / 2)
            fail_msg("event %llu", (unsigned long long)seq);
    }
    assert_int_equal(seq, 1000000);
    blyi_host_stats(&after);
    assert_true(after.live_bytes - before.live_bytes < 4 * MiB);
    blyi_trace_close(trace);
    unlink(in_folder("million"));
}

/* ── What is refused ──────────────────────────────────────────────────────────────────────── */

static void misuse_is_refused(void **state)
{
    (void)state;
    assert_int_equal(bly_trace_stop(), BLY_E_STATE);
    bly_trace_opts opts = bly_trace_opts_default();
    opts.ring = UINT64_MAX;
    assert_int_equal(bly_trace_start(in_folder("x"), &opts), BLY_E_INVALID);
    opts = bly_trace_opts_default();
    opts.stack_depth = 129;
    assert_int_equal(bly_trace_start(in_folder("x"), &opts), BLY_E_INVALID);
    opts.struct_size = 1;
    assert_int_equal(bly_trace_start(in_folder("x"), &opts), BLY_E_INVALID);
    assert_int_equal(bly_trace_start("/nonexistent/x", NULL), BLY_E_IO);
    assert_non_null(strstr(bly_last_error(), "/nonexistent/x: No such file"));
    assert_int_equal(bly_trace_start(trace_folder, NULL), BLY_E_IO);
    assert_int_equal(bly_trace_start("/dev/null", NULL), BLY_E_IO);
    assert_non_null(strstr(bly_last_error(), "not a regular file"));
    assert_int_equal(bly_trace_dump(NULL), BLY_E_INVALID);
    assert_int_equal(bly_trace_dump("/nonexistent/x"), BLY_E_IO);
    start("y", 0);
    assert_int_equal(bly_trace_start(in_folder("z"), NULL), BLY_E_STATE);
    assert_int_equal(bly_trace_dump(in_folder("y")), BLY_E_INVALID);
    assert_int_equal(symlink(in_folder("y"), in_folder("also-y")), 0);
    assert_int_equal(bly_trace_dump(in_folder("also-y")), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "would replace the recording itself"));
    assert_ok(bly_trace_stop());
    struct blyi_trace *trace;
    assert_int_equal(blyi_trace_open("/nonexistent", &trace), BLY_E_IO);
    assert_int_equal(blyi_trace_open(trace_folder, &trace), BLY_E_IO);
    assert_int_equal(blyi_trace_open_memory("text", 4, "t", &trace), BLY_E_PARSE);
}

/* Everything that can fail, fails once; the program's own error stays what it was. */
static void failures_end_the_recording_alone(void **state)
{
    (void)state;
    bool more_sys = true, more_host = true;
    for (uint64_t n = 1; more_sys || more_host; n++) {
        if (more_sys)
            blyi_sys_fail_nth(n, ENOSPC);
        else
            blyi_host_fail_nth(n);
        bly_status began = bly_trace_start(in_folder("fail"), &(bly_trace_opts){24, 2, 50});
        if (began != BLY_OK)
            assert_int_not_equal(bly_last_error()[0], '\0');
        blyi_fail_clear();
        for (uint64_t i = 1; i < 600; i++) {
            emit_alloc(i << 21, i);
            if (i % 3 == 0)
                emit_free(i << 21, i);
        }
        assert_string_equal(blyi_fail_text(), "");
        assert_true(blyi_recorder_audit());
        bool failed = more_sys ? blyi_sys_failed() : blyi_host_failed();
        bly_status ended = began == BLY_OK ? bly_trace_stop() : BLY_OK;
        blyi_sys_fail_nth(0, 0);
        blyi_host_fail_nth(0);
        if (began == BLY_OK) {
            struct blyi_trace *trace = open_trace("fail");
            assert_int_equal(blyi_trace_info(trace)->state,
                             ended == BLY_OK ? BLYI_TRACE_ENDED : BLYI_TRACE_STOPPED);
            if (ended != BLY_OK)
                assert_non_null(strstr(blyi_trace_info(trace)->stop_text, "fail"));
            assert_int_equal(blyi_trace_info(trace)->lost, 0);
            blyi_trace_close(trace);
        }
        if (!failed && more_sys) {
            more_sys = false;
            n = 0;
        } else if (!failed) {
            more_host = false;
        }
    }
}

static void a_limit_of_file_sizes_ends_the_recording(void **state)
{
    (void)state;
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){3 * MiB, old.rlim_max};
    start("limit", 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (uint64_t i = 0; i < 200000; i++)
        emit_alloc(0x1000, i);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(bly_trace_stop(), BLY_E_IO);
    assert_non_null(strstr(bly_last_error(), "cannot grow"));
    assert_non_null(strstr(bly_last_error(), "File too large"));
    struct blyi_trace *trace = open_trace("limit");
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    assert_int_equal(info->state, BLYI_TRACE_STOPPED);
    assert_true(info->kept > 10000 && info->lost == 0);
    blyi_trace_close(trace);
}

static void a_program_that_closes_our_descriptor(void **state)
{
    (void)state;
    start("closed", 0);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    int theirs = open(in_folder("theirs"), O_RDWR | O_CREAT, 0600);
    assert_true(theirs >= 0);
    for (uint64_t i = 0; i < 100000; i++)
        emit_alloc(0x1000, i);
    assert_ok(bly_trace_stop());
    struct stat about;
    assert_int_equal(fstat(theirs, &about), 0);
    assert_int_equal(about.st_size, 0);
    close(theirs);
    struct blyi_trace *trace = open_trace("closed");
    assert_int_equal(blyi_trace_info(trace)->kept, 100000);
    blyi_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(sizes_and_ids_at_their_bounds_come_back),
        cmocka_unit_test(versions_are_told_apart),
        cmocka_unit_test(a_ring_keeps_the_last),
        cmocka_unit_test(ranges_marks_and_tags_have_names),
        cmocka_unit_test(names_are_interned_once),
        cmocka_unit_test(a_recording_into_memory_is_dumped),
        cmocka_unit_test(out_of_memory_dumps_a_ring),
        cmocka_unit_test(stacks_are_kept_once),
        cmocka_unit_test(a_million_events_need_little_memory),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(failures_end_the_recording_alone),
        cmocka_unit_test(a_limit_of_file_sizes_ends_the_recording),
        cmocka_unit_test(a_program_that_closes_our_descriptor),
        cmocka_unit_test(what_was_there_is_told),
        cmocka_unit_test(a_dump_without_recording_is_the_state),
    };
    return cmocka_run_group_tests(tests, trace_setup, trace_teardown);
}
