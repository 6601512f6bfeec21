/* SPDX-License-Identifier: Apache-2.0
 *
 * view_latency.h - the part of a recording's page that says how long calls took.
 */
#ifndef BELAY_VIEW_LATENCY_H
#define BELAY_VIEW_LATENCY_H

#include <stdio.h>
#include "observe/insight.h"

/* Writes nothing where the file does not tell. */
void view_latency(const struct blyi_insight *in, FILE *out);

#endif
