/* SPDX-License-Identifier: Apache-2.0
 *
 * serving - the detection service under load: many requests in flight, a thread and a stream each,
 * and a choice of who gives them memory.
 *
 *     serving [--allocator stock|caching|pool] [--concurrent N] [--requests N]
 *
 * A request runs through the layers of a detector's stand-in. Each layer takes its output and a
 * workspace and gives its input back; two early feature maps live to the end, as a detector's neck
 * wants them. Layers carry the picture along, so that answers can be checked against what was
 * drawn: memory that two requests have at once shows as a wrong answer.
 */
#include "../acl_check.h"
#include "../detection_service/scene.h"
#include "allocator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { CONCURRENT_MAX = 1024, REQUESTS_MAX = 1 << 20, BATCH_MAX = 4, SIDE_MAX = 192, TENSORS = 32 };

static const int CAMERAS[][2] = {{96, 96}, {128, 96}, {160, 128}, {192, 128}, {192, 192}};
/* Bytes of each layer's output and workspace, in pictures of the input. */
static const struct {
    int output, workspace;
    bool kept;
} LAYERS[] = {{8, 4, false}, {8, 8, true},  {4, 4, false}, {4, 4, true},
              {2, 2, false}, {2, 2, false}, {3, 1, false}};
#define N_LAYERS (sizeof(LAYERS) / sizeof(LAYERS[0]))

static struct {
    const struct allocator *allocator;
    aclrtContext context;
    int n_concurrent, n_requests;
    atomic_int next, found, drawn, wrong;
    float *latency_ms;
} service = {&allocator_stock, NULL, 200, 2000, 0, 0, 0, 0, NULL};

struct worker {
    aclrtStream stream;
    uint8_t *input, *output; /* pinned */
    void *late[TENSORS];     /* to be given back when the stream has passed */
    int n_late;
};

static double ms_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- memory ------------------------------------------------------------------------------- */

static void *take(const struct worker *worker, size_t bytes)
{
    return service.allocator->take(bytes, worker->stream);
}

static void give(struct worker *worker, void *memory)
{
    if (service.allocator->in_stream_order)
        service.allocator->give(memory, worker->stream);
    else
        worker->late[worker->n_late++] = memory;
}

static void wait_for_stream(struct worker *worker)
{
    CHECK_ACL(aclrtSynchronizeStream(worker->stream));
    while (worker->n_late > 0)
        service.allocator->give(worker->late[--worker->n_late], worker->stream);
}

/* --- one request -------------------------------------------------------------------------- */

struct request {
    int batch, width, height;
    int drawn[BATCH_MAX];
};

static struct request request_make(int id, uint8_t *planes)
{
    static _Thread_local uint8_t pixels[SIDE_MAX * SIDE_MAX * SCENE_CHANNELS];
    uint32_t random = ((uint32_t)id + 1) * 2654435761u;
    int camera = (int)(random >> 8) % (int)(sizeof(CAMERAS) / sizeof(CAMERAS[0]));
    struct request request = {.batch = 1 + (int)(random >> 16) % BATCH_MAX,
                              .width = CAMERAS[camera][0],
                              .height = CAMERAS[camera][1]};
    size_t area = (size_t)request.width * (size_t)request.height;
    for (int i = 0; i < request.batch; i++) {
        struct scene scene = scene_make(random + (uint32_t)i, request.width, request.height);
        request.drawn[i] = scene.n_objects;
        scene_render(&scene, random + (uint32_t)i, pixels);
        for (size_t p = 0; p < area; p++)
            for (size_t c = 0; c < SCENE_CHANNELS; c++)
                planes[((size_t)i * SCENE_CHANNELS + c) * area + p] =
                    pixels[p * SCENE_CHANNELS + c];
    }
    return request;
}

/* Queues the whole network; the answer comes into worker->output. */
static void run_network(struct worker *worker, size_t picture)
{
    void *kept[N_LAYERS], *input = take(worker, picture);
    size_t n_kept = 0;
    CHECK_ACL(aclrtMemcpyAsync(input, picture, worker->input, picture, ACL_MEMCPY_HOST_TO_DEVICE,
                               worker->stream));
    for (size_t i = 0; i < N_LAYERS; i++) {
        size_t bytes = picture * (size_t)LAYERS[i].output;
        size_t scratch = picture * (size_t)LAYERS[i].workspace;
        void *workspace = take(worker, scratch), *output = take(worker, bytes);
        CHECK_ACL(aclrtMemsetAsync(workspace, scratch, 7, scratch, worker->stream));
        CHECK_ACL(aclrtMemsetAsync(output, bytes, 0, bytes, worker->stream));
        CHECK_ACL(aclrtMemcpyAsync(output, bytes, input, picture, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                   worker->stream));
        give(worker, workspace);
        if (i > 0 && LAYERS[i - 1].kept)
            kept[n_kept++] = input;
        else
            give(worker, input);
        input = output;
    }
    CHECK_ACL(aclrtMemcpyAsync(worker->output, picture, input, picture, ACL_MEMCPY_DEVICE_TO_HOST,
                               worker->stream));
    give(worker, input);
    while (n_kept > 0)
        give(worker, kept[--n_kept]);
}

static void check_answer(const struct request *request, const uint8_t *planes)
{
    static _Thread_local uint16_t labels[SIDE_MAX * SIDE_MAX];
    size_t area = (size_t)request->width * (size_t)request->height;
    for (int i = 0; i < request->batch; i++) {
        int found = scene_count_objects(planes + (size_t)i * SCENE_CHANNELS * area, request->width,
                                        request->height, (size_t)request->width, labels);
        atomic_fetch_add(&service.found, found);
        atomic_fetch_add(&service.drawn, request->drawn[i]);
        if (found != request->drawn[i])
            atomic_fetch_add(&service.wrong, 1);
    }
}

static void serve(struct worker *worker, int id)
{
    double start = ms_now();
    struct request request = request_make(id, worker->input);
    run_network(worker, (size_t)request.batch * SCENE_CHANNELS * (size_t)request.width *
                            (size_t)request.height);
    wait_for_stream(worker);
    check_answer(&request, worker->output);
    service.latency_ms[id] = (float)(ms_now() - start);
}

static void *worker_main(void *arg)
{
    struct worker worker = {0};
    size_t room = (size_t)BATCH_MAX * SCENE_CHANNELS * SIDE_MAX * SIDE_MAX;
    (void)arg;
    CHECK_ACL(aclrtSetCurrentContext(service.context));
    CHECK_ACL(aclrtCreateStream(&worker.stream));
    CHECK_ACL(aclrtMallocHost((void **)&worker.input, room));
    CHECK_ACL(aclrtMallocHost((void **)&worker.output, room));
    int id = atomic_fetch_add(&service.next, 1);
    for (; id < service.n_requests; id = atomic_fetch_add(&service.next, 1))
        serve(&worker, id);
    CHECK_ACL(aclrtFreeHost(worker.input));
    CHECK_ACL(aclrtFreeHost(worker.output));
    CHECK_ACL(aclrtDestroyStream(worker.stream));
    return NULL;
}

/* --- the service -------------------------------------------------------------------------- */

static void run_workers(void)
{
    static pthread_t threads[CONCURRENT_MAX];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
    for (int i = 0; i < service.n_concurrent; i++) {
        int error = pthread_create(&threads[i], &attributes, worker_main, NULL);
        if (error != 0) {
            fprintf(stderr, "thread %d of %d: %s\n", i, service.n_concurrent, strerror(error));
            exit(1);
        }
    }
    for (int i = 0; i < service.n_concurrent; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_summary(double seconds)
{
    int n = service.n_requests;
    qsort(service.latency_ms, (size_t)n, sizeof(float), by_value);
    printf("allocator %s concurrent %d requests %d seconds %.3f per_second %.1f p50_ms %.2f p99_ms "
           "%.2f drawn %d found %d wrong %d\n",
           service.allocator->name, service.n_concurrent, n, seconds, n / seconds,
           (double)service.latency_ms[n / 2], (double)service.latency_ms[(size_t)n * 99 / 100],
           atomic_load(&service.drawn), atomic_load(&service.found), atomic_load(&service.wrong));
}

static int usage(void)
{
    fprintf(stderr,
            "serving [--allocator stock|caching|pool] [--concurrent 1..%d] "
            "[--requests 1..%d]\n",
            CONCURRENT_MAX, REQUESTS_MAX);
    return 2;
}

static bool take_number(const char *text, int max, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < 1 || number > max)
        return false;
    *value = (int)number;
    return true;
}

static bool take_allocator(const char *name)
{
    static const struct allocator *const all[] = {&allocator_stock, &allocator_caching,
                                                  &allocator_pool};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            service.allocator = all[i];
            return true;
        }
    }
    return false;
}

static bool take_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        bool ok = i + 1 < argc;
        if (ok && strcmp(argv[i], "--allocator") == 0)
            ok = take_allocator(argv[i + 1]);
        else if (ok && strcmp(argv[i], "--concurrent") == 0)
            ok = take_number(argv[i + 1], CONCURRENT_MAX, &service.n_concurrent);
        else if (ok && strcmp(argv[i], "--requests") == 0)
            ok = take_number(argv[i + 1], REQUESTS_MAX, &service.n_requests);
        else
            ok = false;
        if (!ok)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!take_arguments(argc, argv))
        return usage();
    service.latency_ms = calloc((size_t)service.n_requests, sizeof(float));
    if (service.latency_ms == NULL)
        return 1;
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtGetCurrentContext(&service.context));
    service.allocator->start();
    double start = ms_now();
    run_workers();
    print_summary((ms_now() - start) / 1e3);
    service.allocator->stop();
    free(service.latency_ms);
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return atomic_load(&service.wrong) != 0;
}
