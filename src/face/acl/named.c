/* SPDX-License-Identifier: Apache-2.0
 *
 * named.c - lists of named callbacks; one lock (rank FACE) for all, never held during a call.
 */
#include "face/acl/named.h"

#include <stdio.h>
#include <string.h>
#include "base/lock.h"

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);

static aclError set_locked(enum blyi_acl_call call, struct blyi_named_list *list, const char *name,
                           void (*fn)(void), void *args)
{
    size_t at = 0;
    while (at < list->n && strcmp(list->rows[at].name, name) != 0)
        at++;
    bool known = at < list->n;
    if (fn == NULL) {
        if (!known)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "no callback is registered as %s", name);
        memmove(&list->rows[at], &list->rows[at + 1], (list->n - at - 1) * sizeof(list->rows[0]));
        list->n--;
        return ACL_SUCCESS;
    }
    if (known)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "a callback is registered as %s already", name);
    if (at == BLYI_NAMED_MAX)
        return blyi_acl_reject(call, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                               "%d callbacks are registered: no more fit", BLYI_NAMED_MAX);
    snprintf(list->rows[at].name, sizeof(list->rows[at].name), "%s", name);
    list->rows[at].fn = fn;
    list->rows[at].args = args;
    list->n++;
    return ACL_SUCCESS;
}

aclError blyi_named_set(enum blyi_acl_call call, struct blyi_named_list *list, const char *name,
                        void (*fn)(void), void *args)
{
    if (name == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "regName is NULL");
    if (name[0] == '\0' || strnlen(name, BLYI_NAMED_TEXT) == BLYI_NAMED_TEXT)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "regName has no or more than %d characters", BLYI_NAMED_TEXT - 1);
    blyi_lock_take(&lock);
    aclError error = set_locked(call, list, name, fn, args);
    blyi_lock_drop(&lock);
    return error;
}

void blyi_named_copy(const struct blyi_named_list *list, struct blyi_named_list *copy)
{
    blyi_lock_take(&lock);
    copy->n = list->n;
    memcpy(copy->rows, list->rows, list->n * sizeof(list->rows[0]));
    blyi_lock_drop(&lock);
}
