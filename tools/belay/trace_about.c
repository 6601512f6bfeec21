/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_about.c - what a recording is and how much of it is there, told to people.
 */
#include <inttypes.h>
#include <time.h>

#include "trace_command.h"
#include "trace_input.h"

static void print_state(const struct blyi_trace_info *info, FILE *out)
{
    switch (info->state) {
    case BLYI_TRACE_ENDED:
        fprintf(out, "state     closed\n");
        break;
    case BLYI_TRACE_STOPPED:
        fprintf(out, "state     ended early: %s\n", info->stop_text);
        break;
    case BLYI_TRACE_DUMPED:
        fprintf(out, "state     a copy made while recording went on\n");
        break;
    case BLYI_TRACE_RUNNING:
        fprintf(out,
                "state     not closed: the process runs, was killed, or became another program\n");
        break;
    default:
        fprintf(out, "state     unknown (%u)\n", (unsigned)info->state);
    }
}

static void print_events(const struct blyi_trace_info *info, FILE *out)
{
    if (info->flags & BLYI_TRACE_NO_HISTORY) {
        fprintf(out, "events    no history: recording was off\n");
        return;
    }
    fprintf(out, "events    %" PRIu64 " seen, %" PRIu64 " kept", info->seen, info->kept);
    if (info->cut > 0)
        fprintf(out, ", %" PRIu64 " before them cut off", info->cut);
    if (info->dropped > 0)
        fprintf(out, ", %" PRIu64 " oldest dropped", info->dropped);
    if (info->lost > 0)
        fprintf(out, ", %" PRIu64 " lost", info->lost);
    if (info->kept > 0 && info->first_seq > 1)
        fprintf(out, ", first kept no. %" PRIu64, info->first_seq);
    fputc('\n', out);
    if (info->unknown > 0)
        fprintf(out, "          %" PRIu64 " of kinds that this Belay does not know\n",
                info->unknown);
    if (info->damaged > 0)
        fprintf(out, "          %" PRIu64 " damaged pieces left out\n", info->damaged);
}

static void print_header(const struct blyi_trace *trace, enum trace_format format, FILE *out)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    char when[64] = "";
    time_t seconds = (time_t)(info->start_wall_ns / 1000000000u);
    struct tm tm;
    if (info->start_wall_ns > 0 && gmtime_r(&seconds, &tm) != NULL)
        (void)strftime(when, sizeof(when), ", begun %Y-%m-%d %H:%M:%S UTC", &tm);
    fprintf(out, "format    %s", trace_format_name(format));
    if (format == TRACE_FORMAT_BELAY)
        fprintf(out, ", version %u, by Belay %s", info->version, info->writer);
    fprintf(out, "\n");
    if (format != TRACE_FORMAT_BELAY)
        return;
    fprintf(out, "program   %s, process %u%s\n", info->program, info->pid, when);
    if (info->ring > 0)
        fprintf(out, "ring      of %" PRIu64 " events\n", info->ring);
    print_state(info, out);
}

void trace_print_about(const struct blyi_trace *trace, int format, FILE *out)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    print_header(trace, (enum trace_format)format, out);
    print_events(info, out);
    if (info->kept > 0)
        fprintf(out, "time      %.6f s from the first event to the last\n",
                (double)(info->last_ns - info->first_ns) / 1e9);
}
