/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_config.h - live objects of aclrtCreateStreamConfigHandle. Their layout is public, so
 * the handle is their address; it is looked up before it is touched. [any]
 */
#ifndef BLYI_ACL_STREAM_CONFIG_H
#define BLYI_ACL_STREAM_CONFIG_H

#include <stdbool.h>
#include <acl/acl.h>

/* A copy of the live object; false when there is none at that address. */
bool blyi_stream_config_read(const aclrtStreamConfigHandle *handle, aclrtStreamConfigHandle *out);

#endif
