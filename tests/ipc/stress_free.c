/* SPDX-License-Identifier: Apache-2.0 */
/* Four processes make, export, import and free as fast as they can, nobody waiting for anybody, and
 * are killed at random times. What one imports is what another wrote; in the end everything is
 * back. TEST_SEED repeats the choices, not the times. */
#include "peer.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "face/acl/acl_symbols.h"

#define PEERS  4
#define NOTES  64
#define DEATHS 60

static struct peer witness;
#define THREADS 2 /* of each process */

static _Thread_local uint64_t seed;
/* Each thread takes keys of its own: a close ends the oldest import, whoever made it. */
static _Thread_local uint32_t thread;

static uint32_t pick(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Keys that somebody has published; a torn one is no key, or not that one. */
static struct note {
    uint32_t turn; /* odd while it is written */
    int byte;
    uint64_t size;
    char key[65];
} * board;
static uint64_t *n_imports; /* behind the board: something has gone on */

static void publish(const struct note *note)
{
    struct note *to = &board[pick(NOTES)];
    uint32_t turn = __atomic_load_n(&to->turn, __ATOMIC_RELAXED);
    if ((turn & 1) || !__atomic_compare_exchange_n(&to->turn, &turn, turn + 1, false,
                                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return; /* another one writes there, or died at it */
    memcpy(&to->byte, &note->byte, sizeof *note - offsetof(struct note, byte));
    __atomic_store_n(&to->turn, turn + 2, __ATOMIC_RELEASE);
}

static bool take_note(struct note *out)
{
    const struct note *from = &board[pick(NOTES / THREADS) * THREADS + thread];
    uint32_t turn = __atomic_load_n(&from->turn, __ATOMIC_ACQUIRE);
    memcpy(out, from, sizeof *out);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !(turn & 1) && turn != 0 && __atomic_load_n(&from->turn, __ATOMIC_RELAXED) == turn;
}

static void expect_all(const char *at, const struct note *note, char *host)
{
    if (bly_acl_aclrtMemcpy(host, note->size, at, note->size, ACL_MEMCPY_DEVICE_TO_HOST) != 0)
        _exit(2);
    for (uint64_t i = 0; i < note->size; i++)
        if (host[i] != (char)note->byte)
            _exit(3);
}

static void import_and_look(char *host)
{
    struct note note;
    void *at = NULL;
    if (!take_note(&note))
        return;
    int error = bly_acl_aclrtIpcMemImportByKey(&at, note.key, 0);
    if (error != 0) {
        if (error != 107000) /* freed, closed, its maker dead, our own */
            _exit(4);
        return;
    }
    __atomic_fetch_add(n_imports, 1, __ATOMIC_RELAXED);
    expect_all(at, &note, host);
    if (pick(2))
        expect_all(at, &note, host);
    if (bly_acl_aclrtIpcMemClose(note.key) != 0)
        _exit(5);
}

/* A process makes, exports and frees, and looks into what others exported, until it is killed. */
static void run_freely(uint64_t own_seed)
{
    enum { OWN = 6 };
    void *blocks[OWN] = {0};
    char *host = malloc(3 * MIB);
    seed = own_seed;
    if (!host || bly_acl_aclrtSetDevice(0) != 0)
        _exit(6);
    for (;;) {
        uint32_t i = pick(OWN);
        if (pick(3) != 0) {
            import_and_look(host);
            continue;
        }
        if (blocks[i]) {
            if (bly_acl_aclrtFree(blocks[i]) != 0)
                _exit(7);
            blocks[i] = NULL;
            continue;
        }
        static const uint64_t sizes[] = {2 * MIB, 2 * MIB + 20 * KIB, 40 * KIB, 4 * KIB};
        struct note note = {.size = sizes[pick(4)] - 32, .byte = (int)pick(100) + 1};
        if (bly_acl_aclrtMalloc(&blocks[i], note.size,
                                pick(2) ? ACL_MEM_MALLOC_HUGE_FIRST : ACL_MEM_MALLOC_NORMAL_ONLY) !=
                0 ||
            bly_acl_aclrtMemset(blocks[i], note.size, note.byte, note.size) != 0 ||
            bly_acl_aclrtIpcMemGetExportKey(blocks[i], note.size, note.key, sizeof note.key, 1) !=
                0)
            _exit(8);
        publish(&note);
        if (pick(8) == 0 && bly_acl_aclrtIpcMemClose(note.key) != 0)
            _exit(9);
    }
}

static void *run_thread(void *arg)
{
    thread = 1;
    run_freely(*(const uint64_t *)arg);
    return NULL;
}

static pid_t start_freely(void)
{
    uint64_t own_seed = seed + pick(1u << 30);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGABRT, SIG_DFL);
    uint64_t other_seed = own_seed * 31;
    pthread_t other;
    if (bly_acl_aclInit(NULL) != 0 || pthread_create(&other, NULL, run_thread, &other_seed) != 0)
        _exit(10);
    run_freely(own_seed);
    _exit(0);
}

static void end_freely(pid_t pid)
{
    int status = 0;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        fail_msg("a process saw what it should not: %d", WEXITSTATUS(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* However slow the machine is: they have come to share something before the next one dies. */
static void until_imported(uint64_t n)
{
    while (__atomic_load_n(n_imports, __ATOMIC_RELAXED) < n)
        usleep(100);
}

static void all_at_once(void **state)
{
    (void)state;
    pid_t pids[PEERS];
    const char *text = getenv("TEST_SEED");
    seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%" PRIu64 "\n", seed);
    peers_begin();
    board = mmap(NULL, (NOTES + 1) * sizeof *board, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    n_imports = (uint64_t *)(void *)&board[NOTES];
    peer_start(&witness);
    DO(&witness, INIT);
    uint64_t f0 = peer_free(&witness);
    for (int i = 0; i < PEERS; i++)
        pids[i] = start_freely();
    for (uint32_t n = 0; n < DEATHS; n++) {
        int i = (int)pick(PEERS);
        until_imported(n + 1);
        usleep(pick(60000)); /* whatever they are at then */
        end_freely(pids[i]);
        pids[i] = start_freely();
        DO(&witness, REAP);
    }
    for (int i = 0; i < PEERS; i++)
        end_freely(pids[i]);
    DO(&witness, REAP);
    assert_int_equal(DO(&witness, AUDIT)->a, 1);
    assert_int_equal(DO(&witness, LIST)->a, 0);
    assert_int_equal(peer_free(&witness), f0);
    print_message("imports: %" PRIu64 "\n", *n_imports);
    peer_leave(&witness);
    munmap(board, (NOTES + 1) * sizeof *board);
    peers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
