/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_snapshot.c - a process that stands still, is backed up and restored (npu/snapshot.h), and who
 * hears of its stages.
 *
 * A callback runs in the thread of the call, for each device that the process uses, by rising id;
 * those of one stage in the order in which they were registered. Lock: rank FACE, the lists; no
 * callback runs under it.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/lock.h"
#include "face/acl/check.h"
#include "face/acl/model.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/snapshot.h"

#define CALLBACKS_MAX 64 /* of a stage */

struct callback {
    aclrtSnapShotCallBack fn;
    void *args;
};

static struct list {
    struct callback rows[CALLBACKS_MAX];
    size_t n;
} lists[BLYI_SNAPSHOT_STAGES];
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);

static const char *const stages[BLYI_SNAPSHOT_STAGES] = {
    "LOCK_PRE", "BACKUP_PRE", "BACKUP_POST", "RESTORE_PRE", "RESTORE_POST", "UNLOCK_POST"};

static bool is_used(int id)
{
    struct blyi_card *card = blyi_card_get(id);
    if (card == NULL)
        return false;
    blyi_card_lock(card);
    bool used = card->n_bound > 0;
    blyi_card_unlock(card);
    return used;
}

/* What refusals of each stage leave behind. */
static const char *consequence(enum blyi_snapshot_stage stage)
{
    switch (stage) {
    case BLYI_SNAPSHOT_LOCK_PRE:
        return "the process is RUNNING";
    case BLYI_SNAPSHOT_RESTORE_PRE:
        return "the process is BACKED_UP";
    case BLYI_SNAPSHOT_RESTORE_POST:
        return "the process is LOCKED, its memory is on the card again";
    case BLYI_SNAPSHOT_UNLOCK_POST:
        return "the process is RUNNING all the same";
    case BLYI_SNAPSHOT_BACKUP_PRE:
    case BLYI_SNAPSHOT_BACKUP_POST:
    case BLYI_SNAPSHOT_STAGES:
        break;
    }
    return "the process is LOCKED, its memory is on the card";
}

static bly_status tell(enum blyi_snapshot_stage stage)
{
    blyi_lock_take(&lock);
    struct list list = lists[stage];
    blyi_lock_drop(&lock);
    for (size_t i = 0; i < list.n; i++)
        for (int card = 0; card < BLYI_CARD_MAX; card++) {
            if (!is_used(card))
                continue;
            int user = blyi_visible_user(card);
            uint32_t answer = list.rows[i].fn(user, list.rows[i].args);
            if (answer != 0)
                return blyi_fail(BLY_E_CANCELLED,
                                 "callback %zu of stage %s returned %" PRIu32 " for device %d; %s",
                                 i + 1, stages[stage], answer, user, consequence(stage));
        }
    return BLY_OK;
}

static aclError check_call(enum blyi_acl_call call, int pid, const void *rest, const char *name)
{
    blyi_acl_enter();
    if (pid != (int)getpid())
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "pid %d is not this process's, %d: others cannot be stopped", pid,
                               (int)getpid());
    if (rest != NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is reserved, it must be NULL",
                               name);
    blyi_snapshot_listen(tell);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSnapShotProcessLock(int pid, void *reserve)
{
    aclError error = check_call(BLYI_ACL_CALL_aclrtSnapShotProcessLock, pid, reserve, "reserve");
    return error != ACL_SUCCESS ? error
                                : acl_result(aclrtSnapShotProcessLock, blyi_snapshot_lock());
}

aclError bly_acl_aclrtSnapShotProcessUnlock(int pid, void *reserve)
{
    aclError error = check_call(BLYI_ACL_CALL_aclrtSnapShotProcessUnlock, pid, reserve, "reserve");
    return error != ACL_SUCCESS ? error
                                : acl_result(aclrtSnapShotProcessUnlock, blyi_snapshot_unlock());
}

aclError bly_acl_aclrtSnapShotProcessBackup(int pid, aclrtSnapShotBackupArgs *args)
{
    aclError error = check_call(BLYI_ACL_CALL_aclrtSnapShotProcessBackup, pid, args, "args");
    return error != ACL_SUCCESS ? error
                                : acl_result(aclrtSnapShotProcessBackup, blyi_snapshot_backup());
}

aclError bly_acl_aclrtSnapShotProcessRestore(int pid, aclrtSnapShotRestoreArgs *args)
{
    aclError error = check_call(BLYI_ACL_CALL_aclrtSnapShotProcessRestore, pid, args, "args");
    return error != ACL_SUCCESS ? error
                                : acl_result(aclrtSnapShotProcessRestore, blyi_snapshot_restore());
}

/* ── Callbacks ────────────────────────────────────────────────────────────────────────────── */

static aclError check_callback(enum blyi_acl_call call, aclrtSnapShotStage stage,
                               aclrtSnapShotCallBack callback)
{
    const struct blyi_model *model;
    blyi_acl_enter();
    bly_status status = blyi_acl_model(&model);
    if (status == BLY_OK && model->snapshots == 0)
        status =
            blyi_fail(BLY_E_UNSUPPORTED, "model %s has no snapshots of processes", model->name);
    if (status != BLY_OK)
        return blyi_acl_fail(call, status);
    if ((int)stage < 0 || (int)stage >= BLYI_SNAPSHOT_STAGES)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "stage %d is not in 0 .. %d",
                               (int)stage, BLYI_SNAPSHOT_STAGES - 1);
    if (callback == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "callback is NULL");
    return ACL_SUCCESS;
}

static size_t place_of(const struct list *list, aclrtSnapShotCallBack callback)
{
    size_t i = 0;
    while (i < list->n && list->rows[i].fn != callback)
        i++;
    return i;
}

aclError bly_acl_aclrtSnapShotCallbackRegister(aclrtSnapShotStage stage,
                                               aclrtSnapShotCallBack callback, void *args)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSnapShotCallbackRegister;
    aclError error = check_callback(call, stage, callback);
    if (error != ACL_SUCCESS)
        return error;
    struct list *list = &lists[stage];
    blyi_lock_take(&lock);
    bool known = place_of(list, callback) < list->n, full = list->n == CALLBACKS_MAX;
    if (!known && !full)
        list->rows[list->n++] = (struct callback){callback, args};
    blyi_lock_drop(&lock);
    if (known)
        return blyi_acl_reject(call, ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
                               "the callback is registered for stage %s already", stages[stage]);
    if (full)
        return blyi_acl_reject(call, ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
                               "stage %s has %d callbacks, no more are kept", stages[stage],
                               CALLBACKS_MAX);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSnapShotCallbackUnregister(aclrtSnapShotStage stage,
                                                 aclrtSnapShotCallBack callback)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSnapShotCallbackUnregister;
    aclError error = check_callback(call, stage, callback);
    if (error != ACL_SUCCESS)
        return error;
    struct list *list = &lists[stage];
    blyi_lock_take(&lock);
    size_t at = place_of(list, callback);
    bool known = at < list->n;
    if (known) {
        list->n--;
        for (; at < list->n; at++)
            list->rows[at] = list->rows[at + 1];
    }
    blyi_lock_drop(&lock);
    if (!known)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "the callback is not registered for stage %s", stages[stage]);
    return ACL_SUCCESS;
}
