/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pools.c - pools of one process, as another one sees them (O-13).
 */
#include "many_test.h"

#include "../conformance/pool_test.h"

#include <inttypes.h>

static aclrtMemPool pool;
static aclrtStream stream;

/* A pool that has 920 MiB, all of the card but the little that it leaves; 100 MiB are in use. */
static void fill_card(void)
{
    bind_card(0);
    stream = make_stream();
    pool = make_pool(0, KEEP_ALL);
    char *all = take(920 * MIB, pool, stream);
    give(all, stream);
    take(100 * MIB, pool, stream);
    CHECK_EQ(held(pool), 920 * MIB);
    CHECK_EQ(used(pool), 100 * MIB);
}

static void idle_pool(struct peer *me)
{
    peer_wait(me);
    fill_card();
    sync_stream(stream);
    peer_done(me);
    peer_wait(me);
    CHECK_EQ(used(pool), 100 * MIB);
    CHECK(held(pool) <= GIB - 512 * MIB - 2 * OVERHEAD);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(what_is_idle_is_given_to_another_process)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(idle_pool);
    peer_step(&a);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - 920 * MIB - 2 * OVERHEAD);
    void *mine = device_alloc(512 * MIB);
    peer_step(&a);
    OK(aclrtFree(mine));
    peer_end(&a);
}

/* Work that has not ended keeps what is idle where it is. */
static void busy_pool(struct peer *me)
{
    static struct hold hold;
    peer_wait(me);
    fill_card();
    hold_stream(&hold, stream);
    char *rest = take(820 * MIB, pool, stream);
    give(rest, stream); /* behind the held task */
    peer_done(me);
    peer_wait(me);
    let_go(&hold);
    sync_stream(stream);
    OK(aclrtMemPoolTrimTo(pool, 100 * MIB));
    CHECK_EQ(held(pool), 100 * MIB);
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(what_a_pool_of_another_process_holds_is_told)
{
    void *p = NULL;
    char part[160];
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(busy_pool);
    peer_step(&a);
    bind_card(0);
    CHECK_ACL(aclrtMallocAlign32(&p, 512 * MIB, HUGE_FIRST), 207001);
    const char *said = aclGetRecentErrMsg();
    CHECK(said != NULL);
    char text[4096];
    snprintf(text, sizeof text, "%s", said);
    const char *const parts[] = {
        "its pools hold 964689920 B (920 MiB) of that, 104857600 B (100 MiB) in use and "
        "859832320 B (820 MiB) idle",
        "(trimming them there gives that back)",
    };
    snprintf(part, sizeof part, "pid %d ", (int)a.pid);
    for (size_t i = 0; i < 2; i++) {
        if (strstr(text, parts[i]) == NULL)
            fprintf(stderr, "no '%s' in: %s\n", parts[i], text);
        CHECK(strstr(text, parts[i]) != NULL);
    }
    CHECK(strstr(text, part) != NULL);
    peer_step(&a); /* it trims */
    p = device_alloc(512 * MIB);
    OK(aclrtFree(p));
    peer_end(&a);
}

/* O-13: 90 % of the card from the start. That is not given to others, but can be trimmed. */
static void prefilled(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    void *block = device_alloc(100 * MIB);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - 920 * MIB - OVERHEAD);
    peer_done(me);
    peer_wait(me);
    OK(aclrtFree(block));
    OK(aclrtResetDevice(0));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(a_prefilled_pool_is_told_and_kept)
{
    void *p = NULL;
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_ALLOC", "pool", 1);
    setenv("BELAY_POOL_PREFILL", "90%", 1);
    struct peer a = peer_start(prefilled);
    peer_step(&a);
    setenv("BELAY_ALLOC", "stock", 1);
    bind_card(0);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), GIB - 920 * MIB - 2 * OVERHEAD);
    CHECK_ACL(aclrtMallocAlign32(&p, 512 * MIB, HUGE_FIRST), 207001);
    char part[160];
    snprintf(part, sizeof part, "pid %d ", (int)a.pid);
    const char *said = aclGetRecentErrMsg();
    char text[4096];
    snprintf(text, sizeof text, "%s", said != NULL ? said : "");
    CHECK(strstr(text, part) != NULL);
    const char *holds =
        "its pools hold 964689920 B (920 MiB) of that, 104857600 B (100 MiB) in use "
        "and 859832320 B (820 MiB) idle";
    if (strstr(text, holds) == NULL)
        fprintf(stderr, "no '%s' in: %s\n", holds, text);
    CHECK(strstr(text, holds) != NULL);
    peer_step(&a);
    p = device_alloc(512 * MIB);
    OK(aclrtFree(p));
    peer_end(&a);
}

/* A process that ends takes its pools along. */
static void full_pool(struct peer *me)
{
    peer_wait(me);
    fill_card();
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(pools_end_with_their_process)
{
    setenv("BELAY_HBM", "1GiB", 1);
    struct peer a = peer_start(full_pool), b = peer_start(full_pool);
    bind_card(0);
    size_t before = free_bytes(ACL_HBM_MEM);
    peer_step(&a);
    peer_kill(&a);
    peer_step(&b); /* has room for as much */
    peer_end(&b);
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_idle_is_given_to_another_process),
        cmocka_unit_test(what_a_pool_of_another_process_holds_is_told),
        cmocka_unit_test(a_prefilled_pool_is_told_and_kept),
        cmocka_unit_test(pools_end_with_their_process),
    };
    return cmocka_run_group_tests_name("pools of many processes", tests, NULL, NULL);
}
