/* SPDX-License-Identifier: Apache-2.0
 * System calls: counted, and failed on purpose. */
#include "base_test.h"
#include "base/compiler.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

static void *return_arg(void *arg)
{
    return arg;
}

/* Makes every call that can be failed once, in one order; returns how many failed. */
static int call_all(int want_error)
{
    int n = 0;
    char byte = 'x';
#define FAILED(cond)                                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if (cond) {                                                                                \
            assert_int_equal(errno, want_error);                                                   \
            n++;                                                                                   \
        }                                                                                          \
    } while (0)
    static int null_fd = -1;
    if (null_fd < 0)
        null_fd = open("/dev/zero", O_RDWR);
    int fd = memfd_create("belay-test", 0);
    assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *mapped = MAP_FAILED;
    int other = -1, opened = -1;
    FAILED((mapped = blyi_sys_mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED);
    FAILED(blyi_sys_mprotect(page, 4096, PROT_READ) != 0);
    FAILED(blyi_sys_pkey_mprotect(page, 4096, PROT_READ, -1) != 0); /* -1: as mprotect */
    FAILED(blyi_sys_madvise(page, 4096, MADV_NORMAL) != 0);
    FAILED(blyi_sys_mlock(page, 4096) != 0);
    blyi_sys_munlock(page, 4096);
    FAILED((other = blyi_sys_memfd_create("belay-test", 0)) < 0);
    FAILED(blyi_sys_ftruncate(fd, 8192) != 0);
    FAILED(blyi_sys_fallocate(fd, 0, 0, 4096) != 0);
    FAILED(blyi_sys_pwrite(fd, &byte, 1, 0) != 1);
    FAILED((opened = blyi_sys_open("/dev/null", O_RDONLY, 0)) < 0);
    FAILED(blyi_sys_read(null_fd, &byte, 1) != 1);
#undef FAILED
    errno = 0;
    int key = blyi_sys_pkey_alloc(0);
    if (key >= 0)
        blyi_sys_pkey_free(key);
    else if (want_error != 0 && errno == want_error)
        n++; /* other errors are the machine's, which has no keys */
    pthread_t thread;
    int error = blyi_sys_thread_create(&thread, "test", return_arg, NULL);
    if (error == 0) {
        pthread_join(thread, NULL);
    } else {
        assert_int_equal(error, want_error);
        n++;
    }
    if (mapped != MAP_FAILED)
        assert_int_equal(blyi_sys_munmap(mapped, 4096), 0);
    munmap(page, 4096);
    close(fd);
    if (other >= 0)
        close(other);
    if (opened >= 0)
        close(opened);
    return n;
}

static void each_call_fails_when_told(void **state)
{
    (void)state;
    uint64_t before = blyi_sys_failable();
    assert_int_equal(call_all(0), 0);
    uint64_t n_calls = blyi_sys_failable() - before;
    assert_int_equal(n_calls, BLYI_SYS_COUNT - 3); /* all but munmap, munlock and futex */
    for (uint64_t nth = 1; nth <= n_calls; nth++) {
        blyi_sys_fail_nth(nth, ENFILE);
        assert_int_equal(call_all(ENFILE), 1);
        assert_true(blyi_sys_failed());
    }
    blyi_sys_fail_nth(n_calls + 1, ENFILE);
    assert_int_equal(call_all(ENFILE), 0);
    assert_false(blyi_sys_failed());
    blyi_sys_fail_nth(0, 0);
    assert_int_equal(call_all(0), 0);
}

static void calls_are_counted_by_name(void **state)
{
    (void)state;
    uint64_t before[BLYI_SYS_COUNT];
    for (int i = 0; i < BLYI_SYS_COUNT; i++)
        before[i] = blyi_sys_count((enum blyi_sys_call)i);
    call_all(0);
    for (int i = 0; i < BLYI_SYS_futex; i++)
        assert_int_equal(blyi_sys_count((enum blyi_sys_call)i), before[i] + 1);
    assert_string_equal(blyi_sys_name(BLYI_SYS_mmap), "mmap");
    assert_string_equal(blyi_sys_name(BLYI_SYS_futex), "futex");
}

static void *look_at_myself(void *arg)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    *(bool *)arg = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) &&
                   sigismember(&mask, SIGCHLD) && sigismember(&mask, SIGALRM) &&
                   !sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS);
    return NULL;
}

static void threads_leave_signals_to_the_program(void **state)
{
    (void)state;
    sigset_t mask;
    pthread_t thread;
    bool blocked = false;
    assert_int_equal(blyi_sys_thread_create(&thread, "belay-test-name", look_at_myself, &blocked),
                     0);
    pthread_join(thread, NULL);
    assert_true(blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* the caller's mask is as before */
}

static _Atomic uint32_t word;

static void *set_and_wake(void *arg)
{
    (void)arg;
    atomic_store(&word, 1);
    blyi_sys_futex_wake((const uint32_t *)&word, 1);
    return NULL;
}

static void futexes_wait_and_wake(void **state)
{
    (void)state;
    atomic_store(&word, 0);
    assert_int_equal(blyi_sys_futex_wait((const uint32_t *)&word, 1, 0), 0); /* differs */
    errno = EPERM;
    assert_int_equal(blyi_sys_futex_wait((const uint32_t *)&word, 0, 1000), ETIMEDOUT);
    assert_int_equal(errno, EPERM);
    pthread_t thread;
    assert_int_equal(blyi_sys_thread_create(&thread, "waker", set_and_wake, NULL), 0);
    while (atomic_load(&word) == 0)
        blyi_sys_futex_wait((const uint32_t *)&word, 0, 0);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails_when_told),
        cmocka_unit_test(calls_are_counted_by_name),
        cmocka_unit_test(threads_leave_signals_to_the_program),
        cmocka_unit_test(futexes_wait_and_wake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
