/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diagnose.c - `belay diagnose`: the known causes of trouble with memory, one after the other.
 */
#include <stdio.h>
#include <string.h>

#include "check_recording.h"
#include "command.h"
#include "insight_input.h"
#include "insight_report.h"
#include "observe/insight_cause.h"

#define WIDTH 76

/* Wrapped at blanks; before the first line stands `lead`, of `indent` columns, before others
 * `behind`. Control characters become "?". */
static void put_text(const char *text, const char *lead, int indent, const char *behind)
{
    size_t width = (size_t)(WIDTH - indent);
    while (*text != '\0') {
        size_t n = strlen(text);
        if (n > width) {
            n = width;
            while (n > 0 && text[n] != ' ')
                n--;
            if (n == 0)
                n = strcspn(text, " "); /* one long word */
        }
        fputs(lead, stdout);
        for (size_t i = 0; i < n; i++)
            putchar((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
        putchar('\n');
        text += n;
        text += strspn(text, " ");
        lead = behind;
    }
}

/* Two causes of one verdict with nothing to say of one alone. */
static bool says_the_same(const struct blyi_cause *a, const struct blyi_cause *b)
{
    return a->verdict == b->verdict && a->cure[0] == '\0' && b->cure[0] == '\0' &&
           strcmp(a->evidence, b->evidence) == 0;
}

/* The cause, with later ones that say the same; nothing when an earlier one has taken it along. */
static void print_cause(const struct blyi_cause causes[BLYI_CAUSE_COUNT], int i)
{
    char titles[1024];
    size_t n = 0;
    for (int k = 0; k < i; k++)
        if (says_the_same(&causes[k], &causes[i]))
            return;
    for (int k = i; k < BLYI_CAUSE_COUNT; k++)
        if (k == i || says_the_same(&causes[i], &causes[k]))
            n += (size_t)snprintf(titles + n, sizeof(titles) - n, "%s%s", n > 0 ? "; " : "",
                                  blyi_cause_title(causes[k].kind));
    put_text(titles, "  ", 2, "  ");
    put_text(causes[i].evidence, "    ", 4, "    ");
    if (causes[i].cure[0] != '\0')
        put_text(causes[i].cure, "  > ", 4, "    ");
}

static void print_text(const struct blyi_cause causes[BLYI_CAUSE_COUNT])
{
    static const enum blyi_verdict order[] = {BLYI_APPLIES, BLYI_CANNOT_TELL, BLYI_DOES_NOT};
    for (size_t v = 0; v < BLYI_COUNT(order); v++) {
        int n = 0;
        for (int i = 0; i < BLYI_CAUSE_COUNT; i++) {
            if (causes[i].verdict != order[v])
                continue;
            if (n++ == 0)
                printf("\n%s\n", blyi_verdict_words(order[v]));
            print_cause(causes, i);
        }
        if (n == 0 && order[v] == BLYI_APPLIES)
            printf("\nnone of the known causes applies\n");
    }
}

static void print_json(const struct insight_input *input,
                       const struct blyi_cause causes[BLYI_CAUSE_COUNT])
{
    struct blyi_json json;
    blyi_json_init(&json, stdout);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "version", 1);
    insight_json_file(&json, "file", input->in, input->input.format);
    blyi_json_begin_array(&json, "causes");
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++) {
        blyi_json_begin_object(&json, NULL);
        blyi_json_text(&json, "cause", blyi_cause_key(causes[i].kind));
        blyi_json_text(&json, "verdict", blyi_verdict_key(causes[i].verdict));
        blyi_json_uint(&json, "bytes", causes[i].bytes);
        blyi_json_text(&json, "evidence", causes[i].evidence);
        blyi_json_text(&json, "cure", causes[i].cure[0] ? causes[i].cure : NULL);
        blyi_json_end_object(&json);
    }
    blyi_json_end_array(&json);
    blyi_json_end_object(&json);
    putchar('\n');
}

/* Findings of work that no event, wait or synchronisation keeps apart. */
static struct blyi_order_findings count_order(const struct blyi_check *check)
{
    size_t n;
    const struct blyi_finding *list = blyi_check_findings(check, &n);
    struct blyi_order_findings order = {0};
    for (size_t i = 0; i < n; i++) {
        enum blyi_finding_kind kind = list[i].kind;
        if (kind != BLYI_FINDING_RACE && kind != BLYI_FINDING_FREE_IN_USE &&
            kind != BLYI_FINDING_UNMAP_IN_USE && kind != BLYI_FINDING_USE_AFTER_FREE)
            continue;
        if (order.n++ == 0)
            order.first = list[i].message;
    }
    return order;
}

/* Only Belay's own recordings tell of waits; in others nobody can have looked. */
static bly_status find_causes(struct insight_input *input, struct blyi_cause *causes)
{
    struct blyi_trace *trace = input->input.trace;
    struct blyi_check *check = NULL;
    if (blyi_trace_info(trace)->flags & BLYI_TRACE_IMPORTED)
        return blyi_causes_make(input->in, NULL, causes);
    bly_status status = check_recording(trace, BLYI_CHECK_ALL, &check);
    if (status != BLY_OK)
        return status;
    struct blyi_order_findings order = count_order(check);
    status = blyi_causes_make(input->in, blyi_check_stopped(check) ? NULL : &order, causes);
    blyi_check_destroy(check);
    return status;
}

static int run(int argc, char **argv)
{
    static struct blyi_cause causes[BLYI_CAUSE_COUNT];
    struct insight_request request;
    struct insight_input input;
    int status = insight_arguments("diagnose", "j", 1, argc, argv, &request);
    if (status != 0)
        return status;
    if (!insight_open(request.files[0], &input))
        return 1;
    bool ok = find_causes(&input, causes) == BLY_OK;
    if (!ok)
        say("%s", bly_last_error());
    else if (request.json)
        print_json(&input, causes);
    else
        print_text(causes);
    insight_close(&input);
    return ok ? 0 : 1;
}

const struct command command_diagnose = {
    .name = "diagnose",
    .usage = "FILE [--json]",
    .summary = "Which of the known causes of memory trouble a recording shows.",
    .help = "Each cause applies, does not apply, or the file cannot tell; with the figures that "
            "say\nso, and what to do. FILE is a recording of Belay, a PyTorch memory snapshot, "
            "RMM's\nlog, or the TSV of allocation traces; each may be compressed by zstd.\n"
            "\n"
            "  --json   for scripts\n"
            "\n"
            "example: belay diagnose snapshot.pickle\n",
    .run = run,
};
