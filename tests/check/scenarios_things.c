/* SPDX-License-Identifier: Apache-2.0
 *
 * scenarios_things.c - streams, events, threads and processes as users have met them
 * (docs/scenarios.md).
 */
#include "process_case.h"

#include <sys/wait.h>

/* ── Streams and events ───────────────────────────────────────────────────────────────────── */

static aclrtStream last;

static aclError one_more(void)
{
    return aclrtCreateStream(&last);
}

static void has_twenty(struct partner *me)
{
    aclrtStream stream[20];
    told(me);
    begin_on(0);
    for (int i = 0; i < 20; i++)
        stream[i] = new_stream();
    done(me);
    told(me);
    OK(aclrtDestroyStream(stream[7]));
    done(me);
    told(me);
}

static void o07_streams_run_out(void)
{
    int n = 0;
    struct partner a = partner_start(has_twenty);
    begin_on(0);
    partner_step(&a);
    while (one_more() == ACL_SUCCESS)
        n++;
    SURE(n == 12);
    REFUSED(207008, one_more());
    SURE(strstr(aclGetRecentErrMsg(), "this is not a memory shortage") != NULL);
    REFUSED(207008, aclmdlRICaptureBegin(last, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    SURE(strstr(aclGetRecentErrMsg(), "this is not a memory shortage") != NULL);
    partner_step(&a);
    OK(one_more());
    partner_end(&a);
}

static void o08_events_run_out(void)
{
    int n = 0;
    aclrtEvent event;
    begin_on(0);
    aclrtStream s1 = new_stream(), s2 = new_stream();
    for (;; n++) {
        OK(aclrtCreateEvent(&event));
        if (aclrtRecordEvent(event, s1) != ACL_SUCCESS) /* where it gets its id */
            break;
        wait_for(event, s2);
        OK(aclrtSynchronizeStream(s2));
    }
    SURE(n == 1024);
    REFUSED(207007, aclrtRecordEvent(event, s1));
    SURE(strstr(aclGetRecentErrMsg(), "safe to destroy now: 1024") != NULL);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(s1));
    OK(aclrtDestroyStream(s2));
    end_on(0);
}

static void o08_events_come_back(void)
{
    begin_on(0);
    aclrtStream s1 = new_stream(), s2 = new_stream();
    for (int i = 0; i < 5000; i++) {
        aclrtEvent event;
        OK(aclrtCreateEvent(&event));
        record(event, s1);
        wait_for(event, s2);
        OK(aclrtSynchronizeStream(s2));
        OK(aclrtDestroyEvent(event));
    }
    OK(aclrtDestroyStream(s1));
    OK(aclrtDestroyStream(s2));
    end_on(0);
}

/* The process ends while work is held: of 5 events, 3 are recorded behind it and one is waited for.
 */
static void o08_events_pending(void)
{
    static struct gate gate;
    begin_on(0);
    aclrtStream s1 = new_stream();
    aclrtEvent event[5];
    for (int i = 0; i < 5; i++)
        OK(aclrtCreateEventExWithFlag(&event[i], ACL_EVENT_SYNC));
    hold(&gate, s1);
    for (int i = 0; i < 3; i++)
        record(event[i], s1);
    exit(0);
}

/* ── Threads and forks ────────────────────────────────────────────────────────────────────── */

static void *without_device(void *arg)
{
    void *block;
    size_t free, total;
    (void)arg;
    REFUSED(107002, aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    REFUSED(107002, aclrtMalloc(&block, 4 * KIB, ACL_MEM_MALLOC_HUGE_FIRST));
    return NULL;
}

static void *with_device(void *arg)
{
    (void)arg;
    OK(aclrtSetDevice(1));
    OK(aclrtFree(card_block(4 * KIB)));
    OK(aclrtResetDevice(1));
    return NULL;
}

static void o09_threads_without_device(void)
{
    pthread_t thread[16];
    begin_on(1);
    char *block = card_block(64 * MIB);
    for (int i = 0; i < 32; i++) {
        SURE(pthread_create(&thread[i % 16], NULL, i < 16 ? without_device : with_device, NULL) ==
             0);
        if (i % 16 == 15)
            for (int j = 0; j < 16; j++)
                pthread_join(thread[j], NULL);
    }
    OK(aclrtFree(block));
    end_on(1);
}

static void child(int which, void *block)
{
    pid_t pid = fork();
    SURE(pid >= 0);
    if (pid == 0) {
        void *more;
        if (which == 1)
            _exit(aclrtMalloc(&more, 4096, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS ? 0 : 1);
        if (which == 2)
            exit(aclrtFree(block) != ACL_SUCCESS ? 0 : 1); /* with the handlers of its end */
        if (which == 3)
            _exit(0);
        execl("/proc/self/exe", "check_process", "executed", (char *)NULL);
        _exit(96);
    }
    int status;
    SURE(waitpid(pid, &status, 0) == pid);
    SURE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void o10_forked(void)
{
    struct gate gate;
    void *pinned;
    begin_on(0);
    aclrtStream s = new_stream();
    char *p = card_block(16 * MIB), *back = malloc(16 * MIB);
    OK(aclrtMallocHost(&pinned, 16 * MIB));
    memset(pinned, 7, 16 * MIB);
    hold(&gate, s);
    put(p, pinned, 16 * MIB, s);
    for (int which = 1; which <= 4; which++)
        child(which, p);
    let_go(&gate);
    OK(aclrtSynchronizeStream(s));
    OK(aclrtMemcpy(back, 16 * MIB, p, 16 * MIB, D2H));
    SURE(back[0] == 7 && back[16 * MIB - 1] == 7);
    free(back);
    OK(aclrtFree(p));
    OK(aclrtFreeHost(pinned));
    OK(aclrtDestroyStream(s));
    end_on(0);
}

static void begins_itself(struct partner *me)
{
    told(me);
    begin_on(0);
    OK(aclrtFree(card_block(16 * MIB)));
    end_on(0);
}

static void o10_forked_before(void)
{
    struct partner other = partner_start(begins_itself);
    begin_on(0);
    OK(aclrtFree(card_block(16 * MIB)));
    partner_end(&other);
    end_on(0);
}

/* ── Another process's memory ─────────────────────────────────────────────────────────────── */

static void has_384(struct partner *me)
{
    told(me);
    begin_on(0);
    char *block = card_block(384 * MIB);
    done(me);
    told(me);
    OK(aclrtFree(block));
    end_on(0);
}

static void o11_the_card_is_not_full(void)
{
    struct partner a = partner_start(has_384);
    begin_on(0);
    partner_step(&a);
    SURE(free_of_card() == GIB - 384 * MIB - 2 * OVERHEAD);
    char *block = card_block(408 * MIB);
    partner_end(&a);
    SURE(free_of_card() == GIB - 408 * MIB - OVERHEAD);
    OK(aclrtFree(block));
    end_on(0);
}

static void has_63(struct partner *me)
{
    void *small[63];
    told(me);
    begin_on(0);
    char *block = card_block(64 * MIB);
    for (int i = 0; i < 63; i++)
        OK(aclrtMalloc(&small[i], 4000, ACL_MEM_MALLOC_NORMAL_ONLY));
    done(me);
    told(me);
    for (int i = 0; i < 63; i++)
        OK(aclrtFree(small[i]));
    done(me);
    told(me);
    OK(aclrtFree(block));
    end_on(0);
}

static void o12_free_moves(void)
{
    struct partner a = partner_start(has_63);
    begin_on(0);
    partner_step(&a);
    size_t before = free_of_card();
    OK(aclrtFree(card_block(32 * MIB)));
    partner_step(&a);
    SURE(free_of_card() == before + 258048);
    partner_end(&a);
    end_on(0);
}

static void reads_and_keeps(struct partner *me)
{
    void *block, *host;
    told(me);
    begin_on(0);
    OK(aclrtIpcMemImportByKey(&block, board->key, 0));
    OK(aclrtMallocHost(&host, MIB));
    OK(aclrtMemcpy(host, MIB, block, MIB, D2H));
    OK(aclrtFreeHost(host));
    done(me);
    told(me);
    OK(aclrtIpcMemClose(board->key));
    done(me);
    told(me);
    end_on(0);
}

static char *exported(size_t size)
{
    char *p = card_block(size);
    OK(aclrtMemset(p, size, 1, size));
    OK(aclrtIpcMemGetExportKey(p, size, board->key, KEY_SIZE,
                               ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    return p;
}

/* The memory outlives its maker's free as long as the other side has it open. */
static void kept_alive(bool killed)
{
    struct partner b = partner_start(reads_and_keeps);
    begin_on(0);
    char *p = exported(64 * MIB);
    partner_step(&b);
    size_t before = free_of_card();
    OK(aclrtFree(p));
    SURE(free_of_card() == before);
    if (killed)
        partner_kill(&b);
    else
        partner_step(&b);
    SURE(free_of_card() == before + 64 * MIB + (killed ? OVERHEAD : 0));
    if (!killed)
        partner_end(&b);
    end_on(0);
}

static void o23_kept_alive(void)
{
    kept_alive(false);
}

static void o23_killed_while_open(void)
{
    kept_alive(true);
}

static void comes_late(struct partner *me)
{
    void *block;
    told(me);
    begin_on(0);
    SURE(aclrtIpcMemImportByKey(&block, board->key, 0) != ACL_SUCCESS);
    SURE(strstr(aclGetRecentErrMsg(), "freed") != NULL);
    done(me);
    told(me);
    end_on(0);
}

static void o23_too_late(void)
{
    struct partner b = partner_start(comes_late);
    begin_on(0);
    size_t before = free_of_card();
    OK(aclrtFree(exported(64 * MIB)));
    SURE(free_of_card() == before);
    partner_step(&b);
    partner_end(&b);
    end_on(0);
}

const struct check_case scenarios_things[] = {
    {"O-07-streams-run-out", o07_streams_run_out, "leaked-stream,leaked-stream",
     "19 streams of card 0 never destroyed|13 streams of card 0 never destroyed",
     "BELAY_STREAMS=32"},
    {"O-08-events-run-out", o08_events_run_out, "leaked-event",
     "1024 events of card 0 never destroyed|pending: 0; safe to destroy now: 1024",
     "BELAY_EVENTS=1024"},
    {"O-08-events-come-back", o08_events_come_back, "", NULL, "BELAY_EVENTS=1024"},
    {"O-08-events-pending", o08_events_pending, "leaked-event,leaked-stream",
     "5 events of card 0 never destroyed|pending: 3; safe to destroy now: 2", NULL},
    {"O-09-threads-without-device", o09_threads_without_device, "", NULL, NULL},
    /* What the parent recorded is nobody's in the child. */
    {"O-10-forked", o10_forked, "", NULL, "ASAN_OPTIONS=detect_leaks=0"},
    {"O-10-forked-before", o10_forked_before, "", NULL, NULL},
    {"O-11-the-card-is-not-full", o11_the_card_is_not_full, "", NULL, NULL},
    {"O-12-free-moves", o12_free_moves, "", NULL, NULL},
    {"O-23-kept-alive", o23_kept_alive, "", NULL, NULL},
    {"O-23-killed-while-open", o23_killed_while_open, "", NULL, NULL},
    {"O-23-too-late", o23_too_late, "", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
