/* SPDX-License-Identifier: Apache-2.0
 *
 * allocators.h - the program's own allocators, attached to streams (a plain table: frameworks
 * ask for them, aclrtMalloc does not).
 */
#ifndef BLYI_ACL_ALLOCATORS_H
#define BLYI_ACL_ALLOCATORS_H

/* The stream is gone. [any] */
void blyi_allocators_forget(const void *stream);

#endif
