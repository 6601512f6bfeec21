/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies between processes: order, keys, lists, other cards, death of the other side. */
#include "signal_test.h"

static void answers_notify(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtNotify notify = NULL;
    CHECK_ACL(aclrtNotifyImportByKey(&notify, shared->key, 0), ACL_ERROR_RT_NO_PERMISSION);
    CHECK_MESSAGE("is not among the 0 that may import");
    CHECK(notify == NULL);
    shared->pid = (int)getpid();
    peer_done(me);
    peer_wait(me);
    OK(aclrtNotifyImportByKey(&notify, shared->key, 0));
    char key[65];
    CHECK_ACL(aclrtNotifyGetExportKey(notify, key, sizeof key, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_MESSAGE("was imported");
    /* Its value was 1 before it was exported. */
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    peer_done(me);
    OK(aclrtSynchronizeStream(stream));
    peer_done(me); /* it had the record; the other side may wait for one now */
    peer_wait(me);
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyNotify(notify));
    peer_done(me);
}

MANY_TEST(a_notify_goes_there_and_back)
{
    share();
    struct peer peer = peer_start(answers_notify);
    bind_card(0);
    aclrtStream stream = new_stream(), other = new_stream();
    aclrtNotify notify = new_notify();
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_ACL(aclrtNotifyGetExportKey(notify, shared->key, 64, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_ACL(aclrtNotifyGetExportKey(notify, shared->key, 65, 1), ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtNotifyGetExportKey(notify, shared->key, 65, 0));
    CHECK_EQ(strlen(shared->key), 64);
    peer_step(&peer);
    OK(aclrtNotifySetImportPid(notify, &shared->pid, 1));
    peer_step(&peer);
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(peer_answers(&peer));
    OK(aclrtWaitAndResetNotify(notify, other, 0));
    peer_step(&peer);
    OK(aclrtSynchronizeStream(other));
    peer_end(&peer);
    quit();
}

/* Who waited before the export goes on waiting, and is found by records of both sides. */
static void records_once(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtNotify notify = NULL;
    OK(aclrtNotifyImportByKey(&notify, shared->key, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(who_waits_already_is_found)
{
    share();
    struct peer peer = peer_start(records_once);
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtNotify notify = new_notify();
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    OK(aclrtNotifyGetExportKey(notify, shared->key, 65,
                               ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    peer_step(&peer);
    OK(aclrtSynchronizeStream(stream));
    /* The other one dies: nobody is left. */
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    peer_kill(&peer);
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 1000 * TEST_SECONDS),
              ACL_ERROR_RT_IPC_ERROR);
    CHECK_MESSAGE("nobody is left who could record it");
    /* Its own records still work. */
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtSynchronizeStream(stream));
    quit();
}

MANY_TEST(no_key_can_be_forged)
{
    share();
    struct peer peer = peer_start(exports_notify);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtNotify notify = NULL;
    char bad[80];
    for (size_t i = 0; i <= 64; i++)
        for (int c = 0; c < 4; c++) {
            strcpy(bad, shared->key);
            bad[i] = "0aZ\x7f"[c];
            if (i == 64)
                bad[65] = '\0';
            if (strcmp(bad, shared->key) != 0)
                CHECK_ACL(aclrtNotifyImportByKey(&notify, bad, 0), ACL_ERROR_RT_PARAM_INVALID);
        }
    for (size_t i = 0; i < 64; i++) {
        strcpy(bad, shared->key);
        bad[i] = '\0';
        CHECK_ACL(aclrtNotifyImportByKey(&notify, bad, 0), ACL_ERROR_RT_PARAM_INVALID);
    }
    CHECK(notify == NULL);
    OK(aclrtNotifyImportByKey(&notify, shared->key, 0));
    aclrtStream stream = new_stream();
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    peer_step(&peer); /* resets it, and lets go */
    OK(aclrtWaitAndResetNotify(notify, stream, 1));
    CHECK_ACL(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_ABORT);
    OK(aclrtDestroyNotify(notify));
    CHECK_ACL(aclrtNotifyImportByKey(&notify, shared->key, 0), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_MESSAGE("no notify has this key");
    peer_end(&peer);
    quit();
}

MANY_TEST(lists_have_an_end)
{
    bind_card(0);
    aclrtNotify notify = new_notify();
    int32_t pids[65] = {0};
    aclrtServerPid servers[2] = {{.sdid = 0, .pid = pids, .num = 40},
                                 {.sdid = 1, .pid = pids, .num = 24}};
    OK(aclrtNotifySetImportPidInterServer(notify, servers, 2));
    CHECK_ACL(aclrtNotifySetImportPid(notify, pids, 1), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_MESSAGE("above the limit of 64");
    CHECK_ACL(aclrtNotifySetImportPid(notify, pids, 0), ACL_ERROR_RT_PARAM_INVALID);
    servers[1].num = 25;
    CHECK_ACL(aclrtNotifySetImportPidInterServer(new_notify(), servers, 2),
              ACL_ERROR_RT_PARAM_INVALID);
    servers[1].pid = NULL;
    CHECK_ACL(aclrtNotifySetImportPidInterServer(new_notify(), servers, 2),
              ACL_ERROR_INVALID_PARAM);
    quit();
}

/* ── Other cards ──────────────────────────────────────────────────────────────────────────── */

static void exports_on_card_1(struct peer *me)
{
    bind_card(1);
    aclrtNotify notify = new_notify();
    aclrtEvent event = ipc_event();
    aclrtStream stream = new_stream();
    OK(aclrtNotifyGetExportKey(notify, shared->key, 65, 2));
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    OK(aclrtRecordEvent(event, stream));
    peer_done(me);
    peer_wait(me);
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtSynchronizeStream(stream));
    peer_done(me);
}

MANY_TEST(signals_cross_cards)
{
    share();
    setenv("BELAY_CARDS", "2", 1);
    struct peer peer = peer_start(exports_on_card_1);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtNotify notify = NULL;
    aclrtStream stream = new_stream();
    int32_t enabled = 7;
    OK(aclrtNotifyImportByKey(&notify, shared->key, 0));
    OK(aclrtDestroyNotify(notify));
    OK(aclrtDevicePeerAccessStatus(0, 1, &enabled));
    CHECK_EQ(enabled, 0);
    OK(aclrtNotifyImportByKey(&notify, shared->key, 2));
    OK(aclrtDevicePeerAccessStatus(0, 1, &enabled));
    CHECK_EQ(enabled, 1);
    OK(aclrtStreamWaitEvent(stream, open_event()));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeStream(stream));
    peer_step(&peer);
    peer_end(&peer);
    quit();
}

MANY_TEST(cards_apart_share_no_notify)
{
    share();
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_PEER", "off", 1);
    struct peer peer = peer_start(exports_on_card_1);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtNotify notify = NULL;
    for (uint64_t flags = 0; flags <= 2; flags += 2)
        CHECK_ACL(aclrtNotifyImportByKey(&notify, shared->key, flags),
                  ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK(notify == NULL);
    peer_kill(&peer);
    quit();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_notify_goes_there_and_back),
        cmocka_unit_test(who_waits_already_is_found),
        cmocka_unit_test(no_key_can_be_forged),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(signals_cross_cards),
        cmocka_unit_test(cards_apart_share_no_notify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
