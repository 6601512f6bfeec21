/* SPDX-License-Identifier: Apache-2.0
 *
 * test_snapshot.c - while one process is backed up, others have its memory; and it comes back.
 */
#include "many_test.h"

#include <belay/snapshot.h>
#include <jansson.h>

static size_t take_bytes = 160 * MIB;
static char seen[MIB];

static void lock_up(void)
{
    OK(aclrtSnapShotProcessLock((int)getpid(), NULL));
    OK(aclrtSnapShotProcessBackup((int)getpid(), NULL));
}

static uint32_t state_now(void)
{
    bly_snapshot info = {.struct_size = sizeof info};
    CHECK_EQ(bly_snapshot_info(&info), BLY_OK);
    return info.state;
}

static void check_content(const char *card, size_t size, char mark)
{
    for (size_t at = 0; at < size; at += MIB) {
        OK(aclrtMemcpy(seen, MIB, card + at, MIB, ACL_MEMCPY_DEVICE_TO_HOST));
        for (size_t i = 0; i < MIB; i += 509)
            CHECK_EQ(seen[i], mark);
    }
}

/* Steps: backed up; a restore that must fail; one that must not; unlocked. */
static void stands_still(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    char *card = device_alloc(take_bytes);
    OK(aclrtMemset(card, take_bytes, 7, take_bytes));
    lock_up();
    peer_done(me);
    peer_wait(me);
    for (int i = 0; i < 2; i++) {
        CHECK_ACL(aclrtSnapShotProcessRestore((int)getpid(), NULL), 507909);
        CHECK_MESSAGE("of a snapshot do not come back");
        CHECK_ACL(aclrtSnapShotProcessUnlock((int)getpid(), NULL), 507907);
        CHECK_MESSAGE("nothing is lost, the content is in host memory");
        CHECK_EQ(state_now(), BLY_SNAPSHOT_BACKED_UP);
    }
    peer_done(me);
    peer_wait(me);
    OK(aclrtSnapShotProcessRestore((int)getpid(), NULL));
    OK(aclrtSnapShotProcessUnlock((int)getpid(), NULL));
    check_content(card, take_bytes, 7);
    OK(aclrtFree(card));
    peer_done(me);
    peer_wait(me);
}

/* What `belay smi --json` says. */
static json_t *smi(void)
{
    json_error_t error;
    FILE *out = popen(BELAY_COMMAND " smi --json", "r");
    CHECK(out != NULL);
    json_t *root = json_loadf(out, 0, &error);
    CHECK(root != NULL);
    CHECK_EQ(pclose(out), 0);
    return root;
}

static long long of_card(const char *key)
{
    json_t *root = smi(), *card = json_array_get(json_object_get(root, "cards"), 0);
    long long value = json_integer_value(json_object_get(card, key));
    json_decref(root);
    return value;
}

static long long of_process(pid_t pid, const char *key)
{
    json_t *root = smi(), *process;
    size_t i;
    long long value = -1;
    json_array_foreach(json_object_get(root, "processes"), i, process)
    {
        json_t *card = json_array_get(json_object_get(process, "cards"), 0);
        if (json_integer_value(json_object_get(process, "pid")) == pid)
            value = json_integer_value(json_object_get(card, key));
    }
    json_decref(root);
    return value;
}

MANY_TEST(others_have_the_memory_meanwhile)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(stands_still);
    peer_step(&a);
    CHECK_EQ(of_process(a.pid, "live"), 0);
    CHECK_EQ(of_process(a.pid, "overhead"), 0);
    CHECK_EQ(of_process(a.pid, "backed_up"), 160 * MIB);
    CHECK_EQ(of_process(a.pid, "peak"), 160 * MIB);
    CHECK_EQ(of_card("free"), 256 * MIB);
    CHECK_EQ(of_card("live"), 0);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    void *block = device_alloc(224 * MIB);
    OK(aclrtMemset(block, 224 * MIB, 1, 224 * MIB));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 16 * MIB);
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 16 * MIB); /* what it took in vain is back */
    check_content(block, 224 * MIB, 1);
    OK(aclrtFree(block));
    block = device_alloc(64 * MIB); /* as much as it leaves: 256 - 64 - 16 = 160 + 16 */
    peer_step(&a);
    CHECK_EQ(of_process(a.pid, "backed_up"), 0);
    CHECK_EQ(of_process(a.pid, "overhead"), OVERHEAD);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - 64 * MIB - 2 * OVERHEAD);
    peer_end(&a);
}

MANY_TEST(who_dies_backed_up_leaves_nothing)
{
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(stands_still);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    peer_kill(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 256 * MIB - OVERHEAD);
    CHECK_EQ(of_card("processes"), 1);
    device_alloc(240 * MIB);
}

/* A cap counts what is on cards: 200 MiB for parent and child together. */
static void takes_of_the_cap(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    void *block = device_alloc(160 * MIB);
    peer_done(me);
    peer_wait(me);
    OK(aclrtFree(block));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(caps_count_what_is_on_cards)
{
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CAP", "200MiB", 1);
    struct peer child = peer_start(takes_of_the_cap);
    bind_card(0);
    void *block = device_alloc(160 * MIB);
    OK(aclrtMemset(block, 160 * MIB, 3, 160 * MIB));
    lock_up();
    peer_step(&child);
    CHECK_ACL(aclrtSnapShotProcessRestore((int)getpid(), NULL), 507909);
    CHECK_MESSAGE("BELAY_CAP is 209715200 B (200 MiB), used 184549376 B (176 MiB)");
    peer_step(&child);
    OK(aclrtSnapShotProcessRestore((int)getpid(), NULL));
    OK(aclrtSnapShotProcessUnlock((int)getpid(), NULL));
    check_content(block, 160 * MIB, 3);
    void *more = NULL;
    CHECK_ACL(aclrtMalloc(&more, 16 * MIB, HUGE_FIRST), 207001); /* 160 + 2 x 16 are booked again */
    peer_end(&child);
}

/* Frames that must lie in a row. */
static void has_contiguous(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    void *card = NULL;
    OK(aclrtMallocAlign32(&card, 24 * MIB, ACL_MEM_MALLOC_NORMAL_ONLY_P2P));
    OK(aclrtMemset(card, 24 * MIB, 5, 24 * MIB));
    lock_up();
    peer_done(me);
    peer_wait(me);
    CHECK_ACL(aclrtSnapShotProcessRestore((int)getpid(), NULL), 507909);
    CHECK_MESSAGE("of which 25165824 B (24 MiB) want contiguous frames");
    peer_done(me);
    peer_wait(me);
    OK(aclrtSnapShotProcessRestore((int)getpid(), NULL));
    check_content(card, 24 * MIB, 5);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(contiguous_memory_wants_a_row)
{
    enum { N = 40 };
    void *blocks[N];
    setenv("BELAY_HBM", "96MiB", 1);
    struct peer a = peer_start(has_contiguous);
    peer_step(&a);
    bind_card(0);
    for (int i = 0; i < N; i++)
        blocks[i] = device_alloc(2 * MIB);
    for (int i = 0; i < N; i += 2)
        OK(aclrtFree(blocks[i]));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 40 * MIB);
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 40 * MIB);
    for (int i = 1; i < N; i += 2)
        OK(aclrtFree(blocks[i]));
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 96 * MIB - 24 * MIB - 2 * OVERHEAD);
    peer_end(&a);
}

/* All cards or none. */
static void has_two_cards(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    void *a = device_alloc(32 * MIB);
    OK(aclrtMemset(a, 32 * MIB, 1, 32 * MIB));
    OK(aclrtSetDevice(1));
    void *b = device_alloc(64 * MIB);
    OK(aclrtMemset(b, 64 * MIB, 2, 64 * MIB));
    lock_up();
    peer_done(me);
    peer_wait(me);
    CHECK_ACL(aclrtSnapShotProcessRestore((int)getpid(), NULL), 507909);
    CHECK_MESSAGE("card 1: 83886080 B (80 MiB) of a snapshot do not come back: free 33554432 B");
    peer_done(me);
    peer_wait(me);
    OK(aclrtSnapShotProcessUnlock((int)getpid(), NULL));
    check_content(b, 64 * MIB, 2);
    OK(aclrtSetDevice(0));
    check_content(a, 32 * MIB, 1);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(all_cards_or_none)
{
    setenv("BELAY_HBM", "128MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    struct peer a = peer_start(has_two_cards);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 128 * MIB - OVERHEAD);
    OK(aclrtSetDevice(1));
    void *block = device_alloc(80 * MIB);
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 32 * MIB);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 128 * MIB - OVERHEAD);
    OK(aclrtFree(block));
    peer_step(&a);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), 128 * MIB - 32 * MIB - 2 * OVERHEAD);
    peer_end(&a);
}

/* `belay defrag` finds nothing to move there, and does not wait. */
MANY_TEST(defragmentation_from_outside)
{
    char line[512] = "";
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer a = peer_start(stands_still);
    peer_step(&a);
    FILE *out = popen(BELAY_COMMAND " defrag 0", "r");
    CHECK(out != NULL);
    CHECK(fgets(line, sizeof line, out) != NULL);
    CHECK_EQ(pclose(out), 0);
    CHECK(strstr(line, "256 MiB before, 256 MiB after; free 256 MiB") != NULL);
    peer_kill(&a);
}

/* Backs up and restores, and may be killed at any step of the ledger's changes. */
static void goes_through_all(void)
{
    void *block = NULL, *small = NULL, *tailed = NULL;
    bind_card(0);
    OK(aclrtMalloc(&block, 6 * MIB, HUGE_FIRST));
    OK(aclrtMalloc(&tailed, 2 * MIB + 64 * KIB, NORMAL_ONLY));
    OK(aclrtMalloc(&small, 4000, HUGE_FIRST));
    OK(aclrtMemset(block, 6 * MIB, 4, 6 * MIB));
    lock_up();
    OK(aclrtSnapShotProcessUnlock((int)getpid(), NULL));
    check_content(block, 6 * MIB, 4);
}

/* True: it came to its end. */
static bool dies_at(int step)
{
    char text[16];
    int status;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        snprintf(text, sizeof text, "%d", step);
        setenv("BELAY_FAIL_LEDGER", text, 1);
        goes_through_all();
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status);
}

static void stands_by(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    char *card = device_alloc(16 * MIB);
    OK(aclrtMemset(card, 16 * MIB, 9, 16 * MIB));
    peer_done(me);
    for (int i = 0;; i++) { /* every other time it is away itself while somebody dies */
        peer_wait(me);
        if (i % 2 == 0) {
            lock_up();
            CHECK_EQ(free_bytes(ACL_HBM_MEM), 128 * MIB);
        } else {
            OK(aclrtSnapShotProcessUnlock((int)getpid(), NULL));
            CHECK_EQ(free_bytes(ACL_HBM_MEM), 128 * MIB - 16 * MIB - OVERHEAD);
            check_content(card, 16 * MIB, 9);
        }
        peer_done(me);
    }
}

MANY_TEST(killed_at_every_step)
{
    int step = 0;
    bool ended = false;
    setenv("BELAY_HBM", "128MiB", 1);
    struct peer other = peer_start(stands_by);
    peer_step(&other);
    while (!ended) {
        ended = dies_at(++step);
        peer_step(&other);
    }
    CHECK(step > 60); /* 8 frames of overhead and 6 of memory, taken, given, and taken again */
    if (step % 2 != 0)
        peer_step(&other);
    printf("%d steps\n", step - 1);
    peer_end(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_have_the_memory_meanwhile),
        cmocka_unit_test(who_dies_backed_up_leaves_nothing),
        cmocka_unit_test(caps_count_what_is_on_cards),
        cmocka_unit_test(contiguous_memory_wants_a_row),
        cmocka_unit_test(all_cards_or_none),
        cmocka_unit_test(defragmentation_from_outside),
        cmocka_unit_test(killed_at_every_step),
    };
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
