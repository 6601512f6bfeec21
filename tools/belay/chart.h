/* SPDX-License-Identifier: Apache-2.0
 *
 * chart.h - what the pages of plans and checkpoints share: one style for light and dark, drawings
 * with a scale of bytes, and rectangles that tell what they are. There is no script: what is
 * under the pointer or has the keyboard's focus shows its line of text above the drawing.
 */
#ifndef BELAY_CHART_H
#define BELAY_CHART_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define CHART_WIDTH 1000.0

void chart_text(FILE *out, const char *text); /* escaped */
/* Head and heading of a page. */
void chart_page(FILE *out, const char *title);

/* Where a scale ends that has a little room above `most`, so that nothing is cut off at its edge.
 */
uint64_t chart_top(uint64_t most);
/* A drawing of CHART_WIDTH x height whose scale ends at `top` bytes; 0: no scale. */
void chart_begin(FILE *out, const char *label, double height, uint64_t top);
/* The end of a drawing, and the numbers of its scale. */
void chart_end(FILE *out, double height, uint64_t top);
/* "first" and "last" below the ends of the drawing. */
void chart_ends(FILE *out, const char *first, const char *last);
/* A dashed line across, with its name. */
void chart_line(FILE *out, double y, const char *name);

/* Colours: c0 .. c4, or the name of a step. `focus`: reachable by keyboard, and its text appears
 * at once; else the browser's own tooltip has it. The text is printed between the two calls. */
void chart_rect(FILE *out, const char *colour, double x, double y, double width, double height,
                bool focus);
void chart_rect_end(FILE *out, bool focus);

#endif
