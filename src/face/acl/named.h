/* SPDX-License-Identifier: Apache-2.0
 *
 * named.h - callbacks that programs register under a name.
 */
#ifndef BLYI_ACL_NAMED_H
#define BLYI_ACL_NAMED_H

#include "face/acl/acl_error.h"

#define BLYI_NAMED_MAX  64
#define BLYI_NAMED_TEXT 128

struct blyi_named {
    char name[BLYI_NAMED_TEXT];
    void (*fn)(void); /* cast back by whoever keeps the list */
    void *args;
};

struct blyi_named_list {
    size_t n; /* in the order of registration */
    struct blyi_named rows[BLYI_NAMED_MAX];
};

/* fn NULL takes the name out. 100000: no name, or too long; 107000: the name is taken, or is not
 * there to be taken out; 207005: the list is full. [any] */
aclError blyi_named_set(enum blyi_acl_call call, struct blyi_named_list *list, const char *name,
                        void (*fn)(void), void *args);
/* A copy to call without a lock. */
void blyi_named_copy(const struct blyi_named_list *list, struct blyi_named_list *copy);

#endif
