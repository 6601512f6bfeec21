/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of the account, exact, for probes that are emitted by hand.
 */
#include "observe_test.h"

static void peak_scenario(void)
{
    /* Card 0 is full first, card 1 later: the process's peak is neither sum of peaks. */
    alloc_huge(0, 0x1000000, 64 * MiB, site(1));
    alloc_huge(1, 0x9000000, 8 * MiB, site(2));
    release(0, 0x1000000);
    alloc_huge(0, 0x1000000, 16 * MiB, site(1));
    alloc_huge(1, 0xa000000, 32 * MiB, site(2));
    struct blyi_account account = read_account();
    assert_int_equal(account.cards[0].peak, 64 * MiB);
    assert_int_equal(account.cards[1].peak, 40 * MiB);
    assert_int_equal(account.process.peak, 72 * MiB);
    assert_int_equal(account.process.live.asked, 56 * MiB);
    assert_int_equal(account.process.all.count, 4);
    assert_int_equal(account.process.frees, 1);
    blyi_account_fini(&account);
}

static void peaks_are_simultaneous(void **state)
{
    (void)state;
    in_child(peak_scenario);
}

static void holder_scenario(void)
{
    alloc_huge(0, 0x1000000, 10 * MiB, site(1));
    alloc_huge(0, 0x2000000, 20 * MiB, site(2)); /* 30: the peak */
    release(0, 0x2000000);
    alloc_huge(0, 0x3000000, 4 * MiB, site(1));
    alloc_huge(0, 0x4000000, 6 * MiB, site(3));
    struct blyi_account account = read_account();
    assert_int_equal(group_of(&account, 0, site(1))->at_peak.asked, 10 * MiB);
    assert_int_equal(group_of(&account, 0, site(1))->live.asked, 14 * MiB);
    assert_int_equal(group_of(&account, 0, site(2))->at_peak.asked, 20 * MiB);
    assert_int_equal(group_of(&account, 0, site(2))->live.asked, 0);
    assert_int_equal(group_of(&account, 0, site(3))->at_peak.asked, 0);
    blyi_account_fini(&account);
    alloc_huge(0, 0x5000000, 40 * MiB, site(3)); /* 60: a new peak */
    account = read_account();
    assert_int_equal(account.process.peak, 60 * MiB);
    assert_int_equal(group_of(&account, 0, site(1))->at_peak.asked, 14 * MiB);
    assert_int_equal(group_of(&account, 0, site(2))->at_peak.asked, 0);
    assert_int_equal(group_of(&account, 0, site(3))->at_peak.asked, 46 * MiB);
    blyi_account_fini(&account);
}

static void holders_are_those_of_the_last_peak(void **state)
{
    (void)state;
    in_child(holder_scenario);
}

/* O-14 without its cards. */
static void waste_scenario(void)
{
    for (uint64_t i = 0; i < 1000; i++) {
        alloc(0, 0x10000000 + i * 4096, 512, 544, 4096, BLYI_PAGE_NORMAL, site(1));
        alloc(0, 0x20000000 + i * 4096, 512, 512, 4096, BLYI_PAGE_NORMAL, site(2));
    }
    alloc(0, 0x30000000, 2 * MiB, 2 * MiB + 32, 4 * MiB, BLYI_PAGE_HUGE, site(3));
    alloc(0, 0x30400000, 2 * MiB, 2 * MiB, 2 * MiB, BLYI_PAGE_HUGE, site(4));
    /* The card tells that the twin would have small pages. */
    BLYI_PROBE(ALLOC, .card = 0, .address = 0x30600000, .asked = MiB, .rounded = MiB + 32,
               .backed = 2 * MiB, .page_kind = BLYI_PAGE_HUGE, .site = site(5),
               .aux = (int64_t)MiB);
    struct blyi_account account = read_account();
    const struct blyi_account_group *small = group_of(&account, 0, site(1));
    assert_int_equal(small->all.asked, 512000);
    assert_int_equal(small->all.rounded, 544000);
    assert_int_equal(small->all.backed, 4096000);
    assert_int_equal(small->saving_peak, 0); /* a page each with the twin as well */
    assert_int_equal(group_of(&account, 0, site(2))->all.rounded, 512000);
    assert_int_equal(group_of(&account, 0, site(3))->saving_peak, 2 * MiB);
    assert_int_equal(group_of(&account, 0, site(4))->saving_peak, 0);
    assert_int_equal(group_of(&account, 0, site(5))->saving_peak, MiB);
    assert_int_equal(account.pages[BLYI_PAGE_NORMAL].all.count, 2000);
    assert_int_equal(account.pages[BLYI_PAGE_HUGE].all.count, 3);
    assert_int_equal(account.pages[BLYI_PAGE_HUGE].peak_backed, 8 * MiB);
    release(0, 0x30000000);
    blyi_account_fini(&account);
    account = read_account();
    assert_int_equal(group_of(&account, 0, site(3))->saving, 0);
    assert_int_equal(group_of(&account, 0, site(3))->saving_peak, 2 * MiB);
    blyi_account_fini(&account);
}

static void waste_is_exact_and_names_what_the_padding_costs(void **state)
{
    (void)state;
    in_child(waste_scenario);
}

static void reset_scenario(void)
{
    card_open(0, GiB);
    alloc_huge(0, 0x2000000, 2 * MiB, site(1));
    alloc_huge(0, 0x1000000, 4 * MiB, site(1));
    BLYI_PROBE(RESET_FREE, .card = 0, .address = 0x2000000, .site = site(9));
    BLYI_PROBE(STREAM_CREATE, .card = 0, .stream = 7, .site = site(2));
    BLYI_PROBE(STREAM_CREATE, .card = 0, .stream = 3, .site = site(2));
    BLYI_PROBE(STREAM_CREATE, .card = 0, .stream = 1, .site = site(2), .aux = 1); /* default */
    BLYI_PROBE(STREAM_DESTROY, .card = 0, .stream = 7, .site = site(9), .aux = 1);
    BLYI_PROBE(EVENT_CREATE, .card = 0, .event = 5, .site = site(3));
    BLYI_PROBE(EVENT_DESTROY, .card = 0, .event = 5, .site = site(9));
    for (uint32_t id = 5; id < 8; id++)
        BLYI_PROBE(NOTIFY_CREATE, .card = 0, .event = id, .site = site(4));
    BLYI_PROBE(NOTIFY_DESTROY, .card = 0, .event = 7);
    BLYI_PROBE(NOTIFY_DESTROY, .card = 0, .event = 6, .aux = 1);
    struct blyi_account account = read_account();
    const struct blyi_account_group *group = group_of(&account, 0, site(1));
    assert_int_equal(group->live.asked, 4 * MiB);
    assert_int_equal(group->reset.asked, 2 * MiB);
    assert_int_equal(group->first_address, 0x1000000);
    assert_int_equal(account.process.frees, 0);
    assert_int_equal(account.process.reset, 1);
    const struct blyi_tally_ids *streams = &group_of(&account, 0, site(2))->streams;
    assert_int_equal(streams->live, 1);
    assert_int_equal(streams->reset, 1);
    assert_int_equal(streams->n_ids, 2);
    assert_int_equal(streams->ids[0], 3);
    assert_int_equal(streams->ids[1], 7);
    assert_int_equal(account.streams.made, 2);
    assert_int_equal(account.events.live, 0);
    assert_int_equal(account.events.destroyed, 1);
    /* Notifies have numbers of their own. */
    const struct blyi_tally_ids *notifies = &group_of(&account, 0, site(4))->notifies;
    assert_int_equal(notifies->live, 1);
    assert_int_equal(notifies->reset, 1);
    assert_int_equal(notifies->n_ids, 2);
    assert_int_equal(notifies->ids[0], 5);
    assert_int_equal(notifies->ids[1], 6);
    assert_int_equal(account.notifies.made, 3);
    assert_int_equal(account.notifies.destroyed, 1);
    assert_int_equal(account.cards[0].overhead, 16 * MiB);
    blyi_account_fini(&account);
}

static void reset_takes_back_and_does_not_forgive(void **state)
{
    (void)state;
    in_child(reset_scenario);
}

static void pinned_scenario(void)
{
    for (uint64_t i = 0; i < 17; i++)
        BLYI_PROBE(HOST_ALLOC, .card = -1, .address = 0x40000000 + i * 32 * MiB, .asked = 17 * MiB,
                   .rounded = 17 * MiB, .backed = 17 * MiB, .site = site(1));
    struct blyi_account account = read_account();
    assert_int_equal(account.pinned.live.asked, 289 * MiB);
    assert_int_equal(account.process.live.asked, 0);
    blyi_account_fini(&account);
    for (uint64_t i = 0; i < 17; i++)
        BLYI_PROBE(HOST_FREE, .card = -1, .address = 0x40000000 + i * 32 * MiB);
    account = read_account();
    assert_int_equal(account.pinned.live.backed, 0);
    assert_int_equal(account.pinned.peak, 289 * MiB);
    assert_int_equal(account.pinned.frees, 17);
    blyi_account_fini(&account);
}

static void register_host(uint64_t address, uint64_t size, uint64_t backed)
{
    BLYI_PROBE(HOST_REGISTER, .card = -1, .address = address, .size = size, .asked = size,
               .rounded = size, .backed = backed, .site = site(2));
}

static void unregister_host(uint64_t address, uint64_t size, uint64_t backed)
{
    BLYI_PROBE(HOST_UNREGISTER, .card = -1, .address = address, .size = size, .asked = size,
               .rounded = size, .backed = backed, .site = site(3));
}

static void registered_scenario(void)
{
    BLYI_PROBE(HOST_ALLOC, .card = -1, .address = 0x40000000, .asked = MiB, .rounded = MiB,
               .backed = MiB, .site = site(1));
    register_host(0x10000000, 5000, 8192);
    register_host(0x40000000, MiB, 0); /* the pinned block itself */
    struct blyi_account account = read_account();
    assert_int_equal(account.pinned.peak, MiB + 5000);
    assert_int_equal(account.pinned.peak_backed, MiB + 8192);
    assert_int_equal(account.pinned.live.asked, MiB + 5000);
    assert_int_equal(account.pinned.all.asked, MiB); /* what was allocated */
    assert_int_equal(account.registered.made, 1);
    blyi_account_fini(&account);
    unregister_host(0x10000000, 5000, 8192);
    unregister_host(0x40000000, MiB, 0);
    account = read_account();
    assert_int_equal(account.pinned.live.backed, MiB);
    assert_int_equal(account.pinned.peak, MiB + 5000);
    assert_int_equal(account.registered.live.count, 0);
    blyi_account_fini(&account);
}

static void registered_memory_counts_as_pinned(void **state)
{
    (void)state;
    in_child(registered_scenario);
}

static void pinned_memory_is_counted_apart(void **state)
{
    (void)state;
    in_child(pinned_scenario);
}

static void foreign_scenario(void)
{
    release(0, 0x123000); /* never allocated here */
    BLYI_PROBE(STREAM_DESTROY, .card = 0, .stream = 77);
    alloc_huge(64, 0x1000000, MiB, site(1)); /* no such card */
    alloc_huge(-5, 0x1000000, MiB, site(1));
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = 70 * MiB, .site = site(2), .aux = BLY_E_CAP);
    BLYI_PROBE(ALLOC_FAIL, .card = 0, .asked = 9 * MiB, .site = site(2), .aux = BLY_E_NO_MEMORY);
    struct blyi_account account = read_account();
    assert_int_equal(account.process.all.count, 0);
    assert_int_equal(account.process.refused, 2);
    assert_int_equal(group_of(&account, 0, site(2))->refused_largest, 70 * MiB);
    assert_int_equal(group_of(&account, 0, site(2))->refused_status, BLY_E_NO_MEMORY);
    blyi_account_fini(&account);
}

static void probes_without_a_record_do_no_harm(void **state)
{
    (void)state;
    in_child(foreign_scenario);
}

/* Each host allocation fails once: sums stay exact, only sites may be lost. */
static void shortage_scenario(void)
{
    uint64_t allocs = 0;
    site(1);
    site(2);
    for (uint64_t n = 1;; n++) {
        blyi_host_fail_nth(n);
        for (uint64_t i = 0; i < 40; i++)
            alloc_huge(0, 0x1000000 + i * 2 * MiB, 2 * MiB, site(1 + i % 2));
        BLYI_PROBE(STREAM_CREATE, .card = 0, .stream = 5, .site = site(1));
        allocs += 40;
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        struct blyi_account account = read_account();
        assert_int_equal(account.process.live.asked, 80 * MiB);
        assert_int_equal(account.process.live.count, 40);
        assert_int_equal(account.process.all.count, allocs);
        assert_int_equal(account.untracked > 0, failed || account.untracked > 0);
        blyi_account_fini(&account);
        for (uint64_t i = 0; i < 40; i++)
            BLYI_PROBE(FREE, .card = 0, .address = 0x1000000 + i * 2 * MiB, .asked = 2 * MiB,
                       .rounded = 2 * MiB, .backed = 2 * MiB, .page_kind = BLYI_PAGE_HUGE);
        BLYI_PROBE(STREAM_DESTROY, .card = 0, .stream = 5);
        account = read_account();
        assert_int_equal(account.process.live.asked, 0);
        assert_int_equal(account.cards[0].live.count, 0);
        blyi_account_fini(&account);
        if (!failed)
            return;
    }
}

static void shortage_of_host_memory_loses_sites_not_bytes(void **state)
{
    (void)state;
    in_child(shortage_scenario);
}

static void read_failure_scenario(void)
{
    struct blyi_account account;
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    blyi_host_fail_nth(1);
    assert_int_equal(blyi_account_read(&account), BLY_E_HOST_MEMORY);
    account = read_account();
    assert_int_equal(account.process.live.count, 1);
    blyi_account_fini(&account);
}

static void reading_may_fail_and_be_repeated(void **state)
{
    (void)state;
    in_child(read_failure_scenario);
}

static void fork_scenario(void)
{
    int status = -1;
    alloc_huge(0, 0x1000000, 2 * MiB, site(1));
    assert_true(blyi_account_is_own());
    pid_t pid = fork();
    if (pid == 0) {
        release(0, 0x1000000);
        _exit(blyi_account_is_own() ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct blyi_account account = read_account();
    assert_int_equal(account.process.live.count, 1);
    blyi_account_fini(&account);
}

static void forked_children_count_only_when_the_parent_had_nothing(void **state)
{
    (void)state;
    in_child(fork_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_simultaneous),
        cmocka_unit_test(holders_are_those_of_the_last_peak),
        cmocka_unit_test(waste_is_exact_and_names_what_the_padding_costs),
        cmocka_unit_test(reset_takes_back_and_does_not_forgive),
        cmocka_unit_test(pinned_memory_is_counted_apart),
        cmocka_unit_test(registered_memory_counts_as_pinned),
        cmocka_unit_test(probes_without_a_record_do_no_harm),
        cmocka_unit_test(shortage_of_host_memory_loses_sites_not_bytes),
        cmocka_unit_test(reading_may_fail_and_be_repeated),
        cmocka_unit_test(forked_children_count_only_when_the_parent_had_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
