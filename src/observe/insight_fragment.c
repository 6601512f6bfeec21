/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_fragment.c - pieces and blocks by address, side by side.
 */
#include "observe/insight_fragment.h"

#include <stdlib.h>
#include "base/fail.h"
#include "base/host.h"

struct row {
    const struct blyi_piece *piece;
    struct blyi_pin pin;
};

struct fragments {
    const struct blyi_history *h;
    const struct blyi_labels *labels;
    uint32_t at;
    struct row *rows;
    const struct blyi_life **lives;
    size_t n_rows, n_lives;
    bool joins; /* a block reaches over the end of a piece: neighbours are one range */
    struct blyi_fragments *out;
};

static int compare(uint8_t card_a, uint64_t a, uint8_t card_b, uint64_t b)
{
    if (card_a != card_b)
        return card_a < card_b ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return compare(x->piece->card, x->piece->address, y->piece->card, y->piece->address);
}

static int lives_by_place(const void *a, const void *b)
{
    const struct blyi_life *const *x = a, *const *y = b;
    return compare((*x)->card, (*x)->address, (*y)->card, (*y)->address);
}

static int by_idle(const void *a, const void *b)
{
    const struct blyi_pin *x = a, *y = b;
    if (x->idle != y->idle)
        return x->idle > y->idle ? -1 : 1;
    return compare(x->card, x->address, y->card, y->address);
}

static bool takes_room(const struct blyi_life *life, uint32_t at)
{
    return life->class_ == BLYI_TRACE_CARD_BLOCK &&
           (blyi_lives_at(life, at) || blyi_waits_at(life, at));
}

static uint64_t end_of(const struct blyi_life *life)
{
    uint64_t size = life->rounded > life->asked ? life->rounded : life->asked;
    return life->address + size < life->address ? UINT64_MAX : life->address + size;
}

static bool collect(struct fragments *f, uint8_t card)
{
    size_t n_pieces = 0, n_lives = 0;
    for (size_t i = 0; i < f->h->n_pieces; i++)
        n_pieces += blyi_piece_lives_at(&f->h->pieces[i], f->at);
    for (size_t i = 0; i < f->h->n_lives; i++)
        n_lives += takes_room(&f->h->lives[i], f->at);
    f->rows = blyi_host_calloc(n_pieces + 1, sizeof(*f->rows));
    f->lives = blyi_host_calloc(n_lives + 1, sizeof(struct blyi_life *));
    if (f->rows == NULL || f->lives == NULL)
        return false;
    for (size_t i = 0; i < f->h->n_pieces; i++)
        if (blyi_piece_lives_at(&f->h->pieces[i], f->at) &&
            (card == BLYI_ALL_CARDS || f->h->pieces[i].card == card))
            f->rows[f->n_rows++].piece = &f->h->pieces[i];
    for (size_t i = 0; i < f->h->n_lives; i++)
        if (takes_room(&f->h->lives[i], f->at) && blyi_is_of(&f->h->lives[i], card))
            f->lives[f->n_lives++] = &f->h->lives[i];
    if (f->n_rows > 0)
        qsort(f->rows, f->n_rows, sizeof(*f->rows), by_place);
    if (f->n_lives > 0)
        qsort(f->lives, f->n_lives, sizeof(struct blyi_life *), lives_by_place);
    return true;
}

/* ── One piece after the other ────────────────────────────────────────────────────────────── */

struct sweep {
    size_t life;  /* first one that may reach into this piece */
    uint64_t row; /* idle bytes in a row up to here */
    uint64_t end; /* of the piece before */
    uint8_t card;
};

static void add_idle(struct fragments *f, struct sweep *sweep, uint64_t idle)
{
    sweep->row += idle;
    if (sweep->row > f->out->largest)
        f->out->largest = sweep->row;
}

static void add_block(struct fragments *f, struct blyi_pin *pin, const struct blyi_life *life,
                      uint64_t bytes)
{
    pin->blocks++;
    pin->bytes += bytes;
    if (blyi_lives_at(life, f->at))
        f->out->live += bytes;
    else
        f->out->waiting += bytes;
    if (bytes > pin->label_bytes) {
        pin->label_bytes = bytes;
        pin->label = blyi_label_of(f->labels, life, BLYI_BY_SITE);
    }
}

static void look_into(struct fragments *f, struct row *row, struct sweep *sweep)
{
    const struct blyi_piece *piece = row->piece;
    uint64_t at = piece->address, end = piece->address + piece->size;
    row->pin = (struct blyi_pin){.address = at, .size = piece->size, .card = piece->card};
    if (!f->joins || piece->card != sweep->card || piece->address != sweep->end)
        sweep->row = 0;
    for (; sweep->life < f->n_lives; sweep->life++) {
        const struct blyi_life *life = f->lives[sweep->life];
        if (life->card < piece->card || (life->card == piece->card && end_of(life) <= at))
            continue;
        if (life->card > piece->card || life->address >= end)
            break;
        uint64_t from = life->address > at ? life->address : at;
        uint64_t to = end_of(life) < end ? end_of(life) : end;
        add_idle(f, sweep, from - at);
        sweep->row = 0;
        add_block(f, &row->pin, life, to - from);
        at = to;
        if (end_of(life) > end) {
            f->joins = true;
            break;
        }
    }
    add_idle(f, sweep, end - at);
    row->pin.idle = row->pin.size - row->pin.bytes;
    sweep->card = piece->card;
    sweep->end = end;
}

static void look_into_all(struct fragments *f)
{
    struct sweep sweep = {.card = BLYI_NO_CARD};
    *f->out = (struct blyi_fragments){.pins = f->out->pins};
    for (size_t i = 0; i < f->n_rows; i++)
        look_into(f, &f->rows[i], &sweep);
}

static void sum_up(struct fragments *f)
{
    struct blyi_fragments *out = f->out;
    for (size_t i = 0; i < f->n_rows; i++) {
        const struct blyi_pin *pin = &f->rows[i].pin;
        out->n_pieces++;
        out->reserved += pin->size;
        out->idle += pin->idle;
        if (pin->blocks == 0) {
            out->free_pieces++;
            out->releasable += pin->size;
            continue;
        }
        out->pinned += pin->idle;
        if (pin->idle > 0)
            out->pins[out->n_pins++] = *pin;
        if (pin->bytes > pin->size / 2)
            continue;
        out->sparse++;
        out->sparse_blocks += pin->blocks;
        out->sparse_bytes += pin->bytes;
        out->sparse_idle += pin->idle;
    }
    uint64_t all = 0;
    for (size_t i = 0; i < f->n_lives; i++)
        if (blyi_lives_at(f->lives[i], f->at))
            all += end_of(f->lives[i]) - f->lives[i]->address;
    out->outside = all > out->live ? all - out->live : 0;
    if (out->n_pins > 0)
        qsort(out->pins, out->n_pins, sizeof(*out->pins), by_idle);
}

bly_status blyi_fragments_make(const struct blyi_history *h, const struct blyi_labels *labels,
                               uint8_t card, uint32_t at, struct blyi_fragments *out)
{
    struct fragments f = {.h = h, .labels = labels, .at = at, .out = out};
    *out = (struct blyi_fragments){0};
    bool ok = collect(&f, card);
    out->pins = ok ? blyi_host_calloc(f.n_rows + 1, sizeof(*out->pins)) : NULL;
    if (out->pins != NULL) {
        look_into_all(&f);
        if (f.joins)
            look_into_all(&f); /* again, knowing that */
        sum_up(&f);
    }
    blyi_host_free(f.rows);
    blyi_host_free(f.lives);
    if (out->pins == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to see what is idle in it",
                         blyi_trace_info(h->trace)->name);
    return BLY_OK;
}
