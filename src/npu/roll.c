/* SPDX-License-Identifier: Apache-2.0
 *
 * roll.c - who holds the streams and events of a card.
 */
#include "npu/roll.h"

#include <inttypes.h>
#include <string.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/site.h"
#include "base/size.h"
#include "npu/card.h"
#include "npu/event_inside.h"
#include "npu/memory.h"
#include "npu/moment.h"
#include "npu/queue.h"
#include "npu/tally.h"

#define SITES_KEPT 64 /* distinct sites that are counted exactly */
#define SITES_TOLD 3

struct roll {
    struct blyi_list streams, events;
    bool ready;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_STREAM);
static struct roll rolls[BLYI_CARD_MAX];

struct tally {
    struct {
        uint32_t site, count;
    } rows[SITES_KEPT];
    uint32_t n_rows, total, rest; /* rest: of sites beyond the kept ones */
    uint64_t oldest_ns;
};

static struct roll *roll_of_locked(const struct blyi_card *card)
{
    struct roll *roll = &rolls[card->id];
    if (!roll->ready) {
        blyi_list_init(&roll->streams);
        blyi_list_init(&roll->events);
        roll->ready = true;
    }
    return roll;
}

void blyi_roll_add_stream(struct blyi_stream *stream)
{
    blyi_lock_take(&lock);
    blyi_list_push_back(&roll_of_locked(stream->card)->streams, &stream->roll_link);
    blyi_lock_drop(&lock);
    if (!stream->is_default)
        blyi_tally_row(BLYI_ROW_STREAM, stream->card->id, stream->site, 0, 1);
}

void blyi_roll_remove_stream(struct blyi_stream *stream)
{
    blyi_lock_take(&lock);
    blyi_list_remove(&stream->roll_link);
    blyi_lock_drop(&lock);
    if (!stream->is_default)
        blyi_tally_row(BLYI_ROW_STREAM, stream->card->id, stream->site, 0, -1);
}

void blyi_roll_add_event(struct blyi_event *event)
{
    blyi_lock_take(&lock);
    blyi_list_push_back(&roll_of_locked(event->card)->events, &event->roll_link);
    blyi_lock_drop(&lock);
    blyi_tally_row(BLYI_ROW_EVENT, event->card->id, event->site, 0, 1);
}

void blyi_roll_remove_event(struct blyi_event *event)
{
    blyi_lock_take(&lock);
    blyi_list_remove(&event->roll_link);
    blyi_lock_drop(&lock);
    blyi_tally_row(BLYI_ROW_EVENT, event->card->id, event->site, 0, -1);
}

/* One that is being freed (no reference left) waits for our lock to leave the list. */
static bool try_ref(struct blyi_event *event)
{
    uint32_t refs = __atomic_load_n(&event->refs, __ATOMIC_RELAXED);
    while (refs != 0)
        if (__atomic_compare_exchange_n(&event->refs, &refs, refs + 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

struct blyi_event *blyi_roll_take_event(struct blyi_context *context)
{
    struct blyi_event *found = NULL;
    blyi_lock_take(&lock);
    for (int card = 0; card < BLYI_CARD_MAX && found == NULL; card++) {
        if (!rolls[card].ready)
            continue;
        BLYI_LIST_FOR(node, &rolls[card].events)
        {
            struct blyi_event *event = BLYI_CONTAINER(node, struct blyi_event, roll_link);
            if (event->context == context && try_ref(event)) {
                found = event;
                blyi_list_remove(node);
                break;
            }
        }
    }
    blyi_lock_drop(&lock);
    return found;
}

static bool has_work(const struct blyi_stream *stream)
{
    return blyi_queue_completed(stream) < blyi_queue_issued(stream);
}

bool blyi_roll_has_work(const struct blyi_card *card)
{
    bool found = false;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &roll_of_locked(card)->streams)
    {
        if (has_work(BLYI_CONTAINER(node, struct blyi_stream, roll_link))) {
            found = true;
            break;
        }
    }
    blyi_lock_drop(&lock);
    return found;
}

uint32_t blyi_roll_moment(const struct blyi_card *card, struct blyi_moment *moment, uint32_t room)
{
    uint32_t n = 0;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &roll_of_locked(card)->streams)
    {
        const struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, roll_link);
        if (!has_work(stream))
            continue;
        if (n < room) {
            moment->at[n].stream = stream->handle;
            moment->at[n].position = blyi_queue_issued(stream);
        }
        n++;
    }
    blyi_lock_drop(&lock);
    moment->n = n < room ? n : room;
    return n;
}

uint32_t blyi_roll_pending_events(struct blyi_card *card)
{
    uint32_t n = 0;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &roll_of_locked(card)->events)
    {
        struct blyi_event *event = BLYI_CONTAINER(node, struct blyi_event, roll_link);
        /* Relaxed: a figure. More than the handle's reference: some task names it. */
        if (__atomic_load_n(&event->counted, __ATOMIC_RELAXED) &&
            (__atomic_load_n(&event->refs, __ATOMIC_RELAXED) > 1 || blyi_event_is_pending(event)))
            n++;
    }
    blyi_lock_drop(&lock);
    return n;
}

static void tally_add(struct tally *tally, uint32_t site, uint64_t born_ns)
{
    tally->total++;
    if (tally->total == 1 || born_ns < tally->oldest_ns)
        tally->oldest_ns = born_ns;
    for (uint32_t i = 0; i < tally->n_rows; i++)
        if (tally->rows[i].site == site) {
            tally->rows[i].count++;
            return;
        }
    if (tally->n_rows == SITES_KEPT) {
        tally->rest++;
        return;
    }
    tally->rows[tally->n_rows].site = site;
    tally->rows[tally->n_rows++].count = 1;
}

/* "20 made at f+0x1c (prog), 8 at g+0x2 (prog), 4 elsewhere", the most frequent first. */
static void tell_sites(struct tally *tally)
{
    char text[BLYI_SITE_TEXT];
    uint32_t told = 0;
    for (int i = 0; i < SITES_TOLD && told < tally->total; i++) {
        uint32_t best = 0;
        for (uint32_t row = 1; row < tally->n_rows; row++)
            if (tally->rows[row].count > tally->rows[best].count)
                best = row;
        if (tally->n_rows == 0 || tally->rows[best].count == 0)
            break;
        if (tally->rows[best].count == tally->total)
            blyi_fail_append("all made at %s", blyi_site_text(tally->rows[best].site, text));
        else
            blyi_fail_append("%s%" PRIu32 "%s at %s", told == 0 ? "" : ", ",
                             tally->rows[best].count, told == 0 ? " made" : "",
                             blyi_site_text(tally->rows[best].site, text));
        told += tally->rows[best].count;
        tally->rows[best].count = 0;
    }
    if (told < tally->total)
        blyi_fail_append(", %" PRIu32 " elsewhere", tally->total - told);
}

bly_status blyi_roll_no_stream(struct blyi_card *card)
{
    struct tally tally = {.n_rows = 0};
    struct blyi_mem_figures figures;
    char size[BLYI_SIZE_TEXT];
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &roll_of_locked(card)->streams)
    {
        const struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, roll_link);
        if (!stream->is_default)
            tally_add(&tally, stream->site, stream->born_ns);
    }
    blyi_lock_drop(&lock);
    blyi_mem_figures(card, &figures);
    uint64_t used = blyi_tally_used(card->id, BLYI_LIMIT_STREAMS);
    blyi_fail(BLY_E_NO_STREAM, "card %d: no stream left: %" PRIu64 "/%" PRIu64 " in use; ",
              card->id, used, card->model.streams);
    if (tally.total < used)
        blyi_fail_append("this process has %" PRIu32 "%s", tally.total, tally.total ? ", " : "");
    tell_sites(&tally);
    blyi_tally_append_counts(card->id, BLYI_LIMIT_STREAMS);
    blyi_fail_append("; card memory free is %s, this is not a memory shortage",
                     blyi_size_text(figures.free, size));
    return BLY_E_NO_STREAM;
}

bly_status blyi_roll_no_event(struct blyi_card *card)
{
    struct tally tally = {.n_rows = 0};
    uint32_t complete = 0, safe = 0;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &roll_of_locked(card)->events)
    {
        struct blyi_event *event = BLYI_CONTAINER(node, struct blyi_event, roll_link);
        if (!__atomic_load_n(&event->counted, __ATOMIC_RELAXED))
            continue;
        tally_add(&tally, event->site, event->born_ns);
        if (blyi_event_is_pending(event))
            continue;
        complete++;
        if (__atomic_load_n(&event->refs, __ATOMIC_RELAXED) == 1)
            safe++;
    }
    blyi_lock_drop(&lock);
    uint64_t used = blyi_tally_used(card->id, BLYI_LIMIT_EVENTS);
    uint64_t age_s = (blyi_clock_ns() - tally.oldest_ns) / 1000000000u;
    blyi_fail(BLY_E_NO_EVENT, "card %d: no event id left: %" PRIu64 "/%" PRIu64 " in use; ",
              card->id, used, card->model.events);
    if (tally.total < used)
        blyi_fail_append("this process has %" PRIu32 ": ", tally.total);
    blyi_fail_append("%" PRIu32 " complete, %" PRIu32 " pending; ", complete,
                     tally.total - complete);
    tell_sites(&tally);
    if (tally.total > 0)
        blyi_fail_append(", oldest %" PRIu64 " s ago; safe to destroy now: %" PRIu32, age_s, safe);
    blyi_tally_append_counts(card->id, BLYI_LIMIT_EVENTS);
    return BLY_E_NO_EVENT;
}
