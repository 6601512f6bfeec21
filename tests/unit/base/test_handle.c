/* SPDX-License-Identifier: Apache-2.0
 * Handles: checked at every call, pinned while used, destroyed once. */
#include "base_test.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include <stdatomic.h>

#define STREAM BLYI_HANDLE_STREAM
#define EVENT  BLYI_HANDLE_EVENT

static int n_destroyed;

static void count_destroyed(void *object)
{
    (void)object;
    n_destroyed++;
}

static void *new_handle(enum blyi_handle_kind kind, void *object)
{
    void *handle = NULL;
    assert_int_equal(blyi_handle_create(kind, object, count_destroyed, &handle), BLY_OK);
    return handle;
}

static void expect_refused(enum blyi_handle_kind kind, const void *handle, const char *words)
{
    char value[32];
    snprintf(value, sizeof(value), "0x%llx", (unsigned long long)(uintptr_t)handle);
    for (int i = 0; i < 2; i++) {
        blyi_fail_clear();
        if (i == 0)
            assert_null(blyi_handle_get(kind, handle));
        else
            assert_int_equal(blyi_handle_remove(kind, handle), BLY_E_HANDLE);
        assert_int_equal(blyi_fail_code(), BLY_E_HANDLE);
        if (!strstr(bly_last_error(), words) || !strstr(bly_last_error(), value) ||
            !strstr(bly_last_error(), blyi_handle_kind_text(kind)))
            fail_msg("%s", bly_last_error());
    }
}

static void life_of_a_handle(void **state)
{
    (void)state;
    int object;
    n_destroyed = 0;
    void *handle = new_handle(STREAM, &object);
    assert_non_null(handle);
    assert_true((uintptr_t)handle >> 48 == 0);
    assert_int_equal(blyi_handle_live(STREAM), 1);
    assert_ptr_equal(blyi_handle_get(STREAM, handle), &object);
    blyi_handle_put(handle);
    assert_int_equal(n_destroyed, 0);
    assert_int_equal(blyi_handle_remove(STREAM, handle), BLY_OK);
    assert_int_equal(n_destroyed, 1);
    assert_int_equal(blyi_handle_live(STREAM), 0);
    assert_true(blyi_handle_audit());
}

static void the_last_pin_destroys(void **state)
{
    (void)state;
    int object;
    n_destroyed = 0;
    void *handle = new_handle(EVENT, &object);
    assert_ptr_equal(blyi_handle_get(EVENT, handle), &object);
    assert_ptr_equal(blyi_handle_get(EVENT, handle), &object);
    assert_int_equal(blyi_handle_remove(EVENT, handle), BLY_OK);
    expect_refused(EVENT, handle, "was destroyed");
    blyi_handle_put(handle);
    assert_int_equal(n_destroyed, 0);
    assert_true(blyi_handle_audit());
    blyi_handle_put(handle);
    assert_int_equal(n_destroyed, 1);
    assert_true(blyi_handle_audit());
}

static void refusals_are_told_apart(void **state)
{
    (void)state;
    int object, on_stack = 0;
    void *stream = new_handle(STREAM, &object), *event = new_handle(EVENT, &object);
    expect_refused(EVENT, stream, "is a live stream");
    expect_refused(STREAM, event, "is a live event");
    expect_refused(STREAM, NULL, "was never a handle");
    expect_refused(STREAM, &on_stack, "was never a handle");
    expect_refused(STREAM, (void *)(uintptr_t)-1, "was never a handle");
    expect_refused(STREAM, (char *)stream + ((uintptr_t)1 << 20), "was never a handle");
    expect_refused(EVENT, (char *)stream + ((uintptr_t)1 << 40), "was never a handle");
    expect_refused(STREAM, (char *)stream + ((uintptr_t)1 << 48), "was never a handle");
    expect_refused(STREAM, (char *)stream + 900000, "was never a handle");
    blyi_handle_remove(STREAM, stream);
    expect_refused(STREAM, stream, "the stream 0x");
    expect_refused(STREAM, stream, "was destroyed");
    expect_refused(EVENT, stream, "the stream 0x");
    blyi_handle_remove(EVENT, event);
}

static void a_stale_handle_stays_stale(void **state)
{
    (void)state;
    int object;
    void *first = new_handle(STREAM, &object);
    assert_int_equal(blyi_handle_remove(STREAM, first), BLY_OK);
    bool reused = false;
    for (int i = 0; i < 5000; i++) {
        void *next = new_handle(EVENT, &object);
        assert_ptr_not_equal(next, first);
        reused |= (((uintptr_t)next ^ (uintptr_t)first) & 0xfffff) == 0;
        assert_int_equal(blyi_handle_remove(EVENT, next), BLY_OK);
    }
    assert_true(reused); /* the slot, with another generation */
    expect_refused(STREAM, first, "was destroyed");
    assert_true(blyi_handle_audit());
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    enum { N = 3000 };
    static struct {
        void *handle;
        enum blyi_handle_kind kind;
        int pins;
    } model[N];
    static char objects[N];
    for (int step = 0; step < 40000; step++) {
        size_t i = rng_below(&rng, N);
        if (model[i].handle == NULL) {
            model[i].kind =
                (enum blyi_handle_kind)(1 + rng_below(&rng, BLYI_HANDLE_KIND_COUNT - 1));
            model[i].handle = new_handle(model[i].kind, &objects[i]);
        } else if (rng_below(&rng, 2)) {
            assert_ptr_equal(blyi_handle_get(model[i].kind, model[i].handle), &objects[i]);
            model[i].pins++;
        } else if (model[i].pins > 0) {
            blyi_handle_put(model[i].handle);
            model[i].pins--;
        } else {
            assert_int_equal(blyi_handle_remove(model[i].kind, model[i].handle), BLY_OK);
            assert_null(blyi_handle_get(model[i].kind, model[i].handle));
            model[i].handle = NULL;
        }
        if (step % 4000 == 0)
            assert_true(blyi_handle_audit());
    }
    for (size_t i = 0; i < N; i++) {
        if (model[i].handle == NULL)
            continue;
        assert_int_equal(blyi_handle_remove(model[i].kind, model[i].handle), BLY_OK);
        while (model[i].pins-- > 0)
            blyi_handle_put(model[i].handle);
    }
    assert_true(blyi_handle_audit());
}

static void host_memory_that_fails(void **state)
{
    (void)state;
    enum { N = 8000 }; /* enough for several chunks */
    static void *handles[N];
    int object, n_failed = 0;
    for (int i = 0; i < N; i++) {
        blyi_host_fail_nth(1);
        void *handle = NULL;
        bly_status status = blyi_handle_create(STREAM, &object, NULL, &handle);
        if (blyi_host_failed()) {
            assert_int_equal(status, BLY_E_HOST_MEMORY);
            assert_null(handle);
            assert_true(blyi_handle_audit());
            n_failed++;
            blyi_host_fail_nth(0);
            assert_int_equal(blyi_handle_create(STREAM, &object, NULL, &handle), BLY_OK);
        }
        handles[i] = handle;
    }
    blyi_host_fail_nth(0);
    assert_true(n_failed > 2);
    for (int i = 0; i < N; i++)
        assert_int_equal(blyi_handle_remove(STREAM, handles[i]), BLY_OK);
    assert_true(blyi_handle_audit());
}

static void put_unpinned(void)
{
    int object;
    void *handle;
    blyi_handle_create(STREAM, &object, NULL, &handle);
    blyi_handle_put(handle);
}

static void a_put_too_many_stops_the_process(void **state)
{
    (void)state;
    expect_death(put_unpinned, "not pinned", NULL);
}

/* Threads race over a few places: each holds a handle whose object knows if it is alive. */
#define PLACES 8

struct shared_object {
    int value; /* plain: the sanitizer sees a use that pins do not order */
    atomic_int alive;
};

static _Atomic(void *) places[PLACES];
static atomic_int n_made, n_gone;

static void destroy_shared(void *arg)
{
    struct shared_object *object = arg;
    require(atomic_exchange(&object->alive, 0) == 1);
    object->value = -1;
    atomic_fetch_add(&n_gone, 1);
    free(object);
}

static void race(int index)
{
    struct rng rng = {(uint64_t)index + 99};
    for (int i = 0; i < 5000; i++) {
        _Atomic(void *) *place = &places[rng_below(&rng, PLACES)];
        void *handle = atomic_load(place);
        if (rng_below(&rng, 3) > 0) {
            struct shared_object *object = handle ? blyi_handle_get(EVENT, handle) : NULL;
            if (object) {
                require(atomic_load(&object->alive) == 1 && object->value == 7);
                blyi_handle_put(handle);
            }
        } else if (handle) {
            if (blyi_handle_remove(EVENT, handle) == BLY_OK)
                atomic_compare_exchange_strong(place, &handle, NULL);
        } else {
            struct shared_object *object = malloc(sizeof(*object));
            object->value = 7;
            atomic_init(&object->alive, 1);
            void *fresh, *none = NULL;
            require(blyi_handle_create(EVENT, object, destroy_shared, &fresh) == BLY_OK);
            atomic_fetch_add(&n_made, 1);
            if (!atomic_compare_exchange_strong(place, &none, fresh))
                require(blyi_handle_remove(EVENT, fresh) == BLY_OK);
        }
    }
}

static void threads_get_and_remove(void **state)
{
    (void)state;
    run_threads(race);
    for (int i = 0; i < PLACES; i++)
        if (places[i])
            assert_int_equal(blyi_handle_remove(EVENT, places[i]), BLY_OK);
    assert_int_equal(n_made, n_gone);
    assert_int_equal(blyi_handle_live(EVENT), 0);
    assert_true(blyi_handle_audit());
}

static void the_table_can_be_full(void **state)
{
    (void)state;
    enum { N = (1 << 20) - 1 };
    void **handles = malloc(N * sizeof(*handles)), *more = NULL;
    int object;
    for (int i = 0; i < N; i++)
        if (blyi_handle_create(STREAM, &object, NULL, &handles[i]) != BLY_OK)
            fail_msg("%d: %s", i, bly_last_error());
    assert_int_equal(blyi_handle_create(STREAM, &object, NULL, &more), BLY_E_NO_MEMORY);
    assert_non_null(strstr(bly_last_error(), "all 1048575 handles"));
    for (int i = 0; i < 3; i++) { /* the only free slot, time and again */
        void *stale = handles[77];
        assert_int_equal(blyi_handle_remove(STREAM, stale), BLY_OK);
        assert_int_equal(blyi_handle_create(STREAM, &object, NULL, &handles[77]), BLY_OK);
        assert_ptr_not_equal(handles[77], stale);
        expect_refused(STREAM, stale, "was destroyed");
    }
    assert_true(blyi_handle_audit());
    for (int i = 0; i < N; i++)
        assert_int_equal(blyi_handle_remove(STREAM, handles[i]), BLY_OK);
    assert_true(blyi_handle_audit());
    free(handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_of_a_handle),
        cmocka_unit_test(the_last_pin_destroys),
        cmocka_unit_test(refusals_are_told_apart),
        cmocka_unit_test(a_stale_handle_stays_stale),
        cmocka_unit_test(random_steps),
        cmocka_unit_test(host_memory_that_fails),
        cmocka_unit_test(a_put_too_many_stops_the_process),
        cmocka_unit_test(threads_get_and_remove),
        cmocka_unit_test(the_table_can_be_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
