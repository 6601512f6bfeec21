/* SPDX-License-Identifier: Apache-2.0
 * Blocks of card memory: page kinds, exact figures, what a free says. */
#include "mem_test.h"
#include "base/reclaim.h"
#include "base/site.h"

static struct blyi_card *card;
static uint64_t f0; /* free right after binding */

static int open_gib(void **state)
{
    (void)state;
    card = open_card("1GiB");
    f0 = free_of(card);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    blyi_mem_free_all(card);
    assert_int_equal(free_of(card), f0);
    assert_int_equal(blyi_mem_cap_used(), 16 * MiB);
    close_card(card);
    assert_int_equal(blyi_mem_cap_used(), 0);
    set_option(BLYI_OPT_CAP, "0");
    set_option(BLYI_OPT_MODEL, "910B");
    return 0;
}

static void overhead_comes_out_of_the_total(void **state)
{
    (void)state;
    struct blyi_mem_figures figures = figures_of(card);
    assert_int_equal(figures.total, GiB);
    assert_int_equal(figures.free, GiB - 16 * MiB);
    assert_int_equal(figures.overhead, 16 * MiB);
    assert_ok(blyi_card_bind(card)); /* a second context costs nothing */
    assert_int_equal(free_of(card), f0);
    blyi_card_unbind(card);
    assert_int_equal(free_of(card), f0);
    blyi_card_unbind(card);
    assert_int_equal(free_of(card), GiB);
    assert_ok(blyi_card_bind(card));
}

static void page_kinds_by_policy(void **state)
{
    (void)state;
    struct {
        uint64_t size;
        bool padded;
        enum blyi_mem_policy policy;
        enum blyi_page_kind kind;
        uint64_t backed;
    } rows[] = {
        {1, false, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_NORMAL, 4096},
        {MiB, false, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_NORMAL, MiB},
        {MiB - 32, true, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_NORMAL, MiB},
        {MiB - 31, true, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_HUGE, FRAME},
        {MiB, true, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_HUGE, FRAME},
        {1, false, BLYI_MEM_HUGE_ONLY, BLYI_PAGE_HUGE, FRAME},
        {2 * MiB, true, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_HUGE, 2 * FRAME},
        {2 * MiB, false, BLYI_MEM_HUGE_FIRST, BLYI_PAGE_HUGE, FRAME},
        {5 * MiB + 1, false, BLYI_MEM_NORMAL_ONLY, BLYI_PAGE_NORMAL, 5 * MiB + 4096},
        {4 * MiB, false, BLYI_MEM_NORMAL_ONLY, BLYI_PAGE_NORMAL, 4 * MiB},
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        struct blyi_mem_request request = request_of(rows[i].size, rows[i].padded, rows[i].policy);
        void *address = NULL;
        assert_ok(blyi_mem_alloc(card, &request, &address));
        struct blyi_mem_block block = block_at((char *)address + rows[i].backed - 1);
        assert_int_equal(block.page_kind, rows[i].kind);
        assert_int_equal(block.backed, rows[i].backed);
        assert_int_equal(block.asked, rows[i].size);
        assert_int_equal((uintptr_t)address % blyi_page_bytes(block.page_kind), 0);
        assert_int_equal(free_of(card), f0 - rows[i].backed);
        assert_ok(blyi_mem_use(address, rows[i].backed, BLYI_WRITE));
        memset(address, 7, rows[i].backed);
        assert_true(blyi_card_audit(card));
        assert_ok(blyi_mem_free(address, SITE_B));
        assert_int_equal(free_of(card), f0);
    }
    struct blyi_mem_request none = {.policy = BLYI_MEM_HUGE_FIRST};
    void *address = card;
    assert_fails(blyi_mem_alloc(card, &none, &address), BLY_E_INVALID, "0 bytes");
    none = request_of(UINT64_MAX - 4096, true, BLYI_MEM_HUGE_FIRST);
    assert_fails(blyi_mem_alloc(card, &none, &address), BLY_E_NO_MEMORY, "18446744073709547519 B");
    assert_ptr_equal(address, card);
}

/* O-12, the part of one process: 63 blocks of 4000 bytes take 258,048. */
static void small_blocks_share_a_frame(void **state)
{
    (void)state;
    void *large = align32(card, 64 * MiB, BLYI_MEM_HUGE_FIRST), *small[63];
    uint64_t before = free_of(card);
    for (int i = 0; i < 63; i++)
        small[i] = padded(card, 4000, BLYI_MEM_NORMAL_ONLY);
    struct blyi_mem_figures figures = figures_of(card);
    assert_int_equal(before - figures.free, 258048);
    assert_int_equal(figures.normal_free, FRAME - 258048);
    assert_int_equal(figures.huge_free, before - FRAME);
    for (int i = 0; i < 63; i++)
        assert_ok(blyi_mem_free(small[i], SITE_B));
    figures = figures_of(card);
    assert_int_equal(figures.free, before);
    assert_int_equal(figures.normal_free, 0);
    assert_int_equal(figures.peak, 64 * MiB + 258048);
    assert_ok(blyi_mem_free(large, SITE_B));
}

/* O-14, stock. */
static void rounding_into_extra_pages(void **state)
{
    (void)state;
    static void *blocks[2000];
    uint64_t rounded = 0;
    for (int i = 0; i < 1000; i++) {
        blocks[i] = padded(card, 512, BLYI_MEM_HUGE_FIRST);
        rounded += block_at(blocks[i]).rounded;
    }
    assert_int_equal(rounded, 544000);
    assert_int_equal(figures_of(card).live, 4096000);
    rounded = 0;
    for (int i = 1000; i < 2000; i++) {
        blocks[i] = align32(card, 512, BLYI_MEM_HUGE_FIRST);
        rounded += block_at(blocks[i]).rounded;
    }
    assert_int_equal(rounded, 512000);
    assert_int_equal(figures_of(card).live, 8192000);
    struct blyi_mem_block block = block_at(padded(card, 2 * MiB, BLYI_MEM_HUGE_FIRST));
    assert_int_equal(block.rounded, 2097184);
    assert_int_equal(block.backed, 4 * MiB);
    block = block_at(align32(card, 2 * MiB, BLYI_MEM_HUGE_FIRST));
    assert_int_equal(block.backed, 2 * MiB);
    assert_int_equal(block_at(align32(card, MiB, BLYI_MEM_HUGE_FIRST)).page_kind, BLYI_PAGE_NORMAL);
    assert_int_equal(block_at(padded(card, MiB - 32, BLYI_MEM_HUGE_FIRST)).page_kind,
                     BLYI_PAGE_NORMAL);
    assert_int_equal(block_at(padded(card, MiB, BLYI_MEM_HUGE_FIRST)).page_kind, BLYI_PAGE_HUGE);
    assert_true(blyi_card_audit(card));
}

/* O-25 without its pool: b is 16 MiB and counts toward the cap. */
static void a_cap_is_not_the_card(void **state)
{
    (void)state;
    set_option(BLYI_OPT_CAP, "400MiB");
    void *first = align32(card, 256 * MiB, BLYI_MEM_HUGE_FIRST), *second = NULL;
    assert_fails(try_align32(card, 200 * MiB, BLYI_MEM_HUGE_FIRST, &second), BLY_E_CAP,
                 "not card 0", "cap 419430400 B (400 MiB)", "used 285212672 B (272 MiB)",
                 "16777216 B (16 MiB) are the runtime's overhead", "left 134217728 B (128 MiB)",
                 "asked 209715200 B (200 MiB)", "short by 75497472 B (72 MiB)",
                 "itself has 788529152 B (752 MiB) free", "268435456 B (256 MiB) in 1 block");
    assert_null(second);
    assert_int_equal(blyi_mem_cap_used(), 272 * MiB);
    assert_non_null(align32(card, 128 * MiB, BLYI_MEM_HUGE_FIRST)); /* to the last byte */
    assert_fails(try_align32(card, 1, BLYI_MEM_HUGE_FIRST, &second), BLY_E_CAP, "left 0 B");
    assert_ok(blyi_mem_free(first, SITE_B));
    assert_non_null(align32(card, 200 * MiB, BLYI_MEM_HUGE_FIRST));
}

static void a_cap_below_the_overhead(void **state)
{
    (void)state;
    blyi_card_unbind(card);
    set_option(BLYI_OPT_CAP, "8MiB");
    assert_fails(blyi_card_bind(card), BLY_E_CAP, "runtime's overhead", "cap 8388608 B");
    set_option(BLYI_OPT_CAP, "0");
    assert_ok(blyi_card_bind(card));
}

static void shortage_names_holders(void **state)
{
    (void)state;
    void *address = NULL;
    struct blyi_mem_request request = request_of(300 * MiB, false, BLYI_MEM_HUGE_FIRST);
    request.site = blyi_site_intern((const void *)(uintptr_t)shortage_names_holders);
    assert_ok(blyi_mem_alloc(card, &request, &address));
    for (int i = 0; i < 3; i++)
        align32(card, 100 * MiB, BLYI_MEM_HUGE_ONLY);
    padded(card, 100, BLYI_MEM_NORMAL_ONLY);
    address = NULL;
    assert_fails(try_align32(card, 500 * MiB, BLYI_MEM_HUGE_FIRST, &address), BLY_E_NO_MEMORY,
                 "card 0: no room for 524288000 B (500 MiB) of huge pages", "free 427814912 B",
                 "largest usable 425721856 B (406 MiB)", "2093056 B",
                 "unused pages in 1 partial frame,", "short by 98566144 B (94 MiB)",
                 "runtime overhead 16777216 B (16 MiB)", "in 1 block at ", "in 4 blocks at ",
                 "held: 314576896 B (300.0 MiB) in 4 blocks");
    assert_null(address);
}

/* The padding asks for one more page than is free: the sentence must not look satisfied. */
static void shortage_by_padding(void **state)
{
    (void)state;
    void *address = NULL;
    align32(card, figures_of(card).free - 100 * MiB, BLYI_MEM_HUGE_ONLY);
    assert_fails(try_padded(card, 100 * MiB, BLYI_MEM_HUGE_ONLY, &address), BLY_E_NO_MEMORY,
                 "no room for 104857600 B (100 MiB) of huge pages: in pages 106954752 B (102 MiB)",
                 "largest usable 104857600 B (100 MiB), short by 2097152 B (2 MiB)");
}

static void a_window_smaller_than_the_card(void **state)
{
    (void)state;
    struct blyi_card *other;
    void *address = NULL;
    set_option(BLYI_OPT_CARDS, "2");
    set_option(BLYI_OPT_HBM, "8GiB");
    set_option(BLYI_OPT_WINDOW, "2GiB");
    assert_ok(blyi_card_open(1, &other));
    assert_int_equal(other->total, 8 * GiB);
    assert_fails(try_align32(other, 3 * GiB, BLYI_MEM_HUGE_ONLY, &address), BLY_E_NO_MEMORY,
                 "addresses");
    align32(other, GiB, BLYI_MEM_HUGE_ONLY);
    blyi_card_close(other);
    set_option(BLYI_OPT_WINDOW, "0");
    set_option(BLYI_OPT_CARDS, "1");
}

static void normal_pages_when_frames_are_short(void **state)
{
    (void)state;
    void *small = align32(card, 4096, BLYI_MEM_NORMAL_ONLY), *address = NULL;
    void *rest = align32(card, f0 - FRAME, BLYI_MEM_HUGE_ONLY);
    assert_int_equal(figures_of(card).huge_free, 0);
    struct blyi_mem_block block = block_at(align32(card, MiB + 32, BLYI_MEM_HUGE_FIRST));
    assert_int_equal(block.page_kind, BLYI_PAGE_NORMAL);
    assert_int_equal(block.backed, MiB + 4096);
    assert_fails(try_align32(card, MiB + 32, BLYI_MEM_HUGE_ONLY, &address), BLY_E_NO_MEMORY,
                 "of huge pages", "largest usable 0 B");
    assert_fails(try_align32(card, MiB, BLYI_MEM_NORMAL_ONLY, &address), BLY_E_NO_MEMORY,
                 "of normal pages", "largest usable 1040384 B");
    assert_non_null(align32(card, MiB - 8192, BLYI_MEM_NORMAL_ONLY));
    assert_int_equal(free_of(card), 0);
    assert_ok(blyi_mem_free(small, SITE_B));
    assert_ok(blyi_mem_free(rest, SITE_B));
}

static void a_tail_leaves_its_frame_to_others(void **state)
{
    (void)state;
    char *large = align32(card, 5 * MiB, BLYI_MEM_NORMAL_ONLY);
    char *small = align32(card, 4096, BLYI_MEM_NORMAL_ONLY);
    assert_ptr_equal(small, large + 5 * MiB); /* best fit: behind the tail, same frame */
    assert_ok(blyi_mem_use(large, 5 * MiB + 4096, BLYI_WRITE));
    memset(large, 1, 5 * MiB + 4096);
    assert_ok(blyi_mem_free(large, SITE_B));
    assert_int_equal(free_of(card), f0 - 4096);
    assert_int_equal(figures_of(card).huge_free, f0 - FRAME);
    assert_int_equal(small[4095], 1);
    assert_ok(blyi_mem_use(small, 4096, BLYI_READ));
    assert_fails(blyi_mem_use(small - 1, 2, BLYI_READ), BLY_E_FAULT, "no live memory", "freed");
    assert_ok(blyi_mem_free(small, SITE_B)); /* the frame returns with its last page */
    assert_int_equal(figures_of(card).huge_free, f0);
}

static void frees_that_are_refused(void **state)
{
    (void)state;
    char *block = align32(card, 4 * MiB, BLYI_MEM_HUGE_FIRST), *end = block + 64 * MiB;
    int on_host;
    assert_fails(blyi_mem_free(block + 4096, SITE_B), BLY_E_INVALID, "4096 bytes inside",
                 "4194304 B (4 MiB)");
    assert_ok(blyi_mem_free(block, SITE_B));
    assert_fails(blyi_mem_free(block, SITE_B), BLY_E_INVALID, "freed already", "us ago at ");
    block = padded(card, 1 << 20, BLYI_MEM_HUGE_FIRST);
    blyi_mem_free_all(card);
    assert_fails(blyi_mem_free(block, SITE_B), BLY_E_INVALID, "us ago by a device reset; block",
                 "of 1048576 B (1 MiB)");
    assert_fails(blyi_mem_free(end, SITE_B), BLY_E_INVALID, "no block was allocated there");
    assert_fails(blyi_mem_free(&on_host, SITE_B), BLY_E_INVALID, "address of the host");
    assert_fails(blyi_mem_free(NULL, SITE_B), BLY_E_INVALID, "address of the host");
    for (int i = 0; i < 1025; i++) /* the memory of frees is bounded */
        assert_ok(blyi_mem_free(align32(card, 1, BLYI_MEM_NORMAL_ONLY), SITE_B));
}

static void giant_pages(void **state)
{
    (void)state;
    blyi_mem_free_all(card);
    blyi_card_close(card);
    card = open_card("4GiB"); /* the overhead breaks one GiB of the four */
    f0 = free_of(card);
    void *address = NULL;
    assert_int_equal(figures_of(card).giant_free, 3 * GiB);
    assert_fails(try_align32(card, 3 * GiB + 1, BLYI_MEM_GIANT_ONLY, &address), BLY_E_NO_MEMORY,
                 "of 1 GiB pages", "largest usable 3221225472 B (3 GiB)", "longest contiguous run");
    address = align32(card, 2 * GiB - 5, BLYI_MEM_GIANT_ONLY);
    assert_int_equal((uintptr_t)address % GiB, 0);
    assert_int_equal(block_at(address).page_kind, BLYI_PAGE_GIANT);
    assert_int_equal(block_at(address).backed, 2 * GiB);
    assert_int_equal(figures_of(card).giant_free, GiB);
    assert_int_equal(f0 - free_of(card), 2 * GiB);
    set_option(BLYI_OPT_MODEL, "910");
    blyi_card_close(card);
    card = open_card("1GiB");
    f0 = free_of(card);
    assert_fails(try_align32(card, 1, BLYI_MEM_GIANT_ONLY, &address), BLY_E_UNSUPPORTED, "910");
}

static void contiguous_and_low(void **state)
{
    (void)state;
    static void *pairs[256];
    for (int i = 0; i < 252; i++)
        pairs[i] = align32(card, 2 * FRAME, BLYI_MEM_HUGE_ONLY);
    for (int i = 0; i < 252; i += 2)
        assert_ok(blyi_mem_free(pairs[i], SITE_B));
    struct blyi_mem_request request = request_of(3 * FRAME, false, BLYI_MEM_HUGE_ONLY);
    void *address = NULL;
    request.flags = BLYI_MEM_CONTIGUOUS;
    assert_fails(blyi_mem_alloc(card, &request, &address), BLY_E_NO_MEMORY, "contiguous frames",
                 "largest usable 4194304 B (4 MiB)");
    request.flags = 0;
    assert_ok(blyi_mem_alloc(card, &request, &address)); /* scattered frames will do */
    assert_ok(blyi_mem_use(address, 3 * FRAME, BLYI_WRITE));
    memset(address, 3, 3 * FRAME);
    request = request_of(2 * FRAME, false, BLYI_MEM_HUGE_ONLY);
    request.flags = BLYI_MEM_CONTIGUOUS | BLYI_MEM_LOW;
    assert_ok(blyi_mem_alloc(card, &request, &address));
    assert_true(blyi_card_audit(card));
}

static void use_checks_every_page(void **state)
{
    (void)state;
    char *a = align32(card, 2 * FRAME, BLYI_MEM_HUGE_FIRST), *gap;
    struct blyi_mem_request request = request_of(8192, false, BLYI_MEM_NORMAL_ONLY);
    request.flags = BLYI_MEM_READONLY;
    void *readonly = NULL;
    assert_ok(blyi_mem_use(a, 2 * FRAME, BLYI_READ));
    assert_fails(blyi_mem_use(a + FRAME, FRAME + 1, BLYI_WRITE), BLY_E_FAULT, "write of 2097153 B",
                 "no live memory", "ends 0 B before it");
    assert_fails(blyi_mem_use(a, UINT64_MAX - 10, BLYI_READ), BLY_E_FAULT, "past the end");
    gap = padded(card, 1, BLYI_MEM_NORMAL_ONLY);
    assert_ok(blyi_mem_use(gap, 4096, BLYI_WRITE));
    assert_fails(blyi_mem_use(gap + 4096, 1, BLYI_READ), BLY_E_FAULT, "no live memory",
                 "ends 4095 B before it");
    assert_ok(blyi_mem_alloc(card, &request, &readonly));
    assert_ok(blyi_mem_use(readonly, 8192, BLYI_READ));
    assert_fails(blyi_mem_use((char *)readonly + 4096, 1, BLYI_WRITE), BLY_E_FAULT,
                 "not to be written", "read-only");
    request = request_of(FRAME, false, BLYI_MEM_HUGE_ONLY);
    request.flags = BLYI_MEM_READONLY;
    assert_ok(blyi_mem_alloc(card, &request, &readonly));
    assert_ok(blyi_mem_use(readonly, FRAME, BLYI_READ));
    assert_fails(blyi_mem_use(readonly, 1, BLYI_WRITE), BLY_E_FAULT, "read-only");
    assert_ok(blyi_mem_free(a, SITE_B));
    assert_fails(blyi_mem_use(a + 5, 1, BLYI_READ), BLY_E_FAULT, "freed", "us ago");
    assert_ok(blyi_mem_use(a, 0, BLYI_READ));
    int on_host, id = 7;
    assert_int_equal(blyi_place_of(&on_host, &id), BLYI_PLACE_HOST);
    assert_int_equal(id, 7);
    assert_int_equal(blyi_place_of(a, &id), BLYI_PLACE_CARD); /* freed ones too */
    assert_int_equal(id, 0);
    assert_int_equal(blyi_place_of(a, NULL), BLYI_PLACE_CARD);
}

static void *to_reclaim;
static int n_reclaims;

static uint64_t reclaim(void *arg, int id, uint64_t bytes)
{
    (void)arg;
    (void)id;
    n_reclaims++;
    assert_true(bytes >= 900 * MiB);
    if (!to_reclaim)
        return 0;
    assert_ok(blyi_mem_free(to_reclaim, SITE_B));
    to_reclaim = NULL;
    return 512 * MiB;
}

static void others_give_back_first(void **state)
{
    (void)state;
    struct blyi_reclaimer reclaimer = {.name = "test", .reclaim = reclaim};
    blyi_reclaim_add(&reclaimer);
    to_reclaim = align32(card, 512 * MiB, BLYI_MEM_HUGE_FIRST);
    blyi_fail_clear();
    void *address = align32(card, 900 * MiB, BLYI_MEM_HUGE_FIRST);
    assert_int_equal(n_reclaims, 1);
    assert_string_equal(blyi_fail_text(), ""); /* O-24: a retry that worked leaves nothing */
    void *other = NULL;
    assert_int_equal(try_align32(card, 900 * MiB, BLYI_MEM_HUGE_FIRST, &other), BLY_E_NO_MEMORY);
    assert_int_equal(n_reclaims, 2);
    blyi_reclaim_remove(&reclaimer);
    assert_ok(blyi_mem_free(address, SITE_B));
}

static void use_by_module(void **state)
{
    (void)state;
    struct blyi_mem_usage rows[4];
    struct blyi_mem_request request = request_of(4 * MiB, false, BLYI_MEM_HUGE_FIRST);
    void *a, *b;
    request.module = 3;
    assert_ok(blyi_mem_alloc(card, &request, &a));
    b = align32(card, 32 * MiB, BLYI_MEM_HUGE_FIRST);
    assert_int_equal(blyi_mem_usage(card, rows, 4), 3);
    assert_string_equal(rows[0].name, "APP");
    assert_int_equal(rows[0].live, 32 * MiB);
    assert_string_equal(rows[1].name, "RUNTIME");
    assert_int_equal(rows[1].live, 16 * MiB);
    assert_string_equal(rows[2].name, "HCCL");
    assert_ok(blyi_mem_free(b, SITE_B));
    memset(rows, 0, sizeof rows);
    assert_int_equal(blyi_mem_usage(card, rows, 2), 3);
    assert_string_equal(rows[0].name, "RUNTIME");
    assert_string_equal(rows[1].name, "HCCL");
    assert_string_equal(rows[2].name, "");
    assert_ok(blyi_mem_free(a, SITE_B));
}

static void limited_streams_and_events(void **state)
{
    (void)state;
    set_option(BLYI_OPT_STREAMS, "2");
    blyi_card_close(card);
    card = open_card("1GiB");
    assert_true(blyi_card_take_stream(card));
    assert_true(blyi_card_take_stream(card));
    assert_false(blyi_card_take_stream(card));
    blyi_card_give_stream(card);
    assert_true(blyi_card_take_stream(card));
    blyi_card_give_stream(card);
    blyi_card_give_stream(card);
    assert_true(blyi_card_take_event(card));
    blyi_card_give_event(card);
    set_option(BLYI_OPT_STREAMS, "0");
}

static void no_such_card(void **state)
{
    (void)state;
    struct blyi_card *other = NULL;
    assert_fails(blyi_card_open(1, &other), BLY_E_DEVICE, "no card 1", "there are 1");
    assert_fails(blyi_card_open(-1, &other), BLY_E_DEVICE, "no card -1");
    assert_null(blyi_card_get(1));
    assert_null(blyi_card_get(-1));
    assert_null(blyi_card_get(1000));
    set_option(BLYI_OPT_CARDS, "2");
    set_option(BLYI_OPT_HBM, "17MiB");
    assert_fails(blyi_card_open(1, &other), BLY_E_INVALID, "no frame of 2 MiB");
    set_option(BLYI_OPT_HBM, "101MiB"); /* odd: rounded down to whole frames */
    assert_ok(blyi_card_open(1, &other));
    assert_int_equal(other->total, 100 * MiB);
    blyi_card_close(other);
    set_option(BLYI_OPT_CARDS, "1");
}

#define CARD_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_gib, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {CARD_TEST(overhead_comes_out_of_the_total),
                                       CARD_TEST(page_kinds_by_policy),
                                       CARD_TEST(small_blocks_share_a_frame),
                                       CARD_TEST(rounding_into_extra_pages),
                                       CARD_TEST(a_cap_is_not_the_card),
                                       CARD_TEST(a_cap_below_the_overhead),
                                       CARD_TEST(shortage_names_holders),
                                       CARD_TEST(shortage_by_padding),
                                       CARD_TEST(a_window_smaller_than_the_card),
                                       CARD_TEST(normal_pages_when_frames_are_short),
                                       CARD_TEST(a_tail_leaves_its_frame_to_others),
                                       CARD_TEST(frees_that_are_refused),
                                       CARD_TEST(giant_pages),
                                       CARD_TEST(contiguous_and_low),
                                       CARD_TEST(use_checks_every_page),
                                       CARD_TEST(others_give_back_first),
                                       CARD_TEST(use_by_module),
                                       CARD_TEST(limited_streams_and_events),
                                       CARD_TEST(no_such_card)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
