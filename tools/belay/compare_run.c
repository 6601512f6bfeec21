/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define STEP ((uint64_t)2 << 20)

static bool set_place(char place[PATH_MAX], const struct compare_setup *setup, const char *suffix)
{
    int n = snprintf(place, PATH_MAX, "%s/%s%s", setup->folder, setup->alloc, suffix);
    return n > 0 && n < PATH_MAX;
}

/* In the child: becomes `belay run`, with the options in its environment. */
static void become_run(const struct compare_setup *setup, const char *report, const char *output)
{
    char size[32];
    size_t n = 0;
    while (setup->program[n] != NULL)
        n++;
    char **arguments = calloc(n + 4, sizeof(*arguments));
    if (arguments == NULL)
        _exit(126);
    arguments[0] = "belay";
    arguments[1] = "run";
    arguments[2] = "--";
    memcpy(arguments + 3, setup->program, n * sizeof(*arguments));
    snprintf(size, sizeof(size), "%" PRIu64, setup->hbm);
    setenv("BELAY_ALLOC", setup->alloc, 1);
    setenv("BELAY_REPORT", report, 1);
    setenv("BELAY_STATE", "private", 1);
    unsetenv("BELAY_REPORT_APPEND");
    if (setup->hbm > 0)
        setenv("BELAY_HBM", size, 1);
    if (!setup->show) {
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
            _exit(126);
    }
    execv("/proc/self/exe", arguments);
    _exit(126);
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static uint64_t statistic(const json_t *report, const char *name)
{
    return number(json_object_get(report, "statistics"), name);
}

/* They are numbered from 1. */
static uint64_t count_pools(const json_t *report)
{
    uint64_t most = 0;
    size_t i;
    json_t *pool;
    json_array_foreach(json_object_get(report, "pools"), i, pool)
    {
        uint64_t n = number(pool, "number");
        most = n > most ? n : most;
    }
    return most;
}

static void take_report(const json_t *report, struct compare_result *result)
{
    const json_t *process = json_object_get(report, "process");
    const json_t *card = json_array_get(json_object_get(report, "cards"), 0);
    if (!json_is_object(process) || !json_is_object(card))
        return; /* no card was used, or it did not end by itself */
    result->reported = true;
    result->total = number(card, "total");
    result->overhead = number(card, "overhead");
    result->peak_asked = number(process, "peak");
    result->peak_backed = number(card, "peak_taken");
    result->allocs = number(process, "allocs");
    result->frees = number(process, "frees");
    result->refused = number(process, "refused");
    result->left = number(process, "live");
    result->driver_calls = statistic(report, "driver_calls");
    result->alloc_ns = statistic(report, "alloc_ns");
    result->findings = json_array_size(json_object_get(report, "findings"));
    result->pools = count_pools(report);
}

static bly_status read_report(const char *path, struct compare_result *result)
{
    json_error_t error;
    json_t *report = json_load_file(path, 0, &error);
    if (report == NULL)
        return blyi_fail(BLY_E_PARSE, "%s: line %d: %s", path, error.line, error.text);
    take_report(report, result);
    json_decref(report);
    return BLY_OK;
}

bly_status compare_run(const struct compare_setup *setup, struct compare_result *result)
{
    char report[PATH_MAX], output[PATH_MAX];
    int status;
    *result = (struct compare_result){0};
    if (!set_place(report, setup, ".json") || !set_place(output, setup, ".out"))
        return blyi_fail(BLY_E_SYSTEM, "%s: the path is too long", setup->folder);
    (void)unlink(report);
    fflush(NULL);
    uint64_t start = blyi_clock_ns();
    pid_t pid = fork();
    if (pid < 0)
        return blyi_fail(BLY_E_SYSTEM, "cannot start a process: %s", strerror(errno));
    if (pid == 0)
        become_run(setup, report, output);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return blyi_fail(BLY_E_SYSTEM, "cannot wait for process %d: %s", (int)pid,
                             strerror(errno));
    result->seconds = (double)(blyi_clock_ns() - start) / 1e9;
    result->exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return access(report, R_OK) == 0 ? read_report(report, result) : BLY_OK;
}

bly_status compare_smallest(const struct compare_setup *setup, uint64_t least, uint64_t most,
                            uint64_t *smallest, unsigned *n_runs)
{
    struct compare_setup tried = *setup;
    uint64_t below = least / STEP,
             fits = (most + STEP - 1) / STEP; /* `below` counts as too small */
    for (uint64_t span = 1; below + 1 < fits; span *= 2) {
        struct compare_result result;
        /* Near the peak at first, then by halves. */
        uint64_t step = span < (fits - below) / 2 ? span : (fits - below) / 2;
        tried.hbm = (fits - step) * STEP;
        bly_status status = compare_run(&tried, &result);
        if (status != BLY_OK)
            return status;
        ++*n_runs;
        if (result.exit == 0) {
            fits -= step;
        } else {
            below = fits - step;
            span = UINT64_MAX / 4;
        }
    }
    *smallest = fits * STEP;
    return BLY_OK;
}
