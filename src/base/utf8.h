/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.h - text that comes from outside. Includes nothing of ours.
 */
#ifndef BLYI_UTF8_H
#define BLYI_UTF8_H

#include <stddef.h>

/* Length of the well-formed UTF-8 sequence at p, 0 when there is none before `end`. */
size_t blyi_utf8_length(const unsigned char *p, const unsigned char *end);

#endif
