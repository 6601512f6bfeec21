/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - what kind of card is imitated: built-in models and model files.
 *
 * A model file is text, one "key value" a line, '#' begins a comment; keys are the fields
 * below (base <model> first starts from a built-in one). Sizes take units.
 */
#ifndef BLYI_MODEL_H
#define BLYI_MODEL_H

#include <belay/base.h>
#include <stdbool.h>
#include <stdio.h>

/* X(field, type, help) with type TEXT (up to 31 characters), SIZE or UINT */
#define BLYI_MODEL_FIELDS(X)                                                                       \
    X(name, TEXT, "name of the model")                                                             \
    X(soc, TEXT, "what aclrtGetSocName returns")                                                   \
    X(memory, SIZE, "memory on the card")                                                          \
    X(reserve, SIZE, "of that, reserved by the system: programs see memory - reserve")             \
    X(overhead, SIZE, "what the runtime of one process takes on a card")                           \
    X(giant_pages, UINT, "1: 1 GiB pages exist")                                                   \
    X(streams, UINT, "created streams a card has")                                                 \
    X(events, UINT, "event ids a card has")                                                        \
    X(notifies, UINT, "notify ids a card has")                                                     \
    X(aicore, UINT, "AI Cores")                                                                    \
    X(vector_core, UINT, "vector cores")                                                           \
    X(aicpu, UINT, "AI CPUs")                                                                      \
    X(l2, SIZE, "second-level cache")                                                              \
    X(snapshots, UINT, "1: a process can be backed up and restored")

struct blyi_model {
    char name[32];
    char soc[32];
    uint64_t memory, reserve, overhead;
    uint64_t giant_pages, streams, events, notifies, aicore, vector_core, aicpu, l2;
    uint64_t snapshots;
};

/* `what` is 910, 910B, 310P or a path. E_IO: the file cannot be read; E_PARSE: line and reason;
 * E_INVALID: figures that contradict each other. */
bly_status blyi_model_load(const char *what, struct blyi_model *out);
/* The built-in models, for listing; NULL behind the last. */
const struct blyi_model *blyi_model_builtin(int index);

#endif
