/* SPDX-License-Identifier: Apache-2.0
 *
 * message.h - the last lines of error text, per thread or for the process.
 */
#ifndef BLYI_ACL_MESSAGE_H
#define BLYI_ACL_MESSAGE_H

#include <stdbool.h>

#define BLYI_MESSAGE_KEPT 16 /* older lines are dropped */

/* Keeps a copy; dropped silently when the host has no memory for it. [any] */
void blyi_message_add(const char *line);
/* All kept lines, newest first, joined by newlines, and forgets them; NULL when there is none.
 * The text belongs to the thread and lives until its next call. [any] */
const char *blyi_message_take(void);
/* Lines are kept per thread (false, the default) or for the whole process. */
void blyi_message_set_shared(bool shared);

#endif
