/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_page.c - see plan_page.h. Drawings are SVG; there is no script.
 */
#include "plan_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "chart.h"

#define HEIGHT    340.0
#define DRAWN_MAX 20000 /* rectangles; of more, the largest areas are drawn */
#define FOCUS_MAX 2000  /* rectangles that the keyboard can reach; of more, none */

/* ---- events ------------------------------------------------------------------------------ */

struct event {
    int64_t time;
    size_t buffer;
    int is_birth;
};

/* Deaths first among equals. */
static int compare_events(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_birth != y->is_birth)
        return x->is_birth - y->is_birth;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static struct event *sorted_events(const bly_plan_input *input)
{
    struct event *events = malloc((2 * input->n + 1) * sizeof(*events));
    if (events == NULL)
        return NULL;
    for (size_t i = 0; i < input->n; i++) {
        events[2 * i] = (struct event){input->buffers[i].lower, i, 1};
        events[2 * i + 1] = (struct event){input->buffers[i].upper, i, 0};
    }
    qsort(events, 2 * input->n, sizeof(*events), compare_events);
    return events;
}

uint64_t *plan_first_fit(const bly_plan_input *input, uint64_t *peak)
{
    struct event *events = sorted_events(input);
    uint64_t *offset = calloc(input->n + 1, sizeof(*offset));
    size_t *live = calloc(input->n + 1, sizeof(*live)), n = 0; /* by offset */
    *peak = 0;
    for (size_t e = 0; events && offset && live && e < 2 * input->n; e++) {
        size_t i = events[e].buffer, at = 0;
        uint64_t end = 0, size = input->buffers[i].size;
        if (events[e].is_birth) {
            for (; at < n && offset[live[at]] - end < size; at++)
                end = offset[live[at]] + input->buffers[live[at]].size;
            memmove(live + at + 1, live + at, (n++ - at) * sizeof(*live));
            live[at] = i;
            offset[i] = end;
            *peak = end + size > *peak ? end + size : *peak;
        } else {
            while (live[at] != i)
                at++;
            memmove(live + at, live + at + 1, (--n - at) * sizeof(*live));
        }
    }
    if (!events || !live) {
        free(offset);
        offset = NULL;
    }
    free(events);
    free(live);
    return offset;
}

/* ---- drawings ---------------------------------------------------------------------------- */

struct frame {
    int64_t lower, upper;
    uint64_t top;
    double per_time, per_byte;
};

static double x_of(const struct frame *f, int64_t time)
{
    return ((double)time - (double)f->lower) * f->per_time;
}

static double y_of(const struct frame *f, uint64_t bytes)
{
    return HEIGHT - (double)bytes * f->per_byte;
}

/* What is live, as steps: one for each time, or the most in each quarter of a pixel. */
static void draw_curve(FILE *out, const struct frame *f, const bly_plan_input *input,
                       const struct event *events)
{
    uint64_t live = 0, most = 0, drawn = 0;
    double drawn_x = 0;
    fprintf(out, "<polyline class=\"live\" points=\"0,%.1f ", HEIGHT);
    for (size_t e = 0; e < 2 * input->n;) {
        int64_t time = events[e].time;
        for (; e < 2 * input->n && events[e].time == time; e++) {
            uint64_t size = input->buffers[events[e].buffer].size;
            live = events[e].is_birth ? live + size : live - size;
        }
        most = live > most ? live : most;
        double x = x_of(f, time);
        if (x - drawn_x < 0.25 && drawn_x > 0 && e < 2 * input->n)
            continue;
        fprintf(out, "%.1f,%.1f %.1f,%.1f ", x, y_of(f, drawn), x, y_of(f, most));
        drawn_x = x;
        drawn = most;
        most = live;
    }
    fprintf(out, "\"/>\n");
}

static void draw(FILE *out, const char *what, const struct frame *f, const bly_plan_input *input,
                 const uint64_t *offset, const struct event *events, uint64_t bound)
{
    static const char *const colours[] = {"c0", "c1", "c2", "c3", "c4"};
    fprintf(out, "<h2>%s</h2>\n", what);
    chart_begin(out, what, HEIGHT, f->top);
    bool focus = input->n <= FOCUS_MAX;
    double least = input->n > DRAWN_MAX ? CHART_WIDTH * HEIGHT / DRAWN_MAX / 4 : 0;
    for (size_t i = 0; i < input->n; i++) {
        const bly_plan_buffer *b = &input->buffers[i];
        double x = x_of(f, b->lower), width = x_of(f, b->upper) - x;
        double top = y_of(f, offset[i] + b->size), height = y_of(f, offset[i]) - top;
        if (width * height < least)
            continue;
        char size[BLYI_SIZE_TEXT];
        chart_rect(out, colours[i % 5], x, top, width, height, focus);
        chart_text(out, input->ids[i]);
        fprintf(out, ": %s at %" PRIu64 ", lives [%" PRId64 ", %" PRId64 ")",
                blyi_size_text(b->size, size), offset[i], b->lower, b->upper);
        chart_rect_end(out, focus);
    }
    draw_curve(out, f, input, events);
    chart_line(out, y_of(f, bound), "lower bound");
    chart_end(out, HEIGHT, f->top);
    char first[32], last[32];
    snprintf(first, sizeof(first), "%" PRId64, f->lower);
    snprintf(last, sizeof(last), "%" PRId64, f->upper);
    chart_ends(out, first, last);
}

static void print_sizes(FILE *out, const bly_plan_result *result, uint64_t before)
{
    char text[BLYI_SIZE_TEXT];
    fprintf(out, "<table><tr><td>buffers<td>%zu", result->n);
    fprintf(out, "<tr><td>first fit, future unknown<td>%s", blyi_size_text(before, text));
    fprintf(out, "<tr><td>planned<td>%s", blyi_size_text(result->peak, text));
    fprintf(out, "<tr><td>lower bound<td>%s", blyi_size_text(result->lower_bound, text));
    fprintf(out, "<tr><td>gap<td>%.4f %%%s<tr><td>found by<td>%s</table>\n", 100 * result->gap,
            result->optimal ? ", proven optimal" : "", result->solver);
}

static void print_drawings(FILE *out, const bly_plan_input *input, const bly_plan_result *result,
                           const uint64_t *first_fit, uint64_t before, const struct event *events)
{
    uint64_t top = chart_top(before > result->peak ? before : result->peak);
    int64_t lower = events[0].time, upper = events[2 * input->n - 1].time;
    struct frame f = {lower, upper, top, CHART_WIDTH / ((double)upper - (double)lower),
                      HEIGHT / (double)top};
    fputs(
        "<p>Time goes right, addresses go up; both drawings have one scale.\n<p><span class=\"key "
        "live\"></span>bytes that are live<span class=\"key bound\"></span>lower bound: the "
        "least that any plan takes\n",
        out);
    if (input->n > DRAWN_MAX)
        fprintf(out, "<p>The largest of %zu buffers are drawn, small ones are left out.\n",
                input->n);
    draw(out, "After: planned", &f, input, result->offset, events, result->lower_bound);
    draw(out, "Before: first fit", &f, input, first_fit, events, result->lower_bound);
}

int plan_page(FILE *out, const char *title, const bly_plan_input *input,
              const bly_plan_result *result)
{
    uint64_t before;
    uint64_t *offset = plan_first_fit(input, &before);
    struct event *events = sorted_events(input);
    if (offset == NULL || events == NULL) {
        free(offset);
        free(events);
        return 0;
    }
    chart_page(out, title);
    print_sizes(out, result, before);
    if (input->n == 0)
        fputs("<p>There are no buffers, so there is nothing to draw.\n", out);
    else
        print_drawings(out, input, result, offset, before, events);
    free(offset);
    free(events);
    return 1;
}
