/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.c - an AVL tree with parent links: depth at most 1.44 log2(n), no recursion.
 *
 * After an insert or a removal rebalance() walks up from the lowest node whose subtree
 * changed and stops at the first whose height did not.
 */
#include "base/tree.h"
#include "base/assert.h"

static bool before(const struct blyi_tree_node *node, uint64_t key, uint64_t sub)
{
    return node->key < key || (node->key == key && node->sub < sub);
}

static int height(const struct blyi_tree_node *node)
{
    return node ? node->height : 0;
}

static int taller_child(const struct blyi_tree_node *node)
{
    int left = height(node->left), right = height(node->right);
    return left > right ? left : right;
}

/* Where the tree points at `node`: a child link of its parent, or the root. */
static struct blyi_tree_node **link_to(struct blyi_tree *tree, struct blyi_tree_node *node)
{
    if (node->parent == NULL)
        return &tree->root;
    return node->parent->left == node ? &node->parent->left : &node->parent->right;
}

/*     node            child
 *    /    \          /     \
 *   a    child  ->  node    c     and its mirror image
 *        /   \     /   \
 *       b     c   a     b                                  */
static struct blyi_tree_node *rotate_left(struct blyi_tree *tree, struct blyi_tree_node *node)
{
    struct blyi_tree_node *child = node->right;
    *link_to(tree, node) = child;
    child->parent = node->parent;
    node->right = child->left;
    if (node->right)
        node->right->parent = node;
    child->left = node;
    node->parent = child;
    node->height = 1 + taller_child(node);
    child->height = 1 + taller_child(child);
    return child;
}

static struct blyi_tree_node *rotate_right(struct blyi_tree *tree, struct blyi_tree_node *node)
{
    struct blyi_tree_node *child = node->left;
    *link_to(tree, node) = child;
    child->parent = node->parent;
    node->left = child->right;
    if (node->left)
        node->left->parent = node;
    child->right = node;
    node->parent = child;
    node->height = 1 + taller_child(node);
    child->height = 1 + taller_child(child);
    return child;
}

static void rebalance(struct blyi_tree *tree, struct blyi_tree_node *node)
{
    for (; node != NULL; node = node->parent) {
        int old_height = node->height;
        int lean = height(node->left) - height(node->right);
        if (lean > 1) {
            bly_assert(node->left != NULL);
            if (height(node->left->left) < height(node->left->right))
                rotate_left(tree, node->left);
            node = rotate_right(tree, node);
        } else if (lean < -1) {
            bly_assert(node->right != NULL);
            if (height(node->right->right) < height(node->right->left))
                rotate_right(tree, node->right);
            node = rotate_left(tree, node);
        } else {
            node->height = 1 + taller_child(node);
        }
        if (node->height == old_height)
            return;
    }
}

bool blyi_tree_insert(struct blyi_tree *tree, struct blyi_tree_node *node, uint64_t key,
                      uint64_t sub)
{
    struct blyi_tree_node **link = &tree->root, *parent = NULL;
    while (*link != NULL) {
        parent = *link;
        if (before(parent, key, sub))
            link = &parent->right;
        else if (parent->key == key && parent->sub == sub)
            return false;
        else
            link = &parent->left;
    }
    *node = (struct blyi_tree_node){.parent = parent, .key = key, .sub = sub, .height = 1};
    *link = node;
    tree->count++;
    rebalance(tree, parent);
    return true;
}

void blyi_tree_remove(struct blyi_tree *tree, struct blyi_tree_node *node)
{
    bly_assert_msg(tree->count > 0 && *link_to(tree, node) == node, "key %llu is not in the tree",
                   (unsigned long long)node->key);
    struct blyi_tree_node *lowest; /* whose subtree lost a level first */
    if (node->left == NULL || node->right == NULL) {
        struct blyi_tree_node *child = node->left ? node->left : node->right;
        *link_to(tree, node) = child;
        if (child)
            child->parent = node->parent;
        lowest = node->parent;
    } else {
        /* The next node has no left child; it takes the place of `node`. */
        struct blyi_tree_node *next = node->right;
        while (next->left)
            next = next->left;
        lowest = next;
        if (next != node->right) {
            lowest = next->parent;
            lowest->left = next->right;
            if (next->right)
                next->right->parent = lowest;
            next->right = node->right;
            next->right->parent = next;
        }
        next->left = node->left;
        next->left->parent = next;
        *link_to(tree, node) = next;
        next->parent = node->parent;
        next->height = node->height;
    }
    tree->count--;
    node->parent = node->left = node->right = NULL;
    rebalance(tree, lowest);
}

/* Last node at or below (key, sub). */
static struct blyi_tree_node *floor_of(const struct blyi_tree *tree, uint64_t key, uint64_t sub)
{
    struct blyi_tree_node *node = tree->root, *best = NULL;
    while (node != NULL) {
        if (before(node, key, sub) || (node->key == key && node->sub == sub)) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

struct blyi_tree_node *blyi_tree_find(const struct blyi_tree *tree, uint64_t key, uint64_t sub)
{
    struct blyi_tree_node *node = floor_of(tree, key, sub);
    return node && node->key == key && node->sub == sub ? node : NULL;
}

struct blyi_tree_node *blyi_tree_floor(const struct blyi_tree *tree, uint64_t key)
{
    return floor_of(tree, key, UINT64_MAX);
}

struct blyi_tree_node *blyi_tree_ceil(const struct blyi_tree *tree, uint64_t key)
{
    struct blyi_tree_node *node = tree->root, *best = NULL;
    while (node != NULL) {
        if (node->key >= key) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

struct blyi_tree_node *blyi_tree_first(const struct blyi_tree *tree)
{
    struct blyi_tree_node *node = tree->root;
    while (node && node->left)
        node = node->left;
    return node;
}

struct blyi_tree_node *blyi_tree_last(const struct blyi_tree *tree)
{
    struct blyi_tree_node *node = tree->root;
    while (node && node->right)
        node = node->right;
    return node;
}

struct blyi_tree_node *blyi_tree_next(const struct blyi_tree_node *node)
{
    if (node->right) {
        struct blyi_tree_node *next = node->right;
        while (next->left)
            next = next->left;
        return next;
    }
    while (node->parent && node->parent->right == node)
        node = node->parent;
    return node->parent;
}

struct blyi_tree_node *blyi_tree_prev(const struct blyi_tree_node *node)
{
    if (node->left) {
        struct blyi_tree_node *prev = node->left;
        while (prev->right)
            prev = prev->right;
        return prev;
    }
    while (node->parent && node->parent->left == node)
        node = node->parent;
    return node->parent;
}

static bool node_is_sound(const struct blyi_tree_node *node)
{
    int lean = height(node->left) - height(node->right);
    return (!node->left || node->left->parent == node) &&
           (!node->right || node->right->parent == node) && lean >= -1 && lean <= 1 &&
           node->height == 1 + taller_child(node);
}

bool blyi_tree_audit(const struct blyi_tree *tree)
{
    if (tree->root && tree->root->parent)
        return false;
    size_t count = 0;
    const struct blyi_tree_node *prev = NULL;
    for (const struct blyi_tree_node *node = blyi_tree_first(tree); node != NULL;
         prev = node, node = blyi_tree_next(node)) {
        if (++count > tree->count || !node_is_sound(node))
            return false;
        if (prev && !before(prev, node->key, node->sub))
            return false;
    }
    return count == tree->count;
}
