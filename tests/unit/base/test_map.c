/* SPDX-License-Identifier: Apache-2.0
 * The hash map beside an array. */
#include "base_test.h"
#include "base/host.h"
#include "base/map.h"

#define KEYS 512

static char objects[KEYS];
static void *model[KEYS];

static uint64_t key_of(size_t i)
{
    return i == 0 ? 0 : i == 1 ? UINT64_MAX : (uint64_t)i << (i % 3 * 20);
}

static size_t model_count(void)
{
    size_t n = 0;
    for (size_t i = 0; i < KEYS; i++)
        n += model[i] != NULL;
    return n;
}

static void check(const struct blyi_map *map)
{
    assert_true(blyi_map_audit(map));
    assert_int_equal(map->count, model_count());
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(blyi_map_get(map, key_of(i)), model[i]);
    size_t cursor = 0, seen = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(map, &cursor, &key, &value)) {
        size_t i = 0;
        while (i < KEYS && key_of(i) != key)
            i++;
        assert_true(i < KEYS);
        assert_ptr_equal(model[i], value);
        seen++;
    }
    assert_int_equal(seen, map->count);
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    struct blyi_map map;
    blyi_map_init(&map);
    check(&map);
    for (int step = 0; step < 30000; step++) {
        size_t i = rng_below(&rng, KEYS);
        bool grow = step / 3000 % 2 == 0 ? rng_below(&rng, 4) > 0 : rng_below(&rng, 4) == 0;
        if (grow) {
            void *value = &objects[rng_below(&rng, KEYS)];
            bool inject = rng_below(&rng, 8) == 0;
            if (inject)
                blyi_host_fail_nth(1);
            bly_status status = blyi_map_put(&map, key_of(i), value);
            assert_int_equal(status, inject && blyi_host_failed() ? BLY_E_HOST_MEMORY : BLY_OK);
            blyi_host_fail_nth(0);
            if (status == BLY_OK)
                model[i] = value;
        } else {
            assert_ptr_equal(blyi_map_remove(&map, key_of(i)), model[i]);
            model[i] = NULL;
        }
        if (step % 300 == 0)
            check(&map);
    }
    /* Removing what was just visited. */
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&map, &cursor, &key, &value))
        assert_ptr_equal(blyi_map_remove(&map, key), value);
    memset(model, 0, sizeof(model));
    check(&map);
    blyi_map_fini(&map);
}

/* One key that comes and goes must not grow the table. */
static void marks_do_not_pile_up(void **state)
{
    (void)state;
    struct blyi_map map;
    blyi_map_init(&map);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(blyi_map_put(&map, i, objects), BLY_OK);
        assert_ptr_equal(blyi_map_remove(&map, i), objects);
    }
    assert_int_equal(map.capacity, 16);
    blyi_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(marks_do_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
