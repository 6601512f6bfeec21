/* SPDX-License-Identifier: Apache-2.0
 *
 * finding.h - what a report holds against the program: one finding per fault and site.
 */
#ifndef BLYI_FINDING_H
#define BLYI_FINDING_H

#include <belay/base.h>
#include "observe/account.h"

/* X(name, kind in files, what it means, what to do about it); pinned memory has another cure.
 * Behind LEAKED_QUEUE: what the checker alone finds (check.h); a finding of it may have a cure of
 * its own. */
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
      "call aclrtDestroyEvent for every event")                                                    \
    X(LEAKED_NOTIFY, "leaked-notify", "notifies that were never destroyed",                        \
      "call aclrtDestroyNotify for every notify, aclrtCntNotifyDestroy for one that counts")       \
    X(LEAKED_GRAPH, "leaked-graph", "graphs that were never destroyed",                            \
      "call aclmdlRIDestroy for every graph")                                                      \
    X(LEAKED_CONTEXT, "leaked-context", "contexts that were never destroyed",                      \
      "call aclrtDestroyContext for every context that aclrtCreateContext made")                   \
    X(LEAKED_QUEUE, "leaked-queue", "queues or channels that were never destroyed",                \
      "call acltdtDestroyQueue for every queue, acltdtDestroyChannel for every channel")           \
    X(DOUBLE_FREE, "double-free", "memory that was freed twice",                                   \
      "free each block once; set the pointer to NULL behind the first free")                       \
    X(INVALID_FREE, "invalid-free", "a free of what is no block",                                  \
      "pass the address that the allocation returned, to the call that belongs to it")             \
    X(USE_AFTER_FREE, "use-after-free", "work on memory that had been freed",                      \
      "free the block behind the last work that uses it")                                          \
    X(OUT_OF_BOUNDS, "out-of-bounds", "work beyond the end of a block",                            \
      "allocate what the work touches, or let it touch what was allocated")                        \
    X(UNINITIALISED_READ, "uninitialised-read", "a read of bytes that nobody wrote",               \
      "write the bytes first (aclrtMemset, a copy), or read only what was written")                \
    X(RACE, "race", "two accesses in no order, one of which writes",                               \
      "put an event between the two streams (aclrtRecordEvent, aclrtStreamWaitEvent)")             \
    X(FREE_IN_USE, "free-in-use", "a free of memory that work still uses",                         \
      "wait for the work before the free, which frees at once")                                    \
    X(UNMAP_IN_USE, "unmap-in-use", "an unmap of memory that work still uses",                     \
      "wait for the work before the unmap, which unmaps at once")                                  \
    X(PINNED_CHANGED, "pinned-changed", "a pinned source that changed while a copy was queued",    \
      "leave the source alone until the copy has ended: record an event behind it and wait")       \
    X(WRONG_DEVICE, "wrong-device", "work on memory of a card that it has no access to",           \
      "enable the access (aclrtDeviceEnablePeerAccess), or use the memory's own card")

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
    X(USE, "use", "touched at")                                                                    \
    X(FREE, "free", "freed at")                                                                    \
    X(OTHER, "other", "the other at")                                                              \
    X(MAP, "map", "mapped at")                                                                     \
    X(UNMAP, "unmap", "unmapped at")

enum blyi_role {
#define BLYI_ROLE_ENUM(name, key, words) BLYI_ROLE_##name,
    BLYI_ROLES(BLYI_ROLE_ENUM)
#undef BLYI_ROLE_ENUM
};

#define BLYI_FINDING_TEXT    320
#define BLYI_FINDING_DETAIL  768
#define BLYI_FINDING_SITES   6
#define BLYI_FINDING_STREAMS 8
#define BLYI_FINDING_WORDS   96

struct blyi_finding_site {
    uint32_t site;
    enum blyi_role role;
    char words[BLYI_FINDING_WORDS]; /* before the place in text; "": those of the role */
};

struct blyi_finding {
    enum blyi_finding_kind kind;
    int32_t card; /* BLYI_ACCOUNT_PINNED: pinned host memory */
    struct blyi_finding_site sites[BLYI_FINDING_SITES];
    uint32_t n_sites;
    uint32_t streams[BLYI_FINDING_STREAMS]; /* whose work it is about */
    uint32_t n_streams;
    uint64_t address; /* lowest block; 0: none */
    uint64_t bytes, backed;
    uint64_t count;                 /* blocks, handles, or what has ids */
    uint64_t reset;                 /* of `count`, taken back by a device reset or aclFinalize */
    uint32_t ids[BLYI_ACCOUNT_IDS]; /* the lowest ids, of what has them */
    uint32_t n_ids;
    bool is_import;                   /* LEAKED_HANDLE: of another process, not closed */
    char message[BLYI_FINDING_TEXT];  /* what and how much, without the site */
    char detail[BLYI_FINDING_DETAIL]; /* further lines, each with its newline */
    char cure[BLYI_FINDING_TEXT];     /* "": that of the kind */
};

void blyi_finding_add_site(struct blyi_finding *finding, enum blyi_role role, uint32_t site,
                           const char *words);

/* Something that was never given back. */
static inline bool blyi_finding_is_leak(enum blyi_finding_kind kind)
{
    return kind < BLYI_FINDING_DOUBLE_FREE && kind != BLYI_FINDING_HOST_ACCESS;
}

const char *blyi_finding_key(enum blyi_finding_kind kind);
const char *blyi_finding_meaning(enum blyi_finding_kind kind);
const char *blyi_finding_cure(const struct blyi_finding *finding);
const char *blyi_role_key(enum blyi_role role);
const char *blyi_role_words(enum blyi_role role);

/* Leaks of all groups, the largest first, then handles, then what has ids. E_HOST_MEMORY.
 * The list is freed with blyi_host_free(). */
bly_status blyi_findings_make(const struct blyi_account *account, struct blyi_finding **out,
                              size_t *n);

#endif
