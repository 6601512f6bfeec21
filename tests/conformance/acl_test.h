/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_test.h - tests of the AscendCL face, as a user's program would meet it.
 *
 * Every test runs in a child process with a time limit: options, aclInit and streams that hang
 * belong to one test alone. Options are environment variables, set before the first call.
 */
#ifndef ACL_TEST_H
#define ACL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <acl/acl.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB          ((size_t)1 << 10)
#define MIB          ((size_t)1 << 20)
#define GIB          ((size_t)1 << 30)
#define HUGE_FIRST   ACL_MEM_MALLOC_HUGE_FIRST
#define NORMAL_ONLY  ACL_MEM_MALLOC_NORMAL_ONLY
#define TEST_SECONDS 1800
#define ANY_ADDRESS  ((void *)(uintptr_t)0x123456789000u)

static inline void test_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    fflush(NULL);
    _exit(1);
}

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "not true: " #cond);                                     \
    } while (0)

#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_,       \
                    want_);                                                                        \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The call returns the code; if not, its message is shown. */
#define CHECK_ACL(call, want)                                                                      \
    do {                                                                                           \
        aclError code_ = (call);                                                                   \
        if (code_ != (want)) {                                                                     \
            const char *text_ = aclGetRecentErrMsg();                                              \
            fprintf(stderr, "%s:%d: %s returned %d, not %d\n  %s\n", __FILE__, __LINE__, #call,    \
                    code_, (int)(want), text_ != NULL ? text_ : "(no message)");                   \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK_ACL(call, 0)

/* The messages so far contain a text; all are forgotten. */
#define CHECK_MESSAGE(part)                                                                        \
    do {                                                                                           \
        const char *text_ = aclGetRecentErrMsg();                                                  \
        if (text_ == NULL || strstr(text_, part) == NULL) {                                        \
            fprintf(stderr, "%s:%d: no '%s' in: %s\n", __FILE__, __LINE__, part,                   \
                    text_ != NULL ? text_ : "(no message)");                                       \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* cmocka's handlers would go on with the next test in the child. */
static inline void default_signals(void)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)signal(signals[i], SIG_DFL);
}

static inline void run_in_child(void (*body)(void), const char *name)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        default_signals();
        alarm(TEST_SECONDS);
        body();
        fflush(NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        print_error("%s ended by signal %d\n", name, WTERMSIG(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name)                                                                                 \
    static void name##_body(void);                                                                 \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        run_in_child(name##_body, #name);                                                          \
    }                                                                                              \
    static void name##_body(void)

static inline size_t free_bytes(aclrtMemAttr attr)
{
    size_t free_now = 0, total = 0;
    OK(aclrtGetMemInfo(attr, &free_now, &total));
    return free_now;
}

/* What was queued before, on any stream, has run as far as it can. The engine takes the streams in
 * turn, 64 tasks of one at a time, so more of ours come behind the others. */
static inline void let_engine_look(void)
{
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 200; i++)
        OK(aclrtResetOverflowStatus(stream)); /* a task that does nothing */
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
}

/* A thread that is to wait inside a call. */
struct sleeper {
    _Atomic pid_t tid; /* set before the call */
};

static inline void sleeper_begins(struct sleeper *sleeper)
{
    atomic_store(&sleeper->tid, (pid_t)syscall(SYS_gettid));
}

/* Until the kernel says that the thread sleeps. */
static inline void until_it_sleeps(struct sleeper *sleeper)
{
    char path[64], state = '?';
    while (state != 'S') {
        pid_t tid = atomic_load(&sleeper->tid);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
        FILE *file = tid != 0 ? fopen(path, "r") : NULL;
        if (file != NULL) {
            if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
                state = '?';
            fclose(file);
        }
        sched_yield();
    }
}

/* Keeps a stream busy until let go. */
struct hold {
    atomic_bool go, running;
};

static inline void hold_wait(void *arg)
{
    struct hold *hold = arg;
    atomic_store(&hold->running, true);
    while (!atomic_load(&hold->go))
        usleep(100);
}

static inline void hold_stream(struct hold *hold, aclrtStream stream)
{
    atomic_store(&hold->go, false);
    atomic_store(&hold->running, false);
    OK(aclrtLaunchHostFunc(stream, hold_wait, hold));
}

static inline void let_go(struct hold *hold)
{
    atomic_store(&hold->go, true);
}

#endif
