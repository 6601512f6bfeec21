/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_args.h - argument lists, assembled one parameter after another.
 */
#ifndef BLYI_ACL_KERNEL_ARGS_H
#define BLYI_ACL_KERNEL_ARGS_H

#include "face/acl/acl_error.h"
#include "npu/kernel.h"

#define BLYI_ARGS_PARAMS 128

struct blyi_args_param {
    uint32_t offset, size;
    bool placeholder;
    uint32_t data_at; /* of its buffer; 0: none yet */
};

struct blyi_args {
    void *handle; /* NULL: the list lies in the program's memory, and its address is its handle */
    uint32_t size, room;
    uint32_t n_params;
    bool has_buffers; /* behind the parameters: no more of those */
    bool finalised;
    bool updated; /* since it was finalised */
    char *block;
    struct blyi_args_param params[BLYI_ARGS_PARAMS];
};

/* The list that the program placed at this address; NULL: it placed none there. [any] */
struct blyi_args *blyi_args_of_user(const void *address);

/* The argument block of a finalised list, for `call`; `patches` has room for BLYI_ARGS_PARAMS.
 * Unpin it after the launch. */
aclError blyi_args_pin(enum blyi_acl_call acl_call, void *args, struct blyi_kernel_call *call,
                       struct blyi_kernel_patch *patches);
void blyi_args_unpin(void *args);

#endif
