/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_pieces.c - what pools took from a card. A pool may give back a part of what it took, or
 * what it took before recording began.
 */
#include "observe/insight_walk.h"

#include "base/host.h"

static struct blyi_walk_node *walk_node(struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_walk_node, node);
}

static uint64_t start_key(uint8_t card, uint64_t address)
{
    return address ^ (uint64_t)card << 57;
}

static void add_piece(struct blyi_walk *w, struct blyi_piece piece, bool at_start)
{
    struct blyi_history *h = w->h;
    struct blyi_walk_node *node = NULL;
    if (!blyi_walk_grow(w, &h->pieces, h->n_pieces, &w->room_pieces, sizeof(*h->pieces)))
        return;
    if (!at_start)
        blyi_walk_change(w, BLYI_CHANGE_PIECE, h->n_pieces);
    piece.born_at = at_start ? 0 : blyi_history_end(h);
    piece.born_ns = at_start ? 0 : w->now_ns;
    piece.died_at = BLYI_STILL;
    piece.died_ns = 0;
    if (piece.card < BLYI_CARDS)
        node = blyi_host_alloc(sizeof(*node));
    if (node == NULL) {
        w->ok = false;
        return;
    }
    node->index = (uint32_t)h->n_pieces;
    h->pieces[h->n_pieces++] = piece;
    blyi_tree_insert(&w->pieces[piece.card], &node->node, piece.address, 0);
}

static void end_piece(struct blyi_walk *w, struct blyi_walk_node *node)
{
    struct blyi_piece *piece = &w->h->pieces[node->index];
    blyi_walk_change(w, BLYI_CHANGE_PIECE_GONE, node->index);
    piece->died_at = blyi_history_end(w->h);
    piece->died_ns = w->now_ns;
    blyi_tree_remove(&w->pieces[piece->card], &node->node);
    blyi_host_free(node);
}

/* The rest of a piece of which a part went. */
static void add_rest(struct blyi_walk *w, const struct blyi_piece *of, uint64_t from, uint64_t to)
{
    struct blyi_piece rest = *of;
    rest.address = from;
    rest.size = to - from;
    if (to > from)
        add_piece(w, rest, false);
}

/* Takes [from, to) out of all pieces; true when there was any of it. */
static bool cut(struct blyi_walk *w, uint8_t card, uint64_t from, uint64_t to)
{
    bool any = false;
    while (w->ok) {
        struct blyi_walk_node *node = walk_node(blyi_tree_floor(&w->pieces[card], to - 1));
        if (node == NULL)
            break;
        struct blyi_piece piece = w->h->pieces[node->index];
        uint64_t end = piece.address + piece.size;
        if (end <= from)
            break;
        any = true;
        end_piece(w, node);
        add_rest(w, &piece, to, end > to ? end : to);
        add_rest(w, &piece, piece.address, piece.address < from ? from : piece.address);
    }
    return any;
}

static bool piece_of(const struct blyi_trace_event *event, struct blyi_piece *piece)
{
    const struct blyi_probe *p = &event->probe;
    *piece = (struct blyi_piece){.address = p->address,
                                 .size = p->size,
                                 .stream = p->stream,
                                 .site = p->site,
                                 .stack = event->stack,
                                 .card = (uint8_t)p->card};
    return p->card >= 0 && p->card < BLYI_CARDS && p->size > 0 && p->address + p->size > p->address;
}

void blyi_walk_piece(struct blyi_walk *w, const struct blyi_trace_event *event)
{
    struct blyi_piece piece;
    if (!piece_of(event, &piece))
        return;
    w->h->expandable = w->h->expandable || event->probe.aux != 0;
    (void)cut(w, piece.card, piece.address, piece.address + piece.size); /* its end was lost */
    add_piece(w, piece, false);
    if (blyi_map_put(&w->seen, start_key(piece.card, piece.address), w) != BLY_OK)
        w->ok = false;
}

void blyi_walk_piece_gone(struct blyi_walk *w, const struct blyi_trace_event *event)
{
    struct blyi_piece piece;
    if (!piece_of(event, &piece))
        return;
    if (!cut(w, piece.card, piece.address, piece.address + piece.size) &&
        blyi_map_get(&w->seen, start_key(piece.card, piece.address)) == NULL) {
        add_piece(w, piece, true);
        (void)cut(w, piece.card, piece.address, piece.address + piece.size);
    }
    if (blyi_map_put(&w->seen, start_key(piece.card, piece.address), w) != BLY_OK)
        w->ok = false;
}
