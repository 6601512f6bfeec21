/* SPDX-License-Identifier: Apache-2.0
 *
 * race.c - the slow half of the portfolio: rounds in which every racer gets a slice of work.
 *
 * A round is the same whoever carries it out: each racer has engines, chance and a plan of its
 * own, and results are taken in the order of racers when the round is over. So one thread and
 * many find the same plan. Racers aim at different peaks, because a lower one is sometimes
 * easier to reach than a higher one.
 */
#include "plan/solve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"
#include "plan/anneal.h"
#include "plan/bound.h"
#include "plan/press.h"
#include "plan/search.h"
#include "plan/valley.h"

#define TREE_ITEMS_MAX 3000
#define TREE_PAIRS_MAX 3000000
#define ANNEAL_MAX     2500
#define ANNEAL_MOVES   40
#define PRESS_EVERY    4 /* rounds, where trees race as well */
#define OPENING_SLICE  ((uint64_t)4000)
#define LUBY_EVERY     8     /* rounds of one length */
#define IDLE_MAX       10000 /* rounds without a gain, where nothing else ends the race */

enum racer_kind { RACER_SEARCH, RACER_VALLEY, RACER_PRESS, RACER_ANNEAL };

struct racer {
    enum racer_kind kind;
    const char *name;
    struct blyi_order order;
    uint64_t slice;
    uint64_t runs; /* in a round, all of one slice; 1: one, of Luby's length */
    bool mirrored;
    bool opens; /* begins with every order, undisturbed */
    /* owned */
    struct blyi_search *search;
    struct blyi_valley *valley;
    struct blyi_anneal *anneal;
    struct blyi_press press;
    int64_t *offset;
    /* the round's result */
    int64_t peak, bound;
    uint64_t nodes;
    bly_status status;
};

/* Found by measuring every engine and order alone on MiniMalloc's eleven instances; see
 * docs/design/plan.md. */
static const struct racer line_up[] = {
    {RACER_SEARCH, "tree", {0, true, 0}, 1000, .runs = 4, .opens = true},
    {RACER_VALLEY, "valley", {4, true, 0}, 2000, .runs = 4, .opens = true, .mirrored = true},
    {RACER_SEARCH, "tree", {0, false, 0}, 1000, .runs = 2},
    {RACER_VALLEY, "valley", {0, true, 0}, 1000, .runs = 1, .opens = true},
    {RACER_SEARCH, "tree", {0, true, 0}, 1000, .runs = 1},
    {RACER_VALLEY, "valley", {4, false, 0}, 1000, .runs = 1, .mirrored = true},
    {RACER_PRESS, "eject", {0, false, 0}, 0, .runs = 1},
    {RACER_ANNEAL, "anneal", {0, false, 0}, 0, .runs = 1},
};
#define N_RACERS (sizeof(line_up) / sizeof(line_up[0]))

struct race {
    struct blyi_solve *solve;
    struct blyi_graph graph;
    struct blyi_timeline line;
    bool trees, line_ready;
    struct racer racers[N_RACERS];
    uint64_t round;
    atomic_size_t next; /* racer to be run */
};

static bool uses_tree(const struct racer *r)
{
    return r->kind == RACER_SEARCH || r->kind == RACER_VALLEY;
}

static bool takes_part(const struct race *race, const struct racer *r)
{
    const struct blyi_pack *pack = race->solve->pack;
    switch (r->kind) {
    case RACER_SEARCH:
        return race->trees;
    case RACER_VALLEY:
        return race->trees && pack->pieces == NULL && pack->fixed == NULL;
    case RACER_ANNEAL:
        return pack->n > 1 && pack->n <= ANNEAL_MAX &&
               (!race->trees || race->round % PRESS_EVERY == PRESS_EVERY - 1);
    case RACER_PRESS:
    default:
        return !race->trees || race->round % PRESS_EVERY == PRESS_EVERY - 1;
    }
}

/* The peak that a tree aims at: the goal, the bound below it, or something on the way. */
static int64_t aim(const struct race *race, size_t index)
{
    const struct blyi_solve *s = race->solve;
    int64_t goal = blyi_solve_goal(s), span = s->peak - 1 - goal;
    uint64_t turn = race->round + index;
    if (s->enough > 0)
        return turn % 4 == 3 ? s->bound : goal;
    /* Parts of the span below the best plan: small steps succeed more often, large ones pay. */
    static const int64_t parts[8] = {1, 8, 32, 4, 1, 16, 2, 64};
    int64_t part = parts[turn % 8];
    return part == 1 ? goal : s->peak - 1 - span / part;
}

static uint64_t chance_seed(const struct race *race, size_t index)
{
    return race->solve->seed * 1000003 + race->round * N_RACERS + index + 1;
}

/* 1 1 2 1 1 2 4 ...: mostly short runs, since most luck comes early, yet any length comes up. */
static uint64_t luby(uint64_t x)
{
    uint64_t size = 1, power = 0;
    while (size < x + 1) {
        size = 2 * size + 1;
        power++;
    }
    while (size - 1 != x) {
        size = (size - 1) / 2;
        power--;
        bly_assert(size > 0); /* x is below it */
        x %= size;
    }
    return (uint64_t)1 << power;
}

/* One run: an order, a budget. True when it decided something. */
static bool run_once(struct race *race, struct racer *r, const struct blyi_order *order,
                     uint64_t given, int64_t capacity, struct blyi_stop *stop)
{
    uint64_t left = given;
    enum blyi_search_end end;
    if (r->kind == RACER_SEARCH) {
        struct blyi_search_style style = {*order, true};
        end = blyi_search_run(r->search, capacity, &style, &left, stop, r->offset);
    } else {
        end = blyi_valley_run(r->valley, capacity, order, &left, stop, r->offset);
    }
    r->nodes += given - left;
    if (end == BLYI_SEARCH_FOUND)
        r->peak = blyi_pack_peak(race->solve->pack, r->offset);
    else if (end == BLYI_SEARCH_NONE)
        r->bound = capacity + 1;
    return end != BLYI_SEARCH_STOPPED;
}

static void run_tree(struct race *race, size_t index, struct blyi_stop *stop)
{
    struct racer *r = &race->racers[index];
    uint64_t least = 2 * (uint64_t)race->solve->pack->n;
    uint64_t given = r->slice > least ? r->slice : least;
    int64_t capacity = aim(race, index);
    struct blyi_order order = r->order;
    if (r->opens && race->round < BLYI_ORDERS) {
        order = (struct blyi_order){(uint8_t)race->round, false, 0};
        run_once(race, r, &order, OPENING_SLICE > 4 * least ? OPENING_SLICE : 4 * least, capacity,
                 stop);
        return;
    }
    /* Many short runs find one capacity sooner; for ever lower ones, any length may be needed. */
    uint64_t runs = race->solve->enough > 0 ? r->runs : 1;
    if (runs == 1)
        given *= luby(race->round / LUBY_EVERY);
    for (uint64_t run = 0; run < runs && !blyi_stop_now(stop); run++) {
        order.noise = chance_seed(race, index) + run * 0x10001;
        if (run_once(race, r, &order, given, capacity, stop))
            return;
    }
}

static void run_racer(struct race *race, size_t index, struct blyi_stop *stop)
{
    struct racer *r = &race->racers[index];
    struct blyi_solve *s = race->solve;
    r->peak = INT64_MAX;
    r->bound = 0;
    r->nodes = 0;
    if (!takes_part(race, r))
        return;
    if (uses_tree(r)) {
        run_tree(race, index, stop);
        return;
    }
    memcpy(r->offset, s->offset, s->pack->n * sizeof(*r->offset));
    r->peak = s->peak;
    if (r->kind == RACER_PRESS) {
        uint64_t given = s->node_budget - s->nodes, left = given;
        r->status = blyi_press_once(&r->press, s->bound, &left, stop, r->offset, &r->peak);
        r->nodes = given - left;
    } else {
        if (r->anneal == NULL)
            r->status = blyi_anneal_create(s->pack, s->seed, s->offset, &r->anneal);
        if (r->anneal != NULL)
            blyi_anneal_run(r->anneal, ANNEAL_MOVES, blyi_solve_goal(s), stop, r->offset, &r->peak);
        r->nodes = ANNEAL_MOVES * (uint64_t)(s->pack->n / 64 + 1);
    }
}

static void *work(void *arg)
{
    struct race *race = arg;
    struct blyi_stop stop = race->solve->stop;
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&race->next, 1, memory_order_relaxed);
        if (index >= N_RACERS)
            return NULL;
        run_racer(race, index, &stop);
        /* With one thread the rest of the round is not needed any more; with more, its results
         * are dropped, since the first racer in order wins. */
        if (race->racers[index].peak <= blyi_solve_goal(race->solve))
            atomic_store_explicit(&race->next, N_RACERS, memory_order_relaxed);
    }
}

/* Takes results in order; a racer that the winner made superfluous does not count. */
static bly_status take_results(struct race *race)
{
    struct blyi_solve *s = race->solve;
    bly_status status = BLY_OK;
    for (size_t x = 0; x < N_RACERS && !blyi_solve_done(s); x++) {
        struct racer *r = &race->racers[x];
        s->nodes += r->nodes;
        if (r->status != BLY_OK)
            status =
                blyi_fail(BLY_E_HOST_MEMORY,
                          "planning %u buffers: the host has no memory to search on", s->pack->n);
        if (r->peak < s->peak) {
            memcpy(s->spare, r->offset, s->pack->n * sizeof(*s->spare));
            blyi_solve_offer(s, r->name);
        }
        s->bound = r->bound > s->bound ? r->bound : s->bound;
    }
    s->bound = s->bound > s->peak ? s->peak : s->bound;
    return status;
}

static bly_status run_round(struct race *race)
{
    struct blyi_solve *s = race->solve;
    pthread_t threads[N_RACERS];
    uint32_t started = 0, wanted = s->n_threads < N_RACERS ? s->n_threads : N_RACERS;
    for (size_t x = 0; x < N_RACERS; x++) {
        race->racers[x].peak = INT64_MAX;
        race->racers[x].bound = 0;
        race->racers[x].nodes = 0;
    }
    atomic_store(&race->next, 0);
    while (started + 1 < wanted &&
           blyi_sys_thread_create(&threads[started], "bly-plan", work, race) == 0)
        started++; /* fewer threads than wanted do the same work */
    work(race);
    for (uint32_t t = 0; t < started; t++)
        pthread_join(threads[t], NULL);
    race->round++;
    return take_results(race);
}

static void race_fini(struct race *race)
{
    for (size_t x = 0; x < N_RACERS; x++) {
        struct racer *r = &race->racers[x];
        blyi_search_destroy(r->search);
        blyi_valley_destroy(r->valley);
        blyi_anneal_destroy(r->anneal);
        blyi_host_free(r->offset);
    }
    blyi_graph_fini(&race->graph);
    blyi_timeline_fini(&race->line);
}

static bly_status racer_init(struct race *race, size_t index)
{
    const struct blyi_pack *pack = race->solve->pack;
    struct racer *r = &race->racers[index];
    if (uses_tree(r) && !takes_part(race, r))
        return BLY_OK;
    r->offset = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*r->offset));
    if (r->offset == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "planning %u buffers: the host has no memory", pack->n);
    if (r->kind == RACER_SEARCH)
        return blyi_search_create(pack, &race->graph, &r->search);
    if (r->kind == RACER_VALLEY)
        return blyi_valley_create(pack, &race->graph, r->mirrored, &r->valley);
    if (r->kind == RACER_PRESS)
        blyi_press_init(&r->press, pack, &race->line, race->solve->seed);
    return BLY_OK;
}

static bly_status race_init(struct race *race)
{
    struct blyi_solve *s = race->solve;
    const struct blyi_pack *pack = s->pack;
    bly_status status = blyi_timeline_init(&race->line, pack);
    race->trees = status == BLY_OK && pack->n <= TREE_ITEMS_MAX &&
                  blyi_graph_pairs(pack, TREE_PAIRS_MAX) < TREE_PAIRS_MAX;
    if (race->trees) {
        status = blyi_graph_init(&race->graph, pack);
        if (status == BLY_OK)
            status = blyi_bound_subsets(pack, &race->graph, s->peak, &s->stop, &s->bound);
    }
    memcpy(race->racers, line_up, sizeof(line_up));
    for (size_t x = 0; x < N_RACERS && status == BLY_OK; x++)
        status = racer_init(race, x);
    return status;
}

bly_status blyi_solve_race(struct blyi_solve *s)
{
    struct race race;
    memset(&race, 0, sizeof(race));
    race.solve = s;
    bly_status status = race_init(&race);
    uint64_t idle = 0;
    while (status == BLY_OK && !blyi_solve_done(s) && s->nodes < s->node_budget &&
           idle < IDLE_MAX && !blyi_stop_now(&s->stop)) {
        int64_t peak = s->peak, bound = s->bound;
        status = run_round(&race);
        idle = s->peak < peak || s->bound > bound ? 0 : idle + 1;
    }
    race_fini(&race);
    return status;
}
