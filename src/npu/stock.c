/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.c - the words of a card's frames, and the allocator as a cache of them.
 */
#include "npu/stock.h"
#include "npu/backing.h"
#include "npu/bits.h"
#include "npu/frame.h"
#include "npu/ledger.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include <string.h>
#include <unistd.h>

#define RUN_MASK (((uint64_t)1 << 31) - 1)

struct blyi_stock {
    int card;
    uint32_t n_frames;
    struct blyi_card_file *file;
    struct blyi_backing *backing;
    struct blyi_frames *frames; /* cache, in memory of our own */
    uint64_t *ours;             /* a bit per frame that is ours: whatever its word says */
    uint64_t seen;              /* changes that the cache knows */
    uint32_t epoch;
    bool stale; /* the cache is to be made anew */
    bool told;  /* of damage */
};

static uint32_t word_at(const struct blyi_stock *s, uint32_t frame)
{
    return __atomic_load_n(&s->file->words[frame], __ATOMIC_RELAXED);
}

static void set_word(struct blyi_stock *s, uint32_t frame, uint32_t word)
{
    __atomic_store_n(&s->file->words[frame], word, __ATOMIC_RELAXED);
}

static bool is_ours(uint32_t word)
{
    return (word & BLYI_FRAME_OWNER) == blyi_ledger_slot() + 1;
}

static void tell_damage(struct blyi_stock *s, const char *what, uint32_t frame)
{
    if (!s->told)
        blyi_log(BLYI_LOG_ERROR,
                 "card %d: the shared state is damaged: frame %u %s; end the processes that use "
                 "it, and it is made anew",
                 s->card, frame, what);
    s->told = true;
}

/* What is ours we know ourselves: a word that says otherwise is damaged, and put right. */
static void mend_words_locked(struct blyi_stock *s)
{
    for (uint32_t i = blyi_bits_find(s->ours, 0, s->n_frames, true); i < s->n_frames;
         i = blyi_bits_find(s->ours, i + 1, s->n_frames, true)) {
        uint32_t word = word_at(s, i);
        if (likely(is_ours(word)))
            continue;
        tell_damage(s, "is ours, and its word says otherwise", i);
        set_word(s, i, (word & ~BLYI_FRAME_OWNER) | (blyi_ledger_slot() + 1));
    }
}

/* All from the words. */
static void rebuild_locked(struct blyi_stock *s)
{
    mend_words_locked(s);
    memset((void *)s->frames, 0, blyi_frames_footprint(s->n_frames));
    blyi_frames_init_taken(s->frames, s->n_frames);
    uint32_t first = 0, i = 0;
    for (; i < s->n_frames; i++) {
        if ((word_at(s, i) & BLYI_FRAME_OWNER) == 0)
            continue;
        if (i > first)
            blyi_frames_give(s->frames, first, i - first);
        first = i + 1;
    }
    if (i > first)
        blyi_frames_give(s->frames, first, i - first);
    blyi_backing_reread(s->backing);
    s->seen = s->file->n_changes;
    s->epoch = __atomic_load_n(&s->file->epoch, __ATOMIC_RELAXED);
    s->stale = false;
}

/* One run that another process changed. False: it contradicts the cache. */
static bool apply(struct blyi_stock *s, uint64_t change)
{
    uint32_t first = (uint32_t)(change >> 31 & RUN_MASK), count = (uint32_t)(change & RUN_MASK);
    if (count == 0 || first >= s->n_frames || count > s->n_frames - first)
        return false;
    switch ((enum blyi_change)(change >> 62)) {
    case BLYI_CHANGE_TAKEN:
        if (!blyi_frames_take_at(s->frames, first, count))
            return false;
        blyi_backing_lose(s->backing, first, count);
        return true;
    case BLYI_CHANGE_FREED:
        for (uint32_t i = 0; i < count; i++)
            if (blyi_frames_is_free(s->frames, first + i) || blyi_bits_get(s->ours, first + i))
                return false;
        blyi_frames_give(s->frames, first, count);
        blyi_backing_gain(s->backing, first, count);
        return true;
    case BLYI_CHANGE_PUNCHED:
        blyi_backing_lose(s->backing, first, count);
        return true;
    }
    return false;
}

static void sync_locked(struct blyi_stock *s)
{
    uint64_t now = s->file->n_changes;
    if (likely(!s->stale && now == s->seen &&
               __atomic_load_n(&s->file->epoch, __ATOMIC_RELAXED) == s->epoch))
        return;
    if (!s->stale && __atomic_load_n(&s->file->epoch, __ATOMIC_RELAXED) == s->epoch &&
        now - s->seen <= BLYI_CHANGES)
        while (s->seen != now && apply(s, s->file->changes[s->seen % BLYI_CHANGES]))
            s->seen++;
    if (s->seen != now || __atomic_load_n(&s->file->epoch, __ATOMIC_RELAXED) != s->epoch ||
        s->stale)
        rebuild_locked(s);
}

void blyi_stock_enter(struct blyi_stock *s)
{
    blyi_ledger_lock();
    sync_locked(s);
}

void blyi_stock_leave(struct blyi_stock *s)
{
    (void)s;
    blyi_ledger_unlock();
}

struct blyi_card_file *blyi_stock_file(struct blyi_stock *s)
{
    return s->file;
}

/* The entry first, then the count: who dies in between has said nothing, and its death raises the
 * epoch. */
void blyi_stock_log_locked(struct blyi_stock *s, unsigned kind, uint32_t first, uint32_t count)
{
    uint64_t n = s->file->n_changes;
    s->file->changes[n % BLYI_CHANGES] = (uint64_t)kind << 62 | (uint64_t)first << 31 | count;
    blyi_ledger_step();
    s->file->n_changes = n + 1;
    s->seen = n + 1; /* our cache knows: it was made up to date on entering */
}

/* Words of a run that the cache says is free. False when one of them is not: the cache is wrong. */
static bool sign_locked(struct blyi_stock *s, uint32_t first, uint32_t count)
{
    uint32_t mine = blyi_ledger_slot() + 1;
    for (uint32_t i = first; i < first + count; i++)
        if (unlikely((word_at(s, i) & BLYI_FRAME_OWNER) != 0)) {
            tell_damage(s, "is taken though nobody said so", i);
            return false;
        }
    for (uint32_t i = first; i < first + count; i++) {
        set_word(s, i, word_at(s, i) | mine);
        blyi_ledger_step();
        if (unlikely(word_at(s, i) & BLYI_FRAME_UNSURE))
            blyi_backing_make_sure(s->backing, i);
    }
    blyi_bits_set(s->ours, first, first + count);
    blyi_stock_log_locked(s, BLYI_CHANGE_TAKEN, first, count);
    uint32_t free = blyi_frames_free(s->frames);
    if (free < s->file->least_free)
        s->file->least_free = free;
    return true;
}

/* What the cache gave is signed for; what it gave wrongly makes it anew, once. */
static bool take_locked(struct blyi_stock *s, bool (*find)(struct blyi_stock *s, void *arg),
                        void *arg, const uint32_t *first, const uint32_t *count)
{
    for (int tries = 0; tries < 2; tries++) {
        if (blyi_ledger_is_lost() || !find(s, arg))
            return false;
        if (likely(sign_locked(s, *first, *count))) {
            blyi_backing_reuse(s->backing, *first, *count);
            return true;
        }
        rebuild_locked(s);
    }
    return false;
}

struct wish {
    uint32_t want, align, below;
    uint32_t first, count; /* found */
};

static bool find_some(struct blyi_stock *s, void *arg)
{
    struct wish *wish = arg;
    wish->count =
        blyi_frames_take(s->frames, wish->want, blyi_backing_prefer(s->backing), &wish->first);
    return wish->count > 0;
}

static bool find_run(struct blyi_stock *s, void *arg)
{
    struct wish *wish = arg;
    return blyi_frames_take_run(s->frames, wish->want, wish->align, &wish->first);
}

static bool find_below(struct blyi_stock *s, void *arg)
{
    struct wish *wish = arg;
    return blyi_frames_take_below(s->frames, wish->want, wish->below, &wish->first);
}

static bool find_at(struct blyi_stock *s, void *arg)
{
    struct wish *wish = arg;
    return blyi_frames_take_at(s->frames, wish->first, wish->count);
}

static bool take(struct blyi_stock *s, bool (*find)(struct blyi_stock *s, void *arg),
                 struct wish *wish)
{
    blyi_stock_enter(s);
    bool got = take_locked(s, find, wish, &wish->first, &wish->count);
    blyi_stock_leave(s);
    return got;
}

uint32_t blyi_stock_take(struct blyi_stock *s, uint32_t want, uint32_t *first)
{
    struct wish wish = {.want = want};
    if (!take(s, find_some, &wish))
        return 0;
    *first = wish.first;
    return wish.count;
}

bool blyi_stock_take_run(struct blyi_stock *s, uint32_t count, uint32_t align, uint32_t *first)
{
    struct wish wish = {.want = count, .count = count, .align = align};
    bool got = take(s, find_run, &wish);
    if (got)
        *first = wish.first;
    return got;
}

bool blyi_stock_take_below(struct blyi_stock *s, uint32_t count, uint32_t below, uint32_t *first)
{
    struct wish wish = {.want = count, .count = count, .below = below};
    bool got = take(s, find_below, &wish);
    if (got)
        *first = wish.first;
    return got;
}

bool blyi_stock_take_at(struct blyi_stock *s, uint32_t first, uint32_t count)
{
    struct wish wish = {.first = first, .count = count};
    return take(s, find_at, &wish);
}

static void free_words_locked(struct blyi_stock *s, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        set_word(s, i, word_at(s, i) & ~BLYI_FRAME_OWNER);
        blyi_ledger_step();
    }
    blyi_stock_log_locked(s, BLYI_CHANGE_FREED, first, count);
}

/* Resident frames become spare before anybody else may have them: told by their words. */
void blyi_stock_give_locked(struct blyi_stock *s, uint32_t first, uint32_t count)
{
    blyi_frames_give(s->frames, first, count);
    blyi_backing_retire(s->backing, first, count);
    free_words_locked(s, first, count);
}

void blyi_stock_give(struct blyi_stock *s, uint32_t first, uint32_t count)
{
    blyi_stock_enter(s);
    uint32_t start = first, end = first + count;
    for (uint32_t i = first; i <= end; i++) {
        bool mine = i < end && is_ours(word_at(s, i));
        if (mine)
            continue;
        if (i > start)
            blyi_stock_give_locked(s, start, i - start);
        if (i < end)
            tell_damage(s, "was ours, and its word says otherwise", i);
        start = i + 1;
    }
    blyi_bits_clear(s->ours, first, end);
    blyi_stock_leave(s);
}

static uint64_t unused_of_all(int card)
{
    uint64_t unused = 0;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
        if (blyi_ledger_in_use(slot))
            unused +=
                __atomic_load_n(&blyi_ledger_slot_at(slot)->cards[card].unused, __ATOMIC_RELAXED);
    return unused;
}

void blyi_stock_figures(struct blyi_stock *s, struct blyi_stock_figures *out)
{
    blyi_stock_enter(s);
    *out = (struct blyi_stock_figures){.total = s->n_frames,
                                       .free = blyi_frames_free(s->frames),
                                       .longest = blyi_frames_longest(s->frames),
                                       .giants = blyi_frames_giants(s->frames),
                                       .unused = unused_of_all(s->card),
                                       .least_free = s->file->least_free};
    blyi_stock_leave(s);
}

uint32_t blyi_stock_free(struct blyi_stock *s)
{
    blyi_stock_enter(s);
    uint32_t free = blyi_frames_free(s->frames);
    blyi_stock_leave(s);
    return free;
}

void blyi_stock_snapshot(struct blyi_stock *s, uint64_t *free)
{
    blyi_stock_enter(s);
    memset(free, 0, BLYI_BITS_WORDS(s->n_frames) * sizeof *free);
    for (uint32_t i = 0; i < s->n_frames; i++)
        if (blyi_frames_is_free(s->frames, i))
            blyi_bits_set(free, i, i + 1);
    blyi_stock_leave(s);
}

bool blyi_stock_is_free(struct blyi_stock *s, uint32_t frame)
{
    blyi_stock_enter(s);
    bool free = blyi_frames_is_free(s->frames, frame);
    blyi_stock_leave(s);
    return free;
}

void blyi_stock_turn_locked(struct blyi_stock *s, uint32_t frame, bool ours)
{
    if (ours)
        blyi_bits_set(s->ours, frame, frame + 1);
    else
        blyi_bits_clear(s->ours, frame, frame + 1);
}

bly_status blyi_stock_open(int card, uint32_t n_frames, const char *model, struct blyi_stock **out,
                           struct blyi_backing **backing)
{
    int fd;
    struct blyi_stock *s = blyi_host_calloc(1, sizeof *s);
    void *frames = blyi_host_calloc(1, blyi_frames_footprint(n_frames));
    uint64_t *ours = blyi_host_calloc(BLYI_BITS_WORDS(n_frames), sizeof *ours);
    bly_status status;
    if (!s || !frames || !ours) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for the state of %u frames",
                           card, n_frames);
        goto free;
    }
    status = blyi_ledger_attach();
    if (status == BLY_OK)
        status = blyi_ledger_card_open(card, n_frames, model, &s->file, &fd);
    if (status != BLY_OK)
        goto free;
    s->card = card;
    s->n_frames = n_frames;
    s->frames = frames;
    s->ours = ours;
    s->stale = true;
    status = blyi_backing_create(card, n_frames, fd, s, backing);
    if (status != BLY_OK)
        goto close;
    s->backing = *backing;
    *out = s;
    return BLY_OK;

close:
    blyi_ledger_card_close(card); /* first: whoever finds the descriptor there may still use it */
    close(fd);
free:
    blyi_host_free(ours);
    blyi_host_free(frames);
    blyi_host_free(s);
    return status;
}

void blyi_stock_close(struct blyi_stock *s)
{
    if (!s)
        return;
    blyi_ledger_card_close(s->card);
    blyi_host_free(s->ours);
    blyi_host_free(s->frames);
    blyi_host_free(s);
}

bool blyi_stock_audit(struct blyi_stock *s, uint32_t ours)
{
    uint32_t count = 0;
    blyi_stock_enter(s);
    bool sound = blyi_frames_audit(s->frames);
    for (uint32_t i = 0; i < s->n_frames && sound; i++) {
        uint32_t word = word_at(s, i);
        sound = blyi_frames_is_free(s->frames, i) == ((word & BLYI_FRAME_OWNER) == 0) &&
                blyi_bits_get(s->ours, i) == is_ours(word);
        count += is_ours(word);
    }
    blyi_stock_leave(s);
    return sound && count == ours;
}
