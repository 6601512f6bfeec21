/* SPDX-License-Identifier: Apache-2.0 */
/* Failures on the way of reserving, creating, mapping and unmapping; the budget of mappings. */
#include "order_test.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "npu/mapping.h"
#include "npu/peer.h"
#include "npu/physical.h"
#include "npu/registered.h"
#include "npu/vmm.h"
#include "npu/window.h"

#define FRAME (2 * MiB)

static struct blyi_card *card_here(void)
{
    struct blyi_card *card;
    assert_ok(blyi_context_here_card(&card));
    return card;
}

static void audit(void)
{
    assert_true(blyi_card_audit(card_here()));
    assert_true(blyi_vmm_audit());
    assert_true(blyi_registered_audit());
    assert_true(blyi_pinned_audit());
}

/* All steps once; the first failure is returned, and all that was made is unmade. */
static bly_status scenario(struct blyi_card *card)
{
    static char area[8192] __attribute__((aligned(4096)));
    struct blyi_physical_request request = {
        .card = card, .size = 3 * FRAME, .page_kind = BLYI_PAGE_HUGE};
    struct blyi_physical_request host = {.size = FRAME, .page_kind = BLYI_PAGE_HUGE};
    void *handle, *host_handle;
    uintptr_t a, b;
    bly_status status = blyi_vmm_reserve(4 * FRAME, 0, 0, 1, &a);
    if (status != BLY_OK)
        return status;
    status = blyi_vmm_reserve(FRAME, 0, 0, 1, &b);
    if (status != BLY_OK)
        goto release_a;
    status = blyi_physical_create(&request, &handle);
    if (status != BLY_OK)
        goto release_b;
    status = blyi_physical_create(&host, &host_handle);
    if (status != BLY_OK)
        goto free_handle;
    status = blyi_mapping_make(a, 3 * FRAME, 0, handle, true, 1);
    if (status != BLY_OK)
        goto free_host;
    status = blyi_mapping_make(b, FRAME, 0, host_handle, false, 1);
    if (status != BLY_OK)
        goto unmap_a;
    status = blyi_mapping_grant(b, FRAME, BLYI_LOCATION_HOST);
    if (status == BLY_OK)
        status = blyi_set_now((void *)a, 5, 3 * FRAME);
    if (status == BLY_OK)
        status = blyi_copy_now((void *)b, (void *)(a + FRAME), FRAME);
    if (status == BLY_OK)
        assert_int_equal(*(volatile char *)b, 5);
    if (status == BLY_OK)
        status = blyi_registered_add(area, sizeof area, 1, 1);
    if (status == BLY_OK)
        assert_ok(blyi_registered_remove(area, 1));
    assert_ok(blyi_mapping_remove(b, 1));
unmap_a:
    assert_ok(blyi_mapping_remove(a, 1));
free_host:
    assert_ok(blyi_physical_release(host_handle, 1));
free_handle:
    assert_ok(blyi_physical_release(handle, 1));
release_b:
    assert_ok(blyi_vmm_release(b, 1));
release_a:
    assert_ok(blyi_vmm_release(a, 1));
    return status;
}

static void every_failure(void **state)
{
    (void)state;
    keep_fault_handler();
    struct blyi_card *card = card_here();
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1; nth < 60; nth++) {
            if (kind == 0)
                blyi_sys_fail_nth(nth, ENOMEM);
            else
                blyi_host_fail_nth(nth);
            bly_status status = scenario(card);
            bool failed = kind == 0 ? blyi_sys_failed() : blyi_host_failed();
            blyi_sys_fail_nth(0, 0);
            blyi_host_fail_nth(0);
            assert_true(status == BLY_OK || failed);
            audit();
            assert_ok(scenario(card));
            audit();
        }
}

/* Handles of one frame each, the frames not in a row: a mapping each, until the budget ends. */
static void budget_of_mappings(void **state)
{
    (void)state;
    uint64_t budget, before = blyi_window_mappings(&budget);
    uintptr_t a;
    struct blyi_physical_request request = {
        .card = card_here(), .size = FRAME, .page_kind = BLYI_PAGE_HUGE};
    enum { N = 32 };
    void *handles[N];
    assert_ok(blyi_vmm_reserve(N * FRAME, 0, 0, 1, &a));
    uint64_t reserved = blyi_window_mappings(&budget);
    assert_in_range(reserved, before, before + 1);
    for (int i = 0; i < N; i++) {
        assert_ok(blyi_physical_create(&request, &handles[i]));
        assert_ok(blyi_mapping_make(a + (uint64_t)i * FRAME, FRAME, 0, handles[i], true, 1));
    }
    /* The frames came in a row and so did the addresses: one mapping in all. */
    assert_in_range(blyi_window_mappings(&budget), reserved + 1, reserved + 2);
    for (int i = 0; i < N; i++)
        assert_ok(blyi_mapping_remove(a + (uint64_t)i * FRAME, 1));
    assert_int_equal(blyi_window_mappings(&budget), reserved);
    for (int i = 0; i < N; i++)
        assert_ok(blyi_physical_release(handles[i], 1));
    assert_ok(blyi_vmm_release(a, 1));
    audit();
}

static void contiguous_handles_and_their_shortage(void **state)
{
    (void)state;
    struct blyi_card *card = card_here();
    struct blyi_mem_figures figures;
    struct blyi_physical_request request = {
        .card = card, .size = FRAME, .page_kind = BLYI_PAGE_HUGE};
    void *handles[16], *run;
    for (int i = 0; i < 16; i++)
        assert_ok(blyi_physical_create(&request, &handles[i]));
    for (int i = 0; i < 16; i += 2)
        assert_ok(blyi_physical_release(handles[i], 1));
    blyi_mem_figures(card, &figures);
    request.size = figures.huge_free;
    request.contiguous = true;
    assert_status(blyi_physical_create(&request, &run), BLY_E_NO_MEMORY);
    assert_sentence("in contiguous frames");
    assert_sentence("longest contiguous run");
    assert_sentence("must stay in place, most of it (the runtime's own)");
    assert_sentence("in 8 orphan handles");
    request.contiguous = false; /* scattered frames will do */
    assert_ok(blyi_physical_create(&request, &run));
    audit();
}

static _Atomic uint64_t guessed; /* the handle of the last physical memory made */

static void guess(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    atomic_store(&guessed, probe->address);
}

static void *free_what_is_guessed(void *arg)
{
    for (uint64_t handle; (handle = atomic_exchange(&guessed, 0)) != 1;)
        if (handle != 0)
            (void)blyi_physical_release((void *)(uintptr_t)handle, 0);
        else
            sched_yield(); /* the maker may need this processor */
    return arg;
}

/* Another thread frees the memory before its maker has the handle: what the maker is told comes
 * not from freed memory. */
static void a_handle_that_is_guessed_can_be_freed(void **state)
{
    (void)state;
    static struct blyi_sink sink = {.kinds = BLYI_KIND(PHYS_CREATE), .probe = guess};
    struct blyi_physical_request request = {
        .card = card_here(), .size = FRAME, .page_kind = BLYI_PAGE_HUGE};
    pthread_t thread;
    blyi_probe_add_sink(&sink);
    assert_int_equal(pthread_create(&thread, NULL, free_what_is_guessed, NULL), 0);
    for (int i = 0; i < 3000; i++) {
        void *handle = NULL;
        request.card = i % 2 ? card_here() : NULL;
        assert_ok(blyi_physical_create(&request, &handle));
        while (atomic_load(&guessed) != 0)
            sched_yield();
    }
    atomic_store(&guessed, 1);
    pthread_join(thread, NULL);
    audit();
}

int main(void)
{
    if (blyi_option_set(BLYI_OPT_HBM, "256MiB") != BLY_OK ||
        blyi_option_set(BLYI_OPT_VMM_WINDOW, "4GiB") != BLY_OK)
        return 1;
    keep_fault_handler();
    const struct CMUnitTest tests[] = {
        order_test(every_failure),
        order_test(budget_of_mappings),
        order_test(contiguous_handles_and_their_shortage),
        order_test(a_handle_that_is_guessed_can_be_freed),
    };
    return cmocka_run_group_tests_name("vmm", tests, NULL, NULL);
}
