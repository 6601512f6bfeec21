/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.h - one check of the machine: what it found, what that means for Belay, what to do.
 */
#ifndef BELAY_DOCTOR_H
#define BELAY_DOCTOR_H

#include "base/compiler.h"

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_PROBLEM };

struct result {
    enum level level;
    char value[512];   /* what was found */
    char meaning[512]; /* for Belay, at this value */
    char advice[512];  /* what to do; "" when nothing */
};

/* X(function, name): in the order of printing. */
#define DOCTOR_CHECKS(X)                                                                           \
    X(check_kernel, "kernel")                                                                      \
    X(check_cpu, "cpu")                                                                            \
    X(check_protection_keys, "protection-keys")                                                    \
    X(check_huge_pages, "huge-pages")                                                              \
    X(check_collapse, "collapse")                                                                  \
    X(check_userfaultfd, "userfaultfd")                                                            \
    X(check_memory, "memory")                                                                      \
    X(check_cgroup, "memory-limit")                                                                \
    X(check_overcommit, "overcommit")                                                              \
    X(check_address_space, "address-space")                                                        \
    X(check_map_count, "map-count")                                                                \
    X(check_memlock, "locked-memory")                                                              \
    X(check_open_files, "open-files")                                                              \
    X(check_library, "library")                                                                    \
    X(check_other_library, "other-library")                                                        \
    X(check_variables, "variables")

#define DOCTOR_DECLARE(function, name) void function(struct result *result);
DOCTOR_CHECKS(DOCTOR_DECLARE)
#undef DOCTOR_DECLARE

/* printf into value, meaning or advice. */
void put_value(struct result *result, const char *fmt, ...) BLYI_PRINTF(2, 3);
void put_meaning(struct result *result, enum level level, const char *fmt, ...) BLYI_PRINTF(3, 4);
void put_advice(struct result *result, const char *fmt, ...) BLYI_PRINTF(2, 3);

/* First line of a small file without its newline; "" when it cannot be read. */
const char *read_line_of(const char *path, char *buf, size_t size);

#endif
