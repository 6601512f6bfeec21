/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_order.c - random programs over streams, events, notifies, copies and kernels, beside a
 * naive model.
 *
 * Each thread issues a random program on its own buffers and streams, all on one card. Before a
 * stream touches a buffer that another used last, it waits for an event recorded there; so the
 * result must be that of running the program's calls one after another, which the model does at
 * issue. At random points everything is synchronised and compared. TEST_SEED repeats a run,
 * TEST_STEPS sets its length.
 */
#include <belay/kernel.h>

#include "../unit/npu/order_test.h"
#include "npu/notify.h"

#define SITE 1 /* not 0: the checker takes these for accesses of the program */

enum { THREADS = 3, STREAMS = 5, BUFFERS = 6, PINNED_FROM = 4, SIZE = 20000 };

struct buffer {
    unsigned char *memory; /* on the card, or pinned */
    unsigned char model[SIZE];
    int last; /* stream that used it last; -1: none */
};

struct program {
    uint64_t rng, seed;
    int steps;
    void *streams[STREAMS];
    bool paused[STREAMS];
    struct buffer buffers[BUFFERS];
    void *event;              /* modern, used over and over */
    uint32_t faulty[STREAMS]; /* kernels that fault, queued and not told yet */
    uint32_t called;          /* host functions that have run */
    uint32_t calls;           /* host functions issued */
};

static uint64_t next(struct program *p)
{
    p->rng ^= p->rng >> 12;
    p->rng ^= p->rng << 25;
    p->rng ^= p->rng >> 27;
    return p->rng * 0x2545f4914f6cdd1du;
}

static uint32_t below(struct program *p, uint32_t n)
{
    return (uint32_t)((next(p) >> 33) % n);
}

static void count_call(void *arg)
{
    struct program *p = arg;
    __atomic_fetch_add(&p->called, 1, __ATOMIC_RELAXED);
}

struct xor {
    unsigned char *memory;
    uint32_t from, size;
    uint8_t with;
};

static void xor_bytes(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct xor *p = args;
    for (uint32_t i = p->from + block; i < p->from + p->size; i += n_blocks)
        p->memory[i] ^= p->with;
}

static void trap(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
    __builtin_trap();
}

/* Orders stream `s` behind the last user of the buffer. */
static void use(struct program *p, struct buffer *buffer, int s)
{
    if (buffer->last >= 0 && buffer->last != s) {
        void *event = p->event;
        bool own = below(p, 3) == 0;
        if (own)
            require(blyi_event_create(PLAIN, below(p, 2) != 0, 0, &event) == BLY_OK);
        require(blyi_event_record(event, p->streams[buffer->last], 0) == BLY_OK);
        require(blyi_event_wait(event, p->streams[s], 0, 0) == BLY_OK);
        if (own)
            require(blyi_event_destroy(event) == BLY_OK);
    }
    buffer->last = s;
}

static void issue_set(struct program *p, int s)
{
    struct buffer *buffer = &p->buffers[below(p, BUFFERS)];
    uint32_t from = below(p, SIZE), size = 1 + below(p, SIZE - from);
    uint8_t value = (uint8_t)next(p);
    use(p, buffer, s);
    require(blyi_set_async(buffer->memory + from, value, size, p->streams[s], SITE) == BLY_OK);
    memset(buffer->model + from, value, size);
}

static void issue_copy(struct program *p, int s)
{
    struct buffer *dst = &p->buffers[below(p, BUFFERS)], *src = &p->buffers[below(p, BUFFERS)];
    if (dst == src)
        return;
    uint32_t to = below(p, SIZE), from = below(p, SIZE);
    uint32_t size = 1 + below(p, SIZE - (to > from ? to : from));
    use(p, dst, s);
    use(p, src, s);
    require(blyi_copy_async(dst->memory + to, src->memory + from, size, p->streams[s], SITE) ==
            BLY_OK);
    memcpy(dst->model + to, src->model + from, size);
}

static void issue_rows(struct program *p, int s)
{
    struct buffer *dst = &p->buffers[below(p, BUFFERS)], *src = &p->buffers[below(p, BUFFERS)];
    if (dst == src)
        return;
    use(p, dst, s);
    use(p, src, s);
    require(blyi_copy2d_async(dst->memory, 200, src->memory, 150, 100, 90, p->streams[s], SITE) ==
            BLY_OK);
    for (size_t row = 0; row < 90; row++)
        memcpy(dst->model + row * 200, src->model + row * 150, 100);
}

static void issue_kernel(struct program *p, int s)
{
    struct buffer *buffer = &p->buffers[below(p, BUFFERS)];
    struct xor args = {.memory = buffer->memory, .from = below(p, SIZE), .with = (uint8_t)next(p)};
    args.size = 1 + below(p, SIZE - args.from);
    const bly_range range = {buffer->memory, SIZE, BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.engine = (bly_engine)below(p, 5);
    opts.n_blocks = 1 + below(p, 9);
    opts.ranges = &range;
    opts.n_ranges = 1;
    use(p, buffer, s);
    require(bly_kernel_launch(xor_bytes, &args, sizeof(args), &opts, p->streams[s]) == BLY_OK);
    for (uint32_t i = args.from; i < args.from + args.size; i++)
        buffer->model[i] ^= args.with;
    if (below(p, 20) == 0) {
        require(bly_kernel_launch(trap, NULL, 0, &opts, p->streams[s]) == BLY_OK);
        p->faulty[s]++;
    }
}

/* Orders a stream behind another by a notify of its own. */
static void issue_notify(struct program *p, int s)
{
    int other = (int)below(p, STREAMS);
    void *notify;
    require(blyi_notify_create(false, 0, &notify) == BLY_OK);
    require(blyi_notify_record(notify, false, BLYI_NOTIFY_SET, 1, p->streams[other], 0) == BLY_OK);
    require(blyi_notify_wait(notify, false, BLYI_NOTIFY_EQUAL, 1, true, 0, p->streams[s], 0) ==
            BLY_OK);
    require(blyi_notify_destroy(notify, false) == BLY_OK);
}

static void sync_stream(struct program *p, int s)
{
    bly_status status = blyi_stream_sync(p->streams[s], 0);
    require(p->faulty[s] != 0 ? status != BLY_OK : status == BLY_OK);
    p->faulty[s] = 0;
}

static void resume_all(struct program *p)
{
    for (int s = 0; s < STREAMS; s++)
        if (p->paused[s]) {
            require(blyi_stream_resume(p->streams[s]) == BLY_OK);
            p->paused[s] = false;
        }
}

static void quiet(struct program *p)
{
    resume_all(p);
    for (int s = 0; s < STREAMS; s++)
        sync_stream(p, s);
}

static void compare(struct program *p)
{
    unsigned char back[SIZE];
    quiet(p);
    for (int b = 0; b < BUFFERS; b++) {
        struct buffer *buffer = &p->buffers[b];
        require(blyi_copy_now_at(back, buffer->memory, SIZE, SITE) == BLY_OK);
        if (memcmp(back, buffer->model, SIZE) != 0) {
            fprintf(stderr, "seed %llu: buffer %d differs\n", (unsigned long long)p->seed, b);
            abort();
        }
        buffer->last = -1;
    }
    require(__atomic_load_n(&p->called, __ATOMIC_RELAXED) == p->calls);
}

static void replace_stream(struct program *p, int s)
{
    resume_all(p);
    bool force = below(p, 2) == 0;
    if (force || p->faulty[s] != 0) /* nothing of it is queued then, so force drops nothing */
        sync_stream(p, s);
    require(blyi_stream_destroy(p->streams[s], force) == BLY_OK);
    require(blyi_stream_create(below(p, 9), 0, 0, &p->streams[s]) == BLY_OK);
    for (int b = 0; b < BUFFERS; b++) /* its work has ended */
        if (p->buffers[b].last == s)
            p->buffers[b].last = -1;
}

static void step(struct program *p)
{
    int s = (int)below(p, STREAMS);
    bool complete;
    switch (below(p, 24)) {
    case 0:
        compare(p);
        break;
    case 1:
        if (below(p, 4) == 0)
            replace_stream(p, s);
        break;
    case 2:
        require(blyi_stream_pause(p->streams[s]) == BLY_OK);
        p->paused[s] = true;
        break;
    case 3:
        resume_all(p);
        break;
    case 4:
        require(blyi_callback_host_func(p->streams[s], count_call, p, 0) == BLY_OK);
        p->calls++;
        break;
    case 5:
        require(blyi_event_query(p->event, &complete) == BLY_OK);
        break;
    case 6:
        resume_all(p);
        require(blyi_event_sync(p->event, 0) == BLY_OK);
        break;
    case 7:
        for (uint32_t n = below(p, 40); n > 0; n--)
            require(blyi_stream_nop(p->streams[s]) == BLY_OK);
        break;
    case 8:
    case 9:
        issue_rows(p, s);
        break;
    case 10:
    case 11:
    case 12:
        issue_kernel(p, s);
        break;
    case 13:
        issue_notify(p, s);
        break;
    default:
        if (below(p, 2) == 0)
            issue_set(p, s);
        else
            issue_copy(p, s);
    }
}

static void *run(void *arg)
{
    struct program *p = arg;
    struct blyi_card *card;
    require(blyi_device_set(0, 0) == BLY_OK && blyi_context_here_card(&card) == BLY_OK);
    for (int s = 0; s < STREAMS; s++)
        require(blyi_stream_create(0, 0, 0, &p->streams[s]) == BLY_OK);
    for (int b = 0; b < BUFFERS; b++) {
        struct blyi_mem_request request = {.asked = SIZE, .rounded = SIZE, .module = 33};
        void *memory;
        require((b < PINNED_FROM ? blyi_mem_alloc(card, &request, &memory)
                                 : blyi_pinned_alloc(SIZE, SIZE, 0, 33, &memory)) == BLY_OK);
        p->buffers[b].memory = memory;
        p->buffers[b].last = -1;
        require(blyi_set_now_at(memory, 0, SIZE, SITE) == BLY_OK);
    }
    require(blyi_event_create(PLAIN, MODERN, 0, &p->event) == BLY_OK);
    for (int i = 0; i < p->steps; i++)
        step(p);
    compare(p);
    for (int b = PINNED_FROM; b < BUFFERS; b++)
        require(blyi_pinned_free(p->buffers[b].memory, SITE) == BLY_OK);
    for (int s = 0; s < STREAMS; s++)
        require(blyi_stream_destroy(p->streams[s], false) == BLY_OK);
    require(blyi_event_destroy(p->event) == BLY_OK);
    require(blyi_device_reset(0, false) == BLY_OK);
    return NULL;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void random_programs_end_as_the_model_says(void **state)
{
    (void)state;
    static struct program programs[THREADS];
    pthread_t threads[THREADS];
    uint64_t seed = number("TEST_SEED", 20240601);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < THREADS; i++) {
        programs[i].seed = seed;
        programs[i].rng = (seed + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        programs[i].steps = (int)number("TEST_STEPS", 6000);
        assert_int_equal(pthread_create(&threads[i], NULL, run, &programs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_NOTIFIES), 0);
    assert_true(blyi_card_audit(blyi_card_get(0)));
    assert_true(blyi_pinned_audit());
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {bare_test(random_programs_end_as_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
