/* SPDX-License-Identifier: Apache-2.0
 *
 * check_quiet.h - findings that a user does not want to hear of, by kind and place.
 *
 * A file, one rule a line: KIND [FUNCTION [FILE]], each with * and ?; # begins a comment. A finding
 * is left out when a rule's kind is its own and one of its places fits both others.
 */
#ifndef BLYI_CHECK_QUIET_H
#define BLYI_CHECK_QUIET_H

#include "observe/finding_write.h"

struct blyi_quiet {
    struct blyi_quiet_rule *rules;
    size_t n, room;
};

/* path "": none. E_IO, E_PARSE (names the line), E_HOST_MEMORY: *out has no rules. */
bly_status blyi_quiet_read(const char *path, struct blyi_quiet *out);
void blyi_quiet_fini(struct blyi_quiet *quiet);
/* Whether some rule is of that kind. */
bool blyi_quiet_may(const struct blyi_quiet *quiet, enum blyi_finding_kind kind);
bool blyi_quiet_fits(const struct blyi_quiet *quiet, const struct blyi_finding *finding,
                     const struct blyi_finding_places *places);

#endif
