/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_cause.c - the table of causes, and what their judges share.
 */
#include "observe/insight_cause.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "observe/insight_judge.h"

static const struct {
    const char *key, *title;
} about[] = {
#define BLYI_CAUSE_ROW(name, key, title) {key, title},
    BLYI_CAUSES(BLYI_CAUSE_ROW)
#undef BLYI_CAUSE_ROW
};

static blyi_judge *const judges[BLYI_CAUSE_COUNT] = {
    [BLYI_CAUSE_FRAGMENTATION] = blyi_judge_fragmentation,
    [BLYI_CAUSE_CACHED] = blyi_judge_cached,
    [BLYI_CAUSE_OTHERS] = blyi_judge_others,
    [BLYI_CAUSE_LEAK] = blyi_judge_leak,
    [BLYI_CAUSE_THINGS] = blyi_judge_things,
    [BLYI_CAUSE_ORPHAN] = blyi_judge_orphan,
    [BLYI_CAUSE_SYNC] = blyi_judge_sync,
    [BLYI_CAUSE_POOL_GROWTH] = blyi_judge_pool_growth,
    [BLYI_CAUSE_ROUNDING] = blyi_judge_rounding,
    [BLYI_CAUSE_CAP] = blyi_judge_cap,
    [BLYI_CAUSE_PINNED] = blyi_judge_pinned,
    [BLYI_CAUSE_DEVICE] = blyi_judge_device,
    [BLYI_CAUSE_TOO_SMALL] = blyi_judge_too_small,
    [BLYI_CAUSE_HOST] = blyi_judge_host,
};

const char *blyi_cause_key(enum blyi_cause_kind kind)
{
    return about[kind].key;
}

const char *blyi_cause_title(enum blyi_cause_kind kind)
{
    return about[kind].title;
}

const char *blyi_verdict_key(enum blyi_verdict verdict)
{
    static const char *const keys[] = {"applies", "does-not-apply", "cannot-tell"};
    return keys[verdict];
}

const char *blyi_verdict_words(enum blyi_verdict verdict)
{
    static const char *const words[] = {"applies", "does not apply", "cannot tell"};
    return words[verdict];
}

static void append(char text[BLYI_CAUSE_TEXT], const char *fmt, va_list args)
{
    size_t used = strlen(text);
    vsnprintf(text + used, BLYI_CAUSE_TEXT - used, fmt, args);
}

void blyi_judge_set(struct blyi_cause *out, enum blyi_verdict verdict, const char *fmt, ...)
{
    va_list args;
    out->verdict = verdict;
    out->evidence[0] = '\0';
    va_start(args, fmt);
    append(out->evidence, fmt, args);
    va_end(args);
}

void blyi_judge_add(struct blyi_cause *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append(out->evidence, fmt, args);
    va_end(args);
}

void blyi_judge_cure(struct blyi_cause *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    append(out->cure, fmt, args);
    va_end(args);
}

/* Of the thread's present walk: small, as thread-local memory of a library is (base/fail.c). */
static _Thread_local struct texts {
    char size[8][BLYI_SIZE_TEXT], site[4][200];
    unsigned next;
} * texts;

const char *blyi_judge_size(uint64_t bytes)
{
    return blyi_size_text(bytes, texts->size[texts->next++ % 8]);
}

const char *blyi_judge_site(const struct blyi_case *c, uint32_t label)
{
    char *text = texts->site[texts->next++ % 4];
    snprintf(text, sizeof(texts->site[0]), "%s", blyi_label_text(c->in->labels, label));
    return text;
}

static void note(struct blyi_case *c, const struct blyi_refusal *refusal, enum blyi_refusal_why why)
{
    if (c->n_why[why]++ == 0)
        c->by_why[why] = refusal;
}

/* What failed for want of card memory is explained; by status alone after some, since each
 * explanation walks over everything. */
static bly_status look_at_refusals(struct blyi_case *c)
{
    const struct blyi_history *h = &c->in->history;
    size_t n_explained = 0;
    for (size_t i = 0; i < h->n_refusals; i++) {
        const struct blyi_refusal *refusal = &h->refusals[i];
        enum blyi_refusal_why why = blyi_why_of_status(refusal->status);
        struct blyi_explanation e;
        if (why != BLYI_WHY_UNTOLD) {
            note(c, refusal, why);
            continue;
        }
        if (n_explained == BLYI_EXPLAINED_MAX)
            continue;
        bly_status status = blyi_explain(c->in, refusal, &e);
        if (status != BLY_OK)
            return status;
        if (n_explained++ == 0)
            c->first = e;
        c->has_first = true;
        if (c->n_why[e.why] == 0)
            c->explained[e.why] = e;
        else
            blyi_explanation_fini(&e);
        note(c, refusal, e.why);
    }
    return BLY_OK;
}

bly_status blyi_causes_make(const struct blyi_insight *in, const struct blyi_order_findings *order,
                            struct blyi_cause causes[BLYI_CAUSE_COUNT])
{
    struct blyi_case c = {
        .in = in, .order = order, .imported = (in->info->flags & BLYI_TRACE_IMPORTED) != 0};
    struct texts of_this_walk = {.next = 0};
    texts = &of_this_walk;
    bly_status status = look_at_refusals(&c);
    for (int i = 0; status == BLY_OK && i < BLYI_CAUSE_COUNT; i++) {
        causes[i] = (struct blyi_cause){.kind = (enum blyi_cause_kind)i};
        judges[i](&c, &causes[i]);
        if (causes[i].verdict != BLYI_APPLIES)
            causes[i].cure[0] = '\0';
    }
    for (size_t i = 0; i < BLYI_COUNT(c.explained); i++)
        blyi_explanation_fini(&c.explained[i]);
    texts = NULL;
    return status;
}
