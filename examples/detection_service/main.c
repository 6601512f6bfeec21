/* SPDX-License-Identifier: Apache-2.0
 *
 * detection_service - an inference service as people write them against AscendCL: requests with
 * changing batch and picture sizes, one worker thread and stream each, buffers allocated for
 * every request. The network is a stand-in that moves as many bytes through as many buffers as a
 * detector of that size, and carries the picture from the input to the output, so that what the
 * service finds can be checked against what was drawn.
 *
 *   traffic ─► queue ─► worker (stream) ─► upload ─► letterbox ─► backbone ─► head ─► boxes
 *
 * It has a fault of the kind that real services have. The memory report shows it.
 */
#include "../acl_check.h"
#include "scene.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum {
    N_REQUESTS = 500,
    N_WORKERS = 3,
    QUEUE_DEPTH = 32,
    MAX_BATCH = 8,
    STRIDE = 32, /* input sides are multiples of it */
    MEAN_GAP_US = 4000,
    CLASSES = 80,
};

static const int CAMERAS[][2] = {{640, 360}, {640, 480}, {416, 416}, {320, 240}, {512, 288}};

struct request {
    int id, batch, width, height;
    struct timespec arrived;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct request items[QUEUE_DEPTH];
    int head, count;
    bool closed;
};

struct worker {
    pthread_t thread;
    struct service *service;
    int found, drawn, wrong, served;
    double latency_ms[N_REQUESTS];
};

struct service {
    aclrtContext context;
    struct queue queue;
    void *weights;
    size_t weight_bytes;
    struct worker workers[N_WORKERS];
};

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static double ms_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 +
           (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

/* --- traffic ----------------------------------------------------------------------------- */

static void queue_push(struct queue *queue, struct request request)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == QUEUE_DEPTH)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    clock_gettime(CLOCK_MONOTONIC, &request.arrived);
    queue->items[(queue->head + queue->count++) % QUEUE_DEPTH] = request;
    pthread_cond_signal(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static bool queue_pop(struct queue *queue, struct request *request)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    bool got = queue->count > 0;
    if (got) {
        *request = queue->items[queue->head];
        queue->head = (queue->head + 1) % QUEUE_DEPTH;
        queue->count--;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->lock);
    return got;
}

/* Bursts and pauses: gaps are short three times out of four. */
static void send_traffic(struct queue *queue)
{
    uint32_t state = 2026;
    for (int id = 0; id < N_REQUESTS; id++) {
        state = state * 1664525u + 1013904223u;
        int camera = (int)(state >> 20) % (int)(sizeof(CAMERAS) / sizeof(CAMERAS[0]));
        struct request request = {.id = id,
                                  .width = CAMERAS[camera][0],
                                  .height = CAMERAS[camera][1],
                                  .batch = 1 + (int)(state >> 16) % MAX_BATCH};
        queue_push(queue, request);
        long gap_us = (state >> 13) % 4 ? MEAN_GAP_US / 4 : MEAN_GAP_US * 3;
        nanosleep(&(struct timespec){.tv_nsec = gap_us * 1000}, NULL);
    }
    queue_close(queue);
}

/* --- the network's stand-in --------------------------------------------------------------- */

struct buffers {
    void *canvas;      /* batch x 3 x h x w, one byte a value: the letterboxed pictures */
    void *features[3]; /* strides 8, 16, 32; half floats */
    void *candidates;  /* boxes before suppression: 85 floats for each anchor */
    size_t canvas_bytes, feature_bytes[3], candidate_bytes;
    int width, height;
};

static struct buffers buffers_make(const struct request *request)
{
    struct buffers b = {.width = (int)round_up((size_t)request->width, STRIDE),
                        .height = (int)round_up((size_t)request->height, STRIDE)};
    size_t batch = (size_t)request->batch, area = (size_t)b.width * (size_t)b.height;
    b.canvas_bytes = batch * SCENE_CHANNELS * area;
    CHECK_ACL(aclrtMalloc(&b.canvas, b.canvas_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    size_t anchors = 0;
    for (int level = 0; level < 3; level++) {
        size_t stride = (size_t)8 << level, channels = (size_t)128 << level;
        b.feature_bytes[level] = batch * area / (stride * stride) * channels * 2;
        CHECK_ACL(
            aclrtMalloc(&b.features[level], b.feature_bytes[level], ACL_MEM_MALLOC_HUGE_FIRST));
        anchors += 3 * area / (stride * stride);
    }
    b.candidate_bytes = batch * anchors * (CLASSES + 5) * sizeof(float);
    CHECK_ACL(aclrtMalloc(&b.candidates, b.candidate_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return b;
}

static void buffers_free_network(struct buffers *b)
{
    CHECK_ACL(aclrtFree(b->canvas));
    for (int level = 0; level < 3; level++)
        CHECK_ACL(aclrtFree(b->features[level]));
}

/* Reads weights and input, writes every feature map, ends with the picture in `candidates`. */
static void run_network(const struct service *service, struct buffers *b, aclrtStream stream)
{
    for (int level = 0; level < 3; level++) {
        size_t bytes = b->feature_bytes[level];
        size_t weights = bytes < service->weight_bytes ? bytes : service->weight_bytes;
        CHECK_ACL(aclrtMemsetAsync(b->features[level], bytes, 0, bytes, stream));
        CHECK_ACL(aclrtMemcpyAsync(b->features[level], bytes, service->weights, weights,
                                   ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    }
    CHECK_ACL(aclrtMemsetAsync(b->candidates, b->candidate_bytes, 0, b->candidate_bytes, stream));
    CHECK_ACL(aclrtMemcpyAsync(b->candidates, b->candidate_bytes, b->canvas, b->canvas_bytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
}

/* --- one request -------------------------------------------------------------------------- */

/* Puts each picture's first channel plane by plane into the padded canvas. */
static void upload(const struct request *request, const struct buffers *b, const uint8_t *planes,
                   aclrtStream stream)
{
    size_t plane = (size_t)request->width * (size_t)request->height;
    size_t padded = (size_t)b->width * (size_t)b->height;
    CHECK_ACL(aclrtMemsetAsync(b->canvas, b->canvas_bytes, 0, b->canvas_bytes, stream));
    for (size_t i = 0; i < (size_t)request->batch * SCENE_CHANNELS; i++)
        CHECK_ACL(aclrtMemcpy2dAsync((uint8_t *)b->canvas + i * padded, (size_t)b->width,
                                     planes + i * plane, (size_t)request->width,
                                     (size_t)request->width, (size_t)request->height,
                                     ACL_MEMCPY_HOST_TO_DEVICE, stream));
}

static void draw_pictures(const struct request *request, uint8_t *pixels, uint8_t *planes,
                          int drawn[MAX_BATCH])
{
    size_t area = (size_t)request->width * (size_t)request->height;
    for (int i = 0; i < request->batch; i++) {
        uint32_t seed = (uint32_t)(request->id * MAX_BATCH + i);
        struct scene scene = scene_make(seed * 2654435761u, request->width, request->height);
        drawn[i] = scene.n_objects;
        scene_render(&scene, seed, pixels);
        uint8_t *plane = planes + (size_t)i * SCENE_CHANNELS * area;
        for (size_t p = 0; p < area; p++)
            for (size_t c = 0; c < SCENE_CHANNELS; c++)
                plane[c * area + p] = pixels[p * SCENE_CHANNELS + c];
    }
}

static void serve(struct worker *worker, const struct request *request, aclrtStream stream)
{
    size_t area = (size_t)request->width * (size_t)request->height;
    void *planes, *heads;
    CHECK_ACL(aclrtMallocHost(&planes, (size_t)request->batch * SCENE_CHANNELS * area));
    uint8_t *pixels = malloc(area * SCENE_CHANNELS);
    int drawn[MAX_BATCH];
    draw_pictures(request, pixels, planes, drawn);
    free(pixels);

    struct buffers b = buffers_make(request);
    CHECK_ACL(aclrtMallocHost(&heads, b.canvas_bytes));
    upload(request, &b, planes, stream);
    run_network(worker->service, &b, stream);
    CHECK_ACL(aclrtMemcpyAsync(heads, b.canvas_bytes, b.candidates, b.canvas_bytes,
                               ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream));

    size_t padded = (size_t)b.width * (size_t)b.height;
    uint16_t *labels = malloc(padded * sizeof(*labels));
    int found_all = 0;
    for (int i = 0; i < request->batch; i++) {
        const uint8_t *plane = (const uint8_t *)heads + (size_t)i * SCENE_CHANNELS * padded;
        int found = scene_count_objects(plane, b.width, b.height, (size_t)b.width, labels);
        worker->wrong += found != drawn[i];
        worker->drawn += drawn[i];
        found_all += found;
    }
    free(labels);
    worker->found += found_all;
    CHECK_ACL(aclrtFreeHost(planes));
    CHECK_ACL(aclrtFreeHost(heads));
    buffers_free_network(&b);
    if (found_all == 0)
        return; /* nothing to suppress: the early way out, and the fault */
    CHECK_ACL(aclrtFree(b.candidates));
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    CHECK_ACL(aclrtSetCurrentContext(worker->service->context));
    aclrtStream stream;
    CHECK_ACL(aclrtCreateStream(&stream));
    struct request request;
    while (queue_pop(&worker->service->queue, &request)) {
        serve(worker, &request, stream);
        worker->latency_ms[worker->served++] = ms_since(&request.arrived);
    }
    CHECK_ACL(aclrtDestroyStream(stream));
    return NULL;
}

/* --- the service -------------------------------------------------------------------------- */

static void load_weights(struct service *service)
{
    service->weight_bytes = (size_t)92 << 20;
    void *host;
    CHECK_ACL(aclrtMallocHost(&host, service->weight_bytes));
    memset(host, 1, service->weight_bytes);
    CHECK_ACL(aclrtMalloc(&service->weights, service->weight_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_ACL(aclrtMemcpy(service->weights, service->weight_bytes, host, service->weight_bytes,
                          ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_ACL(aclrtFreeHost(host));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int print_summary(const struct service *service, double seconds)
{
    static double latency[N_REQUESTS];
    int served = 0, found = 0, drawn = 0, wrong = 0;
    for (int w = 0; w < N_WORKERS; w++) {
        const struct worker *worker = &service->workers[w];
        memcpy(latency + served, worker->latency_ms, (size_t)worker->served * sizeof(double));
        served += worker->served;
        found += worker->found;
        drawn += worker->drawn;
        wrong += worker->wrong;
    }
    qsort(latency, (size_t)served, sizeof(double), by_value);
    size_t free, total;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    printf("served %d requests in %.1f s on %d streams: %d objects drawn, %d found, %d pictures "
           "wrong\n",
           served, seconds, N_WORKERS, drawn, found, wrong);
    printf("latency p50 %.1f ms, p99 %.1f ms; card memory: %zu MiB of %zu MiB free at the end\n",
           latency[served / 2], latency[served * 99 / 100], free >> 20, total >> 20);
    return wrong != 0 || served != N_REQUESTS;
}

int main(void)
{
    static struct service service;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    CHECK_ACL(aclInit(NULL));
    CHECK_ACL(aclrtSetDevice(0));
    CHECK_ACL(aclrtGetCurrentContext(&service.context));
    printf("detection service on %s\n", aclrtGetSocName());
    fflush(stdout);
    load_weights(&service);

    pthread_mutex_init(&service.queue.lock, NULL);
    pthread_cond_init(&service.queue.not_empty, NULL);
    pthread_cond_init(&service.queue.not_full, NULL);
    for (int w = 0; w < N_WORKERS; w++) {
        service.workers[w].service = &service;
        pthread_create(&service.workers[w].thread, NULL, worker_main, &service.workers[w]);
    }
    send_traffic(&service.queue);
    for (int w = 0; w < N_WORKERS; w++)
        pthread_join(service.workers[w].thread, NULL);

    int failed = print_summary(&service, ms_since(&start) / 1e3);
    fflush(stdout);
    CHECK_ACL(aclrtFree(service.weights));
    CHECK_ACL(aclrtResetDevice(0));
    CHECK_ACL(aclFinalize());
    return failed;
}
