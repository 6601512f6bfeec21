/* SPDX-License-Identifier: Apache-2.0 */
/* What processes ask of one another. Those who answer are stopped, killed, or never there. */
#include "service_test.h"

#define BLOCKS 16

/* ── A process that keeps blocks for reuse ────────────────────────────────────────────────── */

static void *kept[BLOCKS];
static atomic_int n_given;

static uint64_t give_kept(void *arg, int card, uint64_t bytes)
{
    uint64_t given = 0;
    (void)arg;
    for (int i = 0; i < BLOCKS && given < bytes; i++) {
        void *block = __atomic_exchange_n(&kept[i], NULL, __ATOMIC_ACQ_REL);
        if (block == NULL)
            continue;
        blyi_idle_add(card, -(int64_t)(32 * MIB));
        GOOD(blyi_mem_free(block, 0));
        given += 32 * MIB;
        atomic_fetch_add(&n_given, 1);
    }
    return given;
}

static struct blyi_reclaimer keeper = {.name = "test", .reclaim = give_kept};

static void keep(int n)
{
    blyi_reclaim_add(&keeper);
    for (int i = 0; i < n; i++) {
        void *block = NULL;
        GOOD(take(32 * MIB, &block));
        __atomic_store_n(&kept[i], block, __ATOMIC_RELEASE);
        blyi_idle_add(0, 32 * MIB);
    }
}

static void keeps(struct peer *me)
{
    peer_wait(me);
    bind_0();
    keep(BLOCKS); /* 512 MiB */
    peer_done(me);
    peer_wait(me);
    CHECK_EQ(blyi_device_reset(0, true), BLY_OK);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(memory_comes_back_from_who_keeps_it)
{
    void *block = NULL, *more = NULL, *handle = NULL;
    char who[64];
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer peer = peer_start(keeps);
    peer_step(&peer);
    struct blyi_card *card = bind_0();
    struct blyi_physical_request physical = {
        .card = card, .size = 128 * MIB, .page_kind = BLYI_PAGE_HUGE};
    /* 1024 - 2 x 16 - 512 = 480 MiB are free: 20 MiB more is one block of the other. */
    GOOD(take(500 * MIB, &block));
    CHECK_EQ(blyi_ledger_slot_at(0)->cards[0].idle, (BLOCKS - 1) * 32 * MIB);
    GOOD(blyi_physical_create(&physical, &handle)); /* 116 MiB short: four more */
    CHECK_EQ(blyi_ledger_slot_at(0)->cards[0].idle, (BLOCKS - 5) * 32 * MIB);
    /* What nobody has is not had by asking; all is given back all the same. */
    snprintf(who, sizeof who, "; asked pid %d (", (int)peer.pid);
    FAILS(take(GIB, &more), BLY_E_NO_MEMORY, who);
    CHECK(strstr(blyi_fail_text(), "it gave back 369098752 B (352 MiB)") != NULL);
    CHECK_EQ(blyi_ledger_slot_at(0)->cards[0].idle, 0);
    GOOD(take(300 * MIB, &more));
    peer_step(&peer);
    peer_end(&peer);
    CHECK(blyi_card_audit(card));
    blyi_runtime_finalise();
}

MANY_TEST(a_stopped_keeper_is_left_alone)
{
    void *block = NULL;
    int status;
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer peer = peer_start(keeps);
    peer_step(&peer);
    bind_0();
    CHECK(kill(peer.pid, SIGSTOP) == 0);
    CHECK_EQ(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
    CHECK(WIFSTOPPED(status));
    FAILS(take(600 * MIB, &block), BLY_E_NO_MEMORY, "it is stopped"); /* and was not asked */
    CHECK(kill(peer.pid, SIGCONT) == 0);
    GOOD(take(600 * MIB, &block));
    peer_kill(&peer);
    blyi_runtime_finalise();
}

/* A request that nobody took up is withdrawn, and is not in the way of the next. */
static void begins_to_answer_later(struct peer *me)
{
    GOOD(blyi_runtime_enter());
    GOOD(blyi_ledger_attach()); /* a slot, and no thread */
    peer_done(me);
    peer_wait(me);
    bind_0();
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(a_silent_process_is_asked_in_vain)
{
    struct blyi_request request = {
        .what = BLYI_ASK_GIVE, .card = 0, .bytes = 1, .timeout_ns = 1000000000};
    struct blyi_answer answer = {0};
    struct peer peer = peer_start(begins_to_answer_later);
    CHECK(peer_answers(&peer));
    bind_0();
    CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_SILENT);
    peer_step(&peer);
    CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_ANSWERED);
    peer_end(&peer);
    blyi_runtime_finalise();
}

MANY_TEST(a_dead_keeper_leaves_its_memory)
{
    void *block = NULL;
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer peer = peer_start(keeps);
    peer_step(&peer);
    struct blyi_card *card = bind_0();
    peer_kill(&peer);
    GOOD(take(1024 * MIB - OVERHEAD, &block));
    CHECK(blyi_card_audit(card));
    blyi_runtime_finalise();
}

/* The dead are noticed by a process that does nothing. */
static void idles(struct peer *me)
{
    bind_0();
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(an_idle_process_buries_the_dead)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer peer = peer_start(keeps), idle = peer_start(idles);
    peer_step(&peer);
    CHECK(peer_answers(&idle));
    GOOD(blyi_runtime_enter());
    GOOD(blyi_ledger_attach()); /* a slot, and no thread */
    uint64_t deaths = blyi_ledger_header()->n_deaths;
    peer_kill(&peer);
    while (__atomic_load_n(&blyi_ledger_header()->n_deaths, __ATOMIC_ACQUIRE) == deaths)
        sched_yield();
    peer_end(&idle);
}

/* Several ask one process at the same time, and each is answered. */
static void asks(struct peer *me)
{
    struct blyi_request request = {
        .what = BLYI_ASK_GIVE, .card = 0, .bytes = 1, .timeout_ns = 1000000000};
    bind_0();
    peer_done(me);
    peer_wait(me);
    for (int i = 0; i < 50; i++) {
        struct blyi_answer answer = {.bytes = 77};
        CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_ANSWERED);
        CHECK_EQ(answer.status, BLY_OK);
        CHECK_EQ(answer.bytes, 0);
    }
    peer_done(me);
    peer_wait(me);
}

static void is_asked(struct peer *me)
{
    bind_0();
    CHECK_EQ(blyi_ledger_slot(), 0);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(askers_take_turns)
{
    struct peer asked = peer_start(is_asked), askers[4];
    CHECK(peer_answers(&asked));
    for (int i = 0; i < 4; i++) {
        askers[i] = peer_start(asks);
        CHECK(peer_answers(&askers[i]));
    }
    for (int i = 0; i < 4; i++)
        peer_tell(&askers[i]);
    for (int i = 0; i < 4; i++)
        CHECK(peer_answers(&askers[i]));
    for (int i = 3; i >= 0; i--)
        peer_end(&askers[i]);
    peer_end(&asked);
}

/* An asker that dies holding the mailbox is not in the way of the next. */
static void takes_box_and_hangs(struct peer *me)
{
    bind_0();
    struct blyi_mailbox *box = blyi_mailbox_of(0);
    uint32_t word = __atomic_load_n(&box->word, __ATOMIC_ACQUIRE);
    CHECK(blyi_mailbox_move(box, word,
                            blyi_mailbox_word(word >> 11, blyi_ledger_slot(), BLYI_PHASE_FILLING)));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(a_dead_asker_lets_go)
{
    struct peer asked = peer_start(is_asked);
    CHECK(peer_answers(&asked));
    struct peer dead = peer_start(takes_box_and_hangs);
    CHECK(peer_answers(&dead));
    struct blyi_request request = {
        .what = BLYI_ASK_GIVE, .card = 0, .bytes = 1, .timeout_ns = 1000000000};
    struct blyi_answer answer = {0};
    bind_0();
    CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_SILENT);
    peer_kill(&dead);
    CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_ANSWERED);
    peer_end(&asked);
    CHECK_EQ(blyi_service_ask(0, &request, &answer), BLYI_ASKED_ENDED);
    blyi_runtime_finalise();
}

/* Garbage in the mailbox harms nobody. */
MANY_TEST(a_mailbox_may_hold_anything)
{
    uint64_t seed = 0x9e3779b97f4a7c15u;
    struct peer asked = peer_start(is_asked);
    CHECK(peer_answers(&asked));
    bind_0();
    struct blyi_mailbox *box = blyi_mailbox_of(0);
    for (int round = 0; round < 2000; round++) {
        unsigned char *bytes = (unsigned char *)box;
        for (size_t i = 4; i < sizeof *box; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            __atomic_store_n(&bytes[i], (unsigned char)seed, __ATOMIC_RELAXED);
        }
        if (round % 2) /* a request that might be carried out */
            __atomic_store_n(&box->cookie, blyi_ledger_slot_at(0)->cookie, __ATOMIC_RELAXED);
        if (round % 4 == 1)
            __atomic_store_n(&box->what, (uint32_t)BLYI_ASK_GIVE, __ATOMIC_RELAXED);
        __atomic_store_n(&box->word, (uint32_t)(seed >> 11), __ATOMIC_RELEASE);
        blyi_service_ring(0);
    }
    __atomic_store_n(&box->word, 0, __ATOMIC_RELEASE);
    struct blyi_request request = {
        .what = BLYI_ASK_GIVE, .card = 0, .bytes = 1, .timeout_ns = 1000000000};
    struct blyi_answer answer = {0};
    enum blyi_asked how = blyi_service_ask(0, &request, &answer);
    if (how == BLYI_ASKED_ENDED) /* it moved on what was there before */
        how = blyi_service_ask(0, &request, &answer);
    CHECK_EQ(how, BLYI_ASKED_ANSWERED);
    peer_end(&asked);
    blyi_runtime_finalise();
}

/* The thread ends at finalise and comes back. */
MANY_TEST(the_thread_comes_back)
{
    struct peer asked = peer_start(is_asked);
    CHECK(peer_answers(&asked));
    for (int i = 0; i < 20; i++) {
        bind_0();
        blyi_runtime_finalise();
    }
    bind_0();
    peer_end(&asked);
    blyi_runtime_finalise();
}

/* ── Audit ────────────────────────────────────────────────────────────────────────────────── */

static void hangs_with_events(struct peer *me)
{
    void *event = NULL, *stream = NULL;
    bind_0();
    GOOD(blyi_stream_create(0, 0, 0, &stream));
    GOOD(blyi_stream_pause(stream));
    for (int i = 0; i < 3; i++) {
        GOOD(blyi_event_create(BLYI_EVENT_IPC, true, 0, &event));
        GOOD(blyi_event_record(event, stream, 0));
    }
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(the_audit_knows_shared_events)
{
    char why[160] = "";
    void *event = NULL;
    struct peer peer = peer_start(hangs_with_events);
    CHECK(peer_answers(&peer));
    bind_0();
    GOOD(blyi_event_create(BLYI_EVENT_IPC, true, 0, &event));
    CHECK(blyi_ledger_audit(why, sizeof why));
    peer_kill(&peer);
    blyi_ledger_reap();
    CHECK(blyi_ledger_audit(why, sizeof why));
    GOOD(blyi_event_destroy(event));
    CHECK(blyi_ledger_audit(why, sizeof why));
    for (uint32_t i = 0; i < blyi_signal_records(); i++)
        CHECK_EQ(blyi_signal_record_at(i)->life, BLYI_SIGNAL_FREE);
    /* It can fail. */
    blyi_signal_record_at(0)->life = BLYI_SIGNAL_FORMING;
    CHECK(!blyi_ledger_audit(why, sizeof why));
    CHECK(strstr(why, "half made") != NULL);
    blyi_signal_record_at(0)->life = BLYI_SIGNAL_LIVE;
    CHECK(!blyi_ledger_audit(why, sizeof why));
    CHECK(strstr(why, "no holder") != NULL);
    blyi_signal_record_at(0)->life = BLYI_SIGNAL_FREE;
    blyi_runtime_finalise();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_back_from_who_keeps_it),
        cmocka_unit_test(a_stopped_keeper_is_left_alone),
        cmocka_unit_test(a_silent_process_is_asked_in_vain),
        cmocka_unit_test(a_dead_keeper_leaves_its_memory),
        cmocka_unit_test(an_idle_process_buries_the_dead),
        cmocka_unit_test(askers_take_turns),
        cmocka_unit_test(a_dead_asker_lets_go),
        cmocka_unit_test(a_mailbox_may_hold_anything),
        cmocka_unit_test(the_thread_comes_back),
        cmocka_unit_test(the_audit_knows_shared_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
