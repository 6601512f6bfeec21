/* SPDX-License-Identifier: Apache-2.0 */
/* Four processes share at random and are killed at random, some of them at a chosen step inside a
 * change, beside a naive model: which bytes are in which memory, and who may reach it. After each
 * death what was held alone is back and everybody's data are as they were. TEST_SEED repeats a
 * run. */
#include "peer.h"

#include <inttypes.h>
#include <time.h>

#define PEERS  4
#define THINGS 24
#define STEPS  500
#define ANY    1

static struct peer peers[PEERS], witness;
static uint64_t seed;

static uint32_t pick(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Memory that somebody made: where it is in each process, how often it is open there. */
static struct thing {
    bool used, made, keyed; /* its maker has it; its key can be imported */
    int maker;
    uint64_t size, address[PEERS][3];
    int n_open[PEERS];
    int byte;
    char key[65];
} things[THINGS];

static void start(int i)
{
    peer_start(&peers[i]);
    DO(&peers[i], INIT);
}

static bool is_open(const struct thing *thing)
{
    for (int i = 0; i < PEERS; i++)
        if (thing->n_open[i] > 0)
            return true;
    return false;
}

static void forget_unheld(struct thing *thing)
{
    if (!thing->made && !is_open(thing))
        thing->used = false;
}

static void check(struct peer *peer, uint64_t address, const struct thing *thing)
{
    assert_int_equal(
        DO(peer, EXPECT, .a = address, .b = thing->size, .c = (uint64_t)thing->byte)->a,
        thing->size);
}

static void check_thing(const struct thing *thing)
{
    if (thing->made)
        check(&peers[thing->maker], thing->address[thing->maker][0], thing);
    for (int i = 0; i < PEERS; i++)
        for (int k = 0; k < thing->n_open[i]; k++)
            check(&peers[i], thing->address[i][k], thing);
}

static void died(int i)
{
    for (int t = 0; t < THINGS; t++) {
        struct thing *thing = &things[t];
        if (!thing->used)
            continue;
        thing->n_open[i] = 0;
        if (thing->maker == i)
            thing->made = thing->keyed = false;
        forget_unheld(thing);
    }
    DO(&witness, REAP);
    assert_int_equal(DO(&witness, AUDIT)->a, 1);
    for (int t = 0; t < THINGS; t++)
        if (things[t].used)
            check_thing(&things[t]);
    start(i);
}

/* One call; the process may be told to die in it. False: it did. */
static bool call_or_die(int i, struct call call, bool dying)
{
    if (!dying) {
        peer_want(peer_call(&peers[i], call, __FILE__, __LINE__), 0, __FILE__, __LINE__);
        return true;
    }
    DO(&peers[i], DIE, .a = 1 + pick(12));
    if (peer_call_maybe_dying(&peers[i], call) == 0)
        return false;
    peer_want(&peers[i].answer, 0, __FILE__, __LINE__);
    struct answer answer = peers[i].answer;
    DO(&peers[i], DIE, .a = 0);
    peers[i].answer = answer;
    return true;
}

static void make(int i, struct thing *thing, bool dying)
{
    static const uint64_t sizes[] = {12 * MIB, 2 * MIB + 20 * KIB, 60 * KIB, 4 * KIB};
    uint64_t size = sizes[pick(4)] - 32;
    *thing = (struct thing){.used = true, .made = true, .maker = i, .size = size};
    thing->byte = (int)pick(200) + 1;
    thing->address[i][0] =
        DO(&peers[i], MALLOC, .a = size, .b = pick(2) ? HUGE_FIRST : NORMAL_ONLY)->a;
    DO(&peers[i], FILL, .a = thing->address[i][0], .b = size, .c = (uint64_t)thing->byte);
    struct call call = {.op = OP_EXPORT, .a = thing->address[i][0], .b = size, .c = ANY};
    if (!call_or_die(i, call, dying)) {
        thing->used = false;
        died(i);
        return;
    }
    snprintf(thing->key, sizeof thing->key, "%s", peers[i].answer.key);
    thing->keyed = true;
}

static void import(int i, struct thing *thing, bool dying)
{
    if (!thing->keyed || thing->maker == i || thing->n_open[i] == 3)
        return;
    if (!call_or_die(i, with_key((struct call){.op = OP_IMPORT}, thing->key), dying)) {
        died(i);
        return;
    }
    thing->address[i][thing->n_open[i]++] = peers[i].answer.a;
    check(&peers[i], peers[i].answer.a, thing);
}

static void close_one(int i, struct thing *thing, bool dying)
{
    if (thing->n_open[i] == 0)
        return;
    if (!call_or_die(i, with_key((struct call){.op = OP_CLOSE}, thing->key), dying)) {
        died(i);
        return;
    }
    thing->n_open[i]--; /* the oldest goes */
    memmove(&thing->address[i][0], &thing->address[i][1], 2 * sizeof thing->address[i][0]);
    forget_unheld(thing);
}

static void free_one(struct thing *thing, bool dying)
{
    int i = thing->maker;
    if (!thing->made)
        return;
    struct call call = {.op = OP_FREE, .a = thing->address[i][0]};
    if (!call_or_die(i, call, dying)) {
        died(i);
        return;
    }
    thing->made = thing->keyed = false;
    forget_unheld(thing);
}

static void fill(int i, struct thing *thing)
{
    uint64_t at = thing->n_open[i] > 0               ? thing->address[i][0]
                  : thing->maker == i && thing->made ? thing->address[i][0]
                                                     : 0;
    if (at == 0)
        return;
    thing->byte = (int)pick(200) + 1;
    DO(&peers[i], FILL, .a = at, .b = thing->size, .c = (uint64_t)thing->byte);
    check_thing(thing);
}

static void step(uint32_t dying_in)
{
    int i = (int)pick(PEERS);
    struct thing *thing = &things[pick(THINGS)];
    bool dying = pick(dying_in) == 0;
    if (!thing->used) {
        make(i, thing, dying);
        return;
    }
    switch (pick(8)) {
    case 0:
    case 1:
    case 2:
        import(i, thing, dying);
        break;
    case 3:
    case 4:
        close_one(i, thing, dying);
        break;
    case 5:
        free_one(thing, dying);
        break;
    case 6:
        fill(i, thing);
        break;
    default:
        if (pick(12) == 0) {
            peer_kill(&peers[i]);
            died(i);
        }
        break;
    }
}

static void sharing_and_dying(void **state)
{
    (void)state;
    const char *text = getenv("TEST_SEED");
    seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    print_message("TEST_SEED=%" PRIu64 "\n", seed);
    peers_begin();
    peer_start(&witness);
    DO(&witness, INIT);
    uint64_t f0 = peer_free(&witness);
    for (int i = 0; i < PEERS; i++)
        start(i);
    for (int n = 0; n < STEPS; n++) {
        step(6);
        if (n % 50 == 0)
            for (int i = 0; i < PEERS; i++)
                assert_int_equal(DO(&peers[i], AUDIT)->a, 1);
    }
    for (int i = 0; i < PEERS; i++)
        if (pick(2))
            peer_leave(&peers[i]);
        else
            peer_kill(&peers[i]);
    DO(&witness, REAP);
    assert_int_equal(DO(&witness, AUDIT)->a, 1);
    assert_int_equal(DO(&witness, LIST)->a, 0);
    assert_int_equal(peer_free(&witness), f0);
    peer_leave(&witness);
    peers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sharing_and_dying)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
