/* SPDX-License-Identifier: Apache-2.0
 *
 * exceptions.h - who is told of tasks that fail.
 */
#ifndef BLYI_ACL_EXCEPTIONS_H
#define BLYI_ACL_EXCEPTIONS_H

/* The binary is gone: its callback, if any, is forgotten. */
void blyi_exceptions_forget_binary(const void *binary);

#endif
