/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_insight.c - any file that can be read can be explained: sums hold, and every form is
 * written to its end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/json.h"
#include "observe/insight_cause.h"
#include "tools/belay/insight_report.h"
#include "tools/belay/trace_input.h"
#include "tools/belay/view_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond)
{
    if (!cond)
        abort();
}

static void check_sums(const struct blyi_insight *in)
{
    const struct blyi_fragments *f = &in->fragments;
    uint64_t at_peak = 0, live = 0;
    require(f->pinned + f->releasable == f->idle);
    for (int by = 0; by < 3; by++) {
        const struct blyi_holdings *rows = by == 0   ? &in->sites
                                           : by == 1 ? &in->names
                                                     : &in->ranges;
        at_peak = live = 0;
        for (size_t i = 0; i < rows->n; i++) {
            at_peak += rows->rows[i].first.bytes;
            live += rows->rows[i].second.bytes;
        }
        require(at_peak == in->peaks[BLYI_ALL_CARDS].at_peak.asked);
        require(live == in->peaks[BLYI_ALL_CARDS].end.asked);
    }
    require(in->waste.at_peak.asked == at_peak || in->waste.at_peak.count > 0 || at_peak == 0);
}

/* What scripts read is JSON, whatever the names are. */
static void check_json(const struct blyi_insight *in, enum trace_format format)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    require(out != NULL && insight_write_json(in, format, out) == BLY_OK);
    fclose(out);
    require(blyi_json_check(text, length, 16) == BLY_OK);
    free(text);
}

static void check_page(const struct blyi_insight *in, enum trace_format format,
                       const struct blyi_cause *causes)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    require(out != NULL && view_page(in, format, causes, out) == BLY_OK);
    fclose(out);
    const char *data = strstr(text, "id=\"data\">");
    if (data != NULL) {
        data += strlen("id=\"data\">");
        const char *end = strchr(data, '<'); /* none stands in it */
        require(end != NULL && strncmp(end, "</script>", 9) == 0);
        require(blyi_json_check(data, (size_t)(end - data), 16) == BLY_OK);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct blyi_cause causes[BLYI_CAUSE_COUNT];
    struct blyi_trace *trace;
    struct blyi_insight *in;
    enum trace_format format = trace_format_of(data, size);
    if (trace_import(data, size, "input", &trace) != BLY_OK) {
        require(blyi_fail_text()[0] != '\0');
        return 0;
    }
    require(blyi_insight_make(trace, &in) == BLY_OK);
    check_sums(in);
    require(blyi_causes_make(in, NULL, causes) == BLY_OK);
    FILE *out = fopen("/dev/null", "w");
    require(out != NULL && insight_write_text(in, format, out) == BLY_OK);
    fclose(out);
    check_json(in, format);
    check_page(in, format, causes);
    blyi_insight_free(in);
    blyi_trace_close(trace);
    return 0;
}
