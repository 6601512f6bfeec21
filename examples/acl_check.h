/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_check.h - what the examples do when a call fails: say which, where and why, and end.
 */
#ifndef EXAMPLES_ACL_CHECK_H
#define EXAMPLES_ACL_CHECK_H

#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_ACL(call)                                                                            \
    do {                                                                                           \
        aclError error_ = (call);                                                                  \
        if (error_ != ACL_SUCCESS) {                                                               \
            const char *why_ = aclGetRecentErrMsg();                                               \
            fprintf(stderr, "%s:%d: %s returned %d: %s\n", __FILE__, __LINE__, #call, error_,      \
                    why_ ? why_ : "no message");                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
