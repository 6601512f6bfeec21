/* SPDX-License-Identifier: Apache-2.0
 *
 * base_test.h - what the unit tests of src/base share: cmocka, a seeded generator, threads that
 * start together, and programs that are meant to die.
 */
#ifndef BASE_TEST_H
#define BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

/* With the sentence of what failed. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        bly_status status_ = (call);                                                               \
        if (status_ != BLY_OK)                                                                     \
            fail_msg("%s: %s: %s", #call, bly_status_name(status_), blyi_fail_text());             \
    } while (0)

/* xorshift64*: the same numbers in every run. */
struct rng {
    uint64_t state;
};

/* The seed of this run; TEST_SEED=n repeats one that failed. */
static inline struct rng rng_start(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20240229;
    print_message("seed %llu\n", (unsigned long long)seed);
    return (struct rng){seed ? seed : 1};
}

static inline uint64_t rng_next(struct rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 0x2545f4914f6cdd1du;
}

static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
    return (rng_next(rng) >> 11) % n;
}

#define TEST_THREADS 4

struct thread_start {
    pthread_barrier_t *barrier;
    void (*fn)(int index);
    int index;
};

static inline void *thread_main(void *arg)
{
    struct thread_start *start = arg;
    pthread_barrier_wait(start->barrier);
    start->fn(start->index);
    return NULL;
}

/* Runs fn(0) .. fn(TEST_THREADS - 1) in threads that start together. Asserts inside must not be
 * cmocka's: those jump, and may not leave a thread. */
static inline void run_threads(void (*fn)(int index))
{
    pthread_t threads[TEST_THREADS];
    struct thread_start starts[TEST_THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, TEST_THREADS);
    for (int i = 0; i < TEST_THREADS; i++) {
        starts[i] = (struct thread_start){&barrier, fn, i};
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &starts[i]), 0);
    }
    for (int i = 0; i < TEST_THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

/* For threads other than cmocka's: stops the program. */
#define require(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, blyi_fail_text());       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Runs fn in a child with stderr caught in buf; returns the child's wait status. */
static inline int run_child(void (*fn)(void), char *buf, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka may have put a handler there */
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], buf + used, size - 1 - used)) > 0)
        used += (size_t)n;
    buf[used] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* fn must abort, and say all of `words` (two at most). */
static inline void expect_death(void (*fn)(void), const char *word, const char *other)
{
    char text[8192];
    int status = run_child(fn, text, sizeof(text));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(text, word) ||
        (other && !strstr(text, other)))
        fail_msg("status %d, stderr: %s", status, text);
}

#endif
