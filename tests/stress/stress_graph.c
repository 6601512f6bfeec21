/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_graph.c - random graphs beside a naive interpreter.
 *
 * Each thread captures random graphs from several streams on its own words of card memory, with
 * events where two streams meet on a word, so that a run does what the captured calls do one after
 * another. The interpreter keeps those calls as a list and runs it over a model. Graphs are run on
 * any stream, updated, disabled in part, aborted while paused, and destroyed; at random points all
 * is synchronised and compared. TEST_SEED repeats a run, TEST_STEPS sets its length.
 */
#include <belay/kernel.h>

#include <inttypes.h>
#include <time.h>

#include "../unit/npu/order_test.h"
#include "npu/abort.h"
#include "npu/copy.h"
#include "npu/graph.h"

#define ok(call) require((call) == BLY_OK)

enum { THREADS = 3, STREAMS = 4, WORDS = 24, GRAPHS = 3, CALLS = 60 };

enum what { COPY, SET, ADD, CALLED };

struct call {
    enum what what;
    int to, from;
    uint64_t value;
};

struct graph {
    void *handle;
    void *group; /* its ADD calls, in a row */
    int grouped[CALLS], n_grouped;
    struct call calls[CALLS];
    int n;
};

struct program {
    uint64_t rng, seed;
    int steps;
    void *streams[STREAMS];
    uint64_t *words;
    uint64_t model[WORDS];
    struct graph graphs[GRAPHS];
    uint32_t called, calls;
};

static uint64_t next(struct program *p)
{
    p->rng ^= p->rng >> 12;
    p->rng ^= p->rng << 25;
    p->rng ^= p->rng >> 27;
    return p->rng * 0x2545f4914f6cdd1du;
}

static int below(struct program *p, int n)
{
    return (int)((next(p) >> 33) % (uint64_t)n);
}

struct add {
    uint64_t *word;
    uint64_t value;
};

static void run_add(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct add *add = args;
    (void)block, (void)n_blocks;
    *add->word += add->value;
}

static void count_call(void *arg)
{
    struct program *p = arg;
    __atomic_fetch_add(&p->called, 1, __ATOMIC_RELAXED);
}

static void put_add(struct program *p, const struct call *call, void *stream)
{
    struct add add = {p->words + call->to, call->value};
    bly_range range = {add.word, sizeof(uint64_t), BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.ranges = &range;
    opts.n_ranges = 1;
    ok(bly_kernel_launch(run_add, &add, sizeof(add), &opts, stream));
}

static void put_call(struct program *p, const struct call *call, void *stream)
{
    switch (call->what) {
    case COPY:
        ok(blyi_copy_async(p->words + call->to, p->words + call->from, 8, stream, 0));
        break;
    case SET:
        ok(blyi_set_async(p->words + call->to, (uint8_t)call->value, 8, stream, 0));
        break;
    case ADD:
        put_add(p, call, stream);
        break;
    case CALLED:
        ok(blyi_callback_host_func(stream, count_call, p, 0));
        break;
    }
}

static struct call random_call(struct program *p)
{
    struct call call = {(enum what)below(p, 4), below(p, WORDS), below(p, WORDS), next(p) & 0xff};
    if (call.what == COPY && call.to == call.from)
        call.what = SET;
    if (call.what == CALLED && below(p, 4) != 0)
        call.what = ADD;
    return call;
}

static void interpret(struct program *p, const struct graph *graph)
{
    for (int i = 0; i < graph->n; i++) {
        const struct call *call = &graph->calls[i];
        switch (call->what) {
        case COPY:
            p->model[call->to] = p->model[call->from];
            break;
        case SET:
            memset(&p->model[call->to], (int)call->value, 8);
            break;
        case ADD:
            p->model[call->to] += call->value;
            break;
        case CALLED:
            p->calls++;
            break;
        }
    }
}

/* `stream` comes behind all that `after` was given so far. */
static void put_behind(void *stream, void *after)
{
    void *event;
    ok(blyi_event_create(BLYI_EVENT_SYNC, true, 0, &event));
    ok(blyi_event_record(event, after, 0));
    ok(blyi_event_wait(event, stream, 0, 0));
    ok(blyi_event_destroy(event));
}

/* One call after another, wherever they are put: the stream of a call waits for the one before. */
static void capture(struct program *p, struct graph *graph)
{
    int at = below(p, STREAMS), origin = at;
    uint32_t in = 1u << origin;
    *graph = (struct graph){.n = 1 + below(p, CALLS)};
    ok(blyi_capture_begin(p->streams[origin], NULL, BLYI_CAPTURE_RELAXED, 0));
    int group_at = below(p, 2 * graph->n); /* often none */
    for (int i = 0; i < graph->n; i++) {
        graph->calls[i] = random_call(p);
        if (below(p, 3) == 0) {
            int to = below(p, STREAMS);
            if (to != at)
                put_behind(p->streams[to], p->streams[at]);
            in |= 1u << to;
            at = to;
        }
        if (i == group_at) {
            ok(blyi_group_begin(p->streams[at]));
            int n = 1 + below(p, 3);
            for (; n > 0 && i < graph->n; n--, i++) {
                graph->calls[i] = random_call(p);
                graph->calls[i].what = ADD;
                graph->grouped[graph->n_grouped++] = i;
                put_call(p, &graph->calls[i], p->streams[at]);
            }
            ok(blyi_group_end(p->streams[at], &graph->group));
            i--;
            continue;
        }
        put_call(p, &graph->calls[i], p->streams[at]);
    }
    for (int i = 0; i < STREAMS; i++)
        if (i != origin && (in >> i & 1))
            put_behind(p->streams[origin], p->streams[i]);
    ok(blyi_capture_end(p->streams[origin], &graph->handle));
}

/* The streams come one behind the other too, as the model has them. */
static void run(struct program *p, const struct graph *graph, int *last)
{
    int on = below(p, STREAMS);
    if (on != *last)
        put_behind(p->streams[on], p->streams[*last]);
    ok(blyi_graph_execute(graph->handle, p->streams[on], 0));
    interpret(p, graph);
    *last = on;
}

static void update(struct program *p, struct graph *graph, int *last)
{
    int on = below(p, STREAMS);
    if (graph->group == NULL)
        return;
    if (on != *last)
        put_behind(p->streams[on], p->streams[*last]);
    ok(blyi_update_begin(p->streams[on], graph->group));
    for (int i = 0; i < graph->n_grouped; i++) {
        struct call *call = &graph->calls[graph->grouped[i]];
        *call = random_call(p);
        call->what = ADD;
        put_add(p, call, p->streams[on]);
    }
    ok(blyi_update_end(p->streams[on]));
    *last = on;
}

static void compare(struct program *p)
{
    uint64_t got[WORDS];
    for (int i = 0; i < STREAMS; i++)
        ok(blyi_stream_sync(p->streams[i], 0));
    ok(blyi_copy_now(got, p->words, sizeof(got)));
    for (int i = 0; i < WORDS; i++)
        if (got[i] != p->model[i]) {
            fprintf(stderr, "seed %" PRIu64 ": word %d is %" PRIx64 ", not %" PRIx64 "\n", p->seed,
                    i, got[i], p->model[i]);
            abort();
        }
    require(__atomic_load_n(&p->called, __ATOMIC_RELAXED) == p->calls);
}

/* A run that is aborted before it begins leaves nothing behind. */
static void abort_run(struct program *p, const struct graph *graph)
{
    void *stream = p->streams[below(p, STREAMS)];
    compare(p);
    ok(blyi_stream_pause(stream));
    ok(blyi_graph_execute(graph->handle, stream, 0));
    ok(blyi_stream_abort(stream));
    ok(blyi_stream_resume(stream));
    compare(p);
}

static void *run_program(void *arg)
{
    struct program *p = arg;
    int last = 0;
    ok(blyi_device_set(0, 0));
    ok(blyi_set_now(p->words, 0, WORDS * sizeof(uint64_t)));
    for (int step = 0; step < p->steps; step++) {
        struct graph *graph = &p->graphs[below(p, GRAPHS)];
        int what = below(p, 20);
        if (graph->handle == NULL) {
            compare(p); /* what runs elsewhere is not in the capture */
            capture(p, graph);
        } else if (what < 12) {
            run(p, graph, &last);
        } else if (what < 16) {
            update(p, graph, &last);
        } else if (what < 17) {
            abort_run(p, graph);
        } else if (what < 18) {
            compare(p);
        } else {
            ok(blyi_graph_destroy(graph->handle)); /* with runs queued, perhaps */
            graph->handle = NULL;
        }
    }
    compare(p);
    return NULL;
}

static void random_graphs_do_as_a_naive_interpreter(void **state)
{
    (void)state;
    assert_ok(blyi_device_set(0, 0));
    static struct program programs[THREADS];
    pthread_t threads[THREADS];
    const char *seed = getenv("TEST_SEED"), *steps = getenv("TEST_STEPS");
    uint64_t first = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%" PRIu64 "\n", first);
    for (int i = 0; i < THREADS; i++) {
        programs[i].seed = first;
        programs[i].rng = (first + (uint64_t)i) * 0x9e3779b97f4a7c15u + 1;
        for (int j = 0; j < STREAMS; j++)
            programs[i].streams[j] = new_stream();
        programs[i].words = card_alloc(WORDS * sizeof(uint64_t));
        programs[i].steps = steps != NULL ? atoi(steps) : 600;
        assert_int_equal(pthread_create(&threads[i], NULL, run_program, &programs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {bare_test(random_graphs_do_as_a_naive_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
