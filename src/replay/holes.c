/* SPDX-License-Identifier: Apache-2.0
 *
 * holes.c - see holes.h. Orders are hashes of addresses, so that the depth is logarithmic whatever
 * a trace does, and the same in every run.
 */
#include "replay/holes.h"

#include "base/assert.h"
#include "base/host.h"

void blyi_holes_init(struct blyi_holes *holes)
{
    *holes = (struct blyi_holes){.nodes = NULL};
}

void blyi_holes_fini(struct blyi_holes *holes)
{
    blyi_host_free(holes->nodes);
    blyi_holes_init(holes);
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void refresh(struct blyi_hole *nodes, uint32_t at)
{
    struct blyi_hole *node = &nodes[at];
    node->largest = most(node->size, most(nodes[node->left].largest, nodes[node->right].largest));
}

/* The same for all nodes on the way to `address`. */
static void refresh_path(struct blyi_hole *nodes, uint32_t at, uint64_t address)
{
    if (nodes[at].address != address)
        refresh_path(nodes, address < nodes[at].address ? nodes[at].left : nodes[at].right,
                     address);
    refresh(nodes, at);
}

static uint32_t find_at(const struct blyi_holes *holes, uint64_t address)
{
    const struct blyi_hole *nodes = holes->nodes;
    uint32_t at = holes->root;
    while (at != 0 && nodes[at].address != address)
        at = address < nodes[at].address ? nodes[at].left : nodes[at].right;
    return at;
}

static uint32_t find_below(const struct blyi_holes *holes, uint64_t address)
{
    const struct blyi_hole *nodes = holes->nodes;
    uint32_t found = 0;
    for (uint32_t at = holes->root; at != 0;) {
        bool below = nodes[at].address < address;
        found = below ? at : found;
        at = below ? nodes[at].right : nodes[at].left;
    }
    return found;
}

bool blyi_holes_find(const struct blyi_holes *holes, uint64_t size, uint64_t *address)
{
    const struct blyi_hole *nodes = holes->nodes;
    uint32_t at = holes->root;
    if (at == 0 || nodes[at].largest < size)
        return false;
    for (;;) { /* the subtree has room */
        if (nodes[nodes[at].left].largest >= size)
            at = nodes[at].left;
        else if (nodes[at].size < size)
            at = nodes[at].right;
        else
            break;
    }
    *address = nodes[at].address;
    return true;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static bool have_spare(struct blyi_holes *holes)
{
    if (holes->spare != 0 || holes->n + 1 < holes->room)
        return true;
    uint32_t room = holes->room != 0 ? 2 * holes->room : 64;
    struct blyi_hole *nodes = blyi_host_realloc(holes->nodes, (size_t)room * sizeof(*nodes));
    if (nodes == NULL)
        return false;
    if (holes->room == 0)
        nodes[0] = (struct blyi_hole){0};
    holes->nodes = nodes;
    holes->room = room;
    return true;
}

static uint32_t new_node(struct blyi_holes *holes, uint64_t address, uint64_t size)
{
    uint32_t at = holes->spare;
    if (at != 0)
        holes->spare = holes->nodes[at].left;
    else
        at = ++holes->n;
    uint64_t hash = (address >> 9) * 0x9e3779b97f4a7c15u;
    holes->nodes[at] = (struct blyi_hole){.address = address,
                                          .size = size,
                                          .largest = size,
                                          .order = (uint32_t)((hash ^ (hash >> 29)) >> 16)};
    return at;
}

static uint32_t merge(struct blyi_hole *nodes, uint32_t left, uint32_t right)
{
    if (left == 0 || right == 0)
        return left | right;
    uint32_t top = left;
    if (nodes[left].order > nodes[right].order) {
        nodes[left].right = merge(nodes, nodes[left].right, right);
    } else {
        nodes[right].left = merge(nodes, left, nodes[right].left);
        top = right;
    }
    refresh(nodes, top);
    return top;
}

/* What is below `address`, and the rest. */
static void split(struct blyi_hole *nodes, uint32_t at, uint64_t address, uint32_t *below,
                  uint32_t *rest)
{
    if (at == 0) {
        *below = *rest = 0;
        return;
    }
    if (nodes[at].address < address) {
        split(nodes, nodes[at].right, address, &nodes[at].right, rest);
        *below = at;
    } else {
        split(nodes, nodes[at].left, address, below, &nodes[at].left);
        *rest = at;
    }
    refresh(nodes, at);
}

static void insert(struct blyi_holes *holes, uint32_t at)
{
    uint32_t below, rest;
    split(holes->nodes, holes->root, holes->nodes[at].address, &below, &rest);
    holes->root = merge(holes->nodes, merge(holes->nodes, below, at), rest);
}

static void remove_node(struct blyi_holes *holes, uint32_t at)
{
    uint32_t below, rest, self;
    uint64_t address = holes->nodes[at].address;
    split(holes->nodes, holes->root, address, &below, &rest);
    split(holes->nodes, rest, address + 1, &self, &rest);
    bly_assert(self == at);
    holes->root = merge(holes->nodes, below, rest);
    holes->nodes[at].left = holes->spare;
    holes->spare = at;
}

/* ---- ranges ------------------------------------------------------------------------------ */

void blyi_holes_take(struct blyi_holes *holes, uint64_t address, uint64_t size)
{
    uint32_t at = find_at(holes, address);
    struct blyi_hole *hole = &holes->nodes[at];
    bly_assert(at != 0 && hole->size >= size);
    if (hole->size == size) {
        remove_node(holes, at);
        return;
    }
    hole->address += size; /* still below the next one */
    hole->size -= size;
    refresh_path(holes->nodes, holes->root, hole->address);
}

bool blyi_holes_give(struct blyi_holes *holes, uint64_t address, uint64_t size)
{
    uint32_t below = find_below(holes, address), above = find_at(holes, address + size);
    if (below != 0 && holes->nodes[below].address + holes->nodes[below].size == address) {
        if (above != 0) {
            size += holes->nodes[above].size;
            remove_node(holes, above);
        }
        holes->nodes[below].size += size;
        refresh_path(holes->nodes, holes->root, holes->nodes[below].address);
    } else if (above != 0) {
        holes->nodes[above].address -= size;
        holes->nodes[above].size += size;
        refresh_path(holes->nodes, holes->root, holes->nodes[above].address);
    } else {
        if (!have_spare(holes))
            return false;
        insert(holes, new_node(holes, address, size));
    }
    return true;
}

/* *end is where the hole before ended. */
static bool audit(const struct blyi_hole *nodes, uint32_t at, uint64_t *end)
{
    const struct blyi_hole *node = &nodes[at];
    if (at == 0)
        return true;
    if (!audit(nodes, node->left, end) || node->size == 0 ||
        (node->address <= *end && node->address != 0))
        return false;
    *end = node->address + node->size;
    return (node->left == 0 || nodes[node->left].order <= node->order) &&
           (node->right == 0 || nodes[node->right].order <= node->order) &&
           node->largest ==
               most(node->size, most(nodes[node->left].largest, nodes[node->right].largest)) &&
           audit(nodes, node->right, end);
}

bool blyi_holes_audit(const struct blyi_holes *holes)
{
    uint64_t end = 0;
    return audit(holes->nodes, holes->root, &end);
}
