/* SPDX-License-Identifier: Apache-2.0 */
/* Frames move under their mappings: content and addresses stay, runs grow, what is fixed stays. */
#include "card_test.h"
#include "order_test.h"

#include <errno.h>

#include <belay/card.h>
#include "base/compiler.h"
#include "npu/gate.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/vmm.h"

#define FRAME (2 * MiB)

static void *alloc(uint64_t size, enum blyi_mem_policy policy, uint32_t flags)
{
    struct blyi_mem_request request = {
        .asked = size, .rounded = size, .policy = policy, .flags = flags, .module = 33};
    void *address = NULL;
    assert_ok(blyi_mem_alloc(card_here(), &request, &address));
    return address;
}

static bly_defrag run(uint64_t want, bly_status status)
{
    bly_defrag d = {.struct_size = sizeof d, .card = 0, .want = want};
    assert_status(bly_card_defrag(&d), status);
    assert_true(blyi_card_audit(card_here()));
    assert_true(blyi_vmm_audit());
    return d;
}

/* Every other frame free: blocks, small blocks, handles, an orphan. */
static void scattered_memory_is_gathered(void **state)
{
    (void)state;
    enum { N = 24 };
    void *blocks[N], *small[8];
    void *orphan = NULL;
    for (int i = 0; i < N; i++) {
        blocks[i] = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
        fill(blocks[i], FRAME, i);
        if (i == 5)
            orphan = handle_of(2 * FRAME, false);
    }
    void *handle = handle_of(4 * FRAME, false);
    uintptr_t a = map(handle, 4 * FRAME), b = map(handle, 4 * FRAME);
    fill((void *)a, 4 * FRAME, 0x77);
    for (int i = 0; i < 8; i++) {
        small[i] = alloc(64 * KiB, BLYI_MEM_NORMAL_ONLY, 0);
        fill(small[i], 64 * KiB, 0x40 + i);
    }
    void *untouched = alloc(3 * FRAME, BLYI_MEM_HUGE_ONLY, 0);
    uintptr_t o = map(orphan, 2 * FRAME);
    fill((void *)o, 2 * FRAME, 0x33);
    assert_ok(blyi_mapping_remove(o, 1));
    for (int i = 0; i < N; i += 2)
        assert_ok(blyi_mem_free(blocks[i], 1));
    struct blyi_mem_figures figures;
    blyi_mem_figures(card_here(), &figures);
    assert_true(figures.largest_run < figures.huge_free);

    bly_defrag d = run(0, BLY_OK);
    assert_int_equal(d.run_after, figures.huge_free); /* one run of all that is free */
    assert_true(d.moved >= d.copied && d.copied > 0);
    for (int i = 1; i < N; i += 2)
        check(blocks[i], FRAME, i);
    for (int i = 0; i < 8; i++)
        check(small[i], 64 * KiB, 0x40 + i);
    check((void *)a, 4 * FRAME, 0x77);
    fill((void *)a, 4 * FRAME, 0x78);
    check((void *)b, 4 * FRAME, 0x78); /* both mappings moved */
    assert_ok(blyi_mapping_make(o, 2 * FRAME, 0, orphan, true, 1));
    check((void *)o, 2 * FRAME, 0x33);
    fill(untouched, 3 * FRAME, 9);
    check(untouched, 3 * FRAME, 9);
    d = run(0, BLY_OK);
    assert_int_equal(d.moved, 0);
}

static void what_is_fixed_stays(void **state)
{
    (void)state;
    void *first = alloc(8 * FRAME, BLYI_MEM_HUGE_ONLY, 0);
    void *contiguous = alloc(4 * FRAME, BLYI_MEM_HUGE_ONLY, BLYI_MEM_CONTIGUOUS);
    fill(contiguous, 4 * FRAME, 3);
    assert_ok(blyi_mem_free(first, 1));
    struct blyi_mem_figures figures;
    blyi_mem_figures(card_here(), &figures);
    bly_defrag d = run(figures.huge_free, BLY_E_NO_MEMORY);
    assert_sentence("wanted");
    assert_sentence("must stay where they are, the largest");
    assert_int_equal(d.moved, 0);
    check(contiguous, 4 * FRAME, 3);
    bly_card info = {.struct_size = sizeof info};
    assert_ok(bly_card_info(0, &info));
    assert_int_equal(info.fixed, d.fixed);
    assert_int_equal(info.free, figures.free);
    assert_status(bly_card_info(77, &info), BLY_E_DEVICE);
    assert_status(bly_card_info(1, &info), BLY_E_STATE);
    bly_defrag bad = {.struct_size = 8};
    assert_status(bly_card_defrag(&bad), BLY_E_INVALID);
}

/* Somebody is inside for ever. */
static void tasks_that_do_not_pause(void **state)
{
    (void)state;
    uint32_t stripe = blyi_gate_enter();
    bly_defrag d = {.struct_size = sizeof d, .timeout_ns = 20000000};
    assert_status(bly_card_defrag(&d), BLY_E_TIMEOUT);
    assert_sentence("1 are running");
    blyi_gate_leave(stripe);
    assert_ok(bly_card_defrag(&d));
}

/* Each system call and host allocation of a run fails once: nothing is lost. */
static void failures(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1; nth < 40; nth++) {
            void *blocks[12];
            for (int i = 0; i < 12; i++) {
                blocks[i] = alloc(FRAME, BLYI_MEM_HUGE_ONLY, 0);
                fill(blocks[i], FRAME, i);
            }
            void *handle = handle_of(2 * FRAME, false);
            uintptr_t a = map(handle, 2 * FRAME), b = map(handle, 2 * FRAME);
            fill((void *)a, 2 * FRAME, 0x55);
            for (int i = 0; i < 12; i += 2)
                assert_ok(blyi_mem_free(blocks[i], 1));
            if (kind == 0)
                blyi_sys_fail_nth(nth, ENOMEM);
            else
                blyi_host_fail_nth(nth);
            bly_defrag d = {.struct_size = sizeof d};
            bly_status status = bly_card_defrag(&d);
            blyi_sys_fail_nth(0, 0);
            blyi_host_fail_nth(0);
            assert_true(status == BLY_OK || status == BLY_E_SYSTEM || status == BLY_E_HOST_MEMORY);
            assert_true(blyi_card_audit(card_here()) && blyi_vmm_audit());
            for (int i = 1; i < 12; i += 2) {
                check(blocks[i], FRAME, i);
                assert_ok(blyi_mem_free(blocks[i], 1));
            }
            check((void *)b, 2 * FRAME, 0x55);
            assert_ok(blyi_mapping_remove(a, 1));
            assert_ok(blyi_mapping_remove(b, 1));
            assert_ok(blyi_vmm_release(a, 1));
            assert_ok(blyi_vmm_release(b, 1));
            assert_ok(blyi_physical_release(handle, 1));
        }
}

int main(void)
{
    keep_fault_handler();
    if (blyi_option_set(BLYI_OPT_HBM, "256MiB") != BLY_OK ||
        blyi_option_set(BLYI_OPT_CARDS, "2") != BLY_OK ||
        blyi_option_set(BLYI_OPT_VMM_WINDOW, "4GiB") != BLY_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        order_test(scattered_memory_is_gathered),
        order_test(what_is_fixed_stays),
        order_test(tasks_that_do_not_pause),
        order_test(failures),
    };
    return cmocka_run_group_tests_name("defrag", tests, NULL, NULL);
}
