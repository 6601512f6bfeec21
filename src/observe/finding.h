/* SPDX-License-Identifier: Apache-2.0
 *
 * finding.h - what a report holds against the program: one finding per fault and site.
 */
#ifndef BLYI_FINDING_H
#define BLYI_FINDING_H

#include <belay/base.h>
#include "observe/account.h"

/* X(name, kind in files, what it means, what to do about it); pinned memory has another cure. */
#define BLYI_FINDINGS(X)                                                                           \
    X(LEAK, "leak", "memory that was never freed",                                                 \
      "call aclrtFree for every block before the device is reset or AscendCL finalised")           \
    X(HOST_ACCESS, "host-access", "host code that touched card memory",                            \
      "copy between host and card with aclrtMemcpy; a card's address is no host pointer")          \
    X(LEAKED_HANDLE, "leaked-handle", "physical memory whose handle was never freed",              \
      "call aclrtFreePhysical for every handle, and aclrtUnmapMem for every mapping")              \
    X(LEAKED_STREAM, "leaked-stream", "streams that were never destroyed",                         \
      "call aclrtDestroyStream for every stream")                                                  \
    X(LEAKED_EVENT, "leaked-event", "events that were never destroyed",                            \
      "call aclrtDestroyEvent for every event")

enum blyi_finding_kind {
#define BLYI_FINDING_ENUM(name, key, meaning, cure) BLYI_FINDING_##name,
    BLYI_FINDINGS(BLYI_FINDING_ENUM)
#undef BLYI_FINDING_ENUM
        BLYI_FINDING_KIND_COUNT
};

/* X(name, role in files, words before the place in text). */
#define BLYI_ROLES(X)                                                                              \
    X(ALLOC, "alloc", "allocated at")                                                              \
    X(CREATE, "create", "created at")                                                              \
    X(USE, "use", "touched at")

enum blyi_role {
#define BLYI_ROLE_ENUM(name, key, words) BLYI_ROLE_##name,
    BLYI_ROLES(BLYI_ROLE_ENUM)
#undef BLYI_ROLE_ENUM
};

#define BLYI_FINDING_TEXT 192

struct blyi_finding {
    enum blyi_finding_kind kind;
    int32_t card; /* BLYI_ACCOUNT_PINNED: pinned host memory */
    uint32_t site;
    enum blyi_role role; /* of the site */
    uint32_t block_site; /* role ALLOC, of a block that was touched; 0: none */
    uint64_t address;    /* lowest block; 0: none */
    uint64_t bytes, backed;
    uint64_t count;                 /* blocks, handles, streams or events */
    uint64_t reset;                 /* of `count`, taken back by a device reset or aclFinalize */
    uint32_t ids[BLYI_ACCOUNT_IDS]; /* the lowest ids, of streams or events */
    uint32_t n_ids;
    char message[BLYI_FINDING_TEXT]; /* what and how much, without the site */
};

const char *blyi_finding_key(enum blyi_finding_kind kind);
const char *blyi_finding_meaning(enum blyi_finding_kind kind);
const char *blyi_finding_cure(const struct blyi_finding *finding);
const char *blyi_role_key(enum blyi_role role);
const char *blyi_role_words(enum blyi_role role);

/* Leaks of all groups, the largest first, then handles, streams, events. E_HOST_MEMORY. The list is
 * freed with blyi_host_free(). */
bly_status blyi_findings_make(const struct blyi_account *account, struct blyi_finding **out,
                              size_t *n);

#endif
