/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_pool_threads.c - threads that come and go over the blocks of one pool, each with several
 * streams, some of which stand still, while another thread trims, flushes and looks at figures.
 *
 * Every 512 bytes of a live block have an owner in a table: memory that is handed out twice, or
 * while a stream that stands still uses it, is found at once. The figures are exact at the end of
 * each round.
 */
#include "../unit/pool/pool_test.h"

#include <inttypes.h>
#include <time.h>

enum {
    THREADS = 8,
    STREAMS = 8,
    HELD = 2,    /* of those, that stand still during a round */
    BLOCKS = 48, /* live of a thread */
    SHARED = 64, /* that go from one thread to another */
    ROUNDS = 6,
    STEPS = 1500,
    UNIT = 512,
    GRANULE_UNITS = (2 << 20) / UNIT,
};
#define WINDOW ((uint64_t)8 << 40)

/* A table for each 2 MiB of addresses, made at its first use. */
static uint32_t **owners;
static uintptr_t window;
static uint64_t granules;

static uint32_t *owner_of(uintptr_t address)
{
    uintptr_t offset = address - window;
    require(offset < WINDOW);
    uint32_t **place = &owners[offset >> 21], *none = NULL;
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == NULL) {
        uint32_t *table = calloc(GRANULE_UNITS, sizeof(*table));
        require(table != NULL);
        if (__atomic_compare_exchange_n(place, &none, table, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            __atomic_fetch_add(&granules, 1, __ATOMIC_RELAXED);
        else
            free(table);
    }
    return &__atomic_load_n(place, __ATOMIC_ACQUIRE)[offset % (2 << 20) / UNIT];
}

struct block {
    char *address;
    uint64_t size;
    uint32_t owner;
};

static uint32_t n_owners;

static void claim(struct block *block)
{
    block->owner = __atomic_add_fetch(&n_owners, 1, __ATOMIC_RELAXED);
    for (uint64_t at = 0; at < block->size; at += UNIT) {
        uint32_t before = 0;
        if (!__atomic_compare_exchange_n(owner_of((uintptr_t)block->address + at), &before,
                                         block->owner, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            fprintf(stderr, "%p and %" PRIu64 " bytes on: %" PRIu64 " bytes in, owner %u has it\n",
                    (void *)block->address, block->size, at, before);
            abort();
        }
    }
}

static void unclaim(const struct block *block)
{
    for (uint64_t at = 0; at < block->size; at += UNIT) {
        uint32_t owner =
            __atomic_exchange_n(owner_of((uintptr_t)block->address + at), 0, __ATOMIC_RELAXED);
        require(owner == block->owner);
    }
}

static struct {
    bly_pool *pool;
    void *streams[STREAMS];
    uint32_t stop;
    pthread_mutex_t lock;
    struct block shared[SHARED]; /* under the lock */
    struct block held[THREADS * STEPS];
    uint32_t n_held;
} it = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t roll(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % n;
}

static uint64_t some_size(uint64_t *state)
{
    uint64_t size = (uint64_t)256 << roll(state, 13);
    return 1 + size + roll(state, size);
}

static void alloc(struct block *block, uint64_t *state)
{
    void *address, *stream = it.streams[roll(state, STREAMS)];
    uint64_t asked = some_size(state);
    bly_pool_request request = {.struct_size = sizeof(request),
                                .size = asked,
                                .region = (bly_pool_region)roll(state, BLY_POOL_REGIONS),
                                .align = (uint64_t)1 << roll(state, 14)};
    bly_status status = roll(state, 8) == 0
                            ? bly_pool_alloc_with(it.pool, &request, stream, &address)
                            : bly_pool_alloc(it.pool, asked, stream, &address);
    require(status == BLY_OK);
    *block = (struct block){address, asked, 0};
    bly_pool_block found = {.struct_size = sizeof(found)};
    if (roll(state, 16) == 0) {
        require(bly_pool_find((char *)address + roll(state, asked), &found) == BLY_OK);
        require(found.address == address && found.asked == asked && found.stream == stream);
    }
    claim(block);
}

/* Freed behind a stream that stands still: nobody gets it before that goes on. */
static void release_held(const struct block *block, uint64_t *state)
{
    void *held = it.streams[roll(state, HELD)];
    require(blyi_set_async(block->address, 1, block->size < 64 ? block->size : 64, held, 0) ==
            BLY_OK);
    bly_pool_block found = {.struct_size = sizeof(found)};
    require(bly_pool_find(block->address, &found) == BLY_OK);
    if (found.stream == held) { /* in order, and its own */
        unclaim(block);
        require(bly_pool_free(block->address) == BLY_OK);
        return;
    }
    it.held[__atomic_fetch_add(&it.n_held, 1, __ATOMIC_RELAXED)] = *block;
    if (roll(state, 2) == 0) {
        require(bly_pool_free_on(block->address, held) == BLY_OK);
    } else {
        require(bly_pool_use(block->address, held) == BLY_OK);
        require(bly_pool_free(block->address) == BLY_OK);
    }
}

static void release(struct block *block, uint64_t *state)
{
    if (roll(state, 12) == 0) {
        release_held(block, state);
    } else {
        unclaim(block);
        require(bly_pool_free(block->address) == BLY_OK);
    }
    block->address = NULL;
}

static void exchange(struct block *block, uint64_t *state)
{
    pthread_mutex_lock(&it.lock);
    struct block *other = &it.shared[roll(state, SHARED)], mine = *block;
    *block = *other;
    *other = mine;
    pthread_mutex_unlock(&it.lock);
}

static void *work(void *arg)
{
    uint64_t state = (uintptr_t)arg | 1;
    struct block blocks[BLOCKS] = {{NULL, 0, 0}};
    require(blyi_device_set(0, 0) == BLY_OK);
    for (unsigned step = 0; step < STEPS; step++) {
        struct block *block = &blocks[roll(&state, BLOCKS)];
        if (roll(&state, 4) == 0)
            exchange(block, &state);
        if (block->address != NULL)
            release(block, &state);
        else
            alloc(block, &state);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (roll(&state, 4) == 0)
            exchange(&blocks[i], &state);
        if (blocks[i].address != NULL)
            release(&blocks[i], &state);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    uint64_t state = (uintptr_t)arg | 1;
    require(blyi_device_set(0, 0) == BLY_OK);
    while (__atomic_load_n(&it.stop, __ATOMIC_ACQUIRE) == 0) {
        bly_pool_info info = {.struct_size = sizeof(info)};
        switch (roll(&state, 4)) {
        case 0:
            require(bly_pool_trim(it.pool, roll(&state, 256 * MiB), NULL) == BLY_OK);
            break;
        case 1:
            (void)blyi_front_flush(it.pool->front);
            break;
        case 2:
            require(bly_pool_poll(it.pool) == BLY_OK);
            break;
        default:
            require(bly_pool_get_info(it.pool, &info) == BLY_OK);
            require(info.live + info.parked + info.idle + info.waiting == info.reserved);
        }
        sched_yield();
    }
    return NULL;
}

static void end_round(void)
{
    bly_pool_info info = info_of(it.pool);
    uint64_t waiting = 0, live = 0;
    for (uint32_t i = 0; i < it.n_held; i++)
        waiting += it.held[i].size;
    for (unsigned i = 0; i < SHARED; i++)
        live += it.shared[i].address != NULL;
    assert_true(info.waiting >= waiting);
    assert_int_equal(info.blocks, live);
    for (unsigned i = 0; i < HELD; i++)
        assert_ok(blyi_stream_resume(it.streams[i]));
    for (unsigned i = 0; i < STREAMS; i++) /* with loans some wait for others */
        assert_ok(blyi_stream_sync(it.streams[i], 0));
    for (uint32_t i = 0; i < it.n_held; i++)
        unclaim(&it.held[i]);
    it.n_held = 0;
    assert_ok(bly_pool_poll(it.pool));
    info = info_of(it.pool);
    assert_int_equal(info.waiting, 0);
    assert_int_equal(info.blocks, live);
    assert_int_equal(it.pool->front->n_caches, 1); /* the test's own: threads that had some ended */
}

static void run_round(uint64_t seed)
{
    pthread_t threads[THREADS], other;
    it.stop = 0;
    for (unsigned i = 0; i < HELD; i++)
        assert_ok(blyi_stream_pause(it.streams[i]));
    for (uint64_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(seed * 8191 + i * 2)), 0);
    assert_int_equal(pthread_create(&other, NULL, disturb, (void *)(uintptr_t)(seed * 31)), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&it.stop, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    end_round();
}

static void run(uint32_t reuse)
{
    bly_pool_opts opts = bly_pool_opts_default();
    opts.reuse = reuse;
    opts.trim_ms = 1;
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%" PRIu64 "\n", seed);
    owners = calloc(WINDOW >> 21, sizeof(*owners));
    assert_non_null(owners);
    assert_ok(bly_pool_create(&opts, &it.pool));
    for (unsigned i = 0; i < STREAMS; i++)
        it.streams[i] = new_stream();
    void *first = take(it.pool, 1, it.streams[0]);
    window = (uintptr_t)first & ~(uintptr_t)((1 << 30) - 1);
    assert_ok(bly_pool_free(first));
    blyi_front_flush(it.pool->front);
    for (unsigned round = 0; round < ROUNDS; round++)
        run_round(seed + round);
    for (unsigned i = 0; i < SHARED; i++)
        if (it.shared[i].address != NULL) {
            unclaim(&it.shared[i]);
            assert_ok(bly_pool_free(it.shared[i].address));
        }
    for (uint64_t i = 0; i < WINDOW >> 21; i++)
        free(owners[i]);
    free(owners);
    end_pool(it.pool);
}

static void threads_come_and_go(void **state)
{
    (void)state;
    run(0);
}

static void streams_lend(void **state)
{
    (void)state;
    memset(it.shared, 0, sizeof(it.shared));
    run(BLY_POOL_REUSE_EVENTS | BLY_POOL_REUSE_OPPORTUNISTIC | BLY_POOL_REUSE_DEPENDENCIES);
}

int main(void)
{
    setenv("BELAY_HBM", "4GiB", 1);
    const struct CMUnitTest tests[] = {order_test(threads_come_and_go), order_test(streams_lend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
