/* SPDX-License-Identifier: Apache-2.0
 *
 * test_insight.c - peaks, holders, labels, uses and waste of recordings.
 */
#include "insight_test.h"

static void peaks_and_holders_of_a_small_story(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t a = site_at(&s, "alpha", 10), b = site_at(&s, "beta", 20);
    make(&s, 0x1000, 100, a); /* event 1 */
    make(&s, 0x2000, 300, b);
    end(&s, 0x1000);
    make(&s, 0x3000, 250, a); /* 4: the peak, 550 */
    end(&s, 0x2000);
    make(&s, 0x4000, 300, b); /* 6: 550 again; the first one counts */
    TELL(&s, HOST_ALLOC, .card = -1, .address = 0x9000, .asked = 4096, .rounded = 4096,
         .backed = 4096);
    look(&s);
    const struct blyi_peak *peak = &s.in->peaks[BLYI_ALL_CARDS];
    assert_int_equal(peak->at_peak.asked, 550);
    assert_int_equal(peak->at_peak.count, 2);
    assert_int_equal(peak->seq, 4);
    assert_int_equal(peak->end.asked, 550);
    assert_int_equal(s.in->peaks[0].at_peak.asked, 550);
    assert_int_equal(s.in->peaks[BLYI_NO_CARD].at_peak.asked, 4096);
    assert_false(s.in->peaks[1].used);
    const struct blyi_holding *beta = holding(&s, &s.in->sites, "beta story.c:20");
    assert_int_equal(beta->first.bytes, 300);
    assert_int_equal(beta->first.count, 1);
    assert_int_equal(beta->second.bytes, 300);
    assert_int_equal(beta->all.bytes, 600);
    assert_int_equal(beta->all.count, 2);
    const struct blyi_holding *alpha = holding(&s, &s.in->sites, "alpha story.c:10");
    assert_int_equal(alpha->first.bytes, 250);
    assert_int_equal(alpha->all.bytes, 350);
    assert_ptr_equal(&s.in->sites.rows[0], beta);
    story_end(&s);
}

static void names_are_tags_then_operators_then_sites(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t site = site_at(&s, "alpha", 1);
    TELL(&s, ALLOC, .address = 0x1000, .asked = 1, .site = site, .event = name_of(&s, "matmul"));
    TELL(&s, ALLOC, .address = 0x2000, .asked = 2, .site = site, .event = name_of(&s, "matmul"));
    TELL(&s, TAG, .address = 0x2001, .event = name_of(&s, "weights")); /* inside of it */
    TELL(&s, TAG, .address = 0x2002, .event = name_of(&s, "nothing")); /* behind it */
    TELL(&s, ALLOC, .address = 0x3000, .asked = 4, .site = site);
    TELL(&s, ALLOC, .address = 0x4000, .asked = 8);
    look(&s);
    assert_int_equal(s.in->names.n, 4);
    assert_int_equal(holding(&s, &s.in->names, "matmul")->all.bytes, 1);
    assert_int_equal(holding(&s, &s.in->names, "weights")->all.bytes, 2);
    assert_int_equal(holding(&s, &s.in->names, "alpha story.c:1")->all.bytes, 4);
    assert_int_equal(holding(&s, &s.in->names, "site unknown")->all.bytes, 8);
    assert_int_equal(holding(&s, &s.in->sites, "alpha story.c:1")->all.bytes, 7);
    story_end(&s);
}

static void stacks_are_known_by_their_innermost_python(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t frames[3] = {blyi_tracewriter_source(s.w, "c10::alloc()", "a.cpp", 1),
                          blyi_tracewriter_source(s.w, "forward", "model.py", 33),
                          blyi_tracewriter_source(s.w, "main", "train.py", 5)};
    uint32_t framework[3] = {
        blyi_tracewriter_source(s.w, "einsum", "/e/site-packages/torch/functional.py", 373),
        blyi_tracewriter_source(s.w, "call", "/e/dist-packages/torch_npu/a.py", 1), frames[2]};
    uint32_t native[2] = {frames[0], blyi_tracewriter_source(s.w, "at::empty()", "b.cpp", 2)};
    struct blyi_trace_event e = {
        .probe = {.kind = BLYI_PROBE_ALLOC, .address = 0x1000, .asked = 1, .site = frames[0]},
        .stack = blyi_tracewriter_stack(s.w, frames, 3)};
    blyi_tracewriter_event(s.w, &e);
    e.probe.address = 0x2000;
    e.stack = blyi_tracewriter_stack(s.w, native, 2);
    blyi_tracewriter_event(s.w, &e);
    e.probe.address = 0x3000;
    e.stack = blyi_tracewriter_stack(s.w, framework, 3);
    blyi_tracewriter_event(s.w, &e);
    e.probe.address = 0x4000;
    e.stack = blyi_tracewriter_stack(s.w, framework, 2);
    blyi_tracewriter_event(s.w, &e);
    look(&s);
    (void)holding(&s, &s.in->sites, "main train.py:5");
    (void)holding(&s, &s.in->sites, "einsum /e/site-packages/torch/functional.py:373");
    (void)holding(&s, &s.in->sites, "forward model.py:33");
    (void)holding(&s, &s.in->sites, "at::empty() b.cpp:2");
    assert_int_equal(s.in->sites.n, 4);
    story_end(&s);
}

/* A block of a stack without lines, of these functions, innermost first. */
static void make_by(struct story *s, uint64_t address, const char *const *functions, uint32_t n)
{
    uint32_t frames[8];
    for (uint32_t i = 0; i < n; i++)
        frames[i] = blyi_tracewriter_source(s->w, functions[i], "??", 0);
    blyi_tracewriter_event(
        s->w, &(struct blyi_trace_event){.probe = {.kind = BLYI_PROBE_ALLOC,
                                                   .address = address,
                                                   .asked = address,
                                                   .site = frames[0]},
                                         .stack = blyi_tracewriter_stack(s->w, frames, n)});
}

/* As PyTorch's stacks are with stacks="cpp", of backward threads and of calls. */
static void stacks_without_python_are_known_by_node_and_operator(void **state)
{
    struct story s;
    (void)state;
    static const char *const backward[] = {
        "c10::cuda::CUDACachingAllocator::Native::malloc(void**, unsigned long)",
        "at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>)",
        "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)",
        "torch::autograd::generated::details::mul_tensor(at::Tensor const&)",
        "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor> &&)",
        "torch::autograd::Engine::thread_main(std::shared_ptr<int> const&)"};
    static const char *const accumulate[] = {
        "at::_ops::new_empty_strided::call(at::Tensor const&)",
        "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)",
        "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"};
    static const char *const call[] = {
        "c10_npu::NPUCachingAllocator::malloc(unsigned long)",
        "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)",
        "at::_ops::zeros::call(c10::ArrayRef<c10::SymInt>)", "main"};
    static const char *const plain[] = {"c10::allocate(unsigned long)",
                                        "at::(anonymous namespace)::create_out<long>(long, long)",
                                        "std::function<void (int)>::operator()(int)"};
    story_begin(&s, BLYI_TRACE_IMPORTED);
    make_by(&s, 1, backward, 6);
    make_by(&s, 2, call, 4);
    make_by(&s, 4, plain, 3);
    make_by(&s, 8, plain + 2, 1);
    make_by(&s, 16, accumulate, 3);
    look(&s);
    assert_int_equal(s.in->sites.n, 5);
    (void)holding(&s, &s.in->sites, "torch::autograd::AccumulateGrad::apply");
    (void)holding(&s, &s.in->sites, "torch::autograd::generated::BmmBackward0::apply");
    (void)holding(&s, &s.in->sites, "at::_ops::zeros::call");
    (void)holding(&s, &s.in->sites, "at::(anonymous namespace)::create_out");
    (void)holding(&s, &s.in->sites, "std::function<void (int)>::operator()(int)");
    story_end(&s);
}

/* Other tools' programs ask a pool, which no call of AscendCL's stands in for. */
static void nothing_is_saved_in_files_of_other_tools(void **state)
{
    (void)state;
    for (int imported = 0; imported < 2; imported++) {
        struct story s;
        story_begin(&s, imported ? BLYI_TRACE_IMPORTED : 0);
        TELL(&s, ALLOC, .address = 0x1000, .asked = 2 * MiB, .rounded = 2 * MiB + 32,
             .backed = 4 * MiB, .page_kind = BLYI_PAGE_HUGE, .site = site_at(&s, "huge", 3));
        look(&s);
        assert_int_equal(s.in->waste.saving, imported ? 0 : 2 * MiB);
        story_end(&s);
    }
}

/* What was there when recording began counts from the start (O-26). */
static void blocks_from_before_are_there_at_the_start(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, BLYI_TRACE_LATE);
    blyi_tracewriter_block(s.w, &(struct blyi_trace_block){.address = 0x100000,
                                                           .asked = 10 * MiB,
                                                           .rounded = 10 * MiB + 32,
                                                           .backed = 12 * MiB,
                                                           .flags = BLYI_TRACE_BEFORE});
    for (int i = 0; i < 100; i++) {
        make(&s, 0x10, 4096, 0);
        end(&s, 0x10);
    }
    look(&s);
    const struct blyi_peak *peak = &s.in->peaks[0];
    assert_int_equal(peak->start.asked, 10 * MiB);
    assert_int_equal(peak->at_peak.asked, 10 * MiB + 4096);
    assert_int_equal(peak->end.asked, 10 * MiB);
    assert_int_equal(holding(&s, &s.in->sites, "made before recording, site unknown")->first.bytes,
                     10 * MiB);
    story_end(&s);
}

/* ── A naive model ────────────────────────────────────────────────────────────────────────── */

#define SLOTS 64
#define SITES 5

static void random_stories_agree_with_a_naive_model(void **state)
{
    struct rng rng = rng_start();
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct story s;
        uint64_t slot[SLOTS] = {0}, slot_site[SLOTS] = {0}, live = 0, peak = 0;
        uint64_t at_peak[SITES] = {0}, now[SITES] = {0}, all[SITES] = {0};
        uint32_t site[SITES];
        char text[64];
        story_begin(&s, 0);
        for (uint32_t i = 0; i < SITES; i++)
            site[i] = site_at(&s, "f", i + 1);
        for (int i = 0; i < 1000; i++) {
            uint64_t k = rng_below(&rng, SLOTS), of = rng_below(&rng, SITES);
            if (slot[k] > 0) {
                end(&s, 0x10000 * (k + 1));
                live -= slot[k];
                now[slot_site[k]] -= slot[k];
                slot[k] = 0;
                continue;
            }
            slot[k] = 1 + rng_below(&rng, 0x10000);
            slot_site[k] = of;
            make(&s, 0x10000 * (k + 1), slot[k], site[of]);
            live += slot[k];
            now[of] += slot[k];
            all[of] += slot[k];
            if (live > peak) {
                peak = live;
                memcpy(at_peak, now, sizeof(now));
            }
        }
        look(&s);
        assert_int_equal(s.in->peaks[0].at_peak.asked, peak);
        assert_int_equal(s.in->peaks[0].end.asked, live);
        for (uint32_t i = 0; i < SITES; i++) {
            snprintf(text, sizeof(text), "f story.c:%u", i + 1);
            const struct blyi_holding *row = holding(&s, &s.in->sites, text);
            assert_int_equal(row->first.bytes, at_peak[i]);
            assert_int_equal(row->second.bytes, now[i]);
            assert_int_equal(row->all.bytes, all[i]);
        }
        story_end(&s);
    }
}

/* ── Uses ─────────────────────────────────────────────────────────────────────────────────── */

static void blocks_stand_idle_before_between_and_after_uses(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t lazy = site_at(&s, "lazy", 1), busy = site_at(&s, "busy", 2);
    make(&s, 0x100000, 1000, lazy); /* at 1 us */
    make(&s, 0x200000, 500, busy);
    make(&s, 0x300000, 70, busy);
    s.now = 29000;
    TELL(&s, SET, .address = 0x100010, .asked = 16); /* 30 us: 29 late for lazy */
    s.now = 49000;
    TELL(&s, COPY, .address = 0x100000, .other = 0x200000, .asked = 16); /* 50 */
    s.now = 99000;
    end(&s, 0x100000); /* 100: 50 after its last use */
    end(&s, 0x200000);
    look(&s);
    const struct blyi_uses *uses = &s.in->uses;
    assert_true(uses->told);
    assert_int_equal(uses->threshold_ns, 10100);
    assert_int_equal(uses->n_used, 2);
    assert_int_equal(uses->n_unused, 1);
    assert_int_equal(uses->unused_bytes, 70);
    assert_int_equal(uses->n, 2);
    assert_string_equal(label(&s, uses->rows[0].label), "lazy story.c:1");
    assert_int_equal(uses->rows[0].slack[BLYI_SLACK_EARLY].longest_ns, 29000);
    assert_int_equal(uses->rows[0].slack[BLYI_SLACK_EARLY].bytes, 1000);
    assert_int_equal(uses->rows[0].slack[BLYI_SLACK_IDLE].longest_ns, 20000);
    assert_int_equal(uses->rows[0].slack[BLYI_SLACK_LATE].longest_ns, 50000);
    assert_int_equal(uses->rows[0].byte_ns, 1000u * (29000 + 20000 + 50000));
    assert_int_equal(uses->rows[1].slack[BLYI_SLACK_EARLY].longest_ns, 48000);
    assert_int_equal(uses->rows[1].slack[BLYI_SLACK_IDLE].count, 0);
    assert_int_equal(uses->rows[1].slack[BLYI_SLACK_LATE].longest_ns, 51000);
    story_end(&s);
}

/* ── Waste, as O-14 has it ────────────────────────────────────────────────────────────────── */

static void waste_adds_up_and_savings_are_exact(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t padded = site_at(&s, "padded", 1), plain = site_at(&s, "plain", 2);
    uint32_t huge = site_at(&s, "huge", 3);
    for (uint64_t i = 0; i < 1000; i++)
        TELL(&s, ALLOC, .address = (i + 1) * 0x1000, .asked = 512, .rounded = 544, .backed = 4096,
             .site = padded);
    for (uint64_t i = 0; i < 1000; i++)
        TELL(&s, ALLOC, .address = (i + 5000) * 0x1000, .asked = 512, .rounded = 512,
             .backed = 4096, .site = plain);
    TELL(&s, ALLOC, .address = 0x40000000, .asked = 2 * MiB, .rounded = 2 * MiB + 32,
         .backed = 4 * MiB, .page_kind = BLYI_PAGE_HUGE, .site = huge);
    look(&s);
    const struct blyi_waste *waste = &s.in->waste;
    assert_true(waste->told);
    assert_int_equal(waste->pages[BLYI_PAGE_NORMAL].asked, 1024000);
    assert_int_equal(waste->pages[BLYI_PAGE_NORMAL].rounded, 544000 + 512000);
    assert_int_equal(waste->pages[BLYI_PAGE_NORMAL].backed, 2 * 4096000);
    assert_int_equal(waste->pages[BLYI_PAGE_HUGE].rounded, 2097184);
    assert_int_equal(waste->pages[BLYI_PAGE_HUGE].backed, 4 * MiB);
    assert_int_equal(waste->all.asked,
                     waste->pages[BLYI_PAGE_NORMAL].asked + waste->pages[BLYI_PAGE_HUGE].asked);
    /* 512 + 32 bytes take the same page as 512 do: there is nothing to save. */
    assert_int_equal(holding(&s, &s.in->sites, "padded story.c:1")->saving, 0);
    assert_int_equal(holding(&s, &s.in->sites, "plain story.c:2")->saving, 0);
    assert_int_equal(holding(&s, &s.in->sites, "huge story.c:3")->saving, 2 * MiB);
    assert_int_equal(waste->saving, 2 * MiB);
    story_end(&s);
}

/* ── Without host memory ──────────────────────────────────────────────────────────────────── */

static void every_failing_allocation_is_told_and_leaves_nothing(void **state)
{
    struct story s;
    struct blyi_host_stats before, after;
    (void)state;
    story_begin(&s, 0);
    uint32_t site = site_at(&s, "f", 1);
    for (uint64_t i = 0; i < 300; i++) {
        TELL(&s, SEGMENT, .address = (i + 1) << 24, .asked = 1 << 20);
        make(&s, (i + 1) << 24, 1000 + i, site);
        TELL(&s, MARK, .event = name_of(&s, "step"));
        TELL(&s, EVENT_CREATE, .event = (uint32_t)i + 1, .site = site);
        TELL(&s, TAG, .address = (i + 1) << 24, .event = name_of(&s, "tag"));
        end(&s, (i + 1) << 24);
    }
    look(&s);
    blyi_insight_free(s.in);
    assert_ok(blyi_trace_rewind(s.trace)); /* what the reader holds is its own business */
    blyi_host_stats(&before);
    uint64_t nth = 1;
    for (;; nth++) {
        s.in = NULL;
        blyi_host_fail_nth(nth);
        bly_status status = blyi_insight_make(s.trace, &s.in);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        if (!failed)
            break;
        assert_int_equal(status, BLY_E_HOST_MEMORY);
        assert_non_null(strstr(blyi_fail_text(), "no host memory"));
        assert_ok(blyi_trace_rewind(s.trace));
        blyi_host_stats(&after);
        if (after.live_blocks != before.live_blocks)
            fail_msg("allocation no. %llu: %llu blocks more", (unsigned long long)nth,
                     (unsigned long long)(after.live_blocks - before.live_blocks));
    }
    assert_true(nth > 20);
    assert_int_equal(s.in->peaks[0].at_peak.asked, 1299);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_and_holders_of_a_small_story),
        cmocka_unit_test(names_are_tags_then_operators_then_sites),
        cmocka_unit_test(stacks_are_known_by_their_innermost_python),
        cmocka_unit_test(stacks_without_python_are_known_by_node_and_operator),
        cmocka_unit_test(nothing_is_saved_in_files_of_other_tools),
        cmocka_unit_test(blocks_from_before_are_there_at_the_start),
        cmocka_unit_test(random_stories_agree_with_a_naive_model),
        cmocka_unit_test(blocks_stand_idle_before_between_and_after_uses),
        cmocka_unit_test(waste_adds_up_and_savings_are_exact),
        cmocka_unit_test(every_failing_allocation_is_told_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
