/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_page.c - see plan_page.h. Drawings are SVG; there is no script.
 */
#include "plan_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define WIDTH     1000.0
#define HEIGHT    340.0
#define DRAWN_MAX 20000 /* rectangles; of more, the largest areas are drawn */

static const char *const style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}table{border-collapse:collapse}td{padding:.1em 1.5em .1em 0}"
    "svg{width:100%;height:auto;background:#f6f7f9}rect{stroke:#fff;stroke-width:.3}"
    ".c0{fill:#3b76af}.c1{fill:#8ab4d8}.c2{fill:#5a9e6f}.c3{fill:#e39b3c}.c4{fill:#b77bb0}"
    ".live{fill:none;stroke:#222;stroke-width:1}.bound{stroke:#c33;stroke-dasharray:6 4}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1d}svg{background:#23262b}"
    "rect{stroke:#23262b}.live{stroke:#eee}}";

static void print_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

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
    int64_t lower;
    double per_time, per_byte;
};

static double x_of(const struct frame *f, int64_t time)
{
    return (double)(time - f->lower) * f->per_time;
}

static double y_of(const struct frame *f, uint64_t bytes)
{
    return HEIGHT - (double)bytes * f->per_byte;
}

static void draw_curve(FILE *out, const struct frame *f, const bly_plan_input *input,
                       const struct event *events)
{
    uint64_t live = 0;
    size_t step = 2 * input->n / 4000 + 1; /* a curve of a million points helps nobody */
    uint64_t most = 0;
    fprintf(out, "<polyline class='live' points='");
    for (size_t e = 0; e < 2 * input->n; e++) {
        uint64_t size = input->buffers[events[e].buffer].size;
        live = events[e].is_birth ? live + size : live - size;
        most = live > most ? live : most;
        if (e % step == step - 1 || e + 1 == 2 * input->n) {
            fprintf(out, "%.1f,%.1f ", x_of(f, events[e].time), y_of(f, most));
            most = live;
        }
    }
    fprintf(out, "'/>");
}

static void draw(FILE *out, const char *what, const struct frame *f, const bly_plan_input *input,
                 const uint64_t *offset, const struct event *events, uint64_t bound)
{
    fprintf(out, "<h2>%s</h2><svg viewBox='0 0 %.0f %.0f'>", what, WIDTH, HEIGHT);
    double least = input->n > DRAWN_MAX ? WIDTH * HEIGHT / DRAWN_MAX / 4 : 0;
    for (size_t i = 0; i < input->n; i++) {
        const bly_plan_buffer *b = &input->buffers[i];
        double x = x_of(f, b->lower), width = x_of(f, b->upper) - x;
        double top = y_of(f, offset[i] + b->size), height = y_of(f, offset[i]) - top;
        if (width * height < least)
            continue;
        fprintf(out, "<rect class='c%zu' x='%.2f' y='%.2f' width='%.2f' height='%.2f'><title>",
                i % 5, x, top, width, height);
        print_escaped(out, input->ids[i]);
        fprintf(out, ": %llu bytes at %llu, [%lld, %lld)</title></rect>",
                (unsigned long long)b->size, (unsigned long long)offset[i], (long long)b->lower,
                (long long)b->upper);
    }
    draw_curve(out, f, input, events);
    fprintf(out, "<line class='bound' x1='0' x2='%.0f' y1='%.1f' y2='%.1f'/></svg>\n", WIDTH,
            y_of(f, bound), y_of(f, bound));
}

static void print_sizes(FILE *out, const bly_plan_result *result, uint64_t before)
{
    char text[BLYI_SIZE_TEXT];
    fprintf(out, "<table><tr><td>buffers<td>%zu", result->n);
    fprintf(out, "<tr><td>first fit, future unknown<td>%s", blyi_size_text(before, text));
    fprintf(out, "<tr><td>planned<td>%s", blyi_size_text(result->peak, text));
    fprintf(out, "<tr><td>lower bound (dashed)<td>%s", blyi_size_text(result->lower_bound, text));
    fprintf(out, "<tr><td>gap<td>%.4f %%%s<tr><td>found by<td>%s</table>\n", 100 * result->gap,
            result->optimal ? ", proven optimal" : "", result->solver);
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
    uint64_t top = before > result->peak ? before : result->peak;
    int64_t lower = input->n > 0 ? events[0].time : 0;
    int64_t upper = input->n > 0 ? events[2 * input->n - 1].time : 1;
    struct frame f = {lower, WIDTH / (double)(upper - lower),
                      HEIGHT / (top > 0 ? (double)top : 1.0)};
    fprintf(out, "<!doctype html><meta charset='utf-8'><title>");
    print_escaped(out, title);
    fprintf(out, "</title><style>%s</style><h1>", style);
    print_escaped(out, title);
    fprintf(out, "</h1>\n");
    print_sizes(out, result, before);
    draw(out, "After: planned", &f, input, result->offset, events, result->lower_bound);
    draw(out, "Before: first fit", &f, input, offset, events, result->lower_bound);
    free(offset);
    free(events);
    return 1;
}
