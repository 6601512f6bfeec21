/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h - the checker: takes probes in the order in which they happened and finds what a program
 * does wrong with memory and order (docs/design/check.md). The same code runs in the process
 * (check_live.h) and over a recording (belay check). [excl]
 */
#ifndef BLYI_CHECK_H
#define BLYI_CHECK_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/probe.h"
#include "observe/finding.h"

/* X(name in BELAY_CHECK, bit): groups of findings. */
#define BLYI_CHECK_GROUPS(X)                                                                       \
    X(leak, LEAK)                                                                                  \
    X(uaf, UAF)                                                                                    \
    X(oob, OOB)                                                                                    \
    X(race, RACE)                                                                                  \
    X(uninit, UNINIT)                                                                              \
    X(host, HOST)                                                                                  \
    X(unmap, UNMAP)                                                                                \
    X(pinned, PINNED)

enum blyi_check_group {
#define BLYI_CHECK_ENUM(name, bit) BLYI_CHECK_AT_##bit,
    BLYI_CHECK_GROUPS(BLYI_CHECK_ENUM)
#undef BLYI_CHECK_ENUM
        BLYI_CHECK_GROUP_COUNT
};
#define BLYI_CHECK_ALL ((1u << BLYI_CHECK_GROUP_COUNT) - 1)

/* "off", "all", or a list with commas between. E_PARSE. */
bly_status blyi_check_parse(const char *text, uint32_t *groups);
/* Whether a kind belongs to one of the groups. */
bool blyi_check_wants(uint32_t groups, enum blyi_finding_kind kind);

struct blyi_check;

struct blyi_check_opts {
    uint32_t groups;
    /* Nothing happened before the first probe, and none is missing. Else what would need the whole
     * history is left out. */
    bool complete;
    /* Of a recording: what was never given back is found here (blyi_check_leaks()). */
    bool keeps_leaks;
    /* Called for the first of each finding, as soon as it is known; NULL: nobody. */
    void (*found)(void *arg, const struct blyi_finding *finding);
    void *arg;
};

/* What the checker looks at. */
#define BLYI_CHECK_KINDS                                                                           \
    (BLYI_KIND(ALLOC) | BLYI_KIND(FREE) | BLYI_KIND(RESET_FREE) | BLYI_KIND(HOST_ALLOC) |          \
     BLYI_KIND(HOST_FREE) | BLYI_KIND(HOST_FREE_HELD) | BLYI_KIND(HOST_REGISTER) |                 \
     BLYI_KIND(HOST_UNREGISTER) | BLYI_KIND(PHYS_CREATE) | BLYI_KIND(PHYS_FREE) | BLYI_KIND(MAP) | \
     BLYI_KIND(UNMAP) | BLYI_KIND(FREE_FAIL) | BLYI_KIND(STREAM_CREATE) |                          \
     BLYI_KIND(STREAM_DESTROY) | BLYI_KIND(EVENT_CREATE) | BLYI_KIND(EVENT_DESTROY) |              \
     BLYI_KIND(COPY) | BLYI_KIND(SET) | BLYI_KIND(RECORD) | BLYI_KIND(WAIT) |                      \
     BLYI_KIND(CALLBACK) | BLYI_KIND(NOTIFY_RECORD) | BLYI_KIND(NOTIFY_WAIT) |                     \
     BLYI_KIND(NOTIFY_DESTROY) | BLYI_KIND(KERNEL) | BLYI_KIND(KERNEL_RANGE) |                     \
     BLYI_KIND(VALUE_WRITE) | BLYI_KIND(VALUE_WAIT) | BLYI_KIND(INDIRECT) | BLYI_KIND(SIGNAL) |    \
     BLYI_KIND(CALLBACK_RUN) | BLYI_KIND(STREAM_SYNC) | BLYI_KIND(EVENT_SYNC) |                    \
     BLYI_KIND(EXPORT) | BLYI_KIND(TASK_DONE) | BLYI_KIND(SOURCE_CHANGED) | BLYI_KIND(PEER_FAIL) | \
     BLYI_KIND(GRAPH_DESTROY) | BLYI_KIND(LINE_BEGIN) | BLYI_KIND(LINE_END) |                      \
     BLYI_KIND(STALE_USE) | BLYI_KIND(CALLBACK_REACH) | BLYI_KIND(IMPORT) |                        \
     BLYI_KIND(IMPORT_CLOSE) | BLYI_KIND(USE))

/* E_HOST_MEMORY. */
bly_status blyi_check_create(const struct blyi_check_opts *opts, struct blyi_check **out);
void blyi_check_destroy(struct blyi_check *check); /* NULL is allowed */
void blyi_check_probe(struct blyi_check *check, const struct blyi_probe *probe);
/* A block that was there before the first probe. */
void blyi_check_was_there(struct blyi_check *check, const struct blyi_probe *made);
/* The program has ended: what was never given back. For recordings; a process has its account. */
void blyi_check_leaks(struct blyi_check *check);

/* Fills what queued work does with events into the account's groups; `knows_work`, unless it
 * stopped. */
void blyi_check_events(struct blyi_check *check, struct blyi_account *account);

/* Findings so far, the first first; they stay the checker's. */
const struct blyi_finding *blyi_check_findings(const struct blyi_check *check, size_t *n);
/* Why it stopped looking (host memory); NULL: it did not. */
const char *blyi_check_stopped(const struct blyi_check *check);
bool blyi_check_audit(const struct blyi_check *check);

#endif
