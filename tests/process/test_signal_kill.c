/* SPDX-License-Identifier: Apache-2.0 */
/* Death at every step of a life with shared events and notifies. */
#include "signal_test.h"
#include "base/sanitizer.h"

/* Where all takes ten times as long, every fifth step must do. */
#define STRIDE (BLYI_WITH_TSAN ? 5 : 1)

static int fatal_step;

/* A life with shared events and notifies, whose nth store into the ledger is its last. */
static void lives_and_dies(struct peer *me)
{
    char step[16];
    snprintf(step, sizeof step, "%d", fatal_step);
    setenv("BELAY_FAIL_LEDGER", step, 1);
    bind_card(0);
    aclrtStream stream = new_stream(), other = new_stream();
    aclrtEvent mine = ipc_event(), theirs = open_event();
    aclrtNotify notify = new_notify(), imported = NULL;
    char key[65];
    OK(aclrtNotifyGetExportKey(notify, key, 65, 2));
    OK(aclrtNotifyImportByKey(&imported, shared->key, 0));
    OK(aclrtRecordEvent(mine, stream));
    OK(aclrtRecordEvent(theirs, stream));
    OK(aclrtRecordEvent(theirs, other));
    OK(aclrtRecordNotify(imported, other));
    OK(aclrtStreamWaitEvent(other, mine));
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(mine));
    OK(aclrtDestroyEvent(theirs));
    OK(aclrtDestroyNotify(imported));
    quit();
    peer_done(me);
}

MANY_TEST(death_at_any_step_leaves_it_whole)
{
    share();
    fatal_step = 1;
    alarm(TEST_SECONDS); /* some eighty lives */
    for (bool dies = true; dies; fatal_step += STRIDE) {
        pid_t pid = fork(); /* the survivor */
        CHECK(pid >= 0);
        if (pid == 0) {
            struct peer peer = peer_start(exports);
            CHECK(peer_answers(&peer));
            aclrtIpcEventHandle handle = shared->handle;
            struct peer second = peer_start(exports_notify);
            CHECK(peer_answers(&second));
            struct peer victim = peer_start(lives_and_dies);
            CHECK(memcmp(&handle, &shared->handle, sizeof handle) == 0);
            bool lived = peer_answers(&victim);
            CHECK_EQ(waitpid(victim.pid, NULL, 0), victim.pid);
            bind_card(0);
            aclrtEvent event = open_event();
            aclrtStream stream = new_stream();
            OK(aclrtStreamWaitEvent(stream, event));
            aclError code = aclrtSynchronizeStreamWithTimeout(stream, 1000 * TEST_SECONDS);
            CHECK(code == ACL_SUCCESS || code == ACL_ERROR_RT_IPC_ERROR);
            OK(aclrtRecordEvent(event, stream));
            OK(aclrtSynchronizeStreamWithTimeout(stream, 1000 * TEST_SECONDS));
            OK(aclrtDestroyEvent(event));
            peer_end(&second); /* it has the pipes of the first as well */
            peer_end(&peer);
            (void)free_bytes(ACL_HBM_MEM); /* who died is cleared away */
            all_signals_are_free();
            quit();
            _exit(lived ? 42 : 0);
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42));
        dies = WEXITSTATUS(status) == 0;
    }
    CHECK(fatal_step > 60); /* the steps were there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(death_at_any_step_leaves_it_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
