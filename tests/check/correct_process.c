/* SPDX-License-Identifier: Apache-2.0
 *
 * correct_process.c - processes that share memory in good order, and what no process can see of
 * another.
 */
#include "process_case.h"

/* Both sides of a case; the partner exports. */
static char *export_block(void)
{
    char *block = card_block(2 * MIB);
    OK(aclrtMemset(block, 2 * MIB, 1, 2 * MIB));
    OK(aclrtIpcMemGetExportKey(block, 2 * MIB, board->key, KEY_SIZE,
                               ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    return block;
}

static char *import_block(void)
{
    void *block;
    OK(aclrtIpcMemImportByKey(&block, board->key, 0));
    return block;
}

static void close_import(void)
{
    OK(aclrtIpcMemClose(board->key));
}

/* ── The host makes the order ─────────────────────────────────────────────────────────────── */

static void writes_then_tells(struct partner *me)
{
    told(me);
    world_begin();
    char *block = export_block();
    set(block, 2 * MIB, w.a);
    wait_done(w.a);
    done(me);
    told(me);
    OK(aclrtMemcpy(w.pinned, 4096, block, 4096, D2H)); /* what the importer wrote */
    OK(aclrtFree(block));
    world_end();
}

static void host_order(void)
{
    struct partner partner = partner_start(writes_then_tells);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    get(w.pinned, block, 4096, w.a);
    set(block, 4096, w.a);
    wait_done(w.a);
    close_import();
    partner_end(&partner);
    world_end();
}

/* ── Events, notifies, words ──────────────────────────────────────────────────────────────── */

static void answers_event(struct partner *me)
{
    aclrtEvent event;
    told(me);
    world_begin();
    char *block = export_block();
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    set(block, 2 * MIB, w.a);
    record(event, w.a);
    OK(aclrtIpcGetEventHandle(event, &board->event));
    done(me);
    told(me); /* the importer has recorded it anew */
    wait_for(event, w.b);
    set(block, 2 * MIB, w.b);
    record(event, w.b);
    done(me);
    told(me);
    wait_done(w.b);
    OK(aclrtDestroyEvent(event));
    OK(aclrtFree(block));
    world_end();
}

static void shared_event(void)
{
    aclrtEvent event;
    struct partner partner = partner_start(answers_event);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    OK(aclrtIpcOpenEventHandle(board->event, &event));
    wait_for(event, w.a);
    get(w.pinned, block, 4096, w.a);
    set(block, 4096, w.a);
    record(event, w.a);
    partner_step(&partner);
    wait_for(event, w.b); /* behind the partner's work, which is behind w.a's */
    set(block, 4096, w.b);
    OK(aclrtSynchronizeDevice());
    close_import();
    OK(aclrtDestroyEvent(event));
    partner_end(&partner);
    world_end();
}

static void answers_notify(struct partner *me)
{
    aclrtNotify ours, theirs;
    told(me);
    world_begin();
    char *block = export_block();
    OK(aclrtCreateNotify(&ours, 0));
    OK(aclrtNotifyGetExportKey(ours, board->first_notify, KEY_SIZE,
                               ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    done(me);
    told(me);
    OK(aclrtNotifyImportByKey(&theirs, board->second_notify, 0));
    OK(aclrtWaitAndResetNotify(theirs, w.a, 0));
    set(block, 2 * MIB, w.a);
    OK(aclrtRecordNotify(ours, w.a));
    done(me);
    told(me);
    wait_done(w.a);
    OK(aclrtDestroyNotify(theirs));
    OK(aclrtDestroyNotify(ours));
    OK(aclrtFree(block));
    world_end();
}

static void shared_notifies(void)
{
    aclrtNotify ours, theirs;
    struct partner partner = partner_start(answers_notify);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    OK(aclrtCreateNotify(&ours, 0));
    OK(aclrtNotifyGetExportKey(ours, board->second_notify, KEY_SIZE,
                               ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    OK(aclrtNotifyImportByKey(&theirs, board->first_notify, 0));
    set(block, 4096, w.a);
    OK(aclrtRecordNotify(ours, w.a));
    partner_step(&partner);
    OK(aclrtWaitAndResetNotify(theirs, w.b, 0));
    set(block, 4096, w.b);
    OK(aclrtSynchronizeDevice());
    close_import();
    OK(aclrtDestroyNotify(theirs));
    OK(aclrtDestroyNotify(ours));
    partner_end(&partner);
    world_end();
}

static void answers_word(struct partner *me)
{
    told(me);
    world_begin();
    char *block = export_block();
    OK(aclrtMemset(block, 4096, 0, 4096));
    done(me);
    told(me);
    OK(aclrtValueWait(block, 1, ACL_STREAM_WAIT_VALUE_EQ, w.a));
    set(block + 8192, 4096, w.a);
    OK(aclrtValueWrite(block + 8, 1, 0, w.a));
    done(me);
    told(me);
    wait_done(w.a);
    OK(aclrtFree(block));
    world_end();
}

/* From w.a to w.b by way of the other process's stream. */
static void shared_words(void)
{
    struct partner partner = partner_start(answers_word);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    set(block + 8192, 4096, w.a);
    OK(aclrtValueWrite(block, 1, 0, w.a));
    OK(aclrtValueWait(block + 8, 1, ACL_STREAM_WAIT_VALUE_EQ, w.b));
    set(block + 8192, 4096, w.b);
    partner_step(&partner);
    OK(aclrtSynchronizeDevice());
    close_import();
    partner_end(&partner);
    world_end();
}

/* ── Ends ─────────────────────────────────────────────────────────────────────────────────── */

static void frees_first(struct partner *me)
{
    told(me);
    world_begin();
    char *block = export_block();
    done(me);
    told(me); /* the importer's work is queued */
    OK(aclrtFree(block));
    done(me);
    told(me);
    world_end();
}

static void freed_by_its_maker(void)
{
    struct gate gate;
    struct partner partner = partner_start(frees_first);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    hold(&gate, w.a);
    set(block, 4096, w.a);
    get(w.pinned, block, 4096, w.a);
    partner_step(&partner);
    let_go(&gate);
    wait_done(w.a);
    SURE(w.pinned[4095] == 3);
    close_import();
    partner_end(&partner);
    world_end();
}

static void imported_twice(void)
{
    struct partner partner = partner_start(writes_then_tells);
    world_begin();
    partner_step(&partner);
    char *one = import_block(), *two = import_block();
    set(one, 4096, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    set(two, 4096, w.b);
    wait_done(w.b);
    close_import();
    close_import();
    partner_end(&partner);
    world_end();
}

/* ── Not seen ─────────────────────────────────────────────────────────────────────────────── */

static void writes_as_well(struct partner *me)
{
    told(me);
    world_begin();
    char *block = export_block();
    done(me);
    told(me);
    set(block, 4096, w.a);
    wait_done(w.a);
    done(me);
    told(me);
    OK(aclrtFree(block));
    world_end();
}

/* Work of two processes in no order: each checker knows its own process. */
static void unseen_race_of_two(void)
{
    struct partner partner = partner_start(writes_as_well);
    world_begin();
    partner_step(&partner);
    char *block = import_block();
    set(block, 4096, w.a);
    partner_step(&partner);
    wait_done(w.a);
    close_import();
    partner_end(&partner);
    world_end();
}

const struct check_case correct_process[] = {
    {"host-order", host_order, "", NULL, NULL},
    {"shared-event", shared_event, "", NULL, NULL},
    {"shared-notifies", shared_notifies, "", NULL, NULL},
    {"shared-words", shared_words, "", NULL, NULL},
    {"freed-by-its-maker", freed_by_its_maker, "", NULL, NULL},
    {"imported-twice", imported_twice, "", NULL, NULL},
    {"unseen-race-of-two", unseen_race_of_two, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
