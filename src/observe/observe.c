/* SPDX-License-Identifier: Apache-2.0
 *
 * observe.c - attaches the account and the recorder; writes the report and closes the trace when
 * the process exits. Under `belay run` a process that was linked for cards and used none says that.
 *
 * The report is written by the library's ELF destructor: it runs after atexit handlers and
 * static destructors of the program and not at all on _exit. Other threads may still run then,
 * so nothing is torn down and no lock is waited for without limit.
 */
#include "observe/observe.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "observe/account.h"
#include "observe/check_live.h"
#include "observe/recorder.h"
#include "observe/report.h"
#include "observe/report_file.h"

static struct blyi_report_files destinations;
static atomic_bool wanted;   /* release after destinations are filled */
static bool found_something; /* of what is checked for; when the report was made */
static atomic_bool attached; /* somebody is about to use a card */

/* As the library was loaded. */
static pid_t loader;
static char start_folder[PATH_MAX]; /* "" when nothing needs it */

/* The program may leave its folder before it first uses a card. */
__attribute__((constructor)) static void remember_start(void)
{
    const char *report = getenv("BELAY_REPORT"), *trace = getenv("BELAY_TRACE");
    bool needed = (report != NULL && report[0] != '\0') || (trace != NULL && trace[0] != '\0');
    loader = getpid();
    if (needed && getcwd(start_folder, sizeof(start_folder)) == NULL)
        start_folder[0] = '\0';
}

static bly_status parse_destinations(const char *where)
{
    return blyi_report_files_parse(where, start_folder[0] ? start_folder : NULL, &destinations);
}

/* A place that fails is told, and does not keep the others from theirs. */
static void begin_destinations(bool append)
{
    size_t kept = 0;
    for (size_t i = 0; i < destinations.n; i++) {
        destinations.file[kept] = destinations.file[i];
        if (blyi_report_file_begin(&destinations.file[kept], append) == BLY_OK)
            kept++;
        else
            blyi_log(BLYI_LOG_WARN, "no report will be written: %s", bly_last_error());
    }
    destinations.n = kept;
}

static void on_dying(void *arg, const struct blyi_probe *probe);

static void describe(const uint32_t *sites, size_t n, blyi_site_line *line, void *arg)
{
    char text[BLYI_SOURCE_TEXT];
    struct blyi_source *sources = blyi_host_calloc(n, sizeof(*sources));
    if (sources != NULL)
        blyi_symbolise(sites, n, sources);
    for (size_t i = 0; i < n; i++)
        line(arg, i, sources != NULL ? blyi_source_text(&sources[i], text) : "?");
    if (sources != NULL)
        blyi_sources_fini(sources, n);
    blyi_host_free(sources);
}

static void attach_once(void)
{
    atomic_store(&attached, true);
    if (blyi_recorder_attach(start_folder[0] ? start_folder : NULL) != BLY_OK)
        blyi_log(BLYI_LOG_WARN, "nothing is recorded: %s", bly_last_error());
    const char *where = blyi_option_text(BLYI_OPT_REPORT);
    blyi_site_set_describer(describe);
    if (blyi_check_live_start() != BLY_OK)
        blyi_log(BLYI_LOG_WARN, "nothing is checked: %s", bly_last_error());
    if (blyi_check_live_groups() != 0)
        blyi_account_start();
    if (where[0] == '\0')
        return;
    if (parse_destinations(where) != BLY_OK) {
        blyi_log(BLYI_LOG_WARN, "no report will be written: %s", bly_last_error());
        return;
    }
    begin_destinations(blyi_option_int(BLYI_OPT_REPORT_APPEND) != 0);
    if (destinations.n == 0)
        return;
    blyi_account_start();
    static struct blyi_sink sink = {.kinds = BLYI_KIND(DYING), .probe = on_dying};
    blyi_probe_add_sink(&sink);
    atomic_store_explicit(&wanted, true, memory_order_release);
}

void blyi_observe_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach_once);
}

/* A reader that went away or a full disk must not change how the process ends: the signals stay
 * pending in this thread and are taken from it before they are let in again. */
static void signals_hold(sigset_t *newly_held)
{
    sigset_t old, both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &both, &old);
    *newly_held = both;
    if (sigismember(&old, SIGPIPE))
        sigdelset(newly_held, SIGPIPE);
    if (sigismember(&old, SIGXFSZ))
        sigdelset(newly_held, SIGXFSZ);
}

static void signals_release(const sigset_t *held)
{
    while (sigtimedwait(held, NULL, &(struct timespec){0, 0}) > 0)
        ;
    pthread_sigmask(SIG_UNBLOCK, held, NULL);
}

/* What the program printed comes before the report. A stream that another thread holds is left
 * alone, for it may hold it for ever. */
static void flush_output(void)
{
    if (ftrylockfile(stdout) != 0)
        return;
    fflush_unlocked(stdout);
    funlockfile(stdout);
}

static bly_status write_to(const struct blyi_report *report, const struct blyi_report_file *file)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out != NULL) {
        if (file->form == BLYI_REPORT_TEXT)
            blyi_report_write_text(report, out);
        else
            blyi_report_write_json(report, out);
    }
    bly_status status;
    if (out == NULL || fclose(out) != 0)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the text of the report");
    else
        status = blyi_report_file_add(file, text, length);
    free(text);
    return status;
}

static bool is_counted(const struct blyi_finding *finding)
{
    return blyi_check_wants(blyi_check_live_groups(), finding->kind);
}

/* Of what BELAY_CHECK asks for, for those who have no report. */
static void say_how_many(const struct blyi_report *report)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_findings; i++)
        n += is_counted(&report->findings[i]);
    found_something = n > 0;
    if (n > 0 && destinations.n == 0)
        blyi_log(BLYI_LOG_WARN, "%zu finding%s in process %d; BELAY_REPORT=- tells all of them", n,
                 n == 1 ? "" : "s", report->pid);
    if (blyi_check_live_stopped() != NULL)
        blyi_log(BLYI_LOG_WARN, "checking ended early: %s", blyi_check_live_stopped());
}

static bly_status write_report(pid_t self)
{
    struct blyi_report report;
    bly_status status = blyi_report_make(&report);
    if (status != BLY_OK)
        return status;
    report.pid = (int)self;
    say_how_many(&report);
    for (size_t i = 0; i < destinations.n; i++)
        if (write_to(&report, &destinations.file[i]) != BLY_OK)
            blyi_log(BLYI_LOG_WARN, "no report: %s", bly_last_error());
    blyi_report_fini(&report);
    return BLY_OK;
}

/* In a copy of the dying process, which has its figures and nothing else to do. */
static void on_dying(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    if (!atomic_load(&wanted) || !blyi_account_is_own())
        return;
    blyi_account_set_dying();
    for (size_t i = 0; i < destinations.n; i++)
        destinations.file[i].self = (pid_t)probe->aux;
    if (write_report((pid_t)probe->aux) != BLY_OK)
        blyi_log(BLYI_LOG_WARN, "no report: %s", bly_last_error());
}

/* Only `belay run` asks for it, and of the process that loaded the library alone: its children
 * may be helpers that never meant to use a card. Keeps the places where nobody has reported. */
static bool should_say_unused(void)
{
    const char *where = getenv("BELAY_REPORT"), *run = getenv("BELAY_REPORT_APPEND");
    if (atomic_load(&attached) || getpid() != loader || where == NULL || where[0] == '\0' ||
        run == NULL || strcmp(run, "on") != 0 || parse_destinations(where) != BLY_OK)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < destinations.n; i++)
        if (blyi_report_file_is_unused(&destinations.file[i]))
            destinations.file[kept++] = destinations.file[i];
    destinations.n = kept;
    return kept > 0;
}

static bool should_report(void)
{
    if (atomic_exchange(&wanted, false) || blyi_check_live_groups() != 0)
        return blyi_account_is_own();
    return should_say_unused();
}

__attribute__((destructor)) static void report_at_exit(void)
{
    sigset_t held;
    blyi_recorder_finish();
    if (!should_report())
        return;
    signals_hold(&held);
    flush_output();
    if (write_report(getpid()) != BLY_OK)
        blyi_log(BLYI_LOG_WARN, "no report: %s", bly_last_error());
    signals_release(&held);
    /* Nothing of the program runs behind this but flushes of its files. */
    if (found_something && blyi_option_int(BLYI_OPT_ERROR_EXITCODE) != 0) {
        fflush(NULL);
        _exit((int)blyi_option_int(BLYI_OPT_ERROR_EXITCODE));
    }
}
