/* SPDX-License-Identifier: Apache-2.0
 *
 * list.h - intrusive doubly linked list; the head is a node of its own. No locking.
 */
#ifndef BLYI_LIST_H
#define BLYI_LIST_H

#include <stdbool.h>
#include "base/compiler.h"

struct blyi_list {
    struct blyi_list *prev, *next;
};

#define BLYI_LIST_INIT(head)                                                                       \
    {                                                                                              \
        &(head), &(head)                                                                           \
    }

static inline void blyi_list_init(struct blyi_list *head)
{
    head->prev = head->next = head;
}

static inline bool blyi_list_empty(const struct blyi_list *head)
{
    return head->next == head;
}

static inline void blyi_list_insert_before(struct blyi_list *pos, struct blyi_list *node)
{
    node->prev = pos->prev;
    node->next = pos;
    pos->prev->next = node;
    pos->prev = node;
}

static inline void blyi_list_push_back(struct blyi_list *head, struct blyi_list *node)
{
    blyi_list_insert_before(head, node);
}

static inline void blyi_list_push_front(struct blyi_list *head, struct blyi_list *node)
{
    blyi_list_insert_before(head->next, node);
}

/* The node is then a list of its own, so removing it again is harmless. */
static inline void blyi_list_remove(struct blyi_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    blyi_list_init(node);
}

#define BLYI_LIST_FOR(node, head)                                                                  \
    for (struct blyi_list *node = (head)->next; node != (head); node = node->next)

/* `node` may be removed or freed in the body. */
#define BLYI_LIST_FOR_SAFE(node, head)                                                             \
    for (struct blyi_list *node = (head)->next, *node##_next = node->next; node != (head);         \
         node = node##_next, node##_next = node->next)

/* All links agree in both directions. */
bool blyi_list_audit(const struct blyi_list *head);

#endif
