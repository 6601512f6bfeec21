/* SPDX-License-Identifier: Apache-2.0
 *
 * soak.c - one recorded program again and again in one pool on the software card: does anything
 * grow?
 *
 *   soak [--seconds N] TRACE.tsv.zst      (an hour unless said)
 *
 * Each allocation and each use by another stream is a task of that stream. A round ends with all
 * streams synchronised and every block freed. What the first tenth of the time (ten rounds at
 * least) has seen at most may be exceeded by 5 % from then on; more in ten rounds on end ends the
 * run with 1. On a busy machine a round now and then takes memory rather than wait for a stream.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <belay/card.h>
#include <belay/kernel.h>
#include <belay/pool.h>
#include "base/fail.h"
#include "base/map.h"
#include "npu/context.h"
#include "npu/runtime.h"
#include "npu/stream.h"
#include "recorded.h"

#define STREAMS    (RECORDED_ALL + 1)
#define ABOVE_MOST 10u

struct figures {
    uint64_t held, metadata, card_used, host_kib, blocks;
    uint64_t allocs, handle_ops, waits; /* so far */
};

static bly_stream streams[STREAMS];
static struct blyi_map blocks;

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "soak: %s: %s\n", what, blyi_fail_text());
    exit(2);
}

static uint64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Of this process, but for the card's memory. */
static uint64_t anonymous_kib(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kib;
}

static void nothing(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
}

static bly_stream stream_of(uint32_t number)
{
    bly_stream *stream = &streams[number < STREAMS ? number : RECORDED_ALL];
    if (*stream == NULL)
        need(blyi_stream_create(0, 0, 0, stream) == BLY_OK, "a stream");
    return *stream;
}

static void put_work(bly_stream stream)
{
    need(bly_kernel_launch(nothing, NULL, 0, NULL, stream) == BLY_OK, "a task");
}

static void sync_all(void)
{
    for (uint32_t i = 0; i < STREAMS; i++)
        if (streams[i] != NULL)
            need(blyi_stream_sync(streams[i], 0) == BLY_OK, "a stream's end");
}

static void take(bly_pool *pool, const struct recorded_event *e)
{
    void *block;
    need(bly_pool_alloc(pool, e->bytes, stream_of(e->stream), &block) == BLY_OK, "a block");
    put_work(stream_of(e->stream));
    need(blyi_map_put(&blocks, e->id, block) == BLY_OK, "host memory");
}

static void step(bly_pool *pool, const struct recorded_event *e)
{
    void *block = blyi_map_get(&blocks, e->id);
    if (e->op == 'a') {
        take(pool, e);
    } else if (e->op == 'f' && block != NULL) {
        (void)blyi_map_remove(&blocks, e->id);
        need(bly_pool_free(block) == BLY_OK, "a free");
    } else if (e->op == 'u' && block != NULL) {
        put_work(stream_of(e->stream));
        need(bly_pool_use(block, stream_of(e->stream)) == BLY_OK, "a use");
    } else if (e->op == 's' && e->stream == RECORDED_ALL) {
        sync_all();
    } else if (e->op == 's') {
        need(blyi_stream_sync(stream_of(e->stream), 0) == BLY_OK, "a stream's end");
    }
}

static struct figures run_round(bly_pool *pool, const struct recorded *t)
{
    bly_card card = {.struct_size = sizeof card};
    for (size_t i = 0; i < t->n; i++)
        step(pool, &t->events[i]);
    for (size_t i = 0; i < t->n; i++) {
        void *left = t->events[i].op == 'a' ? blyi_map_remove(&blocks, t->events[i].id) : NULL;
        if (left != NULL)
            need(bly_pool_free(left) == BLY_OK, "a free");
    }
    sync_all();
    need(bly_pool_poll(pool) == BLY_OK && bly_pool_audit(pool) == BLY_OK, "the pool's audit");
    bly_pool_info info = {.struct_size = sizeof info};
    need(bly_pool_get_info(pool, &info) == BLY_OK, "the pool's figures");
    need(bly_card_info(0, &card) == BLY_OK, "the card's figures");
    return (struct figures){.held = info.reserved,
                            .metadata = info.metadata,
                            .card_used = card.total - card.free,
                            .host_kib = anonymous_kib(),
                            .blocks = info.blocks + info.waiting,
                            .allocs = info.allocs,
                            .handle_ops = info.handle_ops,
                            .waits = info.waits};
}

static void raise_to(struct figures *most, const struct figures *now)
{
    most->held = now->held > most->held ? now->held : most->held;
    most->metadata = now->metadata > most->metadata ? now->metadata : most->metadata;
    most->card_used = now->card_used > most->card_used ? now->card_used : most->card_used;
    most->host_kib = now->host_kib > most->host_kib ? now->host_kib : most->host_kib;
}

/* Threads race, so figures move a little from round to round: 5 %. */
static bool is_above(uint64_t most, uint64_t now)
{
    return now > most + most / 20;
}

static bool has_grown(const struct figures *most, const struct figures *now)
{
    return is_above(most->held, now->held) || is_above(most->card_used, now->card_used) ||
           is_above(most->metadata, now->metadata) || is_above(most->host_kib, now->host_kib);
}

/* Of 1,000 allocations since the row before. */
static double of_thousand(uint64_t was, uint64_t now, uint64_t allocs)
{
    return allocs > 0 ? 1000.0 * (double)(now - was) / (double)allocs : 0;
}

static void print(uint64_t at, uint64_t rounds, const struct figures *now)
{
    static struct figures was;
    uint64_t allocs = now->allocs - was.allocs;
    printf("%6" PRIu64 " s %8" PRIu64
           " rounds  held %.1f MiB  card used %.1f MiB  metadata %" PRIu64 " B  host %" PRIu64
           " KiB  handle operations %.2f, waits %.2f of 1,000\n",
           at, rounds, (double)now->held / (1 << 20), (double)now->card_used / (1 << 20),
           now->metadata, now->host_kib, of_thousand(was.handle_ops, now->handle_ops, allocs),
           of_thousand(was.waits, now->waits, allocs));
    fflush(stdout);
    was = *now;
}

static int soak(bly_pool *pool, const struct recorded *t, uint64_t length)
{
    struct figures most = {0}, now = {0};
    uint64_t begin = seconds(), next = 0, at = 0, rounds = 0;
    unsigned above = 0; /* rounds on end */
    do {
        now = run_round(pool, t);
        at = seconds() - begin;
        rounds++;
        need(now.blocks == 0, "a block that is still there");
        if (rounds <= 10 || at < length / 10)
            raise_to(&most, &now);
        else
            above = has_grown(&most, &now) ? above + 1 : 0;
        if (at >= next) {
            print(at, rounds, &now);
            next = at + 60;
        }
    } while (at < length && above < ABOVE_MOST);
    print(at, rounds, &now);
    printf("%s: %" PRIu64
           " allocations; at most in the first tenth: held %.1f MiB, metadata %" PRIu64
           " B, host %" PRIu64 " KiB\n",
           above == ABOVE_MOST ? "grown" : "nothing has grown", rounds * t->allocs,
           (double)most.held / (1 << 20), most.metadata, most.host_kib);
    return above == ABOVE_MOST;
}

int main(int argc, char **argv)
{
    uint64_t length = 3600;
    int i = 1;
    if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
        length = strtoull(argv[i + 1], NULL, 0);
        i += 2;
    }
    if (i != argc - 1 || argv[i][0] == '-') { /* make bench runs it without a trace */
        printf("soak [--seconds N] TRACE.tsv.zst\n");
        return 0;
    }
    struct recorded t = recorded_read(argv[i]);
    need(t.n > 0, "no recording in that file");
    bly_pool *pool;
    blyi_map_init(&blocks);
    need(blyi_device_set(0, 0) == BLY_OK, "a card");
    need(bly_pool_create(NULL, &pool) == BLY_OK, "a pool");
    int grown = soak(pool, &t, length);
    need(bly_pool_destroy(pool) == BLY_OK, "the pool's end");
    blyi_runtime_finalise();
    blyi_map_fini(&blocks);
    free(t.events);
    return grown;
}
