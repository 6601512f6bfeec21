/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_json.c - the rows of a replay for scripts. The same trace and options give the same bytes,
 * unless times are asked for.
 */
#include "replay_report.h"

#include <jansson.h>

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *ratio_of(const struct replay_report *report, uint64_t bytes)
{
    double ratio;
    return replay_ratio(report, bytes, &ratio) ? json_real(ratio) : json_null();
}

static void put_figures(json_t *object, const struct replay_report *report,
                        const struct replay_row *row)
{
    const struct blyi_replay_figures *f = &row->result.figures;
    json_object_set_new(object, "peak_reserved", integer(f->peak_reserved));
    json_object_set_new(object, "ratio", ratio_of(report, f->peak_reserved));
    json_object_set_new(object, "ranges_mapped", integer(f->ranges_mapped));
    json_object_set_new(object, "ranges_unmapped", integer(f->ranges_unmapped));
    json_object_set_new(object, "handle_ops", integer(f->handles_mapped + f->handles_unmapped));
    json_object_set_new(object, "waits", integer(f->waits));
    json_object_set_new(object, "flushes", integer(replay_flushes(row)));
}

static void put_nothing(json_t *object)
{
    static const char *const keys[] = {"peak_reserved", "ratio", "ranges_mapped", "ranges_unmapped",
                                       "handle_ops",    "waits", "flushes"};
    for (size_t i = 0; i < BLYI_COUNT(keys); i++)
        json_object_set_new(object, keys[i], json_null());
}

static json_t *row_object(const struct replay_report *report, const struct replay_row *row)
{
    const struct blyi_replay_trace *trace = report->trace;
    bool ok = row->result.status == BLY_OK;
    json_t *object = json_object();
    json_object_set_new(object, "trace", json_string_nocheck(report->path));
    json_object_set_new(object, "policy", json_string(row->policy->name));
    json_object_set_new(object, "pad", integer(row->setup.pad));
    json_object_set_new(object, "events", integer(trace->n_events));
    json_object_set_new(object, "allocs", integer(trace->n_allocs));
    json_object_set_new(object, "peak_live", integer(trace->peak_live));
    if (ok)
        put_figures(object, report, row);
    else
        put_nothing(object);
    json_object_set_new(object, "min_capacity", row->has_least ? integer(row->least) : json_null());
    json_object_set_new(object, "min_capacity_ratio",
                        row->has_least ? ratio_of(report, row->least) : json_null());
    json_object_set_new(object, "ns_per_op",
                        ok && report->timed && trace->n_events > 0
                            ? json_real((double)row->result.ns / (double)trace->n_events)
                            : json_null());
    return object;
}

bool replay_json(const struct replay_report *report, FILE *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->n_rows; i++)
        json_array_append_new(list, row_object(report, &report->rows[i]));
    bool ok = json_array_size(list) == report->n_rows;
    if (ok)
        ok = json_dumpf(report->as_list ? list : json_array_get(list, 0), out,
                        JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(list);
    fputc('\n', out);
    return ok;
}
