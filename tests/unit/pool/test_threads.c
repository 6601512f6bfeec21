/* SPDX-License-Identifier: Apache-2.0 */
/* Thread caches: who has what, and what becomes of it as threads and pools come and go. */
#include "pool_test.h"

#include <sys/wait.h>

#include "pool/grant.h"

struct job {
    bly_pool *pool;
    void *stream;
    void **blocks;
    unsigned n;
    uint64_t size;
    pthread_barrier_t *turn; /* the test's and the thread's, in turn */
};

static void meet(struct job *job)
{
    pthread_barrier_wait(job->turn);
}

static void *alloc_and_free(void *arg)
{
    struct job *job = arg;
    for (unsigned i = 0; i < job->n; i++)
        require(bly_pool_alloc(job->pool, job->size, job->stream, &job->blocks[i]) == BLY_OK);
    for (unsigned i = 0; i < job->n; i++)
        require(bly_pool_free(job->blocks[i]) == BLY_OK);
    return NULL;
}

static void *free_all(void *arg)
{
    struct job *job = arg;
    for (unsigned i = 0; i < job->n; i++)
        require(bly_pool_free(job->blocks[i]) == BLY_OK);
    return NULL;
}

static void *work_and_stay(void *arg)
{
    struct job *job = arg;
    alloc_and_free(job);
    meet(job);
    meet(job);
    return NULL;
}

static void *free_and_stay(void *arg)
{
    struct job *job = arg;
    free_all(job);
    meet(job);
    meet(job);
    return NULL;
}

static struct job job_of(bly_pool *pool, unsigned n, uint64_t size)
{
    return (struct job){.pool = pool,
                        .stream = new_stream(),
                        .blocks = calloc(n, sizeof(void *)),
                        .n = n,
                        .size = size};
}

/* A thread that has worked and is now asleep. */
static pthread_t start_staying(struct job *job, pthread_barrier_t *turn)
{
    pthread_t thread;
    pthread_barrier_init(turn, NULL, 2);
    job->turn = turn;
    assert_int_equal(pthread_create(&thread, NULL, work_and_stay, job), 0);
    meet(job);
    return thread;
}

static void end_staying(struct job *job, pthread_t thread)
{
    meet(job);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(job->turn);
    free(job->blocks);
}

static void a_thread_that_ends_gives_all_back(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    struct job job = job_of(pool, 50, 3000);
    in_thread(alloc_and_free, &job);
    bly_pool_info info = info_of(pool);
    assert_int_equal(info.parked, 0);
    assert_int_equal(info.allocs, 50);
    assert_int_equal(info.frees, 50);
    assert_int_equal(pool->front->n_caches, 0);
    assert_int_equal(pool->front->granted, 0);
    free(job.blocks);
    end_pool(pool);
}

static void blocks_of_another_thread_go_back(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    struct job job = job_of(pool, 2000, 700);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < job.n; i++)
            job.blocks[i] = take(pool, job.size, job.stream);
        in_thread(free_all, &job);
    }
    bly_pool_info info = info_of(pool);
    assert_int_equal(info.allocs, 6000);
    assert_int_equal(info.live, 0);
    assert_true(info.parked <= 2 * MiB);
    free(job.blocks);
    end_pool(pool);
}

static void a_sleeping_threads_cache_can_be_emptied(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    struct job job = job_of(pool, 8, 100000);
    pthread_barrier_t turn;
    if (!blyi_grant_can_stop())
        skip();
    pthread_t thread = start_staying(&job, &turn);
    assert_int_not_equal(info_of(pool).parked, 0);
    assert_int_not_equal(blyi_front_flush(pool->front), 0);
    bly_pool_info info = info_of(pool);
    assert_int_equal(info.parked, 0);
    assert_int_equal(info.idle, info.reserved);
    assert_ok(bly_pool_trim(pool, 0, NULL));
    assert_int_equal(info_of(pool).reserved, 0);
    end_staying(&job, thread);
    end_pool(pool);
}

static void a_pool_may_end_before_its_threads(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        bly_pool *pool = new_pool(), *next;
        struct job job = job_of(pool, 8, 4000);
        pthread_barrier_t turn;
        pthread_t thread = start_staying(&job, &turn);
        void *mine = take(pool, 4000, job.stream);
        assert_ok(bly_pool_free(mine));
        end_pool(pool);
        assert_status(bly_pool_alloc(pool, 4000, job.stream, &mine), BLY_E_HANDLE);
        next = new_pool();
        mine = take(next, 4000, job.stream);
        assert_ok(bly_pool_free(mine));
        end_staying(&job, thread);
        end_pool(next);
    }
}

static void a_double_free_is_found_whoever_frees(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    struct job job = job_of(pool, 1, 4000);
    pthread_barrier_t turn;
    pthread_t thread = start_staying(&job, &turn);
    assert_status(bly_pool_free(job.blocks[0]), BLY_E_INVALID); /* in the other's cache */
    assert_sentence("freed already");
    end_staying(&job, thread);
    end_pool(pool);
}

/* What is parked stays below the bound with many caches too, and idle ones make way. */
static void caches_share_what_they_may_park(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    bly_pool *pool = new_pool();
    struct job jobs[THREADS];
    pthread_barrier_t turns[THREADS];
    pthread_t threads[THREADS];
    void *streams[8];
    for (unsigned i = 0; i < 8; i++)
        streams[i] = new_stream();
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = job_of(pool, 30, 64 * KiB);
        threads[i] = start_staying(&jobs[i], &turns[i]);
        assert_true(pool->front->granted <= 2 * MiB);
    }
    for (unsigned round = 0; round < 200; round++) {
        void *blocks[8];
        for (unsigned i = 0; i < 8; i++)
            blocks[i] = take(pool, 64 * KiB, streams[i]);
        for (unsigned i = 0; i < 8; i++)
            assert_ok(bly_pool_free(blocks[i]));
        assert_true(pool->front->granted <= 2 * MiB);
    }
    uint64_t mine = 0;
    BLYI_LIST_FOR(node, &pool->front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        mine += cache->thread == blyi_cache_last->thread ? cache->limit : 0;
        uint64_t n;
        assert_true(blyi_cache_parked(cache, &n) <= cache->limit);
    }
    if (blyi_grant_can_stop())
        assert_true(mine >= MiB / 2);
    for (unsigned i = 0; i < THREADS; i++)
        end_staying(&jobs[i], threads[i]);
    end_pool(pool);
}

/* One thread has taken a block off the waiting list and stands still before it gives it back. */
static struct {
    uint32_t stands, goes_on, looks;
} returner;
static _Thread_local bool is_returner, is_asker;

static void stand_still(const struct blyi_lock *lock)
{
    if (is_returner && lock->rank == BLYI_RANK_FRONT) {
        __atomic_store_n(&returner.stands, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&returner.goes_on, __ATOMIC_ACQUIRE) == 0)
            sched_yield();
    }
    if (is_asker && lock->rank == BLYI_RANK_POOL && ++returner.looks == 100)
        __atomic_store_n(&returner.goes_on, 1, __ATOMIC_RELEASE);
}

static void *poll_once(void *arg)
{
    is_returner = true;
    require(bly_pool_poll(arg) == BLY_OK);
    return NULL;
}

static void what_is_about_to_return_is_waited_for(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    bly_pool *pool;
    pthread_t thread;
    void *one = new_stream(), *two = new_stream(), *block;
    opts.limit = 64 * MiB;
    assert_ok(bly_pool_create(&opts, &pool));
    block = take(pool, 48 * MiB, one);
    assert_ok(blyi_stream_pause(two));
    assert_ok(blyi_set_async(block, 1, 64, two, 0));
    assert_ok(bly_pool_free_on(block, two));
    assert_ok(blyi_stream_resume(two));
    assert_ok(blyi_stream_sync(two, 0));
    __atomic_store_n(&blyi_lock_taken, stand_still, __ATOMIC_RELEASE);
    assert_int_equal(pthread_create(&thread, NULL, poll_once, pool), 0);
    while (__atomic_load_n(&returner.stands, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    is_asker = true;
    bly_status status = bly_pool_alloc(pool, 48 * MiB, one, &block);
    is_asker = false;
    __atomic_store_n(&returner.goes_on, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    __atomic_store_n(&blyi_lock_taken, (void (*)(const struct blyi_lock *))NULL, __ATOMIC_RELEASE);
    assert_ok(status);
    assert_true(returner.looks >= 100);
    assert_ok(bly_pool_free(block));
    end_pool(pool);
}

static void the_child_of_a_fork_is_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *block = take(pool, 4000, stream), *parked;
    parked = take(pool, 4000, stream);
    assert_ok(bly_pool_free(parked));
    pid_t pid = fork();
    if (pid == 0) {
        bool told = bly_pool_alloc(pool, 4000, stream, &parked) == BLY_E_FORKED &&
                    bly_pool_free(block) == BLY_E_FORKED &&
                    bly_pool_alloc(pool, 4 * MiB, stream, &parked) == BLY_E_FORKED;
        _exit(told ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(bly_pool_free(block));
    end_pool(pool);
}

/* Blocks that a destructor of the program frees behind ours. */
static pthread_key_t late;

static void free_late(void *block)
{
    static _Thread_local unsigned passes;
    if (passes++ < 2)
        pthread_setspecific(late, block);
    else
        require(bly_pool_free(block) == BLY_OK);
}

static void *free_in_destructor(void *arg)
{
    struct job *job = arg;
    void *block;
    require(bly_pool_alloc(job->pool, 4000, job->stream, &block) == BLY_OK);
    require(pthread_setspecific(late, block) == 0);
    return NULL;
}

static void destructors_may_free(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    struct job job = job_of(pool, 1, 4000);
    assert_int_equal(pthread_key_create(&late, free_late), 0);
    in_thread(free_in_destructor, &job);
    assert_int_equal(info_of(pool).parked, 0);
    assert_int_equal(pool->front->n_caches, 0);
    pthread_key_delete(late);
    free(job.blocks);
    end_pool(pool);
}

/* What two threads leave behind that free a slot at the same moment: neither sees the other. */
static void a_slot_that_two_threads_keep(void **state)
{
    (void)state;
    pthread_barrier_t turn;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *block = take(pool, 4096, stream);
    struct blyi_spot spot;
    struct job job = {.pool = pool, .stream = stream, .blocks = &block, .n = 1, .turn = &turn};
    if (!blyi_grant_can_stop()) /* another thread's cache is not looked into */
        skip();
    pthread_barrier_init(&turn, NULL, 2);
    assert_true(blyi_spot_find((uintptr_t)block, &spot));
    uint16_t live = blyi_slab_state(spot.slab, spot.slot);
    assert_ok(bly_pool_free(block));
    assert_ok(bly_pool_audit(pool));
    blyi_slab_set_state(spot.slab, spot.slot, live); /* as the other read it before */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_and_stay, &job), 0);
    meet(&job);
    assert_status(bly_pool_audit(pool), BLY_E_STATE);
    assert_sentence("two threads freed it at once");
    blyi_slab_set_state(spot.slab, spot.slot, live); /* handed out of one of them */
    assert_status(bly_pool_audit(pool), BLY_E_STATE);
    assert_ok(bly_pool_destroy(pool)); /* and nobody keeps anything */
    meet(&job);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&turn);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(a_slot_that_two_threads_keep),
        order_test(a_thread_that_ends_gives_all_back),
        order_test(blocks_of_another_thread_go_back),
        order_test(a_sleeping_threads_cache_can_be_emptied),
        order_test(a_pool_may_end_before_its_threads),
        order_test(a_double_free_is_found_whoever_frees),
        order_test(caches_share_what_they_may_park),
        order_test(what_is_about_to_return_is_waited_for),
        order_test(the_child_of_a_fork_is_told),
        order_test(destructors_may_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
