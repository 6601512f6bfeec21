/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_log.c - aclAppLog, acllogRecord and who receives the lines.
 *
 * Lock: `lock` (rank FACE) guards the receivers; they are called without it, so a receiver may
 * be called once more while it is being removed.
 */
#include <base/acl_log.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "face/acl/acl_error.h"
#include "face/acl/acl_log.h"

#define LINE_MAX_SIZE 1024 /* with its end, as documented */
#define CUT_MARK      "...[truncated]"
#define RECEIVERS_MAX 16

static struct receiver {
    acllogRecordCallback fn;
    void *user_data;
    uint32_t type;
    uintptr_t handle; /* 0: the row is free */
} receivers[RECEIVERS_MAX];
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static uintptr_t last_handle;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int enabled_level;
static FILE *out;

static void read_environment(void)
{
    const char *level = getenv("ASCEND_GLOBAL_LOG_LEVEL");
    enabled_level = DLOG_ERROR;
    if (level != NULL && level[0] >= '0' && level[0] <= '4' && level[1] == '\0')
        enabled_level = level[0] - '0';
    const char *to_stdout = getenv("ASCEND_LOG_PRINT_TO_STDOUT");
    if (to_stdout == NULL)
        to_stdout = getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    out = to_stdout != NULL && strcmp(to_stdout, "1") == 0 ? stdout : stderr;
}

bool blyi_acl_log_enabled(int level)
{
    pthread_once(&once, read_environment);
    return level >= DLOG_DEBUG && level <= DLOG_ERROR && level >= enabled_level;
}

static void deliver(int level, bool is_run_log, const char *line)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    if (blyi_acl_log_enabled(level))
        fprintf(out, "[%s] %s\n", names[level], line);
    struct receiver copy[RECEIVERS_MAX];
    blyi_lock_take(&lock);
    memcpy(copy, receivers, sizeof(copy));
    blyi_lock_drop(&lock);
    uint32_t mine = is_run_log ? OUTPUT_TYPE_RUN : OUTPUT_TYPE_DEBUG;
    for (size_t i = 0; i < RECEIVERS_MAX; i++) {
        if (copy[i].handle != 0 && (copy[i].type == OUTPUT_TYPE_BOTH || copy[i].type == mine))
            (void)copy[i].fn(copy[i].user_data, (uint32_t)level, line, strlen(line));
    }
}

/* Formats behind `used` characters of the line and marks what did not fit. */
static void finish_line(char line[LINE_MAX_SIZE], size_t used, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
static void finish_line(char line[LINE_MAX_SIZE], size_t used, const char *fmt, va_list args)
{
    int length = vsnprintf(line + used, LINE_MAX_SIZE - used, fmt, args);
    if (length >= 0 && (size_t)length >= LINE_MAX_SIZE - used)
        memcpy(line + LINE_MAX_SIZE - sizeof(CUT_MARK), CUT_MARK, sizeof(CUT_MARK));
}

void bly_acl_aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line,
                       const char *fmt, ...)
{
    if (func == NULL || file == NULL || fmt == NULL || !blyi_acl_log_enabled((int)logLevel))
        return;
    char text[LINE_MAX_SIZE];
    const char *slash = strrchr(file, '/');
    int used = snprintf(text, sizeof(text) / 2, "%s:%u: %s: ", slash != NULL ? slash + 1 : file,
                        line, func);
    size_t offset = used < 0                          ? 0
                    : (size_t)used < sizeof(text) / 2 ? (size_t)used
                                                      : sizeof(text) / 2 - 1;
    va_list args;
    va_start(args, fmt);
    finish_line(text, offset, fmt, args);
    va_end(args);
    deliver((int)logLevel, false, text);
}

/* Receivers of the run log (a bit in moduleId) get it whatever the level. */
void bly_acl_acllogVaList(int32_t moduleId, int32_t level, const char *fmt, va_list list)
{
    bool is_run_log = ((uint32_t)moduleId & RUN_LOG_MASK) != 0;
    bool is_level = level >= DLOG_DEBUG && level <= DLOG_ERROR;
    if (fmt == NULL || !is_level || !(blyi_acl_log_enabled(level) || is_run_log))
        return;
    pthread_once(&once, read_environment);
    char text[LINE_MAX_SIZE];
    finish_line(text, 0, fmt, list);
    deliver(level, is_run_log, text);
}

void bly_acl_acllogRecord(int32_t moduleId, int32_t level, const char *fmt, ...)
{
    if (fmt == NULL)
        return;
    va_list args;
    va_start(args, fmt);
    bly_acl_acllogVaList(moduleId, level, fmt, args);
    va_end(args);
}

/* Levels of single modules (ASCEND_MODULE_LOG_LEVEL) are not kept apart. */
int32_t bly_acl_acllogCheckDebugLevel(int32_t moduleId, int32_t logLevel)
{
    (void)moduleId;
    return blyi_acl_log_enabled(logLevel) ? 1 : 0;
}

int32_t bly_acl_acllogRegisterCallback(acllogRecordCallback callbackFunc, void *userData,
                                       uint32_t outputLogType, acllogCallbackHandle *callbackHandle)
{
    if (callbackFunc == NULL || callbackHandle == NULL)
        return acl_reject(acllogRegisterCallback, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          callbackFunc == NULL ? "callbackFunc" : "callbackHandle");
    if (outputLogType >= OUTPUT_TYPE_MAX)
        return acl_reject(acllogRegisterCallback, ACL_ERROR_INVALID_PARAM,
                          "outputLogType %u is not in 0 .. 2", outputLogType);
    uintptr_t handle = 0;
    blyi_lock_take(&lock);
    for (size_t i = 0; i < RECEIVERS_MAX && handle == 0; i++) {
        if (receivers[i].handle != 0)
            continue;
        handle = ++last_handle;
        receivers[i] = (struct receiver){callbackFunc, userData, outputLogType, handle};
    }
    blyi_lock_drop(&lock);
    if (handle == 0)
        return acl_reject(acllogRegisterCallback, ACL_ERROR_STORAGE_OVER_LIMIT,
                          "%d callbacks are registered", RECEIVERS_MAX);
    *callbackHandle = handle;
    return ACL_SUCCESS;
}

int32_t bly_acl_acllogUnregisterCallback(acllogCallbackHandle callback)
{
    bool found = false;
    blyi_lock_take(&lock);
    for (size_t i = 0; i < RECEIVERS_MAX && !found && callback != 0; i++) {
        if (receivers[i].handle != callback)
            continue;
        receivers[i].handle = 0;
        found = true;
    }
    blyi_lock_drop(&lock);
    if (!found)
        return acl_reject(acllogUnregisterCallback, ACL_ERROR_INVALID_PARAM,
                          "callback %#zx is not registered", (size_t)callback);
    return ACL_SUCCESS;
}
