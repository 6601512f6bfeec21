/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_attr.h - attributes of streams that the face alone keeps.
 */
#ifndef BLYI_ACL_STREAM_ATTR_H
#define BLYI_ACL_STREAM_ATTR_H

/* The stream is gone. [any] */
void blyi_stream_attr_forget(const void *stream);

#endif
