/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - the part that all launches have in common.
 */
#ifndef BLYI_ACL_LAUNCH_H
#define BLYI_ACL_LAUNCH_H

#include "face/acl/acl_error.h"
#include "npu/kernel.h"

/* Fills in what the function and `cfg` (NULL: none) say. Unpin the function (binary.h) after the
 * launch. */
aclError blyi_acl_launch_pin(enum blyi_acl_call call, void *func, const aclrtLaunchKernelCfg *cfg,
                             struct blyi_kernel_call *kernel);
/* The same with what the stream's attributes say, and launches. */
aclError blyi_acl_launch(enum blyi_acl_call call, void *func, const aclrtLaunchKernelCfg *cfg,
                         void *stream, struct blyi_kernel_call *kernel);

#endif
