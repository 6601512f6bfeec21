/* SPDX-License-Identifier: Apache-2.0
 *
 * case_graph.h - what cases of graphs share. w.c is what graphs are captured on.
 */
#ifndef CASE_GRAPH_H
#define CASE_GRAPH_H

#include "check_case.h"

void capture_begin(aclrtStream stream);
aclmdlRI capture_end(aclrtStream stream);
aclmdlRI graph_of_set(char *at, size_t size);
void run_on(aclmdlRI graph, aclrtStream stream);
void drop(aclmdlRI graph);
aclrtEvent sync_event(void);
void fork_to(aclrtEvent event, aclrtStream from, aclrtStream to);
/* Declares that it reads and writes the word. */
void count_down(uint64_t *word, aclrtStream stream);
/* Runs its body so many times; captured on w.c and w.b. */
aclmdlRI graph_of_loop(uint32_t times, void (*body)(aclrtStream stream));
/* Built from one bound stream. */
aclmdlRI build(aclrtStream *bound, void (*fill)(aclrtStream stream));
void unbuild(aclmdlRI graph, aclrtStream bound);

#endif
