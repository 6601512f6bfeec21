/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c - a user's program under ThreadSanitizer, beside a library that is not.
 *
 *   program ordered      host memory goes between threads and the card in every ordered way
 *   program unordered N  one access that nothing orders; it must be reported
 */
#include <acl/acl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES  ((size_t)4096)
#define ROUNDS 50
#define H2D    ACL_MEMCPY_HOST_TO_DEVICE
#define D2H    ACL_MEMCPY_DEVICE_TO_HOST

#define OK(call)                                                                                   \
    do {                                                                                           \
        aclError code_ = (call);                                                                   \
        if (code_ != 0) {                                                                          \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, code_);          \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/* What one thread works with. */
struct set {
    aclrtStream stream, other;
    aclrtEvent modern, legacy;
    aclrtNotify notify;
    unsigned char *in, *out, *card;
    uint64_t *word; /* of the card */
    int plain;      /* written by callbacks, read by the thread */
};

static void make(struct set *set)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&set->stream));
    OK(aclrtCreateStream(&set->other));
    OK(aclrtCreateEventExWithFlag(&set->modern, ACL_EVENT_SYNC));
    OK(aclrtCreateEvent(&set->legacy));
    OK(aclrtCreateNotify(&set->notify, 0));
    OK(aclrtMallocHost((void **)&set->in, BYTES));
    OK(aclrtMallocHost((void **)&set->out, BYTES));
    OK(aclrtMalloc((void **)&set->card, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&set->word, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(set->word, BYTES, 0, BYTES));
}

static void unmake(struct set *set)
{
    OK(aclrtDestroyStream(set->stream));
    OK(aclrtDestroyStream(set->other));
    OK(aclrtDestroyEvent(set->modern));
    OK(aclrtDestroyEvent(set->legacy));
    OK(aclrtDestroyNotify(set->notify));
    OK(aclrtFreeHost(set->in));
    OK(aclrtFreeHost(set->out));
    OK(aclrtFree(set->card));
    OK(aclrtFree(set->word));
}

static void send(struct set *set, aclrtStream stream, int value)
{
    memset(set->in, value, BYTES);
    OK(aclrtMemcpyAsync(set->card, BYTES, set->in, BYTES, H2D, stream));
}

static void fetch(struct set *set, aclrtStream stream)
{
    OK(aclrtMemcpyAsync(set->out, BYTES, set->card, BYTES, D2H, stream));
}

static void expect(const struct set *set, int value)
{
    for (size_t i = 0; i < BYTES; i++)
        if (set->out[i] != (unsigned char)value) {
            fprintf(stderr, "byte %zu is %d, not %d\n", i, set->out[i], value);
            exit(3);
        }
}

static void by_stream(struct set *set, int round)
{
    send(set, set->stream, round);
    fetch(set, set->stream);
    OK(aclrtSynchronizeStream(set->stream));
    expect(set, round);
}

static void by_stream_query(struct set *set, int round)
{
    aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
    send(set, set->stream, round);
    fetch(set, set->stream);
    while (status != ACL_STREAM_STATUS_COMPLETE)
        OK(aclrtStreamQuery(set->stream, &status));
    expect(set, round);
}

static void by_event(struct set *set, aclrtEvent event, int round)
{
    send(set, set->stream, round);
    fetch(set, set->stream);
    OK(aclrtRecordEvent(event, set->stream));
    OK(aclrtSynchronizeEvent(event));
    expect(set, round);
}

static void by_event_query(struct set *set, aclrtEvent event, int round)
{
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    send(set, set->stream, round);
    fetch(set, set->stream);
    OK(aclrtRecordEvent(event, set->stream));
    while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
        OK(aclrtQueryEventStatus(event, &status));
    expect(set, round);
}

static void between_streams(struct set *set, aclrtEvent event, int round)
{
    send(set, set->stream, round);
    OK(aclrtRecordEvent(event, set->stream));
    OK(aclrtStreamWaitEvent(set->other, event));
    fetch(set, set->other);
    OK(aclrtSynchronizeStream(set->other));
    expect(set, round);
    if (event == set->legacy)
        OK(aclrtResetEvent(event, set->other));
}

static void by_notify(struct set *set, int round)
{
    send(set, set->stream, round);
    OK(aclrtRecordNotify(set->notify, set->stream));
    OK(aclrtWaitAndResetNotify(set->notify, set->other, 0));
    fetch(set, set->other);
    OK(aclrtSynchronizeStream(set->other));
    expect(set, round);
}

static void by_value(struct set *set, int round)
{
    send(set, set->stream, round);
    OK(aclrtValueWrite(set->word, (uint64_t)round + 1, 0, set->stream));
    OK(aclrtValueWait(set->word, (uint64_t)round + 1, 0, set->other));
    fetch(set, set->other);
    OK(aclrtSynchronizeStream(set->other));
    expect(set, round);
}

static void by_device(struct set *set, int round)
{
    send(set, set->stream, round);
    fetch(set, set->stream);
    OK(aclrtSynchronizeDevice());
    expect(set, round);
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void by_host_function(struct set *set, int round)
{
    set->plain = round;
    OK(aclrtLaunchHostFunc(set->stream, add_one, &set->plain));
    OK(aclrtLaunchHostFunc(set->stream, add_one, &set->plain));
    OK(aclrtSynchronizeStream(set->stream));
    if (set->plain != round + 2)
        exit(4);
}

/* Two streams of a graph, user code, and an event that tells those outside. */
static void by_graph(struct set *set, int round)
{
    aclmdlRI graph;
    aclrtEvent out, back, outside;
    OK(aclrtCreateEventExWithFlag(&out, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&back, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&outside, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureBegin(set->stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtMemcpyAsync(set->card, BYTES, set->in, BYTES, H2D, set->stream));
    OK(aclrtRecordEvent(out, set->stream));
    OK(aclrtStreamWaitEvent(set->other, out));
    fetch(set, set->other);
    OK(aclrtLaunchHostFunc(set->other, add_one, &set->plain));
    OK(aclrtRecordEventWithFlag(outside, set->other, ACL_EVENT_RECORD_EXTERNAL));
    OK(aclrtRecordEvent(back, set->other));
    OK(aclrtStreamWaitEvent(set->stream, back));
    OK(aclmdlRICaptureEnd(set->stream, &graph));
    for (int i = 0; i < 2; i++) {
        set->plain = round;
        memset(set->in, round + i, BYTES);
        OK(aclmdlRIExecuteAsync(graph, set->stream));
        if (i == 0)
            OK(aclrtSynchronizeStream(set->stream));
        else
            OK(aclrtSynchronizeEvent(outside));
        expect(set, round + i);
        if (set->plain != round + 1)
            exit(9);
    }
    set->plain = round;
    memset(set->in, round, BYTES);
    OK(aclmdlRIExecuteAsync(graph, set->stream));
    OK(aclmdlRIDestroy(graph)); /* waits */
    expect(set, round);
    if (set->plain != round + 1)
        exit(9);
    OK(aclrtDestroyEvent(out));
    OK(aclrtDestroyEvent(back));
    OK(aclrtDestroyEvent(outside));
}

/* More work than a ring holds; each copy reads what the one before has written. */
static void through_a_full_ring(struct set *set)
{
    memset(set->in, 0, BYTES);
    OK(aclrtMemsetAsync(set->card, BYTES, 7, BYTES, set->stream));
    for (int i = 0; i < 1500; i++) {
        OK(aclrtMemcpyAsync(set->in, 64, set->card, 64, D2H, set->stream));
        OK(aclrtMemcpyAsync(set->card + 64, 64, set->in, 64, H2D, set->stream));
    }
    OK(aclrtSynchronizeStream(set->stream));
    if (set->in[0] != 7)
        exit(5);
}

/* Memory that one thread frees may be another's next. */
static void made_anew(int round)
{
    unsigned char *block;
    OK(aclrtMallocHost((void **)&block, BYTES));
    memset(block, round, BYTES);
    OK(aclrtFreeHost(block));
}

/* Fails on the engine, is told to the thread. */
static void failed(struct set *set)
{
    /* Far behind all that the threads have, and still an address of the card. */
    OK(aclrtMemsetAsync(set->card + ((size_t)8 << 30), 16, 0, 16, set->stream));
    if (aclrtSynchronizeStream(set->stream) == 0 || aclGetRecentErrMsg() == NULL)
        exit(6);
}

static void *work(void *arg)
{
    struct set set = {0};
    (void)arg;
    make(&set);
    for (int round = 0; round < ROUNDS; round++) {
        by_stream(&set, round);
        by_stream_query(&set, round + 1);
        by_event(&set, set.modern, round + 2);
        by_event(&set, set.legacy, round + 3);
        by_event_query(&set, set.modern, round + 4);
        by_event_query(&set, set.legacy, round + 5);
        OK(aclrtResetEvent(set.legacy, set.stream));
        between_streams(&set, set.modern, round + 6);
        between_streams(&set, set.legacy, round + 7);
        by_notify(&set, round + 8);
        by_value(&set, round + 9);
        by_device(&set, round + 10);
        by_host_function(&set, round);
        made_anew(round);
    }
    through_a_full_ring(&set);
    failed(&set);
    unmake(&set);
    return NULL;
}

/* Apart, since nobody may wait for the device during a capture. */
static void *work_by_graphs(void *arg)
{
    struct set set = {0};
    (void)arg;
    make(&set);
    for (int round = 0; round < ROUNDS; round++)
        by_graph(&set, round);
    unmake(&set);
    return NULL;
}

/* ── Callbacks of a report thread ─────────────────────────────────────────────────────────── */

static atomic_bool stop;

static void *report(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        (void)aclrtProcessReport(10);
    return NULL;
}

static void by_callback(void)
{
    aclrtStream stream;
    pthread_t thread;
    int value = 0;
    OK(aclrtCreateStream(&stream));
    if (pthread_create(&thread, NULL, report, NULL) != 0)
        exit(7);
    OK(aclrtSubscribeReport((uint64_t)thread, stream));
    for (int i = 1; i <= ROUNDS; i++) {
        value++;
        OK(aclrtLaunchCallback(add_one, &value, ACL_CALLBACK_BLOCK, stream));
        OK(aclrtSynchronizeStream(stream));
        if (value != 2 * i)
            exit(8);
    }
    OK(aclrtUnSubscribeReport((uint64_t)thread, stream));
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    pthread_join(thread, NULL);
    OK(aclrtDestroyStream(stream));
}

static void in_two_threads(void *(*fn)(void *))
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, fn, NULL) != 0)
            exit(7);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void ordered(void)
{
    in_two_threads(work);
    in_two_threads(work_by_graphs);
    by_callback();
}

/* ── What nothing orders ──────────────────────────────────────────────────────────────────── */

static void unordered(struct set *set, int which)
{
    aclmdlRI graph;
    send(set, set->stream, 1);
    switch (which) {
    case 0: /* reads what a copy is still to write */
        fetch(set, set->stream);
        fprintf(stderr, "read %d\n", set->out[0]);
        break;
    case 1: /* writes what a copy is still to read */
        set->in[BYTES - 1] = 2;
        break;
    case 2: /* waits for the wrong event: the copy comes behind its record */
        OK(aclrtRecordEvent(set->modern, set->stream));
        OK(aclrtLaunchHostFunc(set->stream, add_one, &set->plain));
        OK(aclrtSynchronizeEvent(set->modern));
        fprintf(stderr, "read %d\n", set->plain);
        break;
    case 3: /* reads what a run of a graph is still to write */
        OK(aclrtSynchronizeStream(set->stream));
        OK(aclmdlRICaptureBegin(set->stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
        fetch(set, set->stream);
        OK(aclmdlRICaptureEnd(set->stream, &graph));
        OK(aclmdlRIExecuteAsync(graph, set->stream));
        fprintf(stderr, "read %d\n", set->out[0]);
        break;
    default: /* reads what a host function writes */
        OK(aclrtLaunchHostFunc(set->stream, add_one, &set->plain));
        fprintf(stderr, "read %d\n", set->plain);
        break;
    }
    OK(aclrtSynchronizeStream(set->stream));
}

int main(int argc, char **argv)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    if (argc == 2 && strcmp(argv[1], "ordered") == 0) {
        ordered();
    } else if (argc == 3 && strcmp(argv[1], "unordered") == 0) {
        struct set set = {0};
        make(&set);
        unordered(&set, atoi(argv[2]));
        unmake(&set);
    } else {
        return 64;
    }
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    fprintf(stderr, "done\n");
    return 0;
}
