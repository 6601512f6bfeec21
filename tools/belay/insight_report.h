/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_report.h - a recording explained: to people, to scripts.
 */
#ifndef BELAY_INSIGHT_REPORT_H
#define BELAY_INSIGHT_REPORT_H

#include <stdio.h>
#include "base/json.h"
#include "base/size.h"
#include "observe/insight.h"
#include "observe/insight_refusal.h"
#include "trace_input.h"

/* E_HOST_MEMORY: refusals cannot be explained. */
bly_status insight_write_text(const struct blyi_insight *in, enum trace_format format, FILE *out);
bly_status insight_write_json(const struct blyi_insight *in, enum trace_format format, FILE *out);

/* Parts of the text: cards and holders; a column of bytes; "and 3 more". */
void insight_write_memory(const struct blyi_insight *in, FILE *out);
void insight_put_size(FILE *out, uint64_t bytes);
void insight_put_rest(FILE *out, size_t n, size_t shown);

/* "up to 64 KiB", "above 4 GiB", "all sizes". */
#define INSIGHT_CLASS (BLYI_SIZE_TEXT + 8)
const char *insight_class(unsigned size_class, char buf[INSIGHT_CLASS]);

/* A request that failed: what was there, what would have made it fit. */
void insight_write_refusal(const struct blyi_insight *in, const struct blyi_explanation *e,
                           FILE *out);
/* How long calls took; nothing where the file does not tell. */
void insight_write_latency(const struct blyi_insight *in, FILE *out);
void insight_write_bends(const struct blyi_insight *in, FILE *out); /* of it, what changed */
void insight_json_latency(struct blyi_json *json, const struct blyi_insight *in);
/* What the file is, as an object under `key`. */
void insight_json_file(struct blyi_json *json, const char *key, const struct blyi_insight *in,
                       enum trace_format format);

#endif
