/* SPDX-License-Identifier: Apache-2.0
 *
 * config.h - the attribute list that some allocation calls take.
 */
#ifndef BLYI_ACL_CONFIG_H
#define BLYI_ACL_CONFIG_H

#include "face/acl/acl_error.h"

struct blyi_config {
    uint16_t module; /* npu/card.h counts unknown ones as the application */
    bool has_device, has_va_flag;
    uint32_t device;
    uint32_t va_flag;
};

/* cfg NULL: the defaults. The last of equal attributes wins; id 0 is ignored. 100000: attrs is
 * NULL though numAttrs is not 0. 107000: an attribute that does not exist. */
aclError blyi_config_read(enum blyi_acl_call call, const aclrtMallocConfig *cfg,
                          struct blyi_config *out);

#endif
