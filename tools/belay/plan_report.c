/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_report.c - a plan in figures, for people and for scripts.
 */
#include "plan_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan_page.h"

#define FIRST_FIT_MAX 200000 /* buffers; beyond, first fit takes longer than the plan */

static json_t *json_bytes(uint64_t bytes)
{
    return json_integer((json_int_t)bytes);
}

static json_t *json_step(const struct plan_step *step)
{
    json_t *object = json_object();
    json_object_set_new(object, "start", json_integer(step->lower));
    json_object_set_new(object, "length", json_integer(step->upper - step->lower));
    json_object_set_new(object, "steps", json_bytes(step->period.n_steps));
    json_object_set_new(object, "number", json_bytes(step->number));
    json_object_set_new(object, "buffers", json_bytes(step->period.n_buffers));
    json_object_set_new(object, "sizes_differ", json_boolean(step->period.sizes_differ));
    return object;
}

bool plan_json(const bly_plan_result *result, const struct plan_notes *notes)
{
    json_t *object = json_object();
    json_object_set_new(object, "buffers", json_bytes(result->n));
    json_object_set_new(object, "lower_bound", json_bytes(result->lower_bound));
    json_object_set_new(object, "peak", json_bytes(result->peak));
    json_object_set_new(object, "gap", json_real(result->gap));
    json_object_set_new(object, "optimal", json_boolean(result->optimal));
    json_object_set_new(object, "seconds", json_real((double)result->elapsed_ns / 1e9));
    json_object_set_new(object, "solver", json_string(result->solver));
    json_object_set_new(object, "nodes", json_bytes(result->nodes));
    if (notes->has_stock)
        json_object_set_new(object, "stock_reserved", json_bytes(notes->stock.reserved));
    if (notes->step != NULL)
        json_object_set_new(object, "step", json_step(notes->step));
    int status = json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    putchar('\n');
    return status == 0;
}

static void print_step(const struct plan_step *step)
{
    const bly_plan_period *p = &step->period;
    const char *same = p->sizes_differ ? "alike but for sizes" : "the same";
    printf("step         %zu buffers born in %" PRId64 ", %s %zu times\n", p->n_buffers,
           step->upper - step->lower, same, p->n_steps);
    printf("planned      number %zu, [%" PRId64 ", %" PRId64 ")%s\n", step->number + 1, step->lower,
           step->upper, p->sizes_differ ? ": most is live in it" : "");
}

/* What the plan saves. It does not count what was live at once before the planned step. */
static void print_stock(const bly_plan_result *result, const struct plan_notes *notes)
{
    char text[BLYI_SIZE_TEXT];
    uint64_t reserved = notes->stock.reserved, needed = notes->stock.live;
    printf("stock        %s reserved by PyTorch's allocator%s (simulated)\n",
           blyi_size_text(reserved, text), notes->step != NULL ? " by then" : "");
    if (needed > result->peak + result->peak / 100)
        printf("before       %s live at once: more than in this step\n",
               blyi_size_text(needed, text));
    needed = needed > result->peak ? needed : result->peak;
    if (reserved > needed)
        printf("saved        %s, %.1f %%\n", blyi_size_text(reserved - needed, text),
               100 * (double)(reserved - needed) / (double)reserved);
}

void plan_text(const bly_plan_input *input, const bly_plan_result *result,
               const struct plan_notes *notes)
{
    char text[BLYI_SIZE_TEXT];
    uint64_t before;
    if (notes->step != NULL)
        print_step(notes->step);
    printf("buffers      %zu\n", result->n);
    uint64_t *offset = result->n <= FIRST_FIT_MAX ? plan_first_fit(input, &before) : NULL;
    if (offset != NULL)
        printf("first fit    %s, not knowing the future\n", blyi_size_text(before, text));
    free(offset);
    printf("peak         %s\n", blyi_size_text(result->peak, text));
    printf("lower bound  %s\n", blyi_size_text(result->lower_bound, text));
    printf("gap          %.4f %%%s\n", 100 * result->gap,
           result->optimal ? ", proven optimal" : "");
    if (notes->has_stock)
        print_stock(result, notes);
    printf("found by     %s in %.3f s\n", result->solver, (double)result->elapsed_ns / 1e9);
}
