/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.h - intrusive balanced tree ordered by (key, sub), for addresses and best fit.
 * Allocates nothing, so it cannot fail. No locking.
 */
#ifndef BLYI_TREE_H
#define BLYI_TREE_H

#include <stdbool.h>
#include "base/compiler.h"

struct blyi_tree_node {
    struct blyi_tree_node *parent, *left, *right;
    uint64_t key; /* set by insert; may not change while linked */
    uint64_t sub; /* orders equal keys; (key, sub) is unique in a tree */
    int height;
};

struct blyi_tree {
    struct blyi_tree_node *root;
    size_t count;
};

#define BLYI_TREE_ENTRY(node, type, member) ((node) ? BLYI_CONTAINER(node, type, member) : NULL)

/* False, and nothing done, when (key, sub) is present. */
bool blyi_tree_insert(struct blyi_tree *tree, struct blyi_tree_node *node, uint64_t key,
                      uint64_t sub);
void blyi_tree_remove(struct blyi_tree *tree, struct blyi_tree_node *node);

struct blyi_tree_node *blyi_tree_find(const struct blyi_tree *tree, uint64_t key, uint64_t sub);
/* Last node at or below (key, UINT64_MAX); first node at or above (key, 0); NULL when none. */
struct blyi_tree_node *blyi_tree_floor(const struct blyi_tree *tree, uint64_t key);
struct blyi_tree_node *blyi_tree_ceil(const struct blyi_tree *tree, uint64_t key);
struct blyi_tree_node *blyi_tree_first(const struct blyi_tree *tree);
struct blyi_tree_node *blyi_tree_last(const struct blyi_tree *tree);
struct blyi_tree_node *blyi_tree_next(const struct blyi_tree_node *node);
struct blyi_tree_node *blyi_tree_prev(const struct blyi_tree_node *node);

/* Order, balance, parents and count agree. */
bool blyi_tree_audit(const struct blyi_tree *tree);

#endif
