/* SPDX-License-Identifier: Apache-2.0
 *
 * test_descriptors.c - programs that close every descriptor, open files of their own under the
 * numbers, or become another program: no file of theirs is touched, and nobody waits for them.
 */
#include "many_test.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *self = "/proc/self/exe";

static void hold_32(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(32 * MIB);
    peer_done(me);
    peer_wait(me);
}

/* ── exec ─────────────────────────────────────────────────────────────────────────────────── */

/* It goes on as a program that knows nothing of cards, and that ends when its parent does. */
static void becomes_another(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(64 * MIB);
    dup2(me->in, 0);
    dup2(me->out, 1);
    execl(self, "test_descriptors", "waits", (char *)NULL);
}

static void waits(void)
{
    char byte = 'd';
    CHECK_EQ(write(1, &byte, 1), 1);
    (void)!read(0, &byte, 1);
    exit(0);
}

MANY_TEST(exec_ends_what_a_process_had)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer keeper = peer_start(hold_32), a = peer_start(becomes_another);
    peer_step(&keeper);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 2 * OVERHEAD - 32 * MIB);
    void *all = device_alloc(256 * MIB - 2 * OVERHEAD - 32 * MIB);
    OK(aclrtMemset(all, 64 * MIB, 1, 64 * MIB));
    peer_end(&a);
    peer_end(&keeper);
}

MANY_TEST(exec_of_the_last_process_on_a_card)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(becomes_another);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    peer_end(&a);
}

/* The same process number, and the same time at which it began: not the same life. */
static void begins_anew(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(64 * MIB);
    dup2(me->in, 0);
    dup2(me->out, 1);
    execl(self, "test_descriptors", "binds", (char *)NULL);
}

static void binds(void)
{
    char byte = 'd';
    bind_card(0);
    device_alloc(8 * MIB);
    CHECK_EQ(write(1, &byte, 1), 1);
    (void)!read(0, &byte, 1);
    exit(0);
}

MANY_TEST(exec_and_a_new_beginning)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer keeper = peer_start(hold_32), a = peer_start(begins_anew);
    peer_step(&keeper);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 3 * OVERHEAD - 40 * MIB);
    peer_end(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 2 * OVERHEAD - 32 * MIB);
    peer_end(&keeper);
}

MANY_TEST(exec_and_a_new_beginning_alone)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(begins_anew);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 2 * OVERHEAD - 8 * MIB);
    peer_end(&a);
}

/* Who comes while the last one on the card ends finds it ended, or joins it; it never fails. */
static void comes(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    device_alloc(8 * MIB);
    peer_done(me);
    peer_wait(me);
}

static void meet_killed(void)
{
    struct peer old = peer_start(hold_32), next = peer_start(comes);
    int status;
    peer_step(&old);
    CHECK(kill(old.pid, SIGKILL) == 0);
    peer_step(&next);
    CHECK_EQ(waitpid(old.pid, &status, 0), old.pid);
    peer_end(&next);
}

static void meet_changed(void)
{
    struct peer old = peer_start(becomes_another), next = peer_start(comes);
    peer_tell(&old);
    peer_step(&next);
    CHECK(peer_answers(&old));
    peer_end(&next);
    peer_end(&old);
}

MANY_TEST(who_comes_while_the_last_one_ends)
{
    setenv("BELAY_HBM", "256MiB", 1);
    for (int round = 0; round < 60; round++)
        round % 2 ? meet_killed() : meet_changed();
}

/* ── Closed descriptors ───────────────────────────────────────────────────────────────────── */

static void close_all_but(const struct peer *me)
{
    for (int fd = 3; fd < 1024; fd++)
        if (me == NULL || (fd != me->in && fd != me->out))
            (void)syscall(SYS_close, fd); /* behind the back of TSan, which would call it a race */
}

static void dies_inside(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    peer_done(me);
    peer_wait(me);
    for (int i = 0; i < 100; i++)
        OK(aclrtFree(device_alloc(8 * MIB)));
    peer_done(me);
}

/* The one that is left cannot ask for locks any more, and must not wait for the dead. */
MANY_TEST(a_death_inside_the_lock_is_seen_without_descriptors)
{
    setenv("BELAY_HBM", "256MiB", 1);
    for (int at = 200; at < 216; at++) {
        char text[16];
        snprintf(text, sizeof text, "%d", at);
        setenv("BELAY_FAIL_LEDGER", text, 1);
        struct peer dead = peer_start(dies_inside);
        unsetenv("BELAY_FAIL_LEDGER");
        pid_t pid = fork();
        if (pid == 0) {
            struct peer pipes = {.in = dead.to, .out = dead.from};
            alarm(TEST_SECONDS);
            bind_card(0);
            device_alloc(8 * MIB);
            peer_step(&dead);
            close_all_but(&pipes);
            peer_tell(&dead);
            CHECK(!peer_answers(&dead));
            CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD - 8 * MIB);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(waitpid(dead.pid, &status, 0), dead.pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

#define FILES 8
#define PART  65536

static void write_files(int fds[FILES], off_t size)
{
    static char text[PART];
    memset(text, 'u', sizeof text);
    for (int i = 0; i < FILES; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/file-%d", state_folder, i);
        fds[i] = open(path, O_RDWR | O_CREAT, 0600);
        CHECK(fds[i] >= 0);
        for (off_t at = 0; at < size; at += PART)
            CHECK_EQ(write(fds[i], text, PART), PART);
    }
}

static void check_files(const int fds[FILES], off_t size)
{
    static char text[PART];
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        CHECK_EQ(fstat(fds[i], &st), 0); /* and nobody closed it */
        CHECK_EQ(st.st_size, size);
        CHECK_EQ(lseek(fds[i], 0, SEEK_SET), 0);
        for (off_t at = 0; at < size; at += PART) {
            CHECK_EQ(read(fds[i], text, PART), PART);
            CHECK(text[0] == 'u' && memcmp(text, text + 1, PART - 1) == 0);
        }
    }
}

/* Low numbers are those that a program gets at its next open(); high ones those of the library. */
static void reuse_descriptors(bool high)
{
    int fds[FILES];
    off_t size = 16 << 20;
    void *more = NULL;
    unsigned char byte = 0;
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_RESIDENT", "0", 1);
    bind_card(0);
    char *block = device_alloc(6 * MIB);
    OK(aclrtMemset(block, 6 * MIB, 0x3c, 6 * MIB));
    close_all_but(NULL);
    write_files(fds, size);
    for (int i = 0; high && i < FILES; i++)
        CHECK_EQ(dup2(fds[i], 400 + i), 400 + i);
    CHECK(aclrtMallocAlign32(&more, 40 * MIB, HUGE_FIRST) != 0);
    CHECK_MESSAGE("this program closed the descriptor of that memory");
    (void)aclrtMallocHost(&more, 8 * MIB);
    OK(aclrtMemcpy(&byte, 1, block + 3 * MIB, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(byte, 0x3c);
    OK(aclrtFree(block));
    aclrtEvent event = NULL;
    for (int i = 0; i < 100; i++) /* the ledger's file grows */
        (void)aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC);
    OK(aclrtResetDeviceForce(0));
    OK(aclFinalize());
    check_files(fds, size);
    for (int i = 0; high && i < FILES; i++)
        CHECK(fcntl(400 + i, F_GETFD) >= 0);
}

MANY_TEST(low_numbers_of_the_program_are_its_own)
{
    reuse_descriptors(false);
}

MANY_TEST(high_numbers_of_the_program_are_its_own)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur > 400 + FILES)
        reuse_descriptors(true);
}

/* Who would join a card of which nobody has a descriptor any more is told why it cannot. */
static void closes_all(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    close_all_but(me);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(a_card_without_descriptors_cannot_be_joined)
{
    char part[96];
    struct peer a = peer_start(closes_all);
    peer_step(&a);
    OK(aclInit(NULL));
    CHECK(aclrtSetDevice(0) != 0);
    snprintf(part, sizeof part, "card 0: its memory is in process %d (", a.pid);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL && strstr(text, part) && strstr(text, "has closed its descriptors"));
    peer_end(&a);
    OK(aclrtSetDevice(0));
}

/* ── /proc ────────────────────────────────────────────────────────────────────────────────── */

/* A pid space of its own with the /proc of another: its numbers are those of other processes there,
 * which live for ever. Needs root; else nothing is tested. */
MANY_TEST(numbers_of_another_proc_are_not_believed)
{
    setenv("BELAY_HBM", "256MiB", 1);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(0);
        pid_t first = fork(); /* 1, as the first process of the machine */
        if (first == 0) {
            bind_card(0);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(first, &status, 0), first);
        _exit(status != 0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "waits") == 0)
        waits();
    if (argc > 1 && strcmp(argv[1], "binds") == 0)
        binds();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_ends_what_a_process_had),
        cmocka_unit_test(exec_of_the_last_process_on_a_card),
        cmocka_unit_test(exec_and_a_new_beginning),
        cmocka_unit_test(exec_and_a_new_beginning_alone),
        cmocka_unit_test(who_comes_while_the_last_one_ends),
        cmocka_unit_test(a_death_inside_the_lock_is_seen_without_descriptors),
        cmocka_unit_test(low_numbers_of_the_program_are_its_own),
        cmocka_unit_test(high_numbers_of_the_program_are_its_own),
        cmocka_unit_test(a_card_without_descriptors_cannot_be_joined),
        cmocka_unit_test(numbers_of_another_proc_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
