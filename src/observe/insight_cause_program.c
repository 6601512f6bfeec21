/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_cause_program.c - causes that lie in the program: what it does not free, asks for badly,
 * or has limited itself.
 */
#include "observe/insight_judge.h"

#include <inttypes.h>

#define SITES_NAMED 3

/* Handles that no address reaches are a cause of their own. */
static struct blyi_amount left_of(const struct blyi_case *c, const struct blyi_holding *row)
{
    struct blyi_amount left = blyi_insight_left(row);
    left.count -= c->in->orphans_by_label[row->label].count;
    left.bytes -= c->in->orphans_by_label[row->label].bytes;
    return left;
}

static struct blyi_amount all_left(const struct blyi_case *c)
{
    struct blyi_amount left = {0};
    for (size_t i = 0; i < c->in->sites.n; i++) {
        struct blyi_amount of = left_of(c, &c->in->sites.rows[i]);
        left.count += of.count;
        left.bytes += of.bytes;
    }
    return left;
}

static void name_left(const struct blyi_case *c, const struct blyi_amount *all,
                      struct blyi_cause *out)
{
    size_t picked[SITES_NAMED] = {0};
    for (size_t n = 0; n < SITES_NAMED; n++) {
        const struct blyi_holding *best = NULL;
        for (size_t i = 0; i < c->in->sites.n; i++) {
            const struct blyi_holding *row = &c->in->sites.rows[i];
            bool taken = false;
            for (size_t k = 0; k < n; k++)
                taken = taken || picked[k] == i;
            if (!taken && left_of(c, row).count > 0 &&
                (best == NULL || left_of(c, row).bytes > left_of(c, best).bytes)) {
                best = row;
                picked[n] = i;
            }
        }
        if (best == NULL)
            return;
        struct blyi_amount left = left_of(c, best);
        if (n == 0 && left.count == all->count) {
            blyi_judge_add(out, ", of %s", blyi_judge_site(c, best->label));
            return;
        }
        blyi_judge_add(out, "%s %" PRIu64 " block%s, %s, of %s", n == 0 ? ":" : ";", left.count,
                       blyi_plural(left.count), blyi_judge_size(left.bytes),
                       blyi_judge_site(c, best->label));
    }
}

static void tell_creep(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_growth *growth = &c->in->growth;
    blyi_judge_add(out,
                   "what is live in the valley of a cycle rose %zu times in a row, up to the last "
                   "of %zu cycles, by %s altogether",
                   growth->rises, c->in->cycles.n, blyi_judge_size(growth->grown));
    if (growth->least == growth->most)
        blyi_judge_add(out, ", %s each time", blyi_judge_size(growth->least));
    else
        blyi_judge_add(out, ", between %s and %s each time", blyi_judge_size(growth->least),
                       blyi_judge_size(growth->most));
    if (c->in->growers.n > 0)
        blyi_judge_add(out, "; most of it is %s of %s",
                       blyi_judge_size(c->in->growers.rows[0].second.bytes -
                                       c->in->growers.rows[0].first.bytes),
                       blyi_judge_site(c, c->in->growers.rows[0].label));
}

/* The program goes on behind the recording, so that what is live may still be freed. Cycles that
 * are known by the curve alone may be parts of one step, which fills and empties memory by plan. */
static void judge_open_end(const struct blyi_case *c, struct blyi_cause *out,
                           const struct blyi_amount *left)
{
    const struct blyi_insight *in = c->in;
    bool marked = in->cycles.source == BLYI_CYCLES_MARKS;
    blyi_judge_set(out, BLYI_CANNOT_TELL,
                   "the recording ends before the program, with %" PRIu64 " block%s, %s, live",
                   left->count, blyi_plural(left->count), blyi_judge_size(left->bytes));
    if (in->growth.kind == BLYI_GROWTH_UNKNOWN) {
        blyi_judge_add(out, "; it has no cycles that would tell growth");
        return;
    }
    blyi_judge_add(out, "; ");
    if (in->growth.kind == BLYI_GROWTH_CREEP) {
        out->verdict = marked ? BLYI_APPLIES : BLYI_CANNOT_TELL;
        out->bytes = in->growth.grown;
        tell_creep(c, out);
    } else {
        if (marked && in->growth.kind != BLYI_GROWTH_UNEVEN)
            out->verdict = BLYI_DOES_NOT;
        blyi_judge_add(out, "over %zu cycles what is live %s", in->cycles.n,
                       blyi_growth_words(in->growth.kind));
    }
    if (!marked)
        blyi_judge_add(out, ". These cycles are those of the curve: ranges or marks around the "
                            "program's steps would tell");
    blyi_judge_cure(out, "free in each cycle what the cycle made");
}

void blyi_judge_leak(const struct blyi_case *c, struct blyi_cause *out)
{
    struct blyi_amount left = all_left(c);
    if (c->in->is_over && left.count > 0) {
        blyi_judge_set(out, BLYI_APPLIES, "%" PRIu64 " block%s, %s, never freed", left.count,
                       blyi_plural(left.count), blyi_judge_size(left.bytes));
        name_left(c, &left, out);
        out->bytes = left.bytes;
        blyi_judge_cure(out, "free every block before the device is reset or AscendCL finalised");
    } else if (c->in->is_over) {
        blyi_judge_set(out, BLYI_DOES_NOT,
                       c->in->orphans.count > 0
                           ? "all but handles that no address reaches was freed"
                           : "the program freed every block");
    } else if (left.count == 0) {
        blyi_judge_set(out, BLYI_DOES_NOT, "at the end of the recording nothing is live");
    } else {
        judge_open_end(c, out, &left);
    }
}

static const char *const thing_words[][2] = {
#define THING_WORDS(name, one, many) {one, many},
    BLYI_THINGS(THING_WORDS)
#undef THING_WORDS
};

void blyi_judge_things(const struct blyi_case *c, struct blyi_cause *out)
{
    uint64_t left = 0;
    const char *more = ":";
    if (c->imported) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "files of other tools do not tell of streams and events being made");
        return;
    }
    for (size_t i = 0; i < c->in->n_things; i++)
        left += c->in->things[i].live + c->in->things[i].reset;
    if (left == 0)
        blyi_judge_set(out, BLYI_DOES_NOT, "all that were created were destroyed");
    else if (c->in->is_over)
        blyi_judge_set(out, BLYI_APPLIES, "%" PRIu64 " never destroyed", left);
    else
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "the recording ends before the program, with %" PRIu64 " not destroyed",
                       left);
    for (size_t i = 0; i < c->in->n_things && i < SITES_NAMED; i++) {
        const struct blyi_thing_row *row = &c->in->things[i];
        if (row->live + row->reset == 0)
            break;
        blyi_judge_add(out, "%s %" PRIu64 " of %" PRIu64 " %s of %s", more, row->live + row->reset,
                       row->made, thing_words[row->kind][row->made != 1],
                       blyi_judge_site(c, row->label));
        more = ";";
    }
    blyi_judge_cure(out, "destroy each once its last use is complete: aclrtDestroyStream, "
                         "aclrtDestroyEvent, aclrtDestroyNotify; a card has only so many");
}

void blyi_judge_orphan(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_orphans *orphans = &c->in->orphans;
    if (c->imported) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "files of other tools do not tell of handles of physical memory");
        return;
    }
    if (orphans->count == 0) {
        blyi_judge_set(out, BLYI_DOES_NOT, "every handle was freed or is mapped");
        return;
    }
    out->bytes = orphans->bytes;
    blyi_judge_set(out, BLYI_APPLIES,
                   "orphan physical memory, reachable by no address: %" PRIu64 " handle%s, %s, "
                   "of %s%s",
                   orphans->count, blyi_plural(orphans->count), blyi_judge_size(orphans->bytes),
                   blyi_judge_site(c, orphans->label), orphans->several ? " and others" : "");
    blyi_judge_cure(out, "call aclrtFreePhysical for each handle; aclrtUnmapMem and "
                         "aclrtReleaseMemAddress do not free what is behind it");
}

void blyi_judge_sync(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_explanation *e = &c->first;
    if (c->has_first && e->missing > 0 && e->pool.waiting > 0 && e->fits_if_waited &&
        !e->fits_if_packed) {
        out->bytes = e->pool.waiting;
        blyi_judge_set(out, BLYI_APPLIES,
                       "when %s were asked, %s that were freed waited for other streams; with them "
                       "it would have fitted",
                       blyi_judge_size(e->refusal->asked), blyi_judge_size(e->pool.waiting));
        blyi_judge_cure(out, "synchronise the streams that use these blocks before asking, or free "
                             "them where they are used last");
    } else if (c->order != NULL) {
        blyi_judge_set(out, c->order->n > 0 ? BLYI_APPLIES : BLYI_DOES_NOT,
                       "%" PRIu64 " finding%s about the order of work%s%s", c->order->n,
                       blyi_plural(c->order->n), c->order->n > 0 ? "; the first: " : "",
                       c->order->n > 0 ? c->order->first : "");
        blyi_judge_cure(out, "see the findings: each names the missing edge");
    } else if (c->imported) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "the file does not tell the order of work on the "
                       "card");
    } else {
        blyi_judge_set(out, BLYI_CANNOT_TELL, "nobody has checked the order of work in this file");
    }
}

/* The site at which the other call saves most. */
static void advise_align(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_holding *best = NULL;
    for (size_t i = 0; i < c->in->sites.n; i++)
        if (c->in->sites.rows[i].saving > (best ? best->saving : 0))
            best = &c->in->sites.rows[i];
    if (best != NULL)
        blyi_judge_cure(out, "use aclrtMallocAlign32 at %s: saves %s. ",
                        blyi_judge_site(c, best->label), blyi_judge_size(best->saving));
}

void blyi_judge_rounding(const struct blyi_case *c, struct blyi_cause *out)
{
    const struct blyi_live *peak = &c->in->waste.at_peak;
    if (!c->in->waste.told) {
        blyi_judge_set(out, BLYI_CANNOT_TELL, "the file has the sizes asked for alone");
        return;
    }
    uint64_t waste = peak->backed > peak->asked ? peak->backed - peak->asked : 0;
    out->bytes = waste;
    blyi_judge_set(out, blyi_is_much(waste, peak->backed) ? BLYI_APPLIES : BLYI_DOES_NOT,
                   "at the peak %s were asked, %s by rule and %s backed: %s more than asked, in "
                   "%" PRIu64 " block%s",
                   blyi_judge_size(peak->asked), blyi_judge_size(peak->rounded),
                   blyi_judge_size(peak->backed), blyi_judge_size(waste), peak->count,
                   blyi_plural(peak->count));
    advise_align(c, out);
    blyi_judge_cure(out, "Put small blocks into one large one, or use a pool");
}

/* ── Limits ───────────────────────────────────────────────────────────────────────────────── */

static void judge_limit(const struct blyi_case *c, struct blyi_cause *out,
                        enum blyi_refusal_why why, const char *cure)
{
    const struct blyi_refusal *refusal = c->by_why[why];
    if (c->imported) {
        blyi_judge_set(out, BLYI_CANNOT_TELL,
                       "files of other tools do not tell why a request "
                       "failed");
        return;
    }
    if (refusal == NULL) {
        blyi_judge_set(out, BLYI_DOES_NOT,
                       c->in->history.n_refusals == 0 ? "no request failed"
                                                      : "no request failed for this reason");
        return;
    }
    blyi_judge_set(
        out, BLYI_APPLIES,
        "%" PRIu64 " request%s refused for this reason; the first, event no. %" PRIu64
        ", asked for %s at %s",
        c->n_why[why], blyi_plural(c->n_why[why]), refusal->seq, blyi_judge_size(refusal->asked),
        blyi_judge_site(c, blyi_label_of_site(c->in->labels, refusal->site, refusal->stack)));
    blyi_judge_cure(out, "%s", cure);
}

void blyi_judge_cap(const struct blyi_case *c, struct blyi_cause *out)
{
    if (c->imported && c->n_why[BLYI_WHY_NOT_OURS] > 0 &&
        c->explained[BLYI_WHY_NOT_OURS].free_told) {
        blyi_judge_set(out, BLYI_APPLIES,
                       "%s were asked and the card had %s free: not the card refused but a limit "
                       "that the program set itself",
                       blyi_judge_size(c->by_why[BLYI_WHY_NOT_OURS]->asked),
                       blyi_judge_size(c->by_why[BLYI_WHY_NOT_OURS]->free_told));
        blyi_judge_cure(out, "raise the limit (set_per_process_memory_fraction in PyTorch)");
        return;
    }
    judge_limit(c, out, BLYI_WHY_CAP, "raise BELAY_CAP; the card itself may have had room");
}

void blyi_judge_pinned(const struct blyi_case *c, struct blyi_cause *out)
{
    judge_limit(c, out, BLYI_WHY_PINNED,
                "free pinned memory, or raise BELAY_PIN_LIMIT; this is no shortage of the card");
}

void blyi_judge_host(const struct blyi_case *c, struct blyi_cause *out)
{
    judge_limit(c, out, BLYI_WHY_HOST,
                "the machine that plays the card was short: a smaller BELAY_HBM, or fewer "
                "processes at once");
}
