/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_step.c - cuts the step that a trace repeats out of it.
 */
#include "plan_step.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"

struct moment {
    int64_t time;
    uint64_t size; /* what begins, or the two's complement of what ends */
};

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Ends come first at equal times: they are "larger" as unsigned numbers. */
static int compare_moments(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->size > y->size ? -1 : x->size < y->size;
}

/* Times at which the steps begin, and the end of the last: n_steps + 1 values. */
static int64_t *step_times(const bly_plan_input *trace, const bly_plan_period *period)
{
    int64_t *times = malloc((trace->n + period->n_steps + 1) * sizeof(*times));
    int64_t *born = times + period->n_steps + 1, last = 0;
    if (times == NULL)
        return NULL;
    for (size_t i = 0; i < trace->n; i++) {
        born[i] = trace->buffers[i].lower;
        last = i == 0 || trace->buffers[i].upper > last ? trace->buffers[i].upper : last;
    }
    qsort(born, trace->n, sizeof(*born), compare_times);
    for (size_t k = 0; k <= period->n_steps; k++) {
        size_t x = period->first + k * period->n_buffers;
        times[k] = x < trace->n ? born[x] : last;
    }
    return times;
}

/* The step in which most is live at once. */
static bool fullest_step(const bly_plan_input *trace, const bly_plan_period *period,
                         const int64_t *times, size_t *fullest)
{
    struct moment *moments = malloc(2 * trace->n * sizeof(*moments));
    uint64_t live = 0, most = 0;
    if (moments == NULL)
        return false;
    for (size_t i = 0; i < trace->n; i++) {
        const bly_plan_buffer *b = &trace->buffers[i];
        moments[2 * i] = (struct moment){b->lower, b->size};
        moments[2 * i + 1] = (struct moment){b->upper, 0 - b->size};
    }
    qsort(moments, 2 * trace->n, sizeof(*moments), compare_moments);
    *fullest = 0;
    for (size_t m = 0, k = 0; m < 2 * trace->n && moments[m].time < times[period->n_steps]; m++) {
        live += moments[m].size;
        while (k + 1 < period->n_steps && moments[m].time >= times[k + 1])
            k++;
        if (moments[m].time >= times[0] && live > most) {
            most = live;
            *fullest = k;
        }
    }
    free(moments);
    return true;
}

/* Buffers of the step that stand for b; 0: it is left out. */
static size_t places_of(const struct plan_step *step, const bly_plan_buffer *b)
{
    if (b->lower >= step->upper || b->upper <= step->lower)
        return 0;
    if (step->period.sizes_differ)
        return 1;
    bool is_repeated = b->lower >= step->period.start;
    if (b->lower < step->lower)
        return b->upper >= step->upper && !is_repeated ? 1 : 0;
    uint64_t length = (uint64_t)step->upper - (uint64_t)step->lower;
    return (size_t)(((uint64_t)b->upper - (uint64_t)b->lower - 1) / length + 1);
}

/* The part of b that lies in the step. */
static void clip(const struct plan_step *step, const bly_plan_buffer *b, bly_plan_buffer *made)
{
    made->lower = b->lower > step->lower ? b->lower : step->lower;
    made->upper = b->upper < step->upper ? b->upper : step->upper;
}

/* b reaches into the next step and for less than a step: it is not in use between the end of the
 * one before and its own birth. Returns false if there is nothing between. */
static bool gap_of(const struct plan_step *step, const bly_plan_buffer *b, bly_plan_gap *gap)
{
    *gap = (bly_plan_gap){step->lower + (b->upper - step->upper), b->lower, 0, 0};
    return gap->lower < gap->upper;
}

static void add(struct plan_step *step, const bly_plan_buffer *b, size_t places, char *id)
{
    size_t n = step->input.n++;
    bly_plan_buffer *made = &step->input.buffers[n];
    step->input.ids[n] = id;
    *made = *b;
    made->gaps = NULL;
    made->n_gaps = 0;
    if (step->period.sizes_differ || (b->lower >= step->lower && b->upper <= step->upper)) {
        clip(step, b, made);
        return;
    }
    made->lower = step->lower;
    made->upper = step->upper;
    if (places == 1 && b->lower >= step->lower && gap_of(step, b, &step->input.gaps[n])) {
        made->gaps = &step->input.gaps[n];
        made->n_gaps = 1;
    }
}

static bool cut(const bly_plan_input *trace, struct plan_step *step)
{
    size_t total = 1;
    for (size_t i = 0; i < trace->n; i++)
        total += places_of(step, &trace->buffers[i]);
    step->input = (bly_plan_input){.buffers = malloc(total * sizeof(*step->input.buffers)),
                                   .ids = malloc(total * sizeof(*step->input.ids)),
                                   .gaps = malloc(total * sizeof(*step->input.gaps)),
                                   .is_trace = trace->is_trace};
    if (step->input.buffers == NULL || step->input.ids == NULL || step->input.gaps == NULL) {
        plan_step_release(step);
        return false;
    }
    for (size_t i = 0; i < trace->n; i++) {
        size_t places = places_of(step, &trace->buffers[i]);
        for (size_t place = 0; place < places; place++)
            add(step, &trace->buffers[i], places, trace->ids[i]);
    }
    return true;
}

bool plan_step_take(const char *path, const bly_plan_input *trace, struct plan_step *step)
{
    memset(step, 0, sizeof(*step));
    bly_plan_period *period = &step->period;
    if (bly_plan_find_period(trace->buffers, trace->n, period) != BLY_OK) {
        say("%s: %s", path, bly_last_error());
        return false;
    }
    int64_t *times = step_times(trace, period);
    step->number = period->n_steps > 2;
    bool ok = times != NULL &&
              (!period->sizes_differ || fullest_step(trace, period, times, &step->number));
    if (ok) {
        step->lower = times[step->number];
        step->upper = times[step->number + 1];
        ok = cut(trace, step);
    }
    free(times);
    if (!ok)
        say("%s: cutting a step out of %zu buffers: no memory", path, trace->n);
    return ok;
}

void plan_step_release(struct plan_step *step)
{
    free(step->input.buffers);
    free(step->input.ids);
    free(step->input.gaps);
}
