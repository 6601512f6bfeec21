/* SPDX-License-Identifier: Apache-2.0
 *
 * finding_write.h - findings for people and for scripts: in reports, and of recordings.
 */
#ifndef BLYI_FINDING_WRITE_H
#define BLYI_FINDING_WRITE_H

#include <stdio.h>
#include "base/json.h"
#include "observe/finding.h"
#include "observe/symbolise.h"

/* Where a site lies; the answer must stay until the next question. */
struct blyi_finding_places {
    struct blyi_source (*source)(void *arg, uint32_t site);
    void *arg;
    const char *folder; /* file names begin behind it; NULL: whole */
};

/* Files below a folder (NULL: none) are named from there. */
const char *blyi_short_file(const char *file, const char *folder);

void blyi_finding_write_text(FILE *out, size_t number, const struct blyi_finding *finding,
                             const struct blyi_finding_places *places);
void blyi_finding_write_json(struct blyi_json *json, const struct blyi_finding *finding,
                             const struct blyi_finding_places *places);

#endif
