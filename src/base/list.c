/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c - the audit of lists; the rest is inline in list.h.
 */
#include "base/list.h"

bool blyi_list_audit(const struct blyi_list *head)
{
    /* As long as each next points back, no node is reached twice, so the walk ends at the head. */
    const struct blyi_list *node = head;
    do {
        if (node == NULL || node->next == NULL || node->next->prev != node)
            return false;
        node = node->next;
    } while (node != head);
    return true;
}
