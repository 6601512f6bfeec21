/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_attr.h - attributes of streams that the face alone keeps.
 */
#ifndef BLYI_ACL_STREAM_ATTR_H
#define BLYI_ACL_STREAM_ATTR_H

#include "face/acl/acl_error.h"

/* The stream is gone. [any] */
void blyi_stream_attr_forget(const void *stream);

/* default_too: whether a default stream takes it (acl_abort.c). */
aclError blyi_acl_set_failure_mode(enum blyi_acl_call call, void *stream, uint64_t mode,
                                   bool default_too);

/* Whether the switch of any stream was ever set; and of this one (NULL: default). [any] */
bool blyi_acl_any_overflow_switch(void);
bool blyi_acl_overflow_switch(void *stream);

#endif
