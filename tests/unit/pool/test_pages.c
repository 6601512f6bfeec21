/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pages.c - which slot begins at an address; the table of addresses where it cannot be as
 * large as it should.
 */
#include "../npu/mem_test.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "pool/pages.h"
#include "pool/slab.h"

#define BASE   (UINT64_C(0x7f12) << 32)
#define RANDOM 20000

static struct blyi_list unused;

static struct blyi_slab *slab_of(unsigned class, unsigned n, struct blyi_slab_page **pages)
{
    blyi_list_init(&unused);
    assert_true(blyi_slab_make(pages, NULL, class, &unused) > 0);
    struct blyi_slab *slab = BLYI_CONTAINER(unused.next, struct blyi_slab, link);
    blyi_slab_reset(slab, BLY_POOL_ANY, n);
    slab->base = BASE;
    return slab;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The same by division. */
static void check_address(const struct blyi_slab *slab, uintptr_t address)
{
    uint64_t offset = address - BASE, size = blyi_slab_slot_size(slab);
    uint64_t slot = blyi_slab_slot(slab, address);
    if (offset % size == 0 && offset / size < slab->n)
        assert_int_equal(slot, offset / size);
    else
        assert_true(slot >= slab->n);
}

static void slots_begin_where_they_do(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (unsigned i = 0; i < 2 * BLYI_CLASSES; i++) {
        unsigned class = i / 2;
        struct blyi_slab_page *pages = NULL;
        const struct blyi_slab *slab = slab_of(
            class, i % 2 == 0 ? blyi_class_slots(class) : blyi_class_slots_least(class), &pages);
        uint64_t size = blyi_slab_slot_size(slab);
        assert_int_equal(size, blyi_class_size(class));
        for (uint64_t at = 0; at <= (slab->n + 1) * size; at += BLYI_SLOT_MIN) {
            check_address(slab, BASE + at);
            check_address(slab, BASE - at);
            check_address(slab, BASE + at + 1);
            for (unsigned bit = 40; bit < 64; bit++) /* whoever's upper bits */
                check_address(slab, (BASE + at) ^ UINT64_C(1) << bit);
        }
        for (int j = 0; j < RANDOM; j++)
            check_address(slab, next_random(&random));
        blyi_slab_drop(pages);
    }
}

/* Before anything was covered, and where half of the table is all that there is. */
static void smaller_when_refused(void **state)
{
    (void)state;
    uintptr_t low = UINT64_C(5) << 32, high = low + (UINT64_C(1) << 47);
    assert_int_equal(blyi_pages_entry(low), 0);
    assert_int_equal(blyi_pages_entry(UINTPTR_MAX), 0);
    assert_null(blyi_pages_find(low));
    assert_false(blyi_pages_known(low));

    blyi_sys_fail_nth(1, ENOMEM);
    assert_ok(blyi_pages_cover(low, 4 * GiB + 1));
    assert_true(blyi_sys_failed());
    assert_int_equal(blyi_pages.mask, (UINT64_C(1) << 31) - 1);
    assert_int_equal(blyi_pages_bytes(), 2 * 512 * KiB);
    assert_true(blyi_pages_known(low) && blyi_pages_known(low + 8 * GiB - 1));
    assert_false(blyi_pages_known(low + 8 * GiB) || blyi_pages_known(high));

    assert_fails(blyi_pages_cover(high, GiB), BLY_E_HOST_MEMORY, "no room", "ulimit -v");
    assert_fails(blyi_pages_cover(high - GiB, 2 * GiB), BLY_E_HOST_MEMORY, "no room", "ulimit -v");
    assert_true(blyi_pages_known(low) && !blyi_pages_known(high));
}

/* What was covered at one address is told apart from what lies where the table has the same. */
static void spans_of_a_smaller_table(void **state)
{
    (void)state;
    uintptr_t low = (UINT64_C(5) << 32) + 3 * 4096, other = low + (UINT64_C(1) << 47);
    struct blyi_span span = {.address = low, .size = 5 * MiB};
    blyi_pages_enter(&span);
    assert_ptr_equal(blyi_pages_find(low), &span);
    assert_ptr_equal(blyi_pages_find(low + 5 * MiB - 1), &span);
    assert_null(blyi_pages_find(low + 5 * MiB));
    assert_null(blyi_pages_find(other));
    assert_null(blyi_pages_find(low + (UINT64_C(1) << 63)));
    blyi_pages_leave(&span);
    assert_null(blyi_pages_find(low));
}

/* Spans side by side: blocks, slabs of many slots, of two, of one. The address behind the last. */
enum { SPANS = 64 };

static uintptr_t lay_out(struct blyi_span *spans, struct blyi_slab_page **pages, uintptr_t at,
                         uint64_t *random)
{
    static const unsigned classes[] = {1, 45, 62};
    for (unsigned i = 0; i < SPANS; i++) {
        unsigned kind = (unsigned)(next_random(random) % 4);
        uint64_t size = BLYI_SPAN_MIN + next_random(random) % 700 * BLYI_QUANTUM;
        struct blyi_slab *slab = NULL;
        if (kind < BLYI_COUNT(classes)) {
            slab = slab_of(classes[kind], blyi_class_slots(classes[kind]), pages);
            size = slab->n * blyi_slab_slot_size(slab);
        }
        spans[i] = (struct blyi_span){.address = at, .size = size, .slab = slab};
        at += size;
    }
    return at;
}

static void check_found(struct blyi_span *spans, const bool *in, uintptr_t from, uintptr_t to,
                        uint64_t *random)
{
    for (unsigned i = 0; i < 300; i++) {
        uintptr_t address = from + next_random(random) % (to - from);
        unsigned at = 0;
        while (address - spans[at].address >= spans[at].size)
            at++;
        assert_ptr_equal(blyi_pages_find(address), in[at] ? &spans[at] : NULL);
    }
}

/* Whatever is entered is found at each of its addresses, and nothing else is, while spans that
 * begin or end in the same pages come and go. */
static void spans_side_by_side(void **state)
{
    (void)state;
    static struct blyi_span spans[SPANS];
    uint64_t random = 88172645463325252u;
    uintptr_t low = UINT64_C(78) << 32, from = low + 5 * BLYI_QUANTUM;
    assert_ok(blyi_pages_cover(low, GiB));
    for (unsigned round = 0; round < 20; round++) {
        struct blyi_slab_page *pages = NULL;
        bool in[SPANS] = {false};
        uintptr_t to = lay_out(spans, &pages, from, &random);
        for (unsigned step = 0; step < 200; step++) {
            unsigned i = (unsigned)(next_random(&random) % SPANS);
            in[i] ? blyi_pages_leave(&spans[i]) : blyi_pages_enter(&spans[i]);
            in[i] = !in[i];
            check_found(spans, in, from, to, &random);
        }
        for (unsigned i = 0; i < SPANS; i++)
            if (in[i])
                blyi_pages_leave(&spans[i]);
        blyi_slab_drop(pages);
    }
}

static void a_leaf_that_cannot_be_written(void **state)
{
    (void)state;
    uintptr_t address = UINT64_C(77) << 32;
    blyi_sys_fail_nth(1, ENOMEM);
    assert_fails(blyi_pages_cover(address, MiB), BLY_E_HOST_MEMORY, "table of addresses", "KiB");
    assert_false(blyi_pages_known(address));
    assert_ok(blyi_pages_cover(address, MiB));
    assert_true(blyi_pages_known(address));
    assert_fails(blyi_pages_cover(UINT64_C(1) << 48, MiB), BLY_E_INVALID, "2^48", "not below");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smaller_when_refused),
        cmocka_unit_test(spans_of_a_smaller_table),
        cmocka_unit_test(a_leaf_that_cannot_be_written),
        cmocka_unit_test(slots_begin_where_they_do),
        cmocka_unit_test(spans_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
