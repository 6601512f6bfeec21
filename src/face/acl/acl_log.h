/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_log.h - AscendCL's log: one stream of lines to stderr (stdout when
 * ASCEND_LOG_PRINT_TO_STDOUT is 1) and to the callbacks that asked for them. No log files.
 */
#ifndef BLYI_ACL_LOG_H
#define BLYI_ACL_LOG_H

#include <stdbool.h>

/* As ASCEND_GLOBAL_LOG_LEVEL says: 0 debug .. 3 error (default), 4 none. */
bool blyi_acl_log_enabled(int level);

#endif
