/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - who hears that a device is set or reset.
 */
#ifndef BLYI_ACL_STATE_H
#define BLYI_ACL_STATE_H

#include "face/acl/acl_error.h"

void blyi_state_tell_device(int32_t device, aclrtDeviceState state);

#endif
