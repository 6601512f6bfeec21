/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_use.h - blocks that are there while nobody uses them: made long before the first use,
 * kept long after the last, idle in between. A use is a copy, a set, or one that the file tells;
 * what kernels touch is not recorded.
 */
#ifndef BLYI_INSIGHT_USE_H
#define BLYI_INSIGHT_USE_H

#include "observe/insight_label.h"

enum blyi_slack { BLYI_SLACK_EARLY, BLYI_SLACK_IDLE, BLYI_SLACK_LATE, BLYI_SLACK_KINDS };
const char *blyi_slack_key(enum blyi_slack slack);

struct blyi_use_row {
    uint32_t label; /* site */
    struct {
        uint64_t count, bytes; /* blocks whose slack is at least the threshold */
        uint64_t longest_ns;
    } slack[BLYI_SLACK_KINDS];
    uint64_t byte_ns; /* of all three: bytes times the time they stood idle */
};

struct blyi_uses {
    bool told;                 /* the file has uses at all */
    uint64_t threshold_ns;     /* a tenth of the recording */
    uint64_t n_used, n_unused; /* blocks made while recording, with and without a use */
    uint64_t unused_bytes;
    struct blyi_use_row *rows; /* by falling byte_ns; only sites with a slack */
    size_t n;
};
/* E_HOST_MEMORY. rows are freed by blyi_host_free(). */
bly_status blyi_uses_make(const struct blyi_history *history, const struct blyi_labels *labels,
                          struct blyi_uses *out);

#endif
