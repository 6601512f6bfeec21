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
#include "plan/bound.h"
#include "plan/racer.h"

#define TREE_ITEMS_MAX 3000
#define TREE_PAIRS_MAX 3000000
#define ANNEAL_MAX     2500
#define ANNEAL_MOVES   40
#define OTHERS_FIRST   4  /* rounds, where trees race: the others run in every fourth, */
#define OTHERS_LAST    64 /* and in ever fewer while they gain nothing */
#define OPENING_SLICE  ((uint64_t)4000)
#define LUBY_EVERY     8     /* rounds of one length */
#define EPOCH          12    /* rounds after which conflicts are forgotten, times Luby's sequence */
#define IDLE_MAX       10000 /* rounds without a gain, where nothing else ends the race */

struct race {
    struct blyi_solve *solve;
    struct blyi_graph graph;
    struct blyi_timeline line;
    bool trees, line_ready;
    struct blyi_racer racers[BLYI_RACERS];
    uint64_t round, epoch, epoch_end;
    uint64_t others_at, others_wait; /* round in which racers without a tree run, and gap to it */
    atomic_size_t next;              /* racer to be run */
};

static bool rests(const struct race *race, const struct blyi_racer *r)
{
    return race->solve->enough > 0 && race->round >= BLYI_ORDERS &&
           race->round % (r->rests + 1) != 0;
}

/* Is the problem one for this engine at all? */
static bool is_able(const struct race *race, const struct blyi_racer *r)
{
    const struct blyi_pack *pack = race->solve->pack;
    switch (r->kind) {
    case BLYI_RACER_SEARCH:
        return race->trees;
    case BLYI_RACER_VALLEY:
        return race->trees && pack->pieces == NULL && pack->fixed == NULL;
    case BLYI_RACER_ANNEAL:
        return pack->n > 1 && pack->n <= ANNEAL_MAX;
    case BLYI_RACER_DIVE:
        return pack->n <= BLYI_DIVE_MAX;
    case BLYI_RACER_PRESS:
    default:
        return true;
    }
}

static bool takes_part(const struct race *race, const struct blyi_racer *r)
{
    if (!is_able(race, r))
        return false;
    if (blyi_racer_is_tree(r))
        return !rests(race, r);
    return !race->trees || race->round == race->others_at;
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
    return race->solve->seed * 1000003 + race->round * BLYI_RACERS + index + 1;
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
static bool run_once(struct race *race, struct blyi_racer *r, const struct blyi_order *order,
                     uint64_t given, int64_t capacity, struct blyi_stop *stop)
{
    uint64_t left = given;
    enum blyi_search_end end;
    if (r->kind == BLYI_RACER_SEARCH)
        end = blyi_search_run(r->search, capacity, order, &left, stop, r->offset);
    else
        end = blyi_valley_run(r->valley, capacity, order, &left, stop, r->offset);
    r->nodes += given - left;
    if (end == BLYI_SEARCH_FOUND)
        r->peak = blyi_pack_peak(race->solve->pack, r->offset);
    else if (end == BLYI_SEARCH_NONE)
        r->bound = capacity + 1;
    return end != BLYI_SEARCH_STOPPED;
}

static void run_tree(struct race *race, size_t index, struct blyi_stop *stop)
{
    struct blyi_racer *r = &race->racers[index];
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
    struct blyi_racer *r = &race->racers[index];
    struct blyi_solve *s = race->solve;
    r->peak = INT64_MAX;
    r->bound = 0;
    r->nodes = 0;
    if (!takes_part(race, r))
        return;
    if (blyi_racer_is_tree(r)) {
        run_tree(race, index, stop);
        return;
    }
    memcpy(r->offset, s->offset, s->pack->n * sizeof(*r->offset));
    r->peak = s->peak;
    if (r->kind == BLYI_RACER_PRESS) {
        uint64_t given = s->node_budget - s->nodes, left = given;
        r->status = blyi_press_once(&r->press, s->bound, &left, stop, r->offset, &r->peak);
        r->nodes = given - left;
    } else if (r->kind == BLYI_RACER_DIVE) {
        r->status =
            blyi_divers_run(&r->divers, s->pack, stop, r->spare, r->offset, &r->peak, &r->nodes);
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
        if (index >= BLYI_RACERS)
            return NULL;
        run_racer(race, index, &stop);
        /* With one thread the rest of the round is not needed any more; with more, its results
         * are dropped, since the first racer in order wins. */
        if (race->racers[index].peak <= blyi_solve_goal(race->solve))
            atomic_store_explicit(&race->next, BLYI_RACERS, memory_order_relaxed);
    }
}

/* Takes results in order; a racer that the winner made superfluous does not count. */
static bly_status take_results(struct race *race)
{
    struct blyi_solve *s = race->solve;
    bly_status status = BLY_OK;
    for (size_t x = 0; x < BLYI_RACERS && !blyi_solve_done(s); x++) {
        struct blyi_racer *r = &race->racers[x];
        s->nodes += r->nodes;
        if (r->status != BLY_OK)
            status =
                blyi_fail(BLY_E_HOST_MEMORY,
                          "planning %u buffers: the host has no memory to search on", s->pack->n);
        if (r->peak < s->peak) {
            if (!blyi_racer_is_tree(r))
                race->others_wait = OTHERS_FIRST / 2; /* doubled below */
            memcpy(s->spare, r->offset, s->pack->n * sizeof(*s->spare));
            blyi_solve_offer(s, r->name);
        }
        s->bound = r->bound > s->bound ? r->bound : s->bound;
    }
    s->bound = s->bound > s->peak ? s->peak : s->bound;
    if (race->round == race->others_at) {
        race->others_wait *= race->others_wait < OTHERS_LAST ? 2 : 1;
        race->others_at += race->others_wait;
    }
    race->round++;
    return status;
}

/* What was learnt helps for a while, and now and then it leads nowhere for good. */
static void begin_epoch(struct race *race)
{
    race->epoch_end = race->round + EPOCH * luby(race->epoch++);
    for (size_t x = 0; x < BLYI_RACERS; x++) {
        if (race->racers[x].search != NULL)
            blyi_search_reset(race->racers[x].search);
        if (race->racers[x].valley != NULL)
            blyi_valley_reset(race->racers[x].valley);
    }
}

static bly_status run_round(struct race *race)
{
    struct blyi_solve *s = race->solve;
    if (s->enough > 0 && race->round >= race->epoch_end)
        begin_epoch(race);
    pthread_t threads[BLYI_RACERS];
    uint32_t started = 0, wanted = s->n_threads < BLYI_RACERS ? s->n_threads : BLYI_RACERS;
    for (size_t x = 0; x < BLYI_RACERS; x++) {
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
    return take_results(race);
}

static void race_fini(struct race *race)
{
    for (size_t x = 0; x < BLYI_RACERS; x++) {
        blyi_racer_fini(&race->racers[x]);
    }
    blyi_graph_fini(&race->graph);
    blyi_timeline_fini(&race->line);
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
    memcpy(race->racers, blyi_line_up, sizeof(race->racers));
    for (size_t x = 0; x < BLYI_RACERS && status == BLY_OK; x++) {
        struct blyi_racer *r = &race->racers[x];
        if (is_able(race, r))
            status = blyi_racer_init(r, pack, &race->graph, &race->line, s->seed);
    }
    return status;
}

bly_status blyi_solve_race(struct blyi_solve *s)
{
    struct race race;
    memset(&race, 0, sizeof(race));
    race.solve = s;
    race.others_at = OTHERS_FIRST - 1;
    race.others_wait = OTHERS_FIRST / 2;
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
