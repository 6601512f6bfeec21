/* SPDX-License-Identifier: Apache-2.0 */
/* The handler acts on our ranges alone and passes everything else on. */
#include "order_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "npu/fault.h"

static char *pages; /* readable, none, readable */

static void map_pages(void)
{
    if (pages != NULL)
        return;
    pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
}

/* Untouched by the sanitizers: the place is bad on purpose. */
__attribute__((no_sanitize("address", "thread"))) static void touch(void *arg)
{
    *(volatile char *)arg = 1;
}

static bool try_touch(char *place, char *start, uint64_t size, uintptr_t *address)
{
    const struct blyi_fault_range ranges[2] = {{(uintptr_t)start, size}, {0, 0}};
    return blyi_fault_try(touch, place, ranges, address);
}

static void a_fault_in_a_range_ends_the_attempt(void **state)
{
    (void)state;
    uintptr_t address = 0;
    map_pages();
    keep_fault_handler();
    assert_ok(blyi_fault_install()); /* again: nothing */
    for (int i = 0; i < 10000; i++) {
        assert_false(try_touch(pages + 4096 + i % 4096, pages, 3 * 4096, &address));
        assert_int_equal(address, (uintptr_t)pages + 4096 + (uintptr_t)i % 4096);
        assert_true(try_touch(pages + 5, pages, 3 * 4096, &address));
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGSEGV));
}

static void beyond_the_end_of_a_file_is_a_fault_too(void **state)
{
    (void)state;
    keep_fault_handler();
    char name[] = "/tmp/belay-fault-XXXXXX";
    uintptr_t address = 0;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(ftruncate(fd, 4096), 0);
    char *file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(try_touch(file, file, 8192, &address));
    assert_false(try_touch(file + 4096, file, 8192, &address)); /* SIGBUS */
    assert_int_equal(address, (uintptr_t)file + 4096);
    munmap(file, 8192);
    close(fd);
}

struct nested {
    char *inner, *outer;
    bool inner_ok;
};

static void touch_twice(void *arg)
{
    struct nested *nested = arg;
    uintptr_t address;
    nested->inner_ok = try_touch(nested->inner, pages, 3 * 4096, &address);
    touch(nested->outer);
}

static void attempts_nest(void **state)
{
    (void)state;
    keep_fault_handler();
    map_pages();
    struct nested nested = {pages + 4096, pages + 4097, true};
    const struct blyi_fault_range ranges[2] = {{(uintptr_t)pages, 3 * 4096}, {0, 0}};
    uintptr_t address = 0;
    assert_false(blyi_fault_try(touch_twice, &nested, ranges, &address));
    assert_false(nested.inner_ok);
    assert_int_equal(address, (uintptr_t)pages + 4097);
}

static void *fault_often(void *arg)
{
    uintptr_t address;
    (void)arg;
    for (int i = 0; i < 3000; i++) {
        require(!try_touch(pages + 4096, pages, 3 * 4096, &address));
        require(try_touch(pages, pages, 3 * 4096, &address));
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    keep_fault_handler();
    pthread_t threads[4];
    map_pages();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, fault_often, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* A child installs `before`, then us, then faults outside of our ranges. */
static int end_of(void (*fn)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fn();
        _exit(99);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static void exit_7(int sig, siginfo_t *info, void *context)
{
    (void)context;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (sig == SIGSEGV && info->si_addr == (void *)(pages + 4096) && sigismember(&mask, SIGUSR1) &&
        sigismember(&mask, SIGSEGV))
        _exit(7);
    _exit(8);
}

static void exit_9(int sig)
{
    _exit(sig == SIGSEGV ? 9 : 8);
}

static void chain_to_siginfo(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = exit_7;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
    if (blyi_fault_install() == BLY_OK)
        touch(pages + 4096);
}

static void chain_to_plain(void)
{
    signal(SIGSEGV, exit_9);
    if (blyi_fault_install() == BLY_OK)
        touch(pages + 4096);
}

static void chain_to_default(void)
{
    signal(SIGSEGV, SIG_DFL);
    if (blyi_fault_install() == BLY_OK)
        touch(pages + 4096);
}

static void chain_a_sent_signal_to_default(void)
{
    signal(SIGSEGV, SIG_DFL);
    if (blyi_fault_install() == BLY_OK)
        raise(SIGSEGV);
}

static void chain_a_sent_signal_to_ignore(void)
{
    signal(SIGSEGV, SIG_IGN);
    if (blyi_fault_install() == BLY_OK)
        raise(SIGSEGV);
    _exit(5);
}

static void outside_of_the_ranges(void)
{
    uintptr_t address;
    signal(SIGSEGV, exit_9);
    if (blyi_fault_install() == BLY_OK)
        try_touch(pages + 4096, pages, 4096, &address);
}

static void everything_else_goes_to_who_was_there_before(void **state)
{
    (void)state;
    map_pages();
    int status = end_of(chain_to_siginfo);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    status = end_of(chain_to_plain);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    status = end_of(chain_to_default);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = end_of(chain_a_sent_signal_to_default);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = end_of(chain_a_sent_signal_to_ignore);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    status = end_of(outside_of_the_ranges);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_else_goes_to_who_was_there_before), /* before we are in */
        cmocka_unit_test(a_fault_in_a_range_ends_the_attempt),
        cmocka_unit_test(beyond_the_end_of_a_file_is_a_fault_too),
        cmocka_unit_test(attempts_nest),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
