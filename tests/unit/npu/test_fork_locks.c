/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread holds a lock of ours: it does not wait for it, and
 * what the lock guards is of use to it. */
#include "order_test.h"

#include <sys/wait.h>

#include "base/handle.h"
#include "base/lock.h"
#include "base/reclaim.h"
#include "face/acl/message.h"

enum { LIMIT_S = 300 };

/* The thread that is stopped inside a lock. */
static _Thread_local bool is_victim;
static enum blyi_lock_rank wanted;
static uint32_t inside, go, n_met;

static void stop_in_lock(const struct blyi_lock *lock)
{
    if (!is_victim || lock->rank != wanted)
        return;
    is_victim = false;
    n_met++;
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
}

static void *end_of(void *arg)
{
    void (*fn)(void) = *(void (**)(void))arg;
    is_victim = true;
    fn();
    is_victim = false;
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE); /* it never took the lock: n_met tells */
    return NULL;
}

/* ── What takes the locks ─────────────────────────────────────────────────────────────────── */

static uintptr_t next_place = 0x1000;

static void use_log(void)
{
    blyi_log_set_sink(NULL, NULL);
}

static void use_site(void)
{
    (void)blyi_site_intern((const void *)(next_place += 16));
}

static void use_site_text(void)
{
    char text[BLYI_SITE_TEXT];
    (void)blyi_site_text(blyi_site_intern((const void *)(uintptr_t)use_site), text);
}

static void use_option(void)
{
    require(blyi_option_set(BLYI_OPT_PIN_CEILING, "1GiB") == BLY_OK);
}

static void use_handle(void)
{
    static int object;
    void *handle;
    require(blyi_handle_create(BLYI_HANDLE_BUFFER, &object, NULL, &handle) == BLY_OK);
    require(blyi_handle_remove(BLYI_HANDLE_BUFFER, handle) == BLY_OK);
}

static void use_reclaim(void)
{
    require(blyi_reclaim_run(0, 1) == 0);
}

static void use_message(void)
{
    blyi_message_add("something");
    (void)blyi_message_take(); /* another thread may have been quicker */
}

/* In the child these are refused. */
static void use_pinned(void)
{
    void *address;
    if (blyi_pinned_alloc(4096, 4096, 0, 33, &address) == BLY_OK)
        require(blyi_pinned_free(address, 0) == BLY_OK);
}

static void use_card(void)
{
    void *stream;
    if (blyi_device_set(0, 0) == BLY_OK && blyi_stream_create(0, 0, 0, &stream) == BLY_OK) {
        void *memory = card_alloc(4096);
        require(blyi_mem_free(memory, 0) == BLY_OK);
        require(blyi_stream_destroy(stream, false) == BLY_OK);
        require(blyi_device_reset(0, false) == BLY_OK);
    }
}

static const struct {
    enum blyi_lock_rank rank;
    void (*use)(void);
} uses[] = {
    {BLYI_RANK_LOG, use_log},        {BLYI_RANK_SITE, use_site},
    {BLYI_RANK_SITE, use_site_text}, {BLYI_RANK_OPTION, use_option},
    {BLYI_RANK_HANDLES, use_handle}, {BLYI_RANK_RECLAIM, use_reclaim},
    {BLYI_RANK_FACE, use_message},   {BLYI_RANK_PINNED, use_pinned},
    {BLYI_RANK_CARD, use_card},      {BLYI_RANK_CONTEXT, use_card},
    {BLYI_RANK_RUNTIME, use_card},   {BLYI_RANK_BACKING, use_card},
    {BLYI_RANK_LEDGER, use_card},
};

static void use_all(void)
{
    for (size_t i = 0; i < BLYI_COUNT(uses); i++)
        uses[i].use();
    blyi_runtime_finalise();
}

/* A child of the child too: it has one more thread's locks to forget. */
static int be_child(bool again)
{
    alarm(LIMIT_S);
    use_all();
    if (!again)
        return 0;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(be_child(false));
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void fork_inside(size_t use)
{
    pthread_t thread;
    wanted = uses[use].rank;
    inside = go = 0;
    assert_int_equal(pthread_create(&thread, NULL, end_of, (void *)(uintptr_t)&uses[use].use), 0);
    while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(be_child(true));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child of a fork inside a lock of rank %s ended with 0x%x",
                 blyi_lock_rank_name(wanted), (unsigned)status);
}

static void a_child_waits_for_no_lock(void **state)
{
    (void)state;
    if (BLY_DEBUG < 1)
        skip();
    assert_ok(blyi_device_set(0, 0));
    blyi_message_set_shared(true);
    __atomic_store_n(&blyi_lock_taken, stop_in_lock, __ATOMIC_RELEASE);
    for (size_t i = 0; i < BLYI_COUNT(uses); i++)
        fork_inside(i);
    assert_int_equal(n_met, BLYI_COUNT(uses));
    __atomic_store_n(&blyi_lock_taken, (void (*)(const struct blyi_lock *))NULL, __ATOMIC_RELEASE);
    use_all();
}

/* Where the lock is held makes a difference to what it guards: forks at any moment. */
static void *use_over_and_over(void *arg)
{
    while (__atomic_load_n((uint32_t *)arg, __ATOMIC_ACQUIRE) == 0) {
        use_log();
        use_option();
        use_site_text();
        use_handle();
        use_message();
    }
    return NULL;
}

static void children_of_any_moment_work(void **state)
{
    (void)state;
    uint32_t stop = 0;
    pthread_t threads[2];
    assert_ok(blyi_device_set(0, 0));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_over_and_over, &stop), 0);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(be_child(false));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        bare_test(a_child_waits_for_no_lock),
        bare_test(children_of_any_moment_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
