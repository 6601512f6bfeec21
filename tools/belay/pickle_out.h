/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_out.h - writes a pickle (protocol 2) by the few instructions that every reader of memory
 * snapshots knows.
 */
#ifndef BELAY_PICKLE_OUT_H
#define BELAY_PICKLE_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/map.h"

struct pickle_out {
    FILE *out;
    struct blyi_map texts; /* hash -> struct: its text and number in the memo */
    uint32_t n_memo;
    bool no_memory;
};

void pickle_out_begin(struct pickle_out *p, FILE *out);
void pickle_out_end(struct pickle_out *p); /* behind the one value */

/* Containers: begin, what is in them, end. In a dictionary keys and values take turns. */
void pickle_out_dict(struct pickle_out *p);
void pickle_out_dict_end(struct pickle_out *p);
void pickle_out_list(struct pickle_out *p);
void pickle_out_list_end(struct pickle_out *p);
void pickle_out_pair(struct pickle_out *p, uint64_t a, uint64_t b);
void pickle_out_text(struct pickle_out *p, const char *text); /* repeated ones cost little */
void pickle_out_int(struct pickle_out *p, uint64_t value);
void pickle_out_bool(struct pickle_out *p, bool value);
/* What was just written gets a number, by which it can be written again. */
uint32_t pickle_out_remember(struct pickle_out *p);
void pickle_out_again(struct pickle_out *p, uint32_t number);

#endif
