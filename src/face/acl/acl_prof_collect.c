/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_prof_collect.c - the profiler: what it collects here is a recording of memory and of the
 * order of work (docs/trace-format.md), PROF_<pid>_<n>/belay.trace in the folder of aclprofInit.
 *
 * A recording that is under way is not disturbed: it has all that would be collected.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <belay/trace.h>
#include "base/host.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "face/acl/acl_error.h"
#include "face/acl/visible.h"

#define PATH_ROOM 4096u /* AscendCL's limit, without the 0 */
#define DEVICES   64

struct config {
    struct blyi_list link;
    uint64_t devices; /* bits of user ids */
    bool running;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE); /* what follows */
static struct blyi_list configs = BLYI_LIST_INIT(configs);
static bool begun, ours; /* aclprofInit; the recording under way is the profiler's */
static uint32_t n_profiles;
static char folder[PATH_ROOM + 1];

/* NULL: the pointer is none of aclprofCreateConfig's. It is not read before it is known. */
static struct config *find_locked(const aclprofConfig *wanted)
{
    BLYI_LIST_FOR(node, &configs)
    {
        struct config *config = BLYI_CONTAINER(node, struct config, link);
        if ((const void *)config == (const void *)wanted)
            return config;
    }
    return NULL;
}

static uint64_t running_locked(void)
{
    uint64_t devices = 0;
    BLYI_LIST_FOR(node, &configs)
    {
        const struct config *config = BLYI_CONTAINER(node, struct config, link);
        devices |= config->running ? config->devices : 0;
    }
    return devices;
}

static aclError not_begun(enum blyi_acl_call call)
{
    return blyi_acl_reject(call, ACL_ERROR_PROF_NOT_RUN, "aclprofInit was not called");
}

/* The folder itself is made; those above it must be there. */
static const char *cannot_use(const char *path)
{
    struct stat is;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return strerror(errno);
    if (stat(path, &is) != 0 || access(path, W_OK | X_OK) != 0)
        return strerror(errno);
    return S_ISDIR(is.st_mode) ? NULL : strerror(ENOTDIR);
}

aclError bly_acl_aclprofInit(const char *profilerResultPath, size_t length)
{
    char path[PATH_ROOM + 1];
    if (profilerResultPath == NULL)
        return acl_null(aclprofInit, "profilerResultPath");
    if (length == 0 || length > PATH_ROOM)
        return acl_reject(aclprofInit, ACL_ERROR_INVALID_PARAM, "length %zu is not 1 .. %u", length,
                          PATH_ROOM);
    size_t n = strnlen(profilerResultPath, length);
    memcpy(path, profilerResultPath, n);
    path[n] = '\0';
    const char *why = cannot_use(path);
    if (why != NULL)
        return acl_reject(aclprofInit, ACL_ERROR_INVALID_PARAM, "folder %.512s: %s", path, why);
    blyi_lock_take(&lock);
    bool again = begun;
    if (!again) {
        memcpy(folder, path, n + 1);
        begun = true;
    }
    blyi_lock_drop(&lock);
    if (again)
        return acl_reject(aclprofInit, ACL_ERROR_PROF_ALREADY_RUN, "aclprofInit was called before");
    return ACL_SUCCESS;
}

static aclprofConfig *none(aclError told)
{
    (void)told;
    return NULL;
}
#define no_config(...) none(acl_reject(aclprofCreateConfig, ACL_ERROR_INVALID_PARAM, __VA_ARGS__))

/* The bits of the user ids; false: one is not there, or there twice. */
static bool read_devices(const uint32_t *ids, uint32_t n, uint64_t *devices)
{
    *devices = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bit = ids[i] < DEVICES ? (uint64_t)1 << ids[i] : 0;
        if (bit == 0 || blyi_visible_card((int)ids[i]) < 0 || (*devices & bit) != 0)
            return no_config("device %" PRIu32 " is %s", ids[i],
                             (*devices & bit) != 0 ? "there twice" : "not there") != NULL;
        *devices |= bit;
    }
    return true;
}

aclprofConfig *bly_acl_aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums,
                                           aclprofAicoreMetrics aicoreMetrics,
                                           const aclprofAicoreEvents *aicoreEvents,
                                           uint64_t dataTypeConfig)
{
    uint64_t devices;
    (void)dataTypeConfig; /* all that is known is collected: a part of it saves nothing */
    if (deviceIdList == NULL && deviceNums > 0)
        return no_config("deviceIdList is NULL for %" PRIu32 " devices", deviceNums);
    if (aicoreEvents != NULL)
        return no_config("aicoreEvents is not NULL");
    if ((unsigned)aicoreMetrics > ACL_AICORE_MEMORY_ACCESS && aicoreMetrics != ACL_AICORE_NONE)
        return no_config("aicoreMetrics %u is unknown", (unsigned)aicoreMetrics);
    if (deviceNums > (uint32_t)blyi_visible_count())
        return no_config("deviceNums %" PRIu32 " is more than there are", deviceNums);
    if (!read_devices(deviceIdList, deviceNums, &devices))
        return NULL;
    struct config *config = blyi_host_calloc(1, sizeof(*config));
    if (config == NULL)
        return none(acl_reject(aclprofCreateConfig, ACL_ERROR_BAD_ALLOC, "the host has no memory"));
    config->devices = devices;
    blyi_lock_take(&lock);
    blyi_list_push_back(&configs, &config->link);
    blyi_lock_drop(&lock);
    return (aclprofConfig *)(void *)config;
}

aclError bly_acl_aclprofDestroyConfig(const aclprofConfig *profilerConfig)
{
    if (profilerConfig == NULL)
        return acl_null(aclprofDestroyConfig, "profilerConfig");
    blyi_lock_take(&lock);
    struct config *config = find_locked(profilerConfig);
    bool running = config != NULL && config->running;
    if (config != NULL && !running)
        blyi_list_remove(&config->link);
    blyi_lock_drop(&lock);
    if (config == NULL)
        return acl_reject(aclprofDestroyConfig, ACL_ERROR_INVALID_PARAM,
                          "profilerConfig is no configuration");
    if (running)
        return acl_reject(aclprofDestroyConfig, ACL_ERROR_PROF_ALREADY_RUN,
                          "profilerConfig is in use until aclprofStop");
    blyi_host_free(config);
    return ACL_SUCCESS;
}

/* E_STATE is no failure: somebody records already. */
static bly_status record(const char *into, uint32_t number)
{
    char within[PATH_ROOM + 40], path[PATH_ROOM + 60];
    snprintf(within, sizeof(within), "%s/PROF_%d_%" PRIu32, into, (int)getpid(), number);
    if (mkdir(within, 0777) != 0 && errno != EEXIST)
        return blyi_fail(BLY_E_IO, "folder %.512s: %s", within, strerror(errno));
    snprintf(path, sizeof(path), "%s/belay.trace", within);
    bly_status status = bly_trace_start(path, NULL);
    if (status == BLY_OK)
        blyi_log(BLYI_LOG_INFO, "profile: %s, to be read by belay report", path);
    return status;
}

static void set_running(const aclprofConfig *wanted, bool running, bool recorded)
{
    blyi_lock_take(&lock);
    struct config *config = find_locked(wanted);
    if (config != NULL)
        config->running = running;
    ours = ours || recorded;
    blyi_lock_drop(&lock);
}

aclError bly_acl_aclprofStart(const aclprofConfig *profilerConfig)
{
    char into[PATH_ROOM + 1];
    bool overlaps = false, first = false;
    uint32_t number = 0;
    (void)ACL_SITE();
    if (profilerConfig == NULL)
        return acl_null(aclprofStart, "profilerConfig");
    blyi_lock_take(&lock);
    struct config *config = find_locked(profilerConfig);
    bool is_begun = begun;
    if (begun && config != NULL) {
        uint64_t running = running_locked();
        overlaps = config->running || (running & config->devices) != 0;
        first = !overlaps && running == 0;
        config->running = true;
        number = n_profiles;
        n_profiles += first;
        memcpy(into, folder, sizeof(into));
    }
    blyi_lock_drop(&lock);
    if (!is_begun)
        return not_begun(BLYI_ACL_CALL_aclprofStart);
    if (config == NULL)
        return acl_reject(aclprofStart, ACL_ERROR_INVALID_PARAM,
                          "profilerConfig is no configuration");
    if (overlaps)
        return acl_reject(aclprofStart, ACL_ERROR_PROF_ALREADY_RUN,
                          "a profile of one of these devices is under way");
    bly_status status = first ? record(into, number) : BLY_OK;
    if (status == BLY_E_STATE)
        blyi_fail_clear();
    set_running(profilerConfig, status == BLY_OK || status == BLY_E_STATE,
                first && status == BLY_OK);
    if (status == BLY_OK || status == BLY_E_STATE)
        return ACL_SUCCESS;
    return acl_result(aclprofStart, status);
}

/* Ends the recording behind the last configuration; all of them, if no one is named. */
static bly_status stop_locked_out(struct config *only)
{
    bool last;
    BLYI_LIST_FOR(node, &configs)
    {
        struct config *config = BLYI_CONTAINER(node, struct config, link);
        if (only == NULL || config == only)
            config->running = false;
    }
    last = ours && running_locked() == 0;
    ours = ours && !last;
    blyi_lock_drop(&lock);
    return last ? bly_trace_stop() : BLY_OK;
}

aclError bly_acl_aclprofStop(const aclprofConfig *profilerConfig)
{
    if (profilerConfig == NULL)
        return acl_null(aclprofStop, "profilerConfig");
    blyi_lock_take(&lock);
    struct config *config = find_locked(profilerConfig);
    bool is_begun = begun, running = config != NULL && config->running;
    if (running)
        return acl_result(aclprofStop, stop_locked_out(config));
    blyi_lock_drop(&lock);
    if (!is_begun)
        return not_begun(BLYI_ACL_CALL_aclprofStop);
    if (config == NULL)
        return acl_reject(aclprofStop, ACL_ERROR_INVALID_PARAM,
                          "profilerConfig is no configuration");
    return acl_reject(aclprofStop, ACL_ERROR_PROF_NOT_RUN, "profilerConfig was not started");
}

aclError bly_acl_aclprofFinalize(void)
{
    blyi_lock_take(&lock);
    if (begun) {
        begun = false;
        return acl_result(aclprofFinalize, stop_locked_out(NULL));
    }
    blyi_lock_drop(&lock);
    return not_begun(BLYI_ACL_CALL_aclprofFinalize);
}
