/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/check_live.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/site.h"
#include "observe/check_inbox.h"
#include "observe/place.h"

#define READ_WAIT_MS 2000

static struct {
    struct blyi_inbox inbox;
    struct blyi_lock lock; /* guards all below */
    struct blyi_check *check;
    struct blyi_quiet quiet;
    uint32_t groups;
    uint64_t n_said, limit;
    bool is_forked; /* of the parent: nothing is looked at any more; atomic */
} live = {.lock = BLYI_LOCK_INIT(BLYI_RANK_OBSERVE)};

static bool is_own(void)
{
    return !__atomic_load_n(&live.is_forked, __ATOMIC_RELAXED);
}

/* Sources need a helper process; while the program runs, functions must do. */
static struct blyi_source function_of(void *arg, uint32_t site)
{
    char *text = arg;
    blyi_site_text(site, text);
    return (struct blyi_source){text, "", 0};
}

/* As soon as it is known, under whatever locks the thread holds: no lock and no memory of the
 * card's is needed for it. */
static void say(void *arg, const struct blyi_finding *finding)
{
    char site[BLYI_SITE_TEXT];
    const struct blyi_finding_places places = {function_of, site, NULL};
    char *text = NULL;
    size_t length = 0;
    (void)arg;
    for (uint32_t i = 0; i < finding->n_sites; i++)
        blyi_place_keep(finding->sites[i].site);
    if (live.n_said == live.limit || blyi_quiet_may(&live.quiet, finding->kind))
        return;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return;
    fprintf(out, "\n==== Belay: found in process %d ====", (int)getpid());
    blyi_finding_write_text(out, (size_t)++live.n_said, finding, &places);
    if (live.n_said == live.limit)
        fputs("\nfurther findings are told at the end alone (BELAY_PRINT_LIMIT)\n", out);
    if (fclose(out) == 0)
        for (size_t done = 0; done < length;) {
            ssize_t n = write(STDERR_FILENO, text + done, length - done);
            if (n <= 0)
                break;
            done += (size_t)n;
        }
    free(text);
}

/* ── From the inbox to the checker ────────────────────────────────────────────────────────── */

/* What is seldom alone: it may wait for others, and is looked at before anything else is. */
#define PATIENT                                                                                    \
    (BLYI_KIND(COPY) | BLYI_KIND(SET) | BLYI_KIND(RECORD) | BLYI_KIND(WAIT) |                      \
     BLYI_KIND(CALLBACK) | BLYI_KIND(NOTIFY_RECORD) | BLYI_KIND(NOTIFY_WAIT) | BLYI_KIND(KERNEL) | \
     BLYI_KIND(KERNEL_RANGE) | BLYI_KIND(VALUE_WRITE) | BLYI_KIND(VALUE_WAIT) |                    \
     BLYI_KIND(INDIRECT) | BLYI_KIND(SIGNAL) | BLYI_KIND(CALLBACK_RUN) | BLYI_KIND(EVENT_CREATE) | \
     BLYI_KIND(EVENT_DESTROY) | BLYI_KIND(TASK_DONE) | BLYI_KIND(LINE_BEGIN) |                     \
     BLYI_KIND(LINE_END) | BLYI_KIND(CALLBACK_REACH))

static void take_out_locked(void)
{
    const struct blyi_probe *probe;
    while ((probe = blyi_inbox_first(&live.inbox)) != NULL) {
        blyi_check_probe(live.check, probe);
        blyi_inbox_next(&live.inbox);
    }
}

/* Until all up to `number` have been looked at. Who has an earlier number and has not filled its
 * place is about to: it holds nothing and waits for nothing. */
static void take_out_to(uint64_t number)
{
    while (atomic_load(&live.inbox.tail) <= number) {
        blyi_lock_take(&live.lock);
        take_out_locked();
        blyi_lock_drop(&live.lock);
        if (atomic_load(&live.inbox.tail) <= number)
            sched_yield();
    }
}

static void live_probe(void *arg, const struct blyi_probe *probe)
{
    int error = errno;
    (void)arg;
    if (!is_own())
        return;
    uint64_t number = blyi_inbox_number(&live.inbox);
    if (unlikely(!blyi_inbox_has_room(&live.inbox, number)))
        take_out_to(number - BLYI_INBOX_SIZE);
    blyi_inbox_put(&live.inbox, number, probe);
    if ((PATIENT >> probe->kind & 1) == 0) {
        take_out_to(number);
    } else if (number - atomic_load_explicit(&live.inbox.tail, memory_order_relaxed) >=
                   BLYI_INBOX_ROW &&
               blyi_lock_try(&live.lock)) {
        take_out_locked();
        blyi_lock_drop(&live.lock);
    }
    errno = error;
}

static void on_fork_child(void)
{
    __atomic_store_n(&live.is_forked, true, __ATOMIC_RELAXED);
}

bly_status blyi_check_live_start(void)
{
    static struct blyi_sink sink = {
        .kinds = BLYI_CHECK_KINDS, .probe = live_probe, .timeless = true};
    uint32_t groups;
    bly_status status = blyi_check_parse(blyi_option_text(BLYI_OPT_CHECK), &groups);
    if (status != BLY_OK || groups == 0)
        return status;
    status = blyi_quiet_read(blyi_option_text(BLYI_OPT_SUPPRESSIONS), &live.quiet);
    if (status == BLY_OK)
        status = blyi_inbox_init(&live.inbox);
    if (status == BLY_OK)
        status = blyi_check_create(
            &(struct blyi_check_opts){.groups = groups, .complete = true, .found = say},
            &live.check);
    if (status != BLY_OK)
        return status;
    live.limit = (uint64_t)blyi_option_int(BLYI_OPT_PRINT_LIMIT);
    live.groups = groups;
    if ((groups & 1u << BLYI_CHECK_AT_PINNED) == 0)
        sink.kinds &= ~(BLYI_KIND(SOURCE_CHANGED) | BLYI_KIND(CALLBACK_REACH));
    pthread_atfork(NULL, NULL, on_fork_child);
    blyi_probe_add_sink(&sink);
    return BLY_OK;
}

uint32_t blyi_check_live_groups(void)
{
    return is_own() ? live.groups : 0;
}

const struct blyi_quiet *blyi_check_live_quiet(void)
{
    return &live.quiet;
}

static bool lock_patiently(void)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < READ_WAIT_MS; i++) {
        if (blyi_lock_try(&live.lock))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

bly_status blyi_check_live_read(struct blyi_finding **out, size_t *n)
{
    bly_status status = BLY_OK;
    *out = NULL;
    *n = 0;
    if (blyi_check_live_groups() == 0)
        return BLY_OK;
    if (!lock_patiently())
        return blyi_fail(BLY_E_TIMEOUT, "the checker is busy for %d ms", READ_WAIT_MS);
    size_t found;
    take_out_locked();
    const struct blyi_finding *list = blyi_check_findings(live.check, &found);
    if (list != NULL)
        *out = blyi_host_alloc((found + 1) * sizeof(**out));
    if (*out != NULL) {
        memcpy(*out, list, found * sizeof(**out));
        *n = found;
    } else {
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu findings", found);
    }
    blyi_lock_drop(&live.lock);
    return status;
}

void blyi_check_live_events(struct blyi_account *account)
{
    if (blyi_check_live_groups() == 0 || !lock_patiently())
        return;
    take_out_locked();
    blyi_check_events(live.check, account);
    blyi_lock_drop(&live.lock);
}

const char *blyi_check_live_stopped(void)
{
    return blyi_check_live_groups() != 0 ? blyi_check_stopped(live.check) : NULL;
}

bool blyi_check_live_audit(void)
{
    if (blyi_check_live_groups() == 0)
        return true;
    blyi_lock_take(&live.lock);
    take_out_locked();
    bool sound = blyi_check_audit(live.check);
    blyi_lock_drop(&live.lock);
    return sound;
}
