/* SPDX-License-Identifier: Apache-2.0
 *
 * observe_test.h - probes by hand. The account lives as long as its process, so each scenario
 * runs in a child; the parent never counts anything.
 */
#ifndef OBSERVE_TEST_H
#define OBSERVE_TEST_H

#include "../base/base_test.h"

#include <sys/wait.h>
#include <unistd.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "observe/account.h"

/* An assertion that fails in the child makes it end with a status that is not 0. */
static inline void in_child(void (*scenario)(void))
{
    pid_t pid = fork();
    int status = -1;
    assert_true(pid >= 0);
    if (pid == 0) {
        blyi_account_start();
        scenario();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Sites are made from invented return addresses. */
static inline uint32_t site(uintptr_t n)
{
    return blyi_site_intern((const void *)(n * 16));
}

static inline void card_open(int card, uint64_t total)
{
    BLYI_PROBE(CARD_OPEN, .card = card, .size = total, .aux = (int64_t)(16 * MiB));
}

static inline void alloc(int card, uint64_t address, uint64_t asked, uint64_t rounded,
                         uint64_t backed, uint32_t page_kind, uint32_t where)
{
    BLYI_PROBE(ALLOC, .card = card, .address = address, .size = asked, .asked = asked,
               .rounded = rounded, .backed = backed, .page_kind = page_kind, .site = where);
}

/* Whole huge pages: asked, rounded and backed are the same. */
static inline void alloc_huge(int card, uint64_t address, uint64_t bytes, uint32_t where)
{
    alloc(card, address, bytes, bytes, bytes, BLYI_PAGE_HUGE, where);
}

static inline void release(int card, uint64_t address)
{
    BLYI_PROBE(FREE, .card = card, .address = address, .site = site(999));
}

static inline struct blyi_account read_account(void)
{
    struct blyi_account account;
    assert_int_equal(blyi_account_read(&account), BLY_OK);
    assert_true(blyi_account_audit());
    return account;
}

static inline const struct blyi_account_group *group_of(const struct blyi_account *account,
                                                        int card, uint32_t where)
{
    for (size_t i = 0; i < account->n_groups; i++)
        if (account->groups[i].card == card && account->groups[i].site == where)
            return &account->groups[i];
    fail_msg("no group of card %d and site %u", card, where);
    return NULL;
}

#endif
