/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_args.h - argument lists, assembled one parameter after another.
 */
#ifndef BLYI_ACL_KERNEL_ARGS_H
#define BLYI_ACL_KERNEL_ARGS_H

#include "face/acl/acl_error.h"
#include "npu/kernel.h"

#define BLYI_ARGS_PARAMS 128

/* The argument block of a finalised list, for `call`; `patches` has room for BLYI_ARGS_PARAMS.
 * Unpin it after the launch. */
aclError blyi_args_pin(enum blyi_acl_call acl_call, void *args, struct blyi_kernel_call *call,
                       struct blyi_kernel_patch *patches);
void blyi_args_unpin(void *args);

#endif
