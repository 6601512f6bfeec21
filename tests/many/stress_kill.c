/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_kill.c - processes that die by SIGKILL at any point of a change to what they share: at
 * every numbered step in turn, and at random times. Afterwards the ledger is sound, the survivor's
 * data are as they were, and what is free is what was free.
 *
 *   KILL_ROUNDS  random kills (default 200); KILL_SEED  of the random programs (default 1)
 */
#include "many_test.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/copy.h"
#include "npu/ledger.h"
#include "npu/memory.h"
#include "base/sanitizer.h"
#include "npu/physical.h"
#include "npu/runtime.h"
#include "npu/share.h"
#include <belay/card.h>
#include <sys/mman.h>
#include <time.h>

#define FRAME   (2 * MIB)
#define OPS     40
#define BLOCKS  8
#define WORKERS 6
/* Where all takes three to ten times as long, every fifth step must do. */
#define STRIDE   (BLYI_WITH_ASAN || BLYI_WITH_TSAN ? 5 : 1)
#define FAIL_MAX 20000 /* steps of one program; there are some hundred */

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct blyi_card *card_0(void)
{
    struct blyi_card *card = blyi_card_get(0);
    CHECK(card != NULL);
    return card;
}

/* Keys for whoever wants to import; the first is the survivor's. One that was torn by a death is no
 * key. */
#define KEYS 8
static char (*board)[BLYI_KEY_TEXT_SIZE];

struct held {
    void *block;
    void *handle;
    bool imported;
    char key[BLYI_KEY_TEXT_SIZE];
};

static void give_up(struct held *held)
{
    if (held->imported)
        CHECK_EQ(blyi_ipc_close(held->key, 0), BLY_OK);
    if (held->block != NULL)
        CHECK_EQ(blyi_mem_free(held->block, 0), BLY_OK);
    if (held->handle != NULL)
        CHECK_EQ(blyi_physical_release(held->handle, 0), BLY_OK);
    *held = (struct held){0};
}

static void import(struct held *held, uint64_t *seed)
{
    void *address;
    memcpy(held->key, board[draw(seed) % KEYS], sizeof held->key);
    held->key[sizeof held->key - 1] = '\0';
    bly_status status = blyi_ipc_import(held->key, 0, false, 0, &address);
    CHECK(status == BLY_OK || status == BLY_E_INVALID); /* its maker is gone, or it is ours */
    held->imported = status == BLY_OK;
}

static void export(const struct held *held, uint64_t *seed)
{
    char key[BLYI_KEY_TEXT_SIZE];
    if (held->block == NULL)
        return;
    bly_status status = blyi_ipc_export(held->block, 512, BLYI_EXPORT_ANY, 0, key);
    CHECK_EQ(status, BLY_OK);
    memcpy(board[1 + draw(seed) % (KEYS - 1)], key, sizeof key);
}

/* One of what a program does to a card; a full card is no fault. */
static void take(struct held *held, uint64_t *seed)
{
    static const uint64_t sizes[] = {512, 4096, 40000, FRAME, 3 * FRAME, 3 * MIB + 4096, 5 * FRAME};
    uint64_t size = sizes[draw(seed) % (sizeof sizes / sizeof sizes[0])];
    if (draw(seed) % 3 == 0) {
        import(held, seed);
        return;
    }
    if (draw(seed) % 4 == 0) {
        struct blyi_physical_request physical = {
            .card = card_0(), .size = FRAME, .page_kind = BLYI_PAGE_HUGE};
        (void)blyi_physical_create(&physical, &held->handle);
        return;
    }
    struct blyi_mem_request request = {.asked = size,
                                       .rounded = size,
                                       .policy = draw(seed) % 2 ? BLYI_MEM_HUGE_FIRST
                                                                : BLYI_MEM_NORMAL_ONLY};
    if (blyi_mem_alloc(card_0(), &request, &held->block) == BLY_OK && draw(seed) % 2)
        CHECK_EQ(blyi_mem_use(held->block, size, BLYI_WRITE), BLY_OK);
}

/* False: others have left no room for the runtime's overhead. */
static bool bind(void)
{
    bly_status status = blyi_device_set(0, 0);
    CHECK(status == BLY_OK || status == BLY_E_NO_MEMORY);
    return status == BLY_OK;
}

static void program(uint64_t seed)
{
    struct held held[BLOCKS] = {{0}};
    if (!bind())
        return;
    for (int i = 0; i < OPS; i++) {
        struct held *one = &held[draw(&seed) % BLOCKS];
        uint64_t what = draw(&seed) % 16;
        if (what == 0) {
            bly_defrag defrag = {.struct_size = sizeof defrag, .card = 0};
            CHECK_EQ(bly_card_defrag(&defrag), BLY_OK);
        } else if (what == 1) {
            (void)blyi_backing_trim_all(UINT64_MAX);
        } else if (what == 2) {
            memset(held, 0, sizeof held);
            blyi_runtime_finalise();
            if (!bind())
                return;
        } else if (what < 6 && one->block != NULL) {
            export(one, &seed);
        } else if (one->block != NULL || one->handle != NULL || one->imported) {
            give_up(one);
        } else {
            take(one, &seed);
        }
    }
}

/* Forks a program; the launcher itself never touches the runtime. */
static pid_t launch(uint64_t step, uint64_t seed)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)step);
        if (step > 0)
            setenv("BELAY_FAIL_LEDGER", text, 1);
        program(seed);
        _exit(0);
    }
    return pid;
}

struct order {
    uint64_t step, seed; /* step 0: kill at random times */
    uint32_t workers;
};

static void wait_for(pid_t pid, bool *survived)
{
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        CHECK_EQ(WEXITSTATUS(status), 0);
        *survived = true;
    } else {
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

static bool obey(const struct order *order)
{
    pid_t pids[WORKERS];
    uint64_t seed = order->seed;
    bool survived = false;
    for (uint32_t i = 0; i < order->workers; i++)
        pids[i] = launch(order->step, draw(&seed));
    for (uint32_t i = 0; i < order->workers; i++) {
        if (order->step == 0) {
            struct timespec pause = {.tv_nsec = (long)(draw(&seed) % 3000000)};
            nanosleep(&pause, NULL); /* where in its program it dies is left to chance */
            (void)kill(pids[i], SIGKILL);
        }
        wait_for(pids[i], &survived);
    }
    return survived;
}

static void launcher(struct peer *me)
{
    struct order order;
    alarm(0);
    while (read(me->in, &order, sizeof order) == (ssize_t)sizeof order) {
        char answer = obey(&order) ? 's' : 'k';
        CHECK_EQ(write(me->out, &answer, 1), 1);
    }
}

static bool command(struct peer *peer, struct order order)
{
    char answer = 0;
    CHECK_EQ(write(peer->to, &order, sizeof order), sizeof order);
    CHECK_EQ(read(peer->from, &answer, 1), 1);
    return answer == 's';
}

/* The survivor: a block of its own with a pattern, which nobody else may touch. */
#define MINE (6 * FRAME)

static unsigned char *pattern(void)
{
    static unsigned char bytes[MINE];
    for (size_t i = 0; i < MINE; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 4096);
    return bytes;
}

static void *keep_data(void)
{
    void *block;
    struct blyi_mem_request request = {.asked = MINE, .rounded = MINE};
    CHECK_EQ(blyi_device_set(0, 0), BLY_OK);
    CHECK_EQ(blyi_mem_alloc(card_0(), &request, &block), BLY_OK);
    CHECK_EQ(blyi_mem_use(block, MINE, BLYI_WRITE), BLY_OK);
    CHECK_EQ(blyi_copy_now(block, pattern(), MINE), BLY_OK);
    CHECK_EQ(blyi_ipc_export(block, MINE, BLYI_EXPORT_ANY, 0, board[0]), BLY_OK);
    return block;
}

static void check_survivor(const void *block, uint64_t free_before, const char *when, uint64_t n)
{
    static unsigned char back[MINE];
    char why[256];
    struct blyi_mem_figures figures;
    blyi_mem_figures(card_0(), &figures);
    if (figures.free != free_before || !blyi_ledger_audit(why, sizeof why) ||
        !blyi_card_audit(card_0())) {
        fprintf(stderr, "%s %llu: free %llu of %llu before; %s\n", when, (unsigned long long)n,
                (unsigned long long)figures.free, (unsigned long long)free_before,
                figures.free == free_before ? why : "");
        CHECK(false);
    }
    CHECK_EQ(blyi_copy_now(back, block, MINE), BLY_OK);
    CHECK(memcmp(back, pattern(), MINE) == 0);
}

static uint64_t free_now(void)
{
    struct blyi_mem_figures figures;
    blyi_mem_figures(card_0(), &figures);
    return figures.free;
}

MANY_TEST(death_at_each_step)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_RESIDENT", "8MiB", 1);
    uint64_t seed = number_of("KILL_SEED", 1), stride = number_of("KILL_STRIDE", STRIDE);
    board =
        mmap(NULL, KEYS * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    struct peer peer = peer_start(launcher);
    const void *block = keep_data();
    uint64_t before = free_now(), step = 1;
    while (!command(&peer, (struct order){step, seed * 7919, 1})) {
        check_survivor(block, before, "step", step);
        step += stride;
        CHECK(step < FAIL_MAX);
    }
    printf("died at %llu steps\n", (unsigned long long)step);
    CHECK(step > 300);
    peer_end(&peer);
}

/* Two die at the same step of different programs, so that the clearing up is itself cut short. */
MANY_TEST(death_while_clearing_up)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_RESIDENT", "8MiB", 1);
    uint64_t seed = number_of("KILL_SEED", 1) + 17, stride = number_of("KILL_STRIDE", STRIDE);
    board =
        mmap(NULL, KEYS * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    struct peer peer = peer_start(launcher);
    const void *block = keep_data();
    uint64_t before = free_now();
    for (uint64_t step = 1; step < 400; step += stride) {
        (void)command(&peer, (struct order){step, seed + step, 3});
        check_survivor(block, before, "step", step);
    }
    peer_end(&peer);
}

MANY_TEST(death_at_random)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_RESIDENT", "8MiB", 1);
    uint64_t rounds = number_of("KILL_ROUNDS", 200), seed = number_of("KILL_SEED", 1);
    board =
        mmap(NULL, KEYS * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    struct peer peer = peer_start(launcher);
    const void *block = keep_data();
    uint64_t before = free_now();
    for (uint64_t i = 0, done = 0; done < rounds; i++) {
        uint32_t workers = 1 + (uint32_t)(i % WORKERS);
        (void)command(&peer, (struct order){0, seed * 1000003 + i, workers});
        check_survivor(block, before, "round", i);
        done += workers;
    }
    peer_end(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(death_at_each_step),
        cmocka_unit_test(death_while_clearing_up),
        cmocka_unit_test(death_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
