/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.h - limits that belong to a stream.
 */
#ifndef BLYI_ACL_LIMITS_H
#define BLYI_ACL_LIMITS_H

/* The stream is gone. [any] */
void blyi_limits_forget_stream(const void *stream);

#endif
