/* SPDX-License-Identifier: Apache-2.0
 * Address windows, their page tables and the count of host mappings. */
#include "mem_test.h"
#include "base/log.h"
#include "npu/window.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define FRAMES 64

static struct blyi_window *window;
static int fd;
static char last_log[1024];

static void keep_log(void *arg, enum blyi_log_level level, const char *line)
{
    (void)arg;
    if (level <= BLYI_LOG_WARN)
        snprintf(last_log, sizeof last_log, "%s", line);
}

static int open_window(void **state)
{
    (void)state;
    fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, FRAMES * FRAME), 0);
    assert_ok(blyi_window_create(3, 8 * GiB, GiB, &window));
    return 0;
}

static int close_window(void **state)
{
    (void)state;
    uint64_t budget;
    assert_true(blyi_window_audit(window));
    blyi_window_destroy(window);
    assert_int_equal(blyi_window_mappings(&budget), 0);
    close(fd);
    return 0;
}

/* What the kernel has inside the window. */
static uint32_t kernel_mappings(void)
{
    char line[512];
    uint32_t n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        uintptr_t start = strtoull(line, NULL, 16);
        n += start - window->base < window->size;
    }
    fclose(maps);
    return n;
}

static uintptr_t take(uint64_t n)
{
    uintptr_t address = 0;
    assert_ok(blyi_window_take(window, n, 1, &address));
    return address;
}

static void map(uintptr_t address, uint32_t frame, uint64_t n)
{
    assert_ok(blyi_window_map(window, address, fd, frame, n, BLYI_ENTRY_COMMITTED));
    assert_true(blyi_window_audit(window));
    assert_int_equal(window->n_mappings, kernel_mappings());
}

static void unmap(uintptr_t address, uint64_t n)
{
    assert_true(blyi_window_unmap(window, address, n));
    assert_true(blyi_window_audit(window));
    assert_int_equal(window->n_mappings, kernel_mappings());
}

static void found_by_address(void **state)
{
    (void)state;
    struct blyi_window *other;
    assert_int_equal(window->base % GiB, 0);
    assert_int_equal(window->size, 8 * GiB);
    assert_ptr_equal(blyi_window_find(window->base), window);
    assert_ptr_equal(blyi_window_find(window->base + window->size - 1), window);
    assert_null(blyi_window_find(window->base - 1));
    assert_ok(blyi_window_create(BLYI_WINDOW_PINNED, GiB, GiB, &other));
    assert_ptr_equal(blyi_window_find(other->base), other);
    assert_ptr_equal(blyi_window_find(window->base), window);
    blyi_window_destroy(other);
    assert_int_equal(blyi_window_entry(window, window->base), 0);
}

static void mappings_are_counted_as_the_kernel_does(void **state)
{
    (void)state;
    uintptr_t a = take(10);
    map(a, 5, 4);
    map(a + 4 * FRAME, 9, 2); /* next frames: one mapping with the former */
    assert_int_equal(window->n_mappings, 2);
    map(a + 6 * FRAME, 20, 1);
    assert_int_equal(window->n_mappings, 3);
    map(a + 8 * FRAME, 30, 1);
    unmap(a + 2 * FRAME, 2);  /* a hole */
    map(a + 2 * FRAME, 7, 2); /* healed */
    uint64_t entry = blyi_window_entry(window, a + 5 * FRAME + 77);
    assert_int_equal(entry, BLYI_ENTRY_MAPPED | BLYI_ENTRY_COMMITTED | 10);
    unmap(a, 10); /* over unmapped ones too */
    assert_int_equal(window->n_mappings, 1);
    blyi_window_give(window, a, 10);
    assert_int_equal(window->free_granules.total, 8 * GiB / FRAME);
}

static void pages(uintptr_t granule, uint32_t frame, uint32_t page, uint32_t n)
{
    assert_ok(blyi_window_map_pages(window, granule, fd, frame, page, n, BLYI_ENTRY_COMMITTED));
    assert_true(blyi_window_audit(window));
    assert_int_equal(window->n_mappings, kernel_mappings());
}

/* Imports of pages: the rest of their granule is a mapping of its own between two that are used. */
static void gaps_beside_pages_are_counted(void **state)
{
    (void)state;
    uint64_t all = 8 * GiB / FRAME;
    uintptr_t a = take(all);
    for (uint32_t i = 0; i < 4; i++) /* at the window's start, then one behind another */
        pages(a + i * FRAME, 3, 7, 1);
    assert_int_equal(window->n_mappings, 9);
    pages(a + 4 * FRAME, 10, 100, 412); /* to the end, and the next from its start: one mapping */
    pages(a + 5 * FRAME, 11, 0, 50);
    map(a + 6 * FRAME, 12, 1); /* behind a gap */
    pages(a + 7 * FRAME, 13, 0, 20);
    pages(a + 8 * FRAME, 20, 0, 512);
    pages(a + (all - 1) * FRAME, 5, 0, 1); /* at its end */
    unmap(a + 5 * FRAME, 1);
    unmap(a + 1 * FRAME, 2);
    unmap(a, all);
    assert_int_equal(window->n_mappings, 1);
    blyi_window_give(window, a, all);
}

static void random_maps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    uintptr_t a = take(64);
    bool mapped[64] = {false};
    for (int i = 0; i < 400; i++) {
        uint64_t g = rng_below(&rng, 64);
        if (mapped[g])
            unmap(a + g * FRAME, 1);
        else
            map(a + g * FRAME, (uint32_t)(rng_below(&rng, 4) ? g : rng_below(&rng, FRAMES)), 1);
        mapped[g] = !mapped[g];
    }
    unmap(a, 64);
    blyi_window_give(window, a, 64);
}

static void out_of_addresses(void **state)
{
    (void)state;
    uintptr_t address = 5;
    assert_fails(blyi_window_take(window, 4097, 1, &address), BLY_E_NO_MEMORY,
                 "addresses, not memory", "card 3", "8589934592 B (8 GiB)");
    assert_int_equal(address, 5);
    uintptr_t all = take(4096);
    assert_fails(blyi_window_take(window, 1, 1, &address), BLY_E_NO_MEMORY, "free 0 B");
    blyi_window_give(window, all, 4096);
    take(1);
    assert_ok(blyi_window_take(window, 512, 512, &address));
    assert_int_equal(address % GiB, 0);
}

/* The kernel refuses to unmap: the addresses come back when it no longer does. */
static void an_unmap_that_fails_is_tried_again(void **state)
{
    (void)state;
    blyi_log_set_sink(keep_log, NULL);
    uintptr_t a = take(4);
    map(a, 0, 2);
    blyi_sys_fail_nth(1, ENOMEM);
    assert_false(blyi_window_unmap(window, a, 4));
    assert_true(blyi_window_audit(window));
    assert_non_null(strstr(last_log, "refused to unmap 8388608 B"));
    assert_int_equal(blyi_window_entry(window, a) & BLYI_ENTRY_MAPPED, 0);
    assert_int_equal(window->free_granules.total, 8 * GiB / FRAME - 4);
    blyi_sys_fail_nth(1, ENOMEM); /* the next take tries, and may fail again */
    uintptr_t b = take(1);
    assert_true(blyi_window_audit(window));
    take(1);
    assert_int_equal(window->free_granules.total, 8 * GiB / FRAME - 2);
    assert_int_equal(window->n_mappings, kernel_mappings());
    blyi_window_give(window, b, 1);
    blyi_log_set_sink(NULL, NULL);
}

/* No host memory for the node of a free range: likewise. */
static void a_give_without_host_memory_is_tried_again(void **state)
{
    (void)state;
    uintptr_t a = take(9);
    for (uint64_t i = 1; i < 9; i += 2) {
        blyi_host_fail_nth(1);
        blyi_window_give(window, a + i * FRAME, 1);
        assert_true(blyi_window_audit(window));
    }
    assert_true(window->n_aside > 0);
    blyi_host_fail_nth(0);
    uintptr_t b = take(1);
    assert_int_equal(window->n_aside, 0);
    assert_int_equal(window->free_granules.total, 8 * GiB / FRAME - 6);
    blyi_window_give(window, b, 1);
}

static void smaller_when_refused(void **state)
{
    (void)state;
    struct blyi_window *other;
    blyi_sys_fail_nth(1, ENOMEM);
    assert_ok(blyi_window_create(4, 4 * GiB, GiB, &other));
    assert_int_equal(other->size, 2 * GiB);
    blyi_window_destroy(other);
    blyi_sys_fail_nth(1, ENOMEM);
    assert_fails(blyi_window_create(4, GiB, GiB, &other), BLY_E_SYSTEM, "card 4: no addresses",
                 "ulimit -v");
    assert_ok(blyi_window_create(4, MiB, 5 * MiB, &other));
    assert_int_equal(other->size, 6 * MiB);
    blyi_window_destroy(other);
}

static void the_budget_names_the_limit(void **state)
{
    (void)state;
    uint64_t budget, n = 0;
    blyi_window_mappings(&budget);
    if (budget > 60000)
        skip();
    uintptr_t a = 0;
    bly_status status = BLY_OK;
    struct blyi_window *large;
    assert_ok(blyi_window_create(5, 256 * GiB, 256 * GiB, &large));
    for (; status == BLY_OK; n++) { /* frame 0 everywhere: nothing merges */
        if (blyi_window_take(large, 1, 1, &a) != BLY_OK)
            break;
        status = blyi_window_map(large, a, fd, 0, 1, 0);
    }
    assert_int_equal(status, BLY_E_SYSTEM);
    assert_non_null(strstr(blyi_fail_text(), "vm.max_map_count"));
    assert_true(blyi_window_mappings(&budget) <= budget && n + 10 > budget);
    free(malloc(256 * MiB)); /* the program's own malloc still works */
    blyi_window_destroy(large);
}

#define WINDOW_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_window, close_window)

int main(void)
{
    const struct CMUnitTest tests[] = {WINDOW_TEST(found_by_address),
                                       WINDOW_TEST(mappings_are_counted_as_the_kernel_does),
                                       WINDOW_TEST(gaps_beside_pages_are_counted),
                                       WINDOW_TEST(random_maps),
                                       WINDOW_TEST(out_of_addresses),
                                       WINDOW_TEST(an_unmap_that_fails_is_tried_again),
                                       WINDOW_TEST(a_give_without_host_memory_is_tried_again),
                                       WINDOW_TEST(smaller_when_refused),
                                       WINDOW_TEST(the_budget_names_the_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
