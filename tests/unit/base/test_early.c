/* SPDX-License-Identifier: Apache-2.0 */
/* What is done as the library is loaded, and may be done again at any time. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/own_fd.h"
#include "base_test.h"

static int open_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void room_for_descriptors_leaves_none_open(void **state)
{
    (void)state;
    int before = open_descriptors();
    blyi_own_fd_make_room();
    assert_int_equal(open_descriptors(), before);
}

static void a_descriptor_taken_is_a_high_one_and_still_the_file(void **state)
{
    (void)state;
    struct stat null, st;
    assert_int_equal(stat("/dev/null", &null), 0);
    int low = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct blyi_own_fd own = blyi_own_fd_take(low);
    int fd = blyi_own_fd_get(&own);
    assert_true(fd >= 400);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_ino, null.st_ino);
    assert_int_equal(fcntl(low, F_GETFD), -1);
    /* The program closes it, and opens another file under its number. */
    assert_int_equal(dup2(STDIN_FILENO, fd), fd);
    struct blyi_own_fd gone = own;
    bool same = fstat(STDIN_FILENO, &st) == 0 && st.st_ino == null.st_ino;
    assert_int_equal(blyi_own_fd_get(&gone), same ? fd : -1);
    close(fd);
    assert_int_equal(blyi_own_fd_get(&own), -1);
}

/* A store of ours in another thread that runs is seen behind the barrier, or that thread sees what
 * we stored before it: with plain stores and no instruction that orders them on either side. */
struct pair {
    int mine, theirs, seen_mine;
    pthread_barrier_t both;
};

static void *looks(void *arg)
{
    struct pair *pair = arg;
    pthread_barrier_wait(&pair->both);
    __atomic_store_n(&pair->theirs, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pair->seen_mine = __atomic_load_n(&pair->mine, __ATOMIC_RELAXED);
    return NULL;
}

static void one_of_two_sees_the_other(void **state)
{
    (void)state;
    assert_true(blyi_barrier_ready());
    for (int round = 0; round < 2000; round++) {
        struct pair pair = {.mine = 0};
        pthread_t thread;
        assert_int_equal(pthread_barrier_init(&pair.both, NULL, 2), 0);
        assert_int_equal(pthread_create(&thread, NULL, looks, &pair), 0);
        pthread_barrier_wait(&pair.both);
        __atomic_store_n(&pair.mine, 1, __ATOMIC_RELAXED);
        assert_true(blyi_barrier_all());
        int seen_theirs = __atomic_load_n(&pair.theirs, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_barrier_destroy(&pair.both);
        assert_true(pair.seen_mine || seen_theirs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_for_descriptors_leaves_none_open),
        cmocka_unit_test(a_descriptor_taken_is_a_high_one_and_still_the_file),
        cmocka_unit_test(one_of_two_sees_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
