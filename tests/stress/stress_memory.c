/* SPDX-License-Identifier: Apache-2.0
 * Random allocations, uses and frees of card memory beside an array of blocks; then the same
 * from several threads on two cards. */
#include "../unit/npu/mem_test.h"

#define BLOCKS 300
#define STEPS  4000

struct model_block {
    unsigned char *address;
    uint64_t asked, backed;
    unsigned char mark;
};

static struct model_block blocks[BLOCKS];
static uint32_t n_blocks;
static uint64_t live;

static bool overlaps(const unsigned char *address, uint64_t size)
{
    for (uint32_t i = 0; i < n_blocks; i++)
        if (address < blocks[i].address + blocks[i].backed && blocks[i].address < address + size)
            return true;
    return false;
}

static uint64_t random_size(struct rng *rng)
{
    return 1 + rng_below(rng, (uint64_t)1 << (4 + rng_below(rng, 22)));
}

/* Writes the first and last byte that were asked for. */
static void mark(struct model_block *block, unsigned char value)
{
    uint64_t last = block->asked - 1;
    assert_ok(blyi_mem_use(block->address, 1, BLYI_WRITE));
    assert_ok(blyi_mem_use(block->address + last, 1, BLYI_WRITE));
    block->address[0] = block->address[last] = block->mark = value;
}

static void step_alloc(struct blyi_card *card, struct rng *rng)
{
    static const enum blyi_page_kind first_kind[] = {BLYI_PAGE_HUGE, BLYI_PAGE_HUGE,
                                                     BLYI_PAGE_NORMAL};
    enum blyi_mem_policy policy = (enum blyi_mem_policy)rng_below(rng, 3);
    struct blyi_mem_request request = request_of(random_size(rng), rng_below(rng, 2), policy);
    request.flags = rng_below(rng, 10) == 0 ? BLYI_MEM_CONTIGUOUS : 0;
    void *address = NULL;
    uint64_t free_before = free_of(card);
    bly_status status = blyi_mem_alloc(card, &request, &address);
    if (status != BLY_OK) {
        assert_int_equal(status, BLY_E_NO_MEMORY);
        assert_int_equal(free_of(card), free_before);
        if (!request.flags) /* huge pages fail only when whole frames are short */
            assert_true(figures_of(card).huge_free < blyi_align_up(request.rounded, FRAME));
        return;
    }
    struct blyi_mem_block block = block_at(address);
    enum blyi_page_kind kind = first_kind[policy];
    if (policy == BLYI_MEM_HUGE_FIRST && request.rounded <= MiB)
        kind = BLYI_PAGE_NORMAL;
    if (block.page_kind != kind)
        assert_int_equal(policy, BLYI_MEM_HUGE_FIRST);
    assert_int_equal(block.backed,
                     blyi_align_up(request.rounded, blyi_page_bytes(block.page_kind)));
    assert_false(overlaps(address, block.backed));
    blocks[n_blocks] = (struct model_block){address, request.asked, block.backed, 0};
    mark(&blocks[n_blocks++], (unsigned char)rng_next(rng));
    live += block.backed;
}

static void step_free(struct rng *rng)
{
    struct model_block *block = &blocks[rng_below(rng, n_blocks)];
    assert_int_equal(block->address[0], block->mark);
    assert_int_equal(block->address[block->asked - 1], block->mark);
    assert_ok(blyi_mem_free(block->address, SITE_B));
    assert_int_equal(blyi_mem_free(block->address, SITE_B), BLY_E_INVALID);
    live -= block->backed;
    *block = blocks[--n_blocks];
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    set_option(BLYI_OPT_RESIDENT, "64MiB");
    struct blyi_card *card = open_card("300MiB");
    for (int i = 0; i < STEPS; i++) {
        if (n_blocks == BLOCKS || (n_blocks > 0 && rng_below(&rng, 100) < 48))
            step_free(&rng);
        else
            step_alloc(card, &rng);
        if (rng_below(&rng, 100) == 0)
            blyi_backing_trim(card->backing, rng_below(&rng, 20) * FRAME);
        assert_int_equal(figures_of(card).live, live);
        assert_int_equal(figures_of(card).blocks, n_blocks);
        if (i % 37 == 0)
            assert_true(blyi_card_audit(card));
    }
    while (n_blocks > 0)
        step_free(&rng);
    assert_int_equal(free_of(card), 284 * MiB);
    close_card(card);
}

static void churn(int index)
{
    struct rng rng = {(uint64_t)index + 99};
    struct blyi_card *card = blyi_card_get(index % 2);
    unsigned char *mine[8] = {NULL};
    for (int i = 0; i < 400; i++) {
        uint32_t slot = (uint32_t)rng_below(&rng, 8);
        if (mine[slot]) {
            require(mine[slot][0] == (unsigned char)index);
            require(blyi_mem_free(mine[slot], SITE_B) == BLY_OK);
            mine[slot] = NULL;
            continue;
        }
        void *address = NULL;
        struct blyi_mem_request request = {.asked = 100, .policy = BLYI_MEM_HUGE_FIRST};
        request.rounded = blyi_align_up(random_size(&rng), 32);
        if (blyi_mem_alloc(card, &request, &address) != BLY_OK)
            continue;
        require(blyi_mem_use(address, request.rounded, BLYI_WRITE) == BLY_OK);
        mine[slot] = address;
        mine[slot][0] = (unsigned char)index;
        if (i % 16 == 0)
            require(blyi_backing_trim_all(4 * FRAME) % FRAME == 0);
        struct blyi_mem_block block;
        require(blyi_mem_find(address, &block) && block.address == (uintptr_t)address);
    }
    for (int i = 0; i < 8; i++)
        if (mine[i])
            require(blyi_mem_free(mine[i], SITE_B) == BLY_OK);
}

static void from_several_threads(void **state)
{
    (void)state;
    struct blyi_card *other = NULL;
    set_option(BLYI_OPT_CARDS, "2");
    set_option(BLYI_OPT_RESIDENT, "32MiB");
    struct blyi_card *card = open_card("256MiB");
    assert_ok(blyi_card_open(1, &other));
    run_threads(churn);
    assert_int_equal(figures_of(card).live, 0);
    assert_int_equal(figures_of(other).live, 0);
    close_card(other);
    close_card(card);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_steps),
                                       cmocka_unit_test(from_several_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
