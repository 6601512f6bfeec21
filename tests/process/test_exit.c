/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end in every unhappy order, and that fork. A watcher, who has the card open all
 * the time, sees that what they had is free again; nobody hangs or crashes. */
#include "../many/many_test.h"

#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>

#define BLOCK ((size_t)16 << 20)

/* Seen by all processes of a test. */
static struct shared {
    atomic_size_t free_bytes;
} * shared;

static void share(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
}

/* Says what is free each time it is asked. */
static void watches(struct peer *me)
{
    bind_card(0);
    for (;;) {
        atomic_store(&shared->free_bytes, free_bytes(ACL_HBM_MEM));
        peer_done(me);
        peer_wait(me);
    }
}

static size_t look(struct peer *watcher)
{
    peer_step(watcher);
    return atomic_load(&shared->free_bytes);
}

/* ── Ends ─────────────────────────────────────────────────────────────────────────────────── */

static aclrtStream streams[3];
static char *memory, *pinned;
static struct hold never; /* let go only by those who wait for their work */

/* Memory, and streams that will be busy for long: copies, a held one, and one that waits for it. */
static void get_busy(void)
{
    aclrtEvent event = NULL;
    bind_card(0);
    memory = device_alloc(BLOCK);
    OK(aclrtMallocHost((void **)&pinned, BLOCK));
    for (int i = 0; i < 3; i++)
        OK(aclrtCreateStream(&streams[i]));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    hold_stream(&never, streams[1]);
    OK(aclrtRecordEvent(event, streams[1]));
    OK(aclrtStreamWaitEvent(streams[2], event));
    for (int i = 0; i < 50; i++)
        OK(aclrtMemcpyAsync(memory, BLOCK, pinned, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE, streams[0]));
}

static void exit_7(void *arg)
{
    (void)arg;
    exit(7);
}

static void *thread_exit_7(void *arg)
{
    exit_7(arg);
    return NULL;
}

static void *thread_ends_later(void *arg)
{
    OK(aclrtSetDevice(0));
    OK(aclrtSynchronizeStream(streams[0]));
    (void)arg;
    quick_exit(7); /* no search for leaks: what cmocka had on the stack of main went with it */
}

static void *reports(void *arg)
{
    (void)arg;
    OK(aclrtSetDevice(0));
    for (;;)
        (void)aclrtProcessReport(1000);
}

static void returns(void)
{
    get_busy();
    exit(7);
}

static void exits_in_host_func(void)
{
    bind_card(0);
    memory = device_alloc(BLOCK);
    OK(aclrtCreateStream(&streams[0]));
    OK(aclrtLaunchHostFunc(streams[0], exit_7, NULL));
    (void)aclrtSynchronizeStream(streams[0]);
    pause();
}

static void exits_in_report(void)
{
    pthread_t thread;
    get_busy();
    CHECK_EQ(pthread_create(&thread, NULL, reports, NULL), 0);
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    OK(aclrtSubscribeReport((uint64_t)thread, stream));
    OK(aclrtLaunchCallback(exit_7, NULL, ACL_CALLBACK_BLOCK, stream));
    (void)aclrtSynchronizeStream(stream);
    pause();
}

static void exits_beside_a_wait(void)
{
    pthread_t thread;
    get_busy();
    CHECK_EQ(pthread_create(&thread, NULL, thread_exit_7, NULL), 0);
    (void)aclrtSynchronizeStream(streams[2]);
    pause();
}

static void leaves_main_to_a_thread(void)
{
    pthread_t thread;
    get_busy();
    CHECK_EQ(pthread_create(&thread, NULL, thread_ends_later, NULL), 0);
    pthread_exit(NULL);
}

static void exits_at_once(void)
{
    get_busy();
    _exit(7);
}

static void exits_quickly(void)
{
    get_busy();
    quick_exit(7);
}

static void is_terminated(void)
{
    get_busy();
    raise(SIGTERM);
}

static void finalises_twice_and_exits(void)
{
    get_busy();
    let_go(&never);
    OK(aclFinalize());
    CHECK_ACL(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    exit(7);
}

static void finalise_at_exit(void)
{
    let_go(&never);
    (void)aclrtDestroyStreamForce(streams[1]);
    (void)aclrtResetDeviceForce(0);
    (void)aclFinalize();
    _exit(7);
}

static void finalises_in_an_exit_handler(void)
{
    get_busy();
    CHECK_EQ(atexit(finalise_at_exit), 0);
    exit(1);
}

static void allocates_in_an_exit_handler(void)
{
    void *more = NULL;
    CHECK_EQ(aclrtMalloc(&more, BLOCK, HUGE_FIRST), 0);
    _exit(7);
}

static void works_in_an_exit_handler(void)
{
    get_busy();
    CHECK_EQ(atexit(allocates_in_an_exit_handler), 0);
    exit(1);
}

static const struct ending {
    const char *name;
    void (*body)(void);
    int exit_status, signal;
} endings[] = {
    {"returns", returns, 7, 0},
    {"exit in a host function", exits_in_host_func, 7, 0},
    {"exit in a callback", exits_in_report, 7, 0},
    {"exit in a thread beside a wait", exits_beside_a_wait, 7, 0},
    {"pthread_exit of main", leaves_main_to_a_thread, 7, 0},
    {"_exit", exits_at_once, 7, 0},
    {"quick_exit", exits_quickly, 7, 0},
    {"SIGTERM", is_terminated, 0, SIGTERM},
    {"finalise twice", finalises_twice_and_exits, 7, 0},
    {"finalise in an exit handler", finalises_in_an_exit_handler, 7, 0},
    {"malloc in an exit handler", works_in_an_exit_handler, 7, 0},
    {"abort", abort, 0, SIGABRT},
};

static void ends_as(const struct ending *ending)
{
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(TEST_SECONDS);
        ending->body();
        _exit(99);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    bool right = ending->signal != 0
                     ? WIFSIGNALED(status) && WTERMSIG(status) == ending->signal
                     : WIFEXITED(status) && WEXITSTATUS(status) == ending->exit_status;
    if (!right)
        fprintf(stderr, "%s: status %#x\n", ending->name, (unsigned)status);
    CHECK(right);
}

MANY_TEST(any_end_leaves_the_card_as_it_was)
{
    share();
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer watcher = peer_start(watches);
    CHECK(peer_answers(&watcher));
    size_t before = look(&watcher);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        ends_as(&endings[i]);
        size_t after = look(&watcher);
        if (after != before)
            fprintf(stderr, "%s\n", endings[i].name);
        CHECK_EQ(after, before);
    }
    peer_end(&watcher);
}

/* A program that opened the library itself, and closes it while its streams run. */
MANY_TEST(a_library_that_is_closed)
{
    share();
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer watcher = peer_start(watches);
    CHECK(peer_answers(&watcher));
    size_t before = look(&watcher);
    for (int how = 0; how < 3; how++) {
        char mode[2] = {(char)('0' + how), '\0'};
        char *const arguments[] = {(char *)CLOSER, (char *)LIBRARY, mode, NULL};
        extern char **environ;
        pid_t pid;
        int status;
        CHECK_EQ(posix_spawn(&pid, CLOSER, NULL, NULL, arguments, environ), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(look(&watcher), before);
    }
    peer_end(&watcher);
}

/* ── Forks (O-10) ─────────────────────────────────────────────────────────────────────────── */

static int count_reports(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    CHECK(dir != NULL);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        n += strstr(entry->d_name, ".txt") != NULL;
    closedir(dir);
    return n;
}

/* In the child; the exit status, or never. */
static int is_told(const char *parent)
{
    void *block = NULL;
    if (aclrtMalloc(&block, BLOCK, HUGE_FIRST) == ACL_SUCCESS || block != NULL)
        return 1;
    const char *text = aclGetRecentErrMsg();
    return text == NULL || strstr(text, parent) == NULL ||
           strstr(text, "exec or spawn instead") == NULL;
}

static int wait_exit(pid_t pid)
{
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void child_of_exec(void)
{
    bind_card(0);
    (void)device_alloc(8 * MIB);
    CHECK_EQ(write(1, "d", 1), 1);
    char byte;
    (void)!read(0, &byte, 1);
    exit(0);
}

MANY_TEST(children_of_a_fork)
{
    char report[96], parent[96];
    struct hold hold;
    aclrtStream stream = NULL;
    char *p, *host;
    snprintf(report, sizeof report, "%s/%%p.txt", state_folder);
    setenv("BELAY_REPORT", report, 1);
    setenv("BELAY_HBM", "1GiB", 1);
    bind_card(0);
    p = device_alloc(BLOCK);
    OK(aclrtMallocHost((void **)&host, BLOCK));
    memset(host, 0x5a, BLOCK);
    OK(aclrtCreateStream(&stream));
    size_t before = free_bytes(ACL_HBM_MEM);
    hold_stream(&hold, stream);
    OK(aclrtMemcpyAsync(p, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    snprintf(parent, sizeof parent, "process was forked after aclInit in parent %d", (int)getpid());
    fflush(NULL);
    for (int child = 1; child <= 3; child++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(TEST_SECONDS);
            if (child == 1)
                _exit(is_told(parent));
            if (child == 3)
                _exit(0);
            int code = aclrtFree(p) == ACL_SUCCESS;
            exit(code); /* with exit handlers and destructors */
        }
        CHECK_EQ(wait_exit(pid), 0);
        CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    }
    CHECK_EQ(count_reports(state_folder), 0);
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    pid_t fourth = fork();
    if (fourth == 0) {
        dup2(to[0], 0), dup2(from[1], 1);
        close(to[1]), close(from[0]);
        execl("/proc/self/exe", "test_exit", "child", (char *)NULL);
        _exit(98);
    }
    close(to[0]), close(from[1]);
    char byte;
    CHECK_EQ(read(from[0], &byte, 1), 1);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - 8 * MIB - OVERHEAD);
    close(to[1]);
    CHECK_EQ(wait_exit(fourth), 0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    CHECK_EQ(count_reports(state_folder), 1); /* its own */
    let_go(&hold);
    OK(aclrtSynchronizeStream(stream));
    memset(host, 0, BLOCK);
    OK(aclrtMemcpy(host, BLOCK, p, BLOCK, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(host[0] == 0x5a && memcmp(host, host + 1, BLOCK - 1) == 0);
    OK(aclrtFree(p));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before + BLOCK);
    OK(aclFinalize());
}

/* Forked before the parent began; both begin, end, and begin again. */
static void begins_again(struct peer *me)
{
    for (int i = 0; i < 3; i++) {
        peer_wait(me);
        bind_card(0);
        char *block = device_alloc(8 * MIB);
        OK(aclrtMemset(block, 8 * MIB, i + 1, 8 * MIB));
        peer_done(me);
        peer_wait(me);
        char first = 0;
        OK(aclrtMemcpy(&first, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(first, i + 1);
        OK(aclrtResetDevice(0));
        OK(aclFinalize());
        peer_done(me);
    }
    peer_wait(me);
}

MANY_TEST(both_sides_of_an_early_fork_begin)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer child = peer_start(begins_again);
    for (int i = 0; i < 3; i++) {
        bind_card(0);
        char *block = device_alloc(BLOCK);
        OK(aclrtMemset(block, BLOCK, 0x70 + i, BLOCK));
        size_t before = free_bytes(ACL_HBM_MEM);
        peer_step(&child);
        CHECK_EQ(free_bytes(ACL_HBM_MEM), before - 8 * MIB - OVERHEAD);
        peer_step(&child);
        CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
        char last = 0;
        OK(aclrtMemcpy(&last, 1, block + BLOCK - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(last, 0x70 + i);
        OK(aclrtResetDevice(0));
        OK(aclFinalize());
    }
    peer_end(&child);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        child_of_exec();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_end_leaves_the_card_as_it_was),
        cmocka_unit_test(a_library_that_is_closed),
        cmocka_unit_test(children_of_a_fork),
        cmocka_unit_test(both_sides_of_an_early_fork_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
