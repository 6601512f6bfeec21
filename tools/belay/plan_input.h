/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_input.h - files of buffers and traces, zstd-compressed ones included.
 */
#ifndef BELAY_PLAN_INPUT_H
#define BELAY_PLAN_INPUT_H

#include <belay/plan.h>
#include <stdbool.h>

/* Reads and parses a file. False: said why. The caller releases *input. */
bool plan_input_read(const char *path, bly_plan_input *input);

#endif
