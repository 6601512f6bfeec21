/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_test.h - what the tests of card memory share: small cards, and short calls.
 */
#ifndef MEM_TEST_H
#define MEM_TEST_H

#include "../base/base_test.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/sys.h"
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/round.h"

#define FRAME  (2 * MiB)
#define SITE_A 101u
#define SITE_B 102u

/* The call fails so, and its sentence has all these words (NULL: no more). */
#define assert_fails(call, code, ...)                                                              \
    do {                                                                                           \
        const char *words_[] = {__VA_ARGS__, NULL};                                                \
        assert_int_equal((call), (code));                                                          \
        for (int i_ = 0; words_[i_]; i_++)                                                         \
            if (!strstr(blyi_fail_text(), words_[i_]))                                             \
                fail_msg("'%s' is not in: %s", words_[i_], blyi_fail_text());                      \
    } while (0)

static inline void set_option(enum blyi_option option, const char *value)
{
    assert_ok(blyi_option_set(option, value));
}

/* Card 0 with this much memory, bound as by one context. */
static inline struct blyi_card *open_card(const char *hbm)
{
    struct blyi_card *card = NULL;
    set_option(BLYI_OPT_HBM, hbm);
    set_option(BLYI_OPT_GUARD, "off"); /* the tests are host code that touches card memory */
    assert_ok(blyi_card_open(0, &card));
    assert_ok(blyi_card_bind(card));
    return card;
}

static inline void close_card(struct blyi_card *card)
{
    assert_true(blyi_card_audit(card));
    blyi_card_close(card);
}

static inline struct blyi_mem_request request_of(uint64_t size, bool padded,
                                                 enum blyi_mem_policy policy)
{
    struct blyi_mem_request request = {
        .asked = size, .policy = policy, .site = SITE_A, .module = BLYI_MODULE_APPLICATION};
    assert_true(blyi_round_size(size, padded, &request.rounded));
    return request;
}

/* As aclrtMalloc. */
static inline bly_status try_padded(struct blyi_card *card, uint64_t size,
                                    enum blyi_mem_policy policy, void **address)
{
    struct blyi_mem_request request = request_of(size, true, policy);
    return blyi_mem_alloc(card, &request, address);
}

/* As aclrtMallocAlign32. */
static inline bly_status try_align32(struct blyi_card *card, uint64_t size,
                                     enum blyi_mem_policy policy, void **address)
{
    struct blyi_mem_request request = request_of(size, false, policy);
    return blyi_mem_alloc(card, &request, address);
}

static inline void *padded(struct blyi_card *card, uint64_t size, enum blyi_mem_policy policy)
{
    void *address = NULL;
    assert_ok(try_padded(card, size, policy, &address));
    return address;
}

static inline void *align32(struct blyi_card *card, uint64_t size, enum blyi_mem_policy policy)
{
    void *address = NULL;
    assert_ok(try_align32(card, size, policy, &address));
    return address;
}

static inline struct blyi_mem_figures figures_of(struct blyi_card *card)
{
    struct blyi_mem_figures figures;
    blyi_mem_figures(card, &figures);
    assert_int_equal(figures.free + figures.live + figures.overhead, figures.total);
    return figures;
}

static inline uint64_t free_of(struct blyi_card *card)
{
    return figures_of(card).free;
}

static inline struct blyi_mem_block block_at(const void *address)
{
    struct blyi_mem_block block = {0};
    assert_true(blyi_mem_find(address, &block));
    return block;
}

#endif
