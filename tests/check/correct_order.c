/* SPDX-License-Identifier: Apache-2.0
 *
 * correct_order.c - programs whose order is right, though it takes a look to see it.
 */
#include "check_case.h"

static void event(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
}

static void event_held(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    let_go(&gate);
}

static void event_twice(void)
{
    for (int i = 0; i < 20; i++) {
        set(w.x, SIZE, w.a);
        record(w.event, w.a);
        wait_for(w.event, w.b);
        get(w.pinned, w.x, SIZE, w.b);
        record(w.event, w.b);
        wait_for(w.event, w.a);
    }
}

static void event_recorded_again_meanwhile(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    record(w.event, w.c);
    get(w.pinned, w.x, SIZE, w.b);
    let_go(&gate);
}

static void event_destroyed_at_once(void)
{
    aclrtEvent event;
    static struct gate gate;
    hold(&gate, w.a);
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    set(w.x, SIZE, w.a);
    record(event, w.a);
    wait_for(event, w.b);
    OK(aclrtDestroyEvent(event));
    get(w.pinned, w.x, SIZE, w.b);
    let_go(&gate);
}

static void event_already_complete(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    seen_done(w.a);
    wait_for(w.event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
}

static void legacy(void)
{
    aclrtEvent event = legacy_event();
    set(w.x, SIZE, w.a);
    record(event, w.a);
    wait_for(event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    wait_done(w.b);
    OK(aclrtDestroyEvent(event));
}

/* A legacy wait waits for the flag: the record may come later. */
static void legacy_wait_first(void)
{
    aclrtEvent event = legacy_event();
    wait_for(event, w.b);
    get(w.pinned, w.x, SIZE, w.b);
    set(w.x, SIZE, w.a);
    record(event, w.a);
    wait_done(w.b);
    OK(aclrtDestroyEvent(event));
}

static void legacy_ring(void)
{
    aclrtEvent event = legacy_event();
    for (int i = 0; i < 20; i++) {
        set(w.x, SIZE, w.a);
        record(event, w.a);
        wait_for(event, w.b);
        OK(aclrtResetEvent(event, w.b));
        get(w.pinned, w.x, SIZE, w.b);
        wait_done(w.b);
    }
    OK(aclrtDestroyEvent(event));
}

static void legacy_destroyed_at_once(void)
{
    aclrtEvent event = legacy_event();
    set(w.x, SIZE, w.a);
    record(event, w.a);
    wait_for(event, w.b);
    OK(aclrtDestroyEvent(event));
    get(w.pinned, w.x, SIZE, w.b);
}

/* When the wait passes, event and recording stream are gone. */
static void legacy_and_stream_gone(void)
{
    static struct gate gate;
    aclrtStream other;
    aclrtEvent event = legacy_event();
    OK(aclrtCreateStream(&other));
    hold(&gate, w.b);
    set(w.x, SIZE, other);
    record(event, other);
    wait_for(event, w.b);
    OK(aclrtDestroyEvent(event));
    get(w.pinned, w.x, SIZE, w.b);
    OK(aclrtDestroyStream(other));
    let_go(&gate);
}

static void chain(void)
{
    aclrtEvent second;
    OK(aclrtCreateEventExWithFlag(&second, ACL_EVENT_SYNC));
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    record(second, w.b);
    wait_for(second, w.c);
    get(w.pinned, w.x, SIZE, w.c);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(second));
}

static void diamond(void)
{
    aclrtEvent done_b, done_c;
    OK(aclrtCreateEventExWithFlag(&done_b, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&done_c, ACL_EVENT_SYNC));
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    wait_for(w.event, w.c);
    touch(w.x, SIZE, BLY_READ, w.b);
    touch(w.x, SIZE, BLY_READ, w.c);
    record(done_b, w.b);
    record(done_c, w.c);
    wait_for(done_b, w.a);
    wait_for(done_c, w.a);
    set(w.x, SIZE, w.a);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyEvent(done_b));
    OK(aclrtDestroyEvent(done_c));
}

/* What holds the first stream is the host, which has waited for the second. */
static void held_by_host(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    set(w.x, SIZE, w.b);
    wait_done(w.b);
    let_go(&gate);
}

static void two_readers(void)
{
    get(w.pinned, w.x, 4096, w.a);
    get(w.pinned + 4096, w.x, 4096, w.b);
    touch(w.x, SIZE, BLY_READ, w.c);
}

static void neighbours(void)
{
    set(w.x, 4096, w.a);
    set(w.x + 4096, 4096, w.b);
    touch(w.x + 8192, SIZE - 8192, BLY_WRITE, w.c);
}

static void rows_between_rows(void)
{
    OK(aclrtMemcpy2dAsync(w.x, 1024, w.pinned, 512, 512, 16, H2D, w.a));
    OK(aclrtMemcpy2dAsync(w.x + 512, 1024, w.pinned, 512, 512, 16, H2D, w.b));
}

static void host_between(void)
{
    set(w.x, SIZE, w.a);
    wait_done(w.a);
    get(w.pinned, w.x, SIZE, w.b);
}

static void host_event_between(void)
{
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    set(w.y, SIZE, w.a);
    OK(aclrtSynchronizeEvent(w.event));
    get(w.pinned, w.x, SIZE, w.b);
}

static void device_between(void)
{
    set(w.x, SIZE, w.a);
    set(w.y, SIZE, w.b);
    OK(aclrtSynchronizeDevice());
    set(w.x, SIZE, w.c);
    set(w.y, SIZE, w.c);
}

static void asked_event(void)
{
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    set(w.x, SIZE, w.a);
    record(w.event, w.a);
    while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
        OK(aclrtQueryEventStatus(w.event, &status));
    set(w.x, SIZE, w.b);
}

static void asked_stream(void)
{
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    set(w.x, SIZE, w.a);
    while (status != ACL_STREAM_STATUS_COMPLETE)
        OK(aclrtStreamQuery(w.a, &status));
    set(w.x, SIZE, w.b);
}

static void destroyed_stream(void)
{
    aclrtStream other;
    OK(aclrtCreateStream(&other));
    set(w.x, SIZE, other);
    OK(aclrtDestroyStream(other));
    OK(aclrtCreateStream(&other));
    set(w.x, SIZE, other);
    OK(aclrtDestroyStream(other));
    set(w.x, SIZE, w.b);
}

static void many_streams(void)
{
    for (int i = 0; i < 50; i++) {
        aclrtStream other;
        OK(aclrtCreateStream(&other));
        set(w.x, SIZE, other);
        wait_done(other);
        get(w.pinned, w.x, SIZE, w.a);
        wait_done(w.a);
        OK(aclrtDestroyStream(other));
    }
}

static void pageable_drains(void)
{
    static char host[4096];
    set(w.x, SIZE, w.a);
    OK(aclrtMemcpyAsync(host, sizeof(host), w.x, sizeof(host), D2H, w.a));
    set(w.x, SIZE, w.b);
}

struct flag {
    atomic_bool set;
};

static void raise_flag(void *arg)
{
    atomic_store(&((struct flag *)arg)->set, true);
}

static void callback_tells_host(void)
{
    struct flag flag = {false};
    set(w.x, SIZE, w.a);
    OK(aclrtLaunchHostFunc(w.a, raise_flag, &flag));
    while (!atomic_load(&flag.set))
        usleep(50);
    set(w.x, SIZE, w.b);
}

static void copy_in_callback(void *arg)
{
    char host[64];
    (void)arg;
    OK(aclrtMemcpy(host, sizeof(host), w.x, sizeof(host), D2H));
}

static void callback_copies(void)
{
    set(w.x, SIZE, w.a);
    OK(aclrtLaunchHostFunc(w.a, copy_in_callback, NULL));
    set(w.x, SIZE, w.a);
}

/* Until told to stop: it may start before it is subscribed. */
static void *serve(void *arg)
{
    struct flag *stop = arg;
    OK(aclrtSetDevice(0));
    while (!atomic_load(&stop->set))
        if (aclrtProcessReport(100) != 0)
            usleep(100);
    return NULL;
}

static void report_thread(void)
{
    struct flag first = {false}, second = {false}, stop = {false};
    pthread_t thread;
    pthread_create(&thread, NULL, serve, &stop);
    OK(aclrtSubscribeReport((uint64_t)thread, w.a));
    set(w.x, SIZE, w.a);
    OK(aclrtLaunchCallback(raise_flag, &first, ACL_CALLBACK_BLOCK, w.a));
    while (!atomic_load(&first.set))
        usleep(50);
    set(w.x, SIZE, w.b);
    wait_done(w.b);
    set(w.x, SIZE, w.a);
    OK(aclrtLaunchCallback(raise_flag, &second, ACL_CALLBACK_NO_BLOCK, w.a));
    while (!atomic_load(&second.set))
        usleep(50);
    set(w.x, SIZE, w.b);
    wait_done(w.a);
    OK(aclrtUnSubscribeReport((uint64_t)thread, w.a));
    atomic_store(&stop.set, true);
    pthread_join(thread, NULL);
}

static void *wait_done_there(void *arg)
{
    OK(aclrtSetDevice(0));
    wait_done(arg);
    return NULL;
}

/* One thread waits for the stream, another one goes on because of that. */
static void other_thread_waits(void)
{
    pthread_t thread;
    set(w.x, SIZE, w.a);
    pthread_create(&thread, NULL, wait_done_there, w.a);
    pthread_join(thread, NULL);
    set(w.x, SIZE, w.b);
    wait_done(w.b);
    OK(aclrtFree(w.x));
    w.x = NULL;
}

static void notify(void)
{
    aclrtNotify note;
    OK(aclrtCreateNotify(&note, 0));
    OK(aclrtWaitAndResetNotify(note, w.b, 0));
    get(w.pinned, w.x, SIZE, w.b);
    set(w.x, SIZE, w.a);
    OK(aclrtRecordNotify(note, w.a));
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyNotify(note));
}

static void notify_ping_pong(void)
{
    aclrtNotify to, back;
    OK(aclrtCreateNotify(&to, 0));
    OK(aclrtCreateNotify(&back, 0));
    for (int i = 0; i < 20; i++) {
        set(w.x, SIZE, w.a);
        OK(aclrtRecordNotify(to, w.a));
        OK(aclrtWaitAndResetNotify(to, w.b, 0));
        set(w.x, SIZE, w.b);
        OK(aclrtRecordNotify(back, w.b));
        OK(aclrtWaitAndResetNotify(back, w.a, 0));
    }
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyNotify(to));
    OK(aclrtDestroyNotify(back));
}

static void word(void)
{
    OK(aclrtMemset(w.y, 64, 0, 64));
    OK(aclrtValueWait(w.y, 1, 1, w.b));
    get(w.pinned, w.x, SIZE, w.b);
    set(w.x, SIZE, w.a);
    OK(aclrtValueWrite(w.y, 1, 0, w.a));
}

/* The word is changed by a copy, not by a value task. */
static void word_by_copy(void)
{
    OK(aclrtMemset(w.y, 64, 0, 64));
    OK(aclrtValueWait(w.y, 1, 0, w.b));
    get(w.pinned + 4096, w.x, 4096, w.b);
    set(w.x, SIZE, w.a);
    put(w.y, w.pinned, 8, w.a);
}

static void word_by_host(void)
{
    uint64_t one = 1;
    set(w.x, SIZE, w.a);
    OK(aclrtMemset(w.y, 64, 0, 64));
    OK(aclrtValueWait(w.y, 1, 0, w.b));
    get(w.pinned, w.x, SIZE, w.b);
    wait_done(w.a);
    OK(aclrtMemcpy(w.y, 8, &one, 8, H2D));
}

static void default_stream(void)
{
    set(w.x, SIZE, NULL);
    OK(aclrtSynchronizeStream(NULL));
    set(w.x, SIZE, w.a);
}

static void aborted(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    set(w.x, SIZE, w.a);
    set(w.y, SIZE, w.a);
    let_go(&gate);
    OK(aclrtStreamAbort(w.a));
    set(w.x, SIZE, w.b);
}

static void unknown_kernels(void)
{
    touch_unknown(w.a);
    touch_unknown(w.b);
    set(w.x, SIZE, w.a);
    touch_unknown(w.c);
}

/* The source is written by work that comes before the copy. */
static void changed_by_work(void)
{
    static struct gate gate;
    hold(&gate, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    set(w.x, SIZE, w.a);
    put(w.y, w.pinned, SIZE, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    record(w.event, w.a);
    wait_for(w.event, w.b);
    put(w.y, w.pinned, SIZE, w.b);
    let_go(&gate);
}

static void changed_by_later_work(void)
{
    aclrtEvent event = legacy_event();
    wait_for(event, w.b);
    put(w.y, w.pinned, SIZE, w.b);
    set(w.x, SIZE, w.a);
    get(w.pinned, w.x, SIZE, w.a);
    record(event, w.a);
    wait_done(w.b);
    OK(aclrtDestroyEvent(event));
}

static void changed_behind(void)
{
    put(w.x, w.pinned, SIZE, w.a);
    record(w.event, w.a);
    set(w.y, SIZE, w.a);
    OK(aclrtSynchronizeEvent(w.event));
    memset(w.pinned, 9, SIZE);
    put(w.x, w.pinned, SIZE, w.b);
    wait_done(w.a);
}

const struct check_case correct_order[] = {
    {"event", event, "", NULL, NULL},
    {"event-held", event_held, "", NULL, NULL},
    {"event-twice", event_twice, "", NULL, NULL},
    {"event-recorded-again-meanwhile", event_recorded_again_meanwhile, "", NULL, NULL},
    {"event-destroyed-at-once", event_destroyed_at_once, "", NULL, NULL},
    {"event-already-complete", event_already_complete, "", NULL, NULL},
    {"legacy", legacy, "", NULL, NULL},
    {"legacy-wait-first", legacy_wait_first, "", NULL, NULL},
    {"legacy-ring", legacy_ring, "", NULL, NULL},
    {"legacy-destroyed-at-once", legacy_destroyed_at_once, "", NULL, NULL},
    {"legacy-and-stream-gone", legacy_and_stream_gone, "", NULL, NULL},
    {"chain", chain, "", NULL, NULL},
    {"diamond", diamond, "", NULL, NULL},
    {"held-by-host", held_by_host, "", NULL, NULL},
    {"two-readers", two_readers, "", NULL, NULL},
    {"neighbours", neighbours, "", NULL, NULL},
    {"rows-between-rows", rows_between_rows, "", NULL, NULL},
    {"host-between", host_between, "", NULL, NULL},
    {"host-event-between", host_event_between, "", NULL, NULL},
    {"device-between", device_between, "", NULL, NULL},
    {"asked-event", asked_event, "", NULL, NULL},
    {"asked-stream", asked_stream, "", NULL, NULL},
    {"destroyed-stream", destroyed_stream, "", NULL, NULL},
    {"many-streams", many_streams, "", NULL, NULL},
    {"pageable-drains", pageable_drains, "", NULL, NULL},
    {"callback-tells-host", callback_tells_host, "", NULL, NULL},
    {"callback-copies", callback_copies, "", NULL, NULL},
    {"report-thread", report_thread, "", NULL, NULL},
    {"other-thread-waits", other_thread_waits, "", NULL, NULL},
    {"notify", notify, "", NULL, NULL},
    {"notify-ping-pong", notify_ping_pong, "", NULL, NULL},
    {"word", word, "", NULL, NULL},
    {"word-by-copy", word_by_copy, "", NULL, NULL},
    {"word-by-host", word_by_host, "", NULL, NULL},
    {"default-stream", default_stream, "", NULL, NULL},
    {"aborted", aborted, "", NULL, NULL},
    {"unknown-kernels", unknown_kernels, "", NULL, NULL},
    {"changed-by-work", changed_by_work, "", NULL, NULL},
    {"changed-by-later-work", changed_by_later_work, "", NULL, NULL},
    {"changed-behind", changed_behind, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
