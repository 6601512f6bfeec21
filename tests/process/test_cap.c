/* SPDX-License-Identifier: Apache-2.0 */
/* BELAY_CAP over several processes. */
#include "base/option.h"
#include "base/sanitizer.h"
#include "npu/cap_origin.h"
#include "service_test.h"

static void child_takes(struct peer *me)
{
    void *block = NULL;
    char who[80];
    size_t size;
    peer_hear(me, &size, sizeof size);
    bind_0();
    bly_status status = take(size, &block);
    if (status != BLY_OK) {
        CHECK_EQ(status, BLY_E_CAP);
        snprintf(who, sizeof who, "the cap BELAY_CAP of pid %d (", (int)getppid());
        CHECK(strstr(blyi_fail_text(), who) != NULL);
        snprintf(who, sizeof who, "by pid %d (", (int)getppid());
        CHECK(strstr(blyi_fail_text(), who) != NULL);
    }
    char answer = status == BLY_OK ? 'y' : 'n';
    peer_say(me, &answer, 1);
    peer_wait(me);
    blyi_runtime_finalise();
    peer_done(me);
    peer_wait(me);
}

static bool child_can(struct peer *child, size_t size)
{
    char answer;
    CHECK_EQ(write(child->to, &size, sizeof size), sizeof size);
    CHECK_EQ(read(child->from, &answer, 1), 1);
    return answer == 'y';
}

/* O-25 without its pool, over two processes: 400 MiB for both together. */
MANY_TEST(a_cap_is_for_children_too)
{
    void *block = NULL, *more = NULL;
    char text[96];
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CAP", "400MiB", 1);
    struct peer child = peer_start(child_takes), other = peer_start(child_takes);
    struct blyi_card *card = bind_0();
    GOOD(take(256 * MIB, &block));
    FAILS(take(200 * MIB, &more), BLY_E_CAP, "the process's cap BELAY_CAP, not card 0");
    CHECK(strstr(blyi_fail_text(), "short by 75497472 B (72 MiB)") != NULL); /* 16 MiB overhead */
    /* 400 - 256 - 3 x 16 = 96 are left, of which the first child takes 64. */
    CHECK(child_can(&child, 64 * MIB));
    CHECK(!child_can(&other, 64 * MIB));
    FAILS(take(200 * MIB, &more), BLY_E_CAP, "the cap BELAY_CAP of this process and its children");
    snprintf(text, sizeof text, "by this process 285212672 B (272 MiB), by pid %d (",
             (int)child.pid);
    CHECK(strstr(blyi_fail_text(), text) != NULL);
    CHECK(strstr(blyi_fail_text(), "left 33554432 B (32 MiB)") != NULL);
    CHECK(strstr(blyi_fail_text(), "not card 0") != NULL);
    GOOD(take(32 * MIB, &more));
    peer_step(&other); /* finalised: its overhead is back */
    GOOD(take(16 * MIB, &more));
    peer_kill(&child);
    GOOD(take(80 * MIB, &more)); /* what the dead had booked is back as well */
    FAILS(take(2 * MIB, &more), BLY_E_CAP, "short by");
    peer_end(&other);
    CHECK(blyi_card_audit(card));
    blyi_runtime_finalise();
}

static void child_with_less(struct peer *me)
{
    void *block = NULL, *more = NULL;
    peer_wait(me);
    setenv("BELAY_CAP", "100MiB", 1);
    bind_0();
    GOOD(take(64 * MIB, &block));
    FAILS(take(64 * MIB, &more), BLY_E_CAP, "the process's cap BELAY_CAP");
    CHECK(strstr(blyi_fail_text(), "cap 104857600 B (100 MiB)") != NULL);
    peer_done(me);
    peer_wait(me);
    /* Now the outer one leaves less: 300 - 16 - 80 - 160 = 44, less than 100 - 80. */
    FAILS(take(20 * MIB, &more), BLY_E_CAP, "and its children, not card 0");
    CHECK(strstr(blyi_fail_text(), "cap 314572800 B (300 MiB)") != NULL);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(the_smallest_cap_counts)
{
    void *block = NULL;
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CAP", "300MiB", 1);
    struct peer child = peer_start(child_with_less);
    bind_0();
    peer_step(&child);
    GOOD(take(190 * MIB, &block)); /* 300 - 206 - 80 = 14 are left */
    peer_step(&child);
    peer_end(&child);
    blyi_runtime_finalise();
}

/* A grandchild counts for all above it, across exec as well, also when its parent is gone. */
static void grandchild(struct peer *me)
{
    void *block = NULL;
    bind_0();
    CHECK_EQ(take(64 * MIB, &block), BLY_OK);
    peer_done(me);
    peer_wait(me);
    /* Its own parent has ended; it is still in the group: 200 - 80 - 16 - 96 = 8. */
    CHECK_EQ(take(16 * MIB, &block), BLY_E_CAP);
    CHECK(strstr(blyi_fail_text(), "and its children, not card 0") != NULL);
    peer_done(me);
    peer_wait(me);
}

static void child_with_child(struct peer *me)
{
    peer_wait(me);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        grandchild(me);
        exit(0);
    }
    peer_wait(me); /* or the grandchild, whoever reads first: both end with the pipe */
}

MANY_TEST(grandchildren_stay_in_the_group)
{
    void *block = NULL;
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CAP", "200MiB", 1);
    struct peer child = peer_start(child_with_child);
    bind_0();
    peer_step(&child); /* answered by the grandchild */
    CHECK(kill(child.pid, SIGKILL) == 0);
    CHECK_EQ(waitpid(child.pid, NULL, 0), child.pid);
    GOOD(take(96 * MIB, &block));
    peer_step(&child);
    close(child.to);
    char byte; /* until the grandchild has ended as well */
    CHECK_EQ(read(child.from, &byte, 1), 0);
    blyi_runtime_finalise();
}

/* As the library does when it is loaded with BELAY_CAP in the environment. */
static void born_with_cap(const char *cap)
{
    unsetenv("BELAY_CAP_GROUP");
    setenv("BELAY_CAP", cap, 1);
    setenv("BELAY_HBM", "1GiB", 1);
    blyi_option_reload();
    blyi_cap_begin();
}

static void daemon_takes(struct peer *me)
{
    void *block = NULL;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        _exit(0);
    peer_wait(me);
    bind_0();
    GOOD(take(48 * MIB, &block));
    peer_done(me);
    peer_wait(me);
}

/* Its parent is gone before anybody has touched a card. */
MANY_TEST(a_daemon_stays_in_the_group)
{
    void *block = NULL;
    int status;
    born_with_cap("100MiB");
    struct peer daemon = peer_start(daemon_takes);
    CHECK_EQ(waitpid(daemon.pid, &status, 0), daemon.pid);
    peer_step(&daemon);
    bind_0();
    FAILS(take(32 * MIB, &block), BLY_E_CAP, "the cap BELAY_CAP of this process and its children");
    CHECK(strstr(blyi_fail_text(), "left 20971520 B (20 MiB)") != NULL);
    GOOD(take(20 * MIB, &block));
    blyi_runtime_finalise();
    close(daemon.to);
    char byte; /* until the daemon has ended as well */
    CHECK_EQ(read(daemon.from, &byte, 1), 0);
}

static void child_of_a_launcher(struct peer *me)
{
    char who[80];
    void *block = NULL;
    peer_wait(me);
    bind_0();
    if (take(48 * MIB, &block) == BLY_OK) {
        peer_say(me, "y", 1);
    } else {
        CHECK_EQ(blyi_fail_code(), BLY_E_CAP);
        snprintf(who, sizeof who, "the cap BELAY_CAP of pid %d (", (int)getppid());
        CHECK(strstr(blyi_fail_text(), who) != NULL);
        CHECK(strstr(blyi_fail_text(), ") and its children, not card 0, is reached") != NULL);
        peer_say(me, "n", 1);
    }
    peer_wait(me);
}

/* Who was given the cap never uses a card. */
MANY_TEST(children_of_a_launcher_share_its_cap)
{
    char first, second;
    born_with_cap("100MiB");
    struct peer a = peer_start(child_of_a_launcher), b = peer_start(child_of_a_launcher);
    peer_tell(&a);
    CHECK_EQ(read(a.from, &first, 1), 1);
    peer_tell(&b);
    CHECK_EQ(read(b.from, &second, 1), 1);
    CHECK(first == 'y' && second == 'n');
    peer_end(&b); /* first: it has a copy of a's pipe */
    peer_end(&a);
}

static void child_of_less(struct peer *me)
{
    void *block = NULL;
    if (BLYI_WITH_TSAN) /* its own thread keeps the library from writing to the environment */
        setenv("BELAY_CAP_GROUP", blyi_option_text(BLYI_OPT_CAP_GROUP), 1);
    setenv("BELAY_CAP", "60MiB", 1);
    blyi_option_reload();
    blyi_cap_begin();
    peer_wait(me);
    bind_0();
    FAILS(take(48 * MIB, &block), BLY_E_CAP, "the process's cap BELAY_CAP");
    CHECK(strstr(blyi_fail_text(), "cap 62914560 B (60 MiB)") != NULL);
    GOOD(take(40 * MIB, &block));
    peer_done(me);
    peer_wait(me);
}

/* A smaller cap inside, a larger one that does not bind, and text that is none. */
MANY_TEST(caps_from_the_environment_nest)
{
    void *block = NULL;
    struct blyi_cap_origin list[BLYI_SLOT_CAPS];
    born_with_cap("100MiB");
    CHECK_EQ(blyi_cap_origins(list), 1);
    CHECK_EQ(list[0].cap, 100 * MIB);
    CHECK_EQ(blyi_cap_group_pid(list[0].group), getpid());
    struct peer child = peer_start(child_of_less);
    peer_step(&child);
    setenv("BELAY_CAP", "300MiB", 1);
    setenv("BELAY_CAP_GROUP", "12300000001:104857600,:,x", 1);
    blyi_option_reload();
    blyi_cap_begin();
    CHECK_EQ(blyi_cap_origins(list), 1);
    CHECK_EQ(list[0].group, 0x12300000001u);
    setenv("BELAY_CAP_GROUP", "zz", 1);
    blyi_option_reload();
    CHECK_EQ(blyi_cap_origins(list), 0);
    born_with_cap("100MiB");
    bind_0();
    FAILS(take(64 * MIB, &block), BLY_E_CAP, "left 29360128 B (28 MiB)"); /* 100 - 16 - 56 */
    peer_end(&child);
    blyi_runtime_finalise();
}

/* Two processes at the same time never pass the cap together. */
static struct sums {
    atomic_uint_least64_t taken, most;
} * sums;

static void try_one(void **block)
{
    if (take(2 * MIB, block) != BLY_OK) {
        *block = NULL;
        return;
    }
    uint64_t now = atomic_fetch_add(&sums->taken, 2 * MIB) + 2 * MIB;
    uint64_t most = atomic_load(&sums->most);
    while (now > most && !atomic_compare_exchange_weak(&sums->most, &most, now))
        ;
}

static void races(struct peer *me)
{
    void *blocks[8] = {0};
    uint64_t seed = (uint64_t)getpid();
    peer_wait(me);
    bind_0();
    for (int i = 0; i < 4000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        void **block = &blocks[seed % 8];
        if (*block == NULL) {
            try_one(block);
        } else {
            atomic_fetch_sub(&sums->taken, 2 * MIB); /* before it is free */
            GOOD(blyi_mem_free(*block, 0));
            *block = NULL;
        }
    }
    /* At last all that it wants and gets: in whatever order they run, the last comes to the cap. */
    for (int i = 0; i < 8; i++)
        if (blocks[i] == NULL)
            try_one(&blocks[i]);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(nobody_passes_a_cap_together)
{
    struct peer peers[3];
    sums = mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(sums != MAP_FAILED);
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_CAP", "94MiB", 1); /* four overheads and 15 blocks; 24 would be wanted */
    for (int i = 0; i < 3; i++)
        peers[i] = peer_start(races);
    bind_0();
    for (int i = 0; i < 3; i++)
        peer_tell(&peers[i]);
    for (int i = 0; i < 3; i++)
        CHECK(peer_answers(&peers[i]));
    CHECK(atomic_load(&sums->most) <= 30 * MIB);
    CHECK(atomic_load(&sums->most) >= 26 * MIB); /* it was tried */
    for (int i = 2; i >= 0; i--)
        peer_end(&peers[i]);
    blyi_runtime_finalise();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cap_is_for_children_too),
        cmocka_unit_test(the_smallest_cap_counts),
        cmocka_unit_test(grandchildren_stay_in_the_group),
        cmocka_unit_test(a_daemon_stays_in_the_group),
        cmocka_unit_test(children_of_a_launcher_share_its_cap),
        cmocka_unit_test(caps_from_the_environment_nest),
        cmocka_unit_test(nobody_passes_a_cap_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
