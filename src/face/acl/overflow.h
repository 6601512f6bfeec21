/* SPDX-License-Identifier: Apache-2.0
 *
 * overflow.h - whether a launch is to be looked at for overflow.
 */
#ifndef BLYI_ACL_OVERFLOW_H
#define BLYI_ACL_OVERFLOW_H

#include <stdbool.h>

/* stream NULL: default. One load where no stream's switch was ever set. [any] */
bool blyi_acl_looks_for_overflow(void *stream);

#endif
