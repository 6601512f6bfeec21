/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_view.c - reads the files of the state: never writes, never touches a mapping of them. A
 * reading during which `turn` moved, or that does not add up, is made again, a few times.
 */
#include "npu/ledger_view.h"
#include "npu/frame.h"
#include "npu/ledger_inside.h"
#include "npu/share_layout.h"
#include "npu/state.h"
#include "base/fail.h"
#include "base/host.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 20

struct files {
    int folder, locks, ledger;
    struct blyi_mapped mapped;
};

static bool read_at(int fd, void *bytes, size_t size, uint64_t at)
{
    return pread(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

static bool is_used(const struct blyi_ledger *header, uint32_t slot)
{
    return (header->used[slot / 64] >> (slot % 64)) & 1;
}

static void make_printable(char name[BLYI_SLOT_NAME])
{
    name[BLYI_SLOT_NAME - 1] = '\0';
    for (char *at = name; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

static bool read_slots(const struct files *files, const struct blyi_ledger *header,
                       struct blyi_ledger_view *out)
{
    out->n_slots = 0;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        struct blyi_slot *to = &out->slots[out->n_slots];
        if (!is_used(header, slot))
            continue;
        if (!read_at(files->ledger, to, sizeof *to,
                     BLYI_LEDGER_AT_SLOTS + (uint64_t)slot * BLYI_SLOT_SIZE))
            return false;
        if (!blyi_ledger_slot_lives(files->locks, slot, to, files->mapped))
            continue;
        make_printable(to->name);
        out->numbers[out->n_slots++] = slot;
    }
    return true;
}

const struct blyi_slot *blyi_view_slot(const struct blyi_ledger_view *view, uint32_t number)
{
    for (uint32_t i = 0; i < view->n_slots; i++)
        if (view->numbers[i] == number)
            return &view->slots[i];
    return NULL;
}

static bool is_held(const struct blyi_ledger_view *view, const struct blyi_share_info *share)
{
    for (uint32_t i = 0; i < view->n_slots; i++)
        if ((share->holders[view->numbers[i] / 64] >> (view->numbers[i] % 64)) & 1)
            return true;
    return false;
}

/* The part of the file with shares, as far as it is used; NULL: nothing was ever shared, or no host
 * memory (*sound false). */
static struct blyi_shares *read_part(const struct files *files, bool *sound)
{
    struct blyi_shares head;
    if (!read_at(files->ledger, &head, sizeof head, BLYI_LEDGER_AT_SHARES) || head.n_shares == 0 ||
        head.n_shares > BLYI_SHARES)
        return NULL;
    size_t size = BLYI_SHARES_AT_SHARES + head.n_shares * sizeof(struct blyi_share);
    struct blyi_shares *part = blyi_host_calloc(1, size);
    *sound = part != NULL;
    if (part && read_at(files->ledger, part, size, BLYI_LEDGER_AT_SHARES)) {
        part->n_shares = head.n_shares; /* it may have grown since */
        return part;
    }
    blyi_host_free(part);
    return NULL;
}

/* False: no host memory. */
static bool read_shares(const struct files *files, const struct blyi_ledger *header,
                        struct blyi_ledger_view *out)
{
    bool sound = true;
    struct blyi_shares *part = header->has_shares ? read_part(files, &sound) : NULL;
    out->n_shares = 0;
    blyi_host_free(out->shares);
    out->shares = NULL;
    if (!part)
        return sound;
    out->shares = blyi_host_calloc(part->n_shares, sizeof *out->shares);
    for (uint32_t i = 0; i < part->n_shares && out->shares; i++)
        if (blyi_share_read(part, i, &out->shares[out->n_shares]) &&
            is_held(out, &out->shares[out->n_shares]))
            out->n_shares++;
    blyi_host_free(part);
    return out->shares != NULL;
}

/* Whether a word names somebody who lives: a slot, or a share that such a one holds. */
static bool is_owned(const struct blyi_ledger_view *view, uint32_t owner)
{
    if (!(owner & BLYI_FRAME_SHARED))
        return owner != 0 && blyi_view_slot(view, owner - 1) != NULL;
    for (uint32_t i = 0; i < view->n_shares; i++)
        if (view->shares[i].index == (owner & ~BLYI_FRAME_SHARED))
            return true;
    return false;
}

static void count_words(const struct blyi_ledger_view *view, const uint32_t *words,
                        struct blyi_view_card *card, uint32_t frames[BLYI_SLOTS])
{
    uint32_t run = 0, last = 0;
    bool owned = false; /* of `last`: frames of one owner lie together */
    for (uint32_t i = 0; i < card->n_frames; i++) {
        uint32_t owner = words[i] & BLYI_FRAME_OWNER;
        if (owner != last)
            owned = is_owned(view, owner);
        last = owner;
        bool free = !owned;
        card->shared += owned && (owner & BLYI_FRAME_SHARED);
        card->free += free;
        if (owned && !(owner & BLYI_FRAME_SHARED))
            frames[owner - 1]++;
        card->committed += (words[i] & BLYI_FRAME_COMMITTED) != 0;
        run = free ? run + 1 : 0;
        if (run > card->longest)
            card->longest = run;
    }
}

/* A process takes frames first and says so afterwards: what was read in between does not add up. */
static bool adds_up(const struct blyi_ledger_view *view, int id, const uint32_t frames[BLYI_SLOTS])
{
    for (uint32_t i = 0; i < view->n_slots; i++) {
        const struct blyi_slot_card *there = &view->slots[i].cards[id];
        if (there->live + there->overhead + there->unused + there->deferred !=
            frames[view->numbers[i]] * BLYI_FRAME_SIZE + there->shared)
            return false;
    }
    return true;
}

/* False: no host memory. A file that is not what it should be leaves its card out. */
static bool read_card(const struct files *files, const struct blyi_ledger *header, int id,
                      struct blyi_ledger_view *out)
{
    struct blyi_view_card *card = &out->cards[id];
    const struct blyi_ledger_card *there = &header->cards[id];
    struct blyi_card_file head;
    uint32_t frames[BLYI_SLOTS] = {0};
    char name[24];
    int fd;
    memset(card, 0, sizeof *card);
    if (there->n_frames == 0)
        return true;
    snprintf(name, sizeof name, "card-%d", id);
    if (blyi_state_file(files->folder, name, false, &fd) != BLY_OK)
        return true;
    bool sound = true;
    if (read_at(fd, &head, sizeof head, 0) && head.n_frames == there->n_frames) {
        size_t size = head.n_frames * sizeof(uint32_t);
        uint32_t *words = blyi_host_alloc(size);
        sound = words != NULL;
        if (words && read_at(fd, words, size, sizeof head)) {
            card->made = true;
            card->n_frames = head.n_frames;
            card->least_free = head.least_free;
            memcpy(card->model, there->model, sizeof card->model);
            make_printable(card->model);
            count_words(out, words, card, frames);
            out->steady = out->steady && adds_up(out, id, frames);
        }
        blyi_host_free(words);
    }
    close(fd);
    return sound;
}

/* One reading. False: it cannot be read. */
static bool read_once(const struct files *files, struct blyi_ledger *header,
                      struct blyi_ledger_view *out)
{
    struct blyi_ledger after;
    out->steady = true;
    if (!read_at(files->ledger, header, sizeof *header, 0) || !read_slots(files, header, out) ||
        !read_shares(files, header, out))
        return false;
    for (int card = 0; card < (int)BLYI_LEDGER_CARDS; card++)
        if (!read_card(files, header, card, out))
            return false;
    out->steady = out->steady && read_at(files->ledger, &after, sizeof after, 0) &&
                  after.turn == header->turn && (header->turn & 1) == 0;
    return true;
}

static bly_status read_all(const struct files *files, struct blyi_ledger_view *out)
{
    static const struct timespec pause = {.tv_nsec = 200000};
    struct blyi_ledger header;
    out->slots = blyi_host_calloc(BLYI_SLOTS, sizeof *out->slots);
    out->numbers = blyi_host_calloc(BLYI_SLOTS, sizeof *out->numbers);
    if (!out->slots || !out->numbers)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to read the shared state");
    out->steady = !read_at(files->ledger, &header, sizeof header, 0);
    if (out->steady)
        return BLY_OK; /* an empty file: nobody ever used it */
    if (!blyi_ledger_is_whole(&header))
        return blyi_fail(BLY_E_STATE, "the shared state is damaged");
    if (header.version != BLYI_LEDGER_VERSION || header.size != BLYI_LEDGER_SIZE)
        return blyi_fail(BLY_E_STATE,
                         "the shared state is of another version of Belay (layout %" PRIu32
                         ", ours is %u)",
                         header.version, BLYI_LEDGER_VERSION);
    for (int i = 0; i < TRIES && !out->steady; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        if (!read_once(files, &header, out))
            return blyi_fail(BLY_E_STATE, "the shared state cannot be read");
    }
    return BLY_OK;
}

bly_status blyi_ledger_view(struct blyi_ledger_view *out)
{
    struct files files = {.folder = -1, .locks = -1, .ledger = -1};
    memset(out, 0, sizeof *out);
    bly_status status = blyi_state_find(&files.folder);
    if (status == BLY_OK && files.folder < 0)
        status = blyi_fail(BLY_E_IO, "with BELAY_STATE=private every process has cards of its own");
    if (status == BLY_OK)
        status = blyi_state_file(files.folder, "slots", false, &files.locks);
    if (status == BLY_OK)
        status = blyi_state_file(files.folder, "ledger", false, &files.ledger);
    if (status == BLY_OK) {
        files.mapped = blyi_mapped_learn(files.ledger);
        status = read_all(&files, out);
    }
    if (files.ledger >= 0)
        close(files.ledger);
    if (files.locks >= 0)
        close(files.locks);
    if (files.folder >= 0)
        close(files.folder);
    if (status != BLY_OK)
        blyi_ledger_view_fini(out);
    return status;
}

void blyi_ledger_view_fini(struct blyi_ledger_view *view)
{
    blyi_host_free(view->slots);
    blyi_host_free(view->numbers);
    blyi_host_free(view->shares);
    memset(view, 0, sizeof *view);
}
