/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_input.h - what the commands that explain a file share: arguments, the file opened and
 * looked at.
 */
#ifndef BELAY_INSIGHT_INPUT_H
#define BELAY_INSIGHT_INPUT_H

#include <stdbool.h>
#include <stdio.h>
#include "observe/insight.h"
#include "trace_input.h"

struct insight_request {
    const char *files[2];
    bool json;
    const char *by;     /* --by */
    const char *output; /* -o */
    size_t limit;       /* -n; 0: not given */
};
/* Which of the options a command knows: 'j' --json, 'b' --by, 'o' -o, 'n' -n. 0, or EXIT_USAGE and
 * said why. */
int insight_arguments(const char *command, const char *known, int n_files, int argc, char **argv,
                      struct insight_request *request);

struct insight_input {
    struct trace_input input;
    struct blyi_insight *in;
};
/* False: said why. */
bool insight_open(const char *path, struct insight_input *out);
void insight_close(struct insight_input *input);

/* "1.500000 s" since the start, "step 12" where times are none. */
#define INSIGHT_TIME 40
static inline const char *insight_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
const char *insight_time(const struct blyi_insight *in, uint64_t ns, char buf[INSIGHT_TIME]);
/* A text that a terminal can show: without control characters, cut. */
#define INSIGHT_LABEL 160
const char *insight_clean(const char *text, char buf[INSIGHT_LABEL]);
const char *insight_label(const struct blyi_insight *in, uint32_t label, char buf[INSIGHT_LABEL]);

/* A second table of holders is worth its lines only where it says something else. */
bool insight_says_more(const struct blyi_holdings *a, const struct blyi_holdings *b);

#endif
