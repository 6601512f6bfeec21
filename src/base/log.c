/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - lines to stderr, or to a sink, within the budget of the process.
 *
 * Lock LOG guards the pair (sink, arg); the sink itself is called without it, so a sink
 * that is being replaced may get one more line from another thread. There are two pairs, so that
 * the child of a fork that falls into a change finds a whole one.
 */
#include "base/log.h"
#include "base/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_CHARS 4096

static struct blyi_lock sink_lock = BLYI_LOCK_INIT(BLYI_RANK_LOG);
static struct {
    blyi_log_sink fn;
    void *arg;
} sinks[2];
static uint32_t sink_now;

/* Relaxed: neither orders anything else. */
static atomic_int max_level = BLYI_LOG_WARN;
static atomic_uint n_lines;

static const char *level_text(enum blyi_log_level level)
{
    switch (level) {
    case BLYI_LOG_ERROR:
        return "error";
    case BLYI_LOG_WARN:
        return "warning";
    case BLYI_LOG_INFO:
        return "info";
    case BLYI_LOG_DEBUG:
        return "debug";
    }
    return "?";
}

static void print_line(enum blyi_log_level level, const char *line)
{
    blyi_lock_take(&sink_lock);
    blyi_log_sink fn = sinks[sink_now].fn;
    void *arg = sinks[sink_now].arg;
    blyi_lock_drop(&sink_lock);
    if (fn) {
        fn(arg, level, line);
        return;
    }
    /* One write, so that lines of several threads and processes stay whole. */
    char text[LINE_MAX_CHARS + 32];
    int length = snprintf(text, sizeof(text), "belay: %s: %s\n", level_text(level), line);
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) {
        /* a closed stderr is the user's choice */
    }
}

void blyi_log(enum blyi_log_level level, const char *fmt, ...)
{
    if (!blyi_log_enabled(level))
        return;
    unsigned n = 0;
    if (level < BLYI_LOG_DEBUG) {
        n = atomic_load_explicit(&n_lines, memory_order_relaxed);
        if (n > BLYI_LOG_BUDGET)
            return; /* the counter stops here and cannot wrap */
        n = atomic_fetch_add_explicit(&n_lines, 1, memory_order_relaxed);
        if (n > BLYI_LOG_BUDGET)
            return;
    }
    int saved_errno = errno;
    char line[LINE_MAX_CHARS];
    if (n == BLYI_LOG_BUDGET) {
        snprintf(line, sizeof(line), "%d lines were logged; no more are shown", BLYI_LOG_BUDGET);
    } else {
        va_list args;
        va_start(args, fmt);
        if (vsnprintf(line, sizeof(line), fmt, args) < 0)
            line[0] = '\0';
        va_end(args);
        for (char *c = line; (c = strchr(c, '\n')) != NULL;)
            *c = ' ';
    }
    print_line(level, line);
    errno = saved_errno;
}

void blyi_log_set_level(enum blyi_log_level level)
{
    atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

bool blyi_log_enabled(enum blyi_log_level level)
{
    return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

void blyi_log_set_sink(blyi_log_sink sink, void *arg)
{
    blyi_lock_take(&sink_lock);
    uint32_t next = sink_now ^ 1;
    sinks[next].fn = sink;
    sinks[next].arg = arg;
    __atomic_store_n(&sink_now, next, __ATOMIC_RELEASE);
    blyi_lock_drop(&sink_lock);
}
