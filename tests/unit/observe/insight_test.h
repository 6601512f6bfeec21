/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_test.h - recordings written by hand, and what is told of them.
 */
#ifndef INSIGHT_TEST_H
#define INSIGHT_TEST_H

#include "../base/base_test.h"

#include <stdarg.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/insight.h"
#include "observe/insight_cause.h"
#include "observe/insight_refusal.h"
#include "observe/trace_writer.h"

struct story {
    struct blyi_tracewriter *w;
    struct blyi_trace *trace;
    struct blyi_insight *in;
    uint64_t now; /* ns; each event is a microsecond behind the one before */
    uint32_t flags;
};

static inline void story_begin(struct story *s, uint32_t flags)
{
    *s = (struct story){.flags = flags};
    struct blyi_tracewriter_opts opts = {.program = "story", .pid = 7, .flags = flags};
    assert_ok(blyi_tracewriter_new(&opts, &s->w));
}

static inline void tell(struct story *s, struct blyi_probe probe)
{
    s->now += 1000;
    probe.time_ns = s->now;
    if (probe.size == 0)
        probe.size = probe.asked;
    blyi_tracewriter_event(s->w, &(struct blyi_trace_event){.probe = probe});
}
#define TELL(s, kind_, ...) tell(s, (struct blyi_probe){.kind = BLYI_PROBE_##kind_, __VA_ARGS__})

static inline uint32_t site_at(struct story *s, const char *function, uint32_t line)
{
    return blyi_tracewriter_source(s->w, function, "story.c", line);
}

static inline uint32_t name_of(struct story *s, const char *text)
{
    return blyi_tracewriter_name(s->w, text);
}

/* A block whose pages are what was asked for. */
static inline void make(struct story *s, uint64_t address, uint64_t bytes, uint32_t site)
{
    TELL(s, ALLOC, .address = address, .asked = bytes, .rounded = bytes, .backed = bytes,
         .site = site);
}

static inline void end(struct story *s, uint64_t address)
{
    TELL(s, FREE, .address = address);
}

static inline void look(struct story *s)
{
    assert_ok(blyi_tracewriter_finish(s->w, 0, s->now, &s->trace));
    s->w = NULL;
    assert_ok(blyi_insight_make(s->trace, &s->in));
}

static inline void story_end(struct story *s)
{
    blyi_insight_free(s->in);
    blyi_trace_close(s->trace);
}

static inline const char *label(const struct story *s, uint32_t number)
{
    return blyi_label_text(s->in->labels, number);
}

static inline const struct blyi_holding *holding(const struct story *s,
                                                 const struct blyi_holdings *rows, const char *text)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(label(s, rows->rows[i].label), text) == 0)
            return &rows->rows[i];
    fail_msg("nobody is called %s", text);
    return NULL;
}

static inline void causes_of(const struct story *s, struct blyi_cause causes[BLYI_CAUSE_COUNT])
{
    assert_ok(blyi_causes_make(s->in, NULL, causes));
}

static inline void assert_says(const struct blyi_cause *cause, enum blyi_verdict verdict,
                               const char *words)
{
    if (cause->verdict != verdict || strstr(cause->evidence, words) == NULL)
        fail_msg("%s: %s: %s\nnot %s: ...%s...", blyi_cause_key(cause->kind),
                 blyi_verdict_key(cause->verdict), cause->evidence, blyi_verdict_key(verdict),
                 words);
}

#endif
