/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - messages to the person who runs the process. The very bottom: knows no option.
 *
 * Levels are defined by volume: ERROR and WARN at most once per object or site,
 * INFO once per phase of a process, DEBUG once per operation. A process prints at
 * most BLYI_LOG_BUDGET lines above DEBUG and then says that it stops.
 */
#ifndef BLYI_LOG_H
#define BLYI_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include "base/compiler.h"

enum blyi_log_level { BLYI_LOG_ERROR, BLYI_LOG_WARN, BLYI_LOG_INFO, BLYI_LOG_DEBUG };
#define BLYI_LOG_BUDGET 200

void blyi_log(enum blyi_log_level level, const char *fmt, ...) BLYI_PRINTF(2, 3);

/* Default WARN. */
void blyi_log_set_level(enum blyi_log_level level);
bool blyi_log_enabled(enum blyi_log_level level);

/* Replaces stderr as the place where lines go (tests, log callbacks); NULL restores it.
 * `line` has no newline. Called without locks of ours held. */
typedef void (*blyi_log_sink)(void *arg, enum blyi_log_level level, const char *line);
void blyi_log_set_sink(blyi_log_sink sink, void *arg);

#endif
