/* SPDX-License-Identifier: Apache-2.0
 * Ids for return addresses. */
#include "base_test.h"
#include "base/host.h"
#include "base/site.h"

static const void *fake_pc(uintptr_t n)
{
    return (const void *)(0x400000 + 16 * n);
}

static void ids_are_dense_from_one(void **state)
{
    (void)state;
    uint32_t before = blyi_site_count();
    assert_int_equal(blyi_site_intern(NULL), 0);
    for (uintptr_t i = 0; i < 5000; i++) /* past several growths */
        assert_int_equal(blyi_site_intern(fake_pc(i)), before + i + 1);
    for (uintptr_t i = 0; i < 5000; i++) {
        assert_int_equal(blyi_site_intern(fake_pc(i)), before + i + 1);
        assert_ptr_equal(blyi_site_pc(before + (uint32_t)i + 1), fake_pc(i));
    }
    assert_int_equal(blyi_site_count(), before + 5000);
    assert_null(blyi_site_pc(0));
    assert_null(blyi_site_pc(blyi_site_count() + 1));
    assert_null(blyi_site_pc(UINT32_MAX));
}

static void host_memory_that_fails(void **state)
{
    (void)state;
    int n_failed = 0;
    for (uintptr_t i = 10000; i < 20000; i++) {
        uint32_t before = blyi_site_count();
        blyi_host_fail_nth(1);
        uint32_t id = blyi_site_intern(fake_pc(i));
        if (blyi_host_failed()) {
            assert_int_equal(id, 0);
            assert_int_equal(blyi_site_count(), before);
            n_failed++;
            id = blyi_site_intern(fake_pc(i));
        }
        assert_int_equal(id, before + 1);
    }
    blyi_host_fail_nth(0);
    assert_true(n_failed > 5);
}

static uint32_t ids[TEST_THREADS][3000];

static void intern_all(int index)
{
    for (uintptr_t i = 0; i < 3000; i++) {
        uintptr_t n = index % 2 ? i : 2999 - i;
        ids[index][n] = blyi_site_intern(fake_pc(100000 + n));
        require(blyi_site_pc(ids[index][n]) == fake_pc(100000 + n));
    }
}

static void threads_agree(void **state)
{
    (void)state;
    uint32_t before = blyi_site_count();
    run_threads(intern_all);
    assert_int_equal(blyi_site_count(), before + 3000);
    for (int i = 1; i < TEST_THREADS; i++)
        assert_memory_equal(ids[i], ids[0], sizeof(ids[0]));
}

static __attribute__((noinline)) uint32_t here(void)
{
    return BLYI_SITE_HERE();
}

static void texts(void **state)
{
    (void)state;
    char buf[BLYI_SITE_TEXT];
    assert_string_equal(blyi_site_text(0, buf), "an unknown place");
    uint32_t site = here();
    assert_true(site > 0);
    assert_ptr_equal(strstr(blyi_site_text(site, buf), "texts+0x"), buf); /* a static function */
    assert_non_null(strstr(buf, "site)")); /* the name of this program */
    char again[BLYI_SITE_TEXT];
    assert_string_equal(blyi_site_text(site, again), buf);
    site = blyi_site_intern((const char *)(uintptr_t)strlen + 1); /* in libc, a dynamic symbol */
    assert_non_null(strchr(blyi_site_text(site, buf), '('));
    assert_int_equal(blyi_site_text(blyi_site_intern((const void *)16), buf)[0], '0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_dense_from_one),
        cmocka_unit_test(host_memory_that_fails),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
