/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger among processes that die, exec or change while they are inside it. */
#include "service_test.h"
#include "npu/ledger_view.h"
#include "npu/state.h"

/* What a peer tells once it has the lock. */
struct inside {
    uint32_t slot, word;
};

static void goes_inside(struct peer *me)
{
    struct inside inside;
    void *block = NULL;
    bind_0();
    GOOD(take(32 * MIB, &block));
    blyi_ledger_lock();
    inside.slot = blyi_ledger_slot();
    inside.word = blyi_ledger_header()->lock;
    peer_say(me, &inside, sizeof inside);
}

static void hangs_inside(struct peer *me)
{
    goes_inside(me);
    peer_wait(me);
}

static void execs_inside(struct peer *me)
{
    goes_inside(me);
    dup2(me->in, 0);
    execl("/bin/cat", "cat", (char *)NULL);
}

static struct inside hear_inside(struct peer *peer)
{
    struct inside inside;
    CHECK_EQ(read(peer->from, &inside, sizeof inside), sizeof inside);
    return inside;
}

static uint64_t free_now(void)
{
    return blyi_stock_free(blyi_card_get(0)->stock) * BLYI_FRAME_SIZE;
}

/* Another program has its number now, and would keep the others waiting until it ends. */
MANY_TEST(exec_inside_the_lock_lets_others_in)
{
    char why[160] = "";
    setenv("BELAY_HBM", "256MiB", 1);
    struct peer peer = peer_start(execs_inside);
    (void)hear_inside(&peer);
    bind_0();
    CHECK_EQ(free_now(), 256 * MIB - OVERHEAD);
    CHECK(blyi_ledger_audit(why, sizeof why));
    peer_end(&peer);
    blyi_runtime_finalise();
}

/* Who looked at a word and found its owner dead cannot mistake that of the next owner for it. */
MANY_TEST(words_of_the_lock_differ_by_process)
{
    struct peer first = peer_start(hangs_inside);
    struct inside a = hear_inside(&first);
    peer_kill(&first);
    struct peer second = peer_start(hangs_inside);
    struct inside b = hear_inside(&second);
    CHECK_EQ(a.slot, b.slot);
    CHECK_EQ(a.word & BLYI_LEDGER_OWNER, b.word & BLYI_LEDGER_OWNER);
    CHECK((a.word & ~BLYI_LEDGER_WAITED) != (b.word & ~BLYI_LEDGER_WAITED)); /* but one in 2^22 */
    peer_kill(&second);
}

static void idles(struct peer *me)
{
    GOOD(blyi_runtime_enter());
    GOOD(blyi_ledger_attach()); /* a slot, and no thread */
    peer_done(me);
    peer_wait(me);
}

/* Who looked a moment ago looked for all; what is garbage keeps nobody from looking. */
MANY_TEST(processes_look_for_the_dead_in_turn)
{
    const uint64_t since = 250000000, now = (uint64_t)1000 * 1000000000;
    for (int garbage = 0; garbage < 2; garbage++) {
        struct peer peer = peer_start(idles);
        CHECK(peer_answers(&peer));
        pid_t pid = fork();
        if (pid == 0) {
            GOOD(blyi_runtime_enter());
            GOOD(blyi_ledger_attach());
            struct blyi_ledger *header = blyi_ledger_header();
            uint64_t deaths = header->n_deaths;
            CHECK(kill(peer.pid, SIGKILL) == 0);
            while (blyi_ledger_is_alive(0)) /* a zombie soon; its parent is ours */
                sched_yield();
            header->looked_ns = now;
            blyi_ledger_reap_in_turn(now + since - 1, since);
            CHECK_EQ(header->n_deaths, deaths);
            if (garbage)
                header->looked_ns = UINT64_MAX - 7;
            blyi_ledger_reap_in_turn(garbage ? now : now + since, since);
            CHECK_EQ(header->n_deaths, deaths + 1);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(waitpid(peer.pid, &status, 0), peer.pid);
    }
}

/* A reading that does not add up says so. */
MANY_TEST(a_reading_between_two_figures_is_not_steady)
{
    struct blyi_ledger_view view;
    void *block = NULL;
    bind_0();
    GOOD(take(6 * MIB, &block));
    uint64_t *live = &blyi_ledger_mine()->cards[0].live;
    for (int step = 0; step < 3; step++) {
        if (step == 1)
            *live -= 2 * MIB;
        if (step == 2)
            *live += 2 * MIB;
        pid_t pid = fork(); /* another process reads: locks are told only of others */
        if (pid == 0) {
            GOOD(blyi_ledger_view(&view));
            CHECK_EQ(view.n_slots, 1);
            CHECK_EQ(view.steady, step != 1);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    blyi_runtime_finalise();
}

/* Needs root, to give a folder away. */
MANY_TEST(the_runtime_folder_of_another_user_is_left_alone)
{
    char path[BLYI_STATE_PATH], own[BLYI_STATE_PATH];
    unsetenv("BELAY_STATE");
    setenv("XDG_RUNTIME_DIR", state_folder, 1);
    snprintf(own, sizeof own, "%s/belay", state_folder);
    GOOD(blyi_state_path(path));
    CHECK_EQ(strcmp(path, own), 0);
    if (chown(state_folder, 65534, 65534) != 0)
        return;
    GOOD(blyi_state_path(path));
    CHECK(strstr(path, state_folder) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_inside_the_lock_lets_others_in),
        cmocka_unit_test(words_of_the_lock_differ_by_process),
        cmocka_unit_test(processes_look_for_the_dead_in_turn),
        cmocka_unit_test(the_runtime_folder_of_another_user_is_left_alone),
        cmocka_unit_test(a_reading_between_two_figures_is_not_steady),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
