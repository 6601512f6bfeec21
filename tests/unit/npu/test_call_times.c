/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of memory say when the call began that did it; what happens later, or without a call,
 * says nothing. The clock is virtual and moves between calls alone, so a stale time shows.
 */
#include "mem_test.h"

#include "base/clock.h"
#include "base/probe.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/pinned.h"
#include "npu/vmm.h"

#define KIND(name) ((uint64_t)1 << BLYI_PROBE_##name)
#define KINDS                                                                                      \
    (KIND(ALLOC) | KIND(FREE) | KIND(RESET_FREE) | KIND(HOST_ALLOC) | KIND(HOST_FREE) |            \
     KIND(PHYS_CREATE) | KIND(PHYS_FREE) | KIND(ALLOC_FAIL))

static struct blyi_probe last;
static int n_probes;

static void on_probe(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    last = *probe;
    n_probes++;
}

static struct blyi_sink sink = {.probe = on_probe, .wants_began = true};

/* One event since the last look, of this kind, within its call or not. */
static void expect(enum blyi_probe_kind kind, bool in_call)
{
    assert_int_equal(n_probes, 1);
    assert_int_equal(last.kind, kind);
    assert_int_equal(last.began_ns, in_call ? blyi_clock_ns() : 0);
    n_probes = 0;
    blyi_clock_advance(1000);
}

static void of_card_memory(void **state)
{
    (void)state;
    struct blyi_card *card = open_card("64MiB");
    void *none;
    n_probes = 0;
    void *a = padded(card, MiB, BLYI_MEM_HUGE_FIRST);
    expect(BLYI_PROBE_ALLOC, true);
    assert_int_equal(try_padded(card, GiB, BLYI_MEM_HUGE_FIRST, &none), BLY_E_NO_MEMORY);
    expect(BLYI_PROBE_ALLOC_FAIL, true);
    assert_ok(blyi_mem_free(a, SITE_B));
    expect(BLYI_PROBE_FREE, true);
    (void)padded(card, MiB, BLYI_MEM_NORMAL_ONLY);
    expect(BLYI_PROBE_ALLOC, true);
    blyi_mem_free_all(card);
    expect(BLYI_PROBE_RESET_FREE, false);
    close_card(card);
}

static void of_pinned_memory(void **state)
{
    (void)state;
    void *a;
    n_probes = 0;
    assert_ok(blyi_pinned_alloc(MiB, MiB, SITE_A, 33, &a));
    expect(BLYI_PROBE_HOST_ALLOC, true);
    assert_ok(blyi_pinned_free(a, SITE_B));
    expect(BLYI_PROBE_HOST_FREE, true);
    assert_ok(blyi_pinned_alloc(MiB, MiB, SITE_A, 33, &a));
    expect(BLYI_PROBE_HOST_ALLOC, true);
    assert_true(blyi_pinned_hold(a, 1));
    assert_ok(blyi_pinned_free(a, SITE_B));
    assert_int_equal(n_probes, 0);
    blyi_pinned_release(a); /* it ends here */
    expect(BLYI_PROBE_HOST_FREE, false);
    set_option(BLYI_OPT_PIN_LIMIT, "4KiB");
    assert_int_equal(blyi_pinned_alloc(MiB, MiB, SITE_A, 33, &a), BLY_E_PIN_LIMIT);
    expect(BLYI_PROBE_ALLOC_FAIL, true);
}

static void of_physical_memory(void **state)
{
    (void)state;
    struct blyi_card *card = open_card("64MiB");
    struct blyi_physical_request request = {
        .card = card, .size = FRAME, .page_kind = BLYI_PAGE_HUGE, .site = SITE_A};
    void *handle;
    uintptr_t at;
    n_probes = 0;
    assert_ok(blyi_physical_create(&request, &handle));
    expect(BLYI_PROBE_PHYS_CREATE, true);
    assert_ok(blyi_physical_release(handle, SITE_B));
    expect(BLYI_PROBE_PHYS_FREE, true);
    assert_ok(blyi_physical_create(&request, &handle));
    expect(BLYI_PROBE_PHYS_CREATE, true);
    assert_ok(blyi_vmm_reserve(FRAME, 0, 0, SITE_A, &at));
    assert_ok(blyi_mapping_make(at, FRAME, 0, handle, true, SITE_A));
    assert_ok(blyi_physical_release(handle, SITE_B)); /* the mapping has it still */
    assert_int_equal(n_probes, 0);
    assert_ok(blyi_mapping_remove(at, SITE_B));
    expect(BLYI_PROBE_PHYS_FREE, false);
    request.size = GiB;
    assert_int_equal(blyi_physical_create(&request, &handle), BLY_E_NO_MEMORY);
    expect(BLYI_PROBE_ALLOC_FAIL, true);
    assert_ok(blyi_vmm_release(at, SITE_B));
    close_card(card);
}

/* Whoever does not want to know does not pay for the clock. */
static void nobody_wants_to_know(void **state)
{
    (void)state;
    blyi_probe_set_kinds(&sink, 0);
    assert_int_equal(blyi_probe_began(BLYI_PROBE_ALLOC), 0);
    blyi_probe_set_kinds(&sink, KIND(FREE));
    assert_int_equal(blyi_probe_began(BLYI_PROBE_ALLOC), 0);
    assert_int_equal(blyi_probe_began(BLYI_PROBE_FREE), blyi_clock_ns());
    static struct blyi_sink other = {.kinds = KINDS, .probe = on_probe};
    blyi_probe_add_sink(&other);
    assert_int_equal(blyi_probe_began(BLYI_PROBE_ALLOC), 0);
}

static int begin(void **state)
{
    (void)state;
    blyi_clock_set_virtual(true);
    sink.kinds = KINDS;
    blyi_probe_add_sink(&sink);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_card_memory),
        cmocka_unit_test(of_pinned_memory),
        cmocka_unit_test(of_physical_memory),
        cmocka_unit_test(nobody_wants_to_know),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
