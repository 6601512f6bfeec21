/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a process, as a program meets them: codes, callbacks, memory and its attributes. */
#include "acl_test.h"

#include <belay/snapshot.h>

#define ME ((int)getpid())

static uint32_t state_now(void)
{
    bly_snapshot info = {.struct_size = sizeof info};
    CHECK_EQ(bly_snapshot_info(&info), BLY_OK);
    return info.state;
}

TEST(arguments)
{
    aclrtSnapShotBackupArgs backup = {0};
    aclrtSnapShotRestoreArgs restore = {0};
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtSnapShotProcessLock(0, NULL), 100000);
    CHECK_MESSAGE("pid 0 is not this process's");
    CHECK_ACL(aclrtSnapShotProcessLock(ME + 1, NULL), 100000);
    CHECK_ACL(aclrtSnapShotProcessLock(ME, &backup), 100000);
    CHECK_MESSAGE("reserve is reserved, it must be NULL");
    CHECK_ACL(aclrtSnapShotProcessBackup(ME + 1, NULL), 100000);
    CHECK_ACL(aclrtSnapShotProcessBackup(ME, &backup), 100000);
    CHECK_ACL(aclrtSnapShotProcessRestore(-1, NULL), 100000);
    CHECK_ACL(aclrtSnapShotProcessRestore(ME, &restore), 100000);
    CHECK_ACL(aclrtSnapShotProcessUnlock(1, NULL), 100000);
    CHECK_ACL(aclrtSnapShotProcessUnlock(ME, &restore), 100000);
    CHECK_EQ(state_now(), BLY_SNAPSHOT_RUNNING);
}

TEST(states)
{
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtSnapShotProcessBackup(ME, NULL), 507908);
    CHECK_MESSAGE("the process is RUNNING, not LOCKED");
    CHECK_ACL(aclrtSnapShotProcessRestore(ME, NULL), 507909);
    CHECK_ACL(aclrtSnapShotProcessUnlock(ME, NULL), 507907);
    OK(aclrtSnapShotProcessLock(ME, NULL));
    CHECK_ACL(aclrtSnapShotProcessLock(ME, NULL), 507906);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 507906);
    CHECK_ACL(aclrtSnapShotProcessRestore(ME, NULL), 507909);
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    CHECK_ACL(aclrtSnapShotProcessBackup(ME, NULL), 507908);
    CHECK_ACL(aclrtSnapShotProcessLock(ME, NULL), 507906);
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    CHECK_EQ(state_now(), BLY_SNAPSHOT_LOCKED);
    OK(aclrtSnapShotProcessBackup(ME, NULL)); /* again: the last one counts */
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    CHECK_EQ(state_now(), BLY_SNAPSHOT_RUNNING);
}

TEST(before_any_device)
{
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    CHECK_ACL(aclrtSetDevice(0), 507000);
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    OK(aclrtSetDevice(0)); /* the keeper's calls pass while LOCKED */
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
}

TEST(a_model_without_snapshots)
{
    setenv("BELAY_MODEL", "310P", 1);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtSnapShotProcessLock(ME, NULL), 207000);
    CHECK_MESSAGE("model 310P has no snapshots of processes");
    CHECK_ACL(aclrtSnapShotProcessUnlock(ME, NULL), 207000);
    CHECK_ACL(aclrtSnapShotProcessBackup(ME, NULL), 207000);
    CHECK_ACL(aclrtSnapShotProcessRestore(ME, NULL), 207000);
    CHECK_ACL(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, NULL, NULL), 207000);
    CHECK_ACL(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, NULL), 207000);
}

TEST(memory_and_what_is_known_of_it)
{
    enum { SIZE = 6 << 20 };
    static unsigned char in[SIZE], out[SIZE];
    char *card = NULL, *small = NULL;
    aclrtStream stream;
    aclrtPtrAttributes before, after;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    size_t all = free_bytes(ACL_HBM_MEM) + (16 * MIB);
    OK(aclrtMalloc((void **)&card, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&small, 100, HUGE_FIRST));
    for (size_t i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 7 + i / 4096);
    OK(aclrtMemcpy(card, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemset(small, 100, 3, 100));
    OK(aclrtPointerGetAttributes(card, &before));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), all); /* questions are answered */
    OK(aclrtPointerGetAttributes(card, &after));
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_ACL(aclrtMemcpy(out, SIZE, card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST), 507000);
    CHECK_MESSAGE("the card memory of this process is in host memory");
    CHECK_ACL(aclrtFree(card), 507000);
    CHECK_ACL(aclFinalize(), 507000);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    OK(aclrtMemcpy(out, SIZE, card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(in, out, SIZE) == 0);
    OK(aclrtMemcpy(out, SIZE, small, 100, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(out[0] == 3 && out[99] == 3);
    OK(aclrtFree(card));
    OK(aclrtFree(small));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), all - (16 * MIB));
}

/* ── Callbacks ────────────────────────────────────────────────────────────────────────────── */

static char heard[64];
static uint32_t answer;

static uint32_t hears(int32_t device, void *args)
{
    size_t n = strlen(heard);
    snprintf(heard + n, sizeof heard - n, "%s%d ", (const char *)args, device);
    return answer;
}

static uint32_t hears_too(int32_t device, void *args)
{
    return hears(device, args);
}

static const char *names[] = {"l", "b", "B", "r", "R", "u"};

TEST(callbacks_by_stage_order_and_device)
{
    setenv("BELAY_CARDS", "3", 1);
    OK(aclrtSetDevice(2));
    OK(aclrtSetDevice(0));
    for (int stage = 0; stage < 6; stage++)
        OK(aclrtSnapShotCallbackRegister((aclrtSnapShotStage)stage, hears, (void *)names[stage]));
    OK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, hears_too, "x"));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    CHECK(strcmp(heard, "l0 l2 x0 x2 ") == 0);
    heard[0] = '\0';
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    CHECK(strcmp(heard, "b0 b2 B0 B2 r0 r2 R0 R2 u0 u2 ") == 0);
    heard[0] = '\0';
    OK(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, hears));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    CHECK(strcmp(heard, "x0 x2 ") == 0);
    heard[0] = '\0';
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    OK(aclrtSnapShotProcessUnlock(ME, NULL)); /* no stage of restore */
    CHECK(strcmp(heard, "b0 b2 B0 B2 u0 u2 ") == 0);
}

TEST(callbacks_that_are_refused)
{
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtSnapShotCallbackRegister((aclrtSnapShotStage)6, hears, NULL), 107000);
    CHECK_ACL(aclrtSnapShotCallbackRegister((aclrtSnapShotStage)-1, hears, NULL), 107000);
    CHECK_ACL(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, NULL, NULL), 107000);
    CHECK_ACL(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, hears), 107000);
    CHECK_MESSAGE("the callback is not registered for stage LOCK_PRE");
    OK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, hears, "l"));
    CHECK_ACL(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, hears, "l"), 507913);
    CHECK_MESSAGE("registered for stage LOCK_PRE already");
    OK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_BACKUP_POST, hears, "B"));
    answer = 5;
    CHECK_ACL(aclrtSnapShotProcessLock(ME, NULL), 507912);
    CHECK_MESSAGE("callback 1 of stage LOCK_PRE returned 5 for device 0; the process is RUNNING");
    answer = 0;
    OK(aclrtSnapShotProcessLock(ME, NULL));
    answer = 1;
    CHECK_ACL(aclrtSnapShotProcessBackup(ME, NULL), 507912);
    CHECK_MESSAGE("stage BACKUP_POST returned 1 for device 0; the process is LOCKED");
    CHECK_EQ(state_now(), BLY_SNAPSHOT_LOCKED);
    answer = 0;
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    OK(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, hears));
    OK(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_BACKUP_POST, hears));
}

/* A callback may use the card before the backup, and finds it after the restore. */
static char *of_callback;

static uint32_t saves_more(int32_t device, void *args)
{
    (void)device, (void)args;
    return aclrtMalloc((void **)&of_callback, 4096, HUGE_FIRST) == 0 &&
                   aclrtMemset(of_callback, 4096, 0x5a, 4096) == 0
               ? 0
               : 1;
}

static uint32_t finds_it(int32_t device, void *args)
{
    char byte = 0;
    (void)device, (void)args;
    return aclrtMemcpy(&byte, 1, of_callback + 4095, 1, ACL_MEMCPY_DEVICE_TO_HOST) == 0 &&
                   byte == 0x5a
               ? 0
               : 1;
}

TEST(callbacks_may_use_the_card)
{
    OK(aclrtSetDevice(0));
    OK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_BACKUP_PRE, saves_more, NULL));
    OK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_RESTORE_POST, finds_it, NULL));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
}

/* The process ends in any state. */
TEST(ends_while_backed_up)
{
    void *block;
    setenv("BELAY_REPORT", "-", 1);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&block, MIB, HUGE_FIRST));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
}

TEST(finalise_while_locked_ends_the_lock)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclFinalize());
    CHECK_EQ(state_now(), BLY_SNAPSHOT_RUNNING);
}

/* The child of a fork has a runtime of its own state: none. */
TEST(a_forked_child_is_not_held)
{
    int status;
    OK(aclrtSetDevice(0));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        void *block;
        CHECK_ACL(aclrtMalloc(&block, 4096, HUGE_FIRST), 507899);
        CHECK_MESSAGE("process was forked");
        CHECK_ACL(aclrtSnapShotProcessUnlock(ME, NULL), 507899);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(states),
        cmocka_unit_test(before_any_device),
        cmocka_unit_test(a_model_without_snapshots),
        cmocka_unit_test(memory_and_what_is_known_of_it),
        cmocka_unit_test(callbacks_by_stage_order_and_device),
        cmocka_unit_test(callbacks_that_are_refused),
        cmocka_unit_test(callbacks_may_use_the_card),
        cmocka_unit_test(ends_while_backed_up),
        cmocka_unit_test(finalise_while_locked_ends_the_lock),
        cmocka_unit_test(a_forked_child_is_not_held),
    };
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
