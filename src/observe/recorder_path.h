/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_path.h - under which name a recording is made, so that none takes another's place.
 */
#ifndef BLYI_RECORDER_PATH_H
#define BLYI_RECORDER_PATH_H

#include "observe/recorder_file.h"

/* What a new recording leaves alone. A file that a living process records to always is. */
enum blyi_recspare {
    BLYI_SPARE_NOTHING,
    BLYI_SPARE_OWN, /* a trace of this process: what ran in it before an exec */
    BLYI_SPARE_ALL, /* every trace */
};

/* Replaces %p by the pid. False: too long. */
bool blyi_recpath_expand(const char *path, char out[PATH_MAX]);

/* Opens the file of `path`, or of path.1, path.2 and on. path NULL: memory alone.
 * E_IO, E_INVALID as blyi_recfile_open(); E_IO also when all of a thousand names are taken. */
bly_status blyi_recpath_open(struct blyi_recfile *file, const char *path, enum blyi_recspare spare,
                             const struct blyi_trace_header *header);

#endif
