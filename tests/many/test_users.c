/* SPDX-License-Identifier: Apache-2.0
 *
 * test_users.c - two users of one machine. Needs root, to become somebody else; without it the
 * tests are skipped and say so.
 */
#include "many_test.h"
#include "npu/ledger_layout.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#define SOMEBODY 65534

static void hold_card(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(32 * MIB);
    peer_done(me);
    peer_wait(me);
}

static void become_somebody(void)
{
    CHECK_EQ(setgroups(0, NULL), 0);
    CHECK_EQ(setgid(SOMEBODY), 0);
    CHECK_EQ(setuid(SOMEBODY), 0);
}

/* The descriptor of the card's memory in the peer, as its slot says. */
static int memory_of(pid_t pid)
{
    char path[128];
    struct blyi_slot slot;
    snprintf(path, sizeof path, "%s/ledger", state_folder);
    int fd = open(path, O_RDONLY);
    CHECK_EQ(pread(fd, &slot, sizeof slot, BLYI_LEDGER_AT_SLOTS), sizeof slot);
    close(fd);
    CHECK_EQ(slot.pid, pid);
    return slot.cards[0].fd;
}

/* Neither the folder nor the memory opens for another user. */
MANY_TEST(another_user_is_kept_out)
{
    char path[64];
    struct peer a = peer_start(hold_card);
    peer_step(&a);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", a.pid, memory_of(a.pid));
    pid_t pid = fork();
    if (pid == 0) {
        become_somebody();
        CHECK(open(path, O_RDWR) < 0 && errno == EACCES);
        OK(aclInit(NULL));
        CHECK(aclrtSetDevice(0) != 0);
        CHECK_MESSAGE("cannot be used: Permission denied");
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    peer_end(&a);
}

/* A folder that belongs to somebody else is refused, though root could use it. */
MANY_TEST(a_folder_of_another_user_is_refused)
{
    CHECK_EQ(chown(state_folder, SOMEBODY, SOMEBODY), 0);
    OK(aclInit(NULL));
    CHECK(aclrtSetDevice(0) != 0);
    CHECK_MESSAGE("belongs to another user");
}

/* Who takes our name in /dev/shm first gains nothing: the next name is used. */
MANY_TEST(a_name_taken_by_another_user_is_passed_over)
{
    char taken[64], next[64];
    struct stat st;
    if (access("/dev/shm", W_OK) != 0)
        return;
    snprintf(taken, sizeof taken, "/dev/shm/belay-%d", SOMEBODY);
    snprintf(next, sizeof next, "/dev/shm/belay-%d-1", SOMEBODY);
    bool was_there = mkdir(taken, 0700) != 0;
    if (was_there) /* of somebody's own, by an earlier run on this machine */
        return;
    pid_t pid = fork();
    if (pid == 0) {
        become_somebody();
        unsetenv("BELAY_STATE");
        unsetenv("XDG_RUNTIME_DIR");
        bind_card(0);
        CHECK_EQ(stat(next, &st), 0);
        CHECK_EQ(st.st_uid, SOMEBODY);
        CHECK_EQ(st.st_mode & 0777, 0700);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    rmdir(taken);
    snprintf(state_folder, sizeof state_folder, "%s", next); /* removed at the end */
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int skip_unless_root(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(another_user_is_kept_out, skip_unless_root),
        cmocka_unit_test_setup(a_folder_of_another_user_is_refused, skip_unless_root),
        cmocka_unit_test_setup(a_name_taken_by_another_user_is_passed_over, skip_unless_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
