/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_words.c - times and names as people read them.
 */
#include <inttypes.h>

#include "insight_input.h"

const char *insight_time(const struct blyi_insight *in, uint64_t ns, char buf[INSIGHT_TIME])
{
    if (in->info->flags & BLYI_TRACE_LOGICAL)
        snprintf(buf, INSIGHT_TIME, "step %" PRIu64, ns / 1000);
    else
        snprintf(buf, INSIGHT_TIME, "%" PRIu64 ".%06" PRIu64 " s", ns / 1000000000u,
                 ns % 1000000000u / 1000);
    return buf;
}

const char *insight_label(const struct blyi_insight *in, uint32_t label, char buf[INSIGHT_LABEL])
{
    return insight_clean(blyi_label_text(in->labels, label), buf);
}

const char *insight_clean(const char *text, char buf[INSIGHT_LABEL])
{
    size_t n = 0;
    for (; text[n] != '\0' && n < INSIGHT_LABEL - 1; n++) {
        unsigned char byte = (unsigned char)text[n];
        buf[n] = text[n];
        if (byte < ' ' || byte == 0x7f)
            buf[n] = '?';
    }
    buf[n] = '\0';
    return buf;
}

bool insight_says_more(const struct blyi_holdings *a, const struct blyi_holdings *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->rows[i].label == b->rows[i].label;
    return !same && a->n > 1;
}
