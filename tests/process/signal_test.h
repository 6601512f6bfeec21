/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_test.h - what the tests of shared events and notifies have in common.
 */
#ifndef SIGNAL_TEST_H
#define SIGNAL_TEST_H

#include "../many/many_test.h"

#include <sys/mman.h>

enum { LANES = 8, SIGNALS = 2048 };

/* Seen by all processes of a test. */
struct shared {
    atomic_int flag, go;
    aclrtIpcEventHandle handle;
    char key[65];
    int pid;
};
static struct shared *shared;

static inline void share(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
}

static inline aclrtEvent ipc_event(void)
{
    aclrtEvent event = NULL;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    return event;
}

static inline aclrtStream new_stream(void)
{
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    return stream;
}

static inline aclrtEvent open_event(void)
{
    aclrtEvent event = NULL;
    OK(aclrtIpcOpenEventHandle(shared->handle, &event));
    return event;
}

static inline int status_of(aclrtEvent event)
{
    aclrtEventRecordedStatus status;
    OK(aclrtQueryEventStatus(event, &status));
    return (int)status;
}

/* Holds a stream until shared->go, then says so in shared->flag. */
static inline void until_go(void *arg)
{
    (void)arg;
    while (!atomic_load(&shared->go))
        usleep(50);
    atomic_store(&shared->flag, 1);
}

static inline void quit(void)
{
    OK(aclrtResetDeviceForce(0));
    OK(aclFinalize());
}

static inline aclrtNotify new_notify(void)
{
    aclrtNotify notify = NULL;
    OK(aclrtCreateNotify(&notify, 0));
    return notify;
}

static inline void exports(struct peer *me)
{
    bind_card(0);
    aclrtEvent event = ipc_event();
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    peer_done(me);
    peer_wait(me);
    OK(aclrtDestroyEvent(event));
    peer_done(me);
    peer_wait(me);
}

static inline void exports_notify(struct peer *me)
{
    bind_card(0);
    aclrtNotify notify = new_notify();
    OK(aclrtNotifyGetExportKey(notify, shared->key, 65, 2));
    peer_done(me);
    peer_wait(me);
    OK(aclrtNotifyBatchReset(&notify, 1));
    OK(aclrtDestroyNotify(notify));
    peer_done(me);
    peer_wait(me);
}

/* As many as there are, and none is lost. */
static inline void all_signals_are_free(void)
{
    static aclrtEvent events[SIGNALS];
    aclrtEvent more = NULL;
    for (int i = 0; i < SIGNALS; i++)
        events[i] = ipc_event();
    CHECK_ACL(aclrtCreateEventExWithFlag(&more, ACL_EVENT_IPC), ACL_ERROR_RT_NO_EVENT_RESOURCE);
    for (int i = 0; i < SIGNALS; i++)
        OK(aclrtDestroyEvent(events[i]));
}

#endif
