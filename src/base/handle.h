/* SPDX-License-Identifier: Apache-2.0
 *
 * handle.h - handles that users hold: opaque values that can be checked at every call.
 *
 * A handle is never dereferenced by us: it names a slot and a generation, so a stale,
 * foreign or invented value is told apart from a live one without touching memory.
 * Layout of the value (48 bits used, never 0, looks like no mapped address):
 *
 *     63      48 47    40 39         20 19          0
 *     [   0    ] [ kind ] [ generation] [ slot + 1  ]
 *
 * Lookup takes no lock. An object may be looked up while another thread removes it: the
 * lookup then pins it (blyi_handle_get .. blyi_handle_put), and remove waits for nobody:
 * the destructor runs at the last put.
 */
#ifndef BLYI_HANDLE_H
#define BLYI_HANDLE_H

#include <belay/base.h>
#include <stdbool.h>

/* X(name, text for sentences) */
#define BLYI_HANDLE_KINDS(X)                                                                       \
    X(CONTEXT, "context")                                                                          \
    X(STREAM, "stream")                                                                            \
    X(EVENT, "event")                                                                              \
    X(NOTIFY, "notify")                                                                            \
    X(COUNT_NOTIFY, "counting notify")                                                             \
    X(PHYSICAL, "physical memory handle")                                                          \
    X(POOL, "memory pool")                                                                         \
    X(BUFFER, "data buffer")                                                                       \
    X(BINARY, "kernel binary")                                                                     \
    X(FUNCTION, "kernel function")                                                                 \
    X(STAMP, "profiling stamp")                                                                    \
    X(ARGS, "kernel argument list")                                                                \
    X(MBUF, "shared buffer")                                                                       \
    X(QUEUE_ATTR, "queue attribute")                                                               \
    X(ROUTE, "queue route")                                                                        \
    X(ROUTES, "list of queue routes")                                                              \
    X(ROUTE_QUERY, "query of queue routes")                                                        \
    X(DATA_ITEM, "tensor data item")                                                               \
    X(DATASET, "tensor dataset")                                                                   \
    X(CHANNEL, "tensor channel")                                                                   \
    X(GRAPH, "graph")                                                                              \
    X(GRAPH_TASK, "task of a graph")                                                               \
    X(TASK_GROUP, "task group")                                                                    \
    X(CONDITION, "condition of a graph")                                                           \
    X(LABEL, "label")                                                                              \
    X(LABEL_LIST, "list of labels")                                                                \
    X(OTHER, "object")

enum blyi_handle_kind {
    BLYI_HANDLE_NONE,
#define BLYI_HANDLE_ENUM(name, text) BLYI_HANDLE_##name,
    BLYI_HANDLE_KINDS(BLYI_HANDLE_ENUM)
#undef BLYI_HANDLE_ENUM
        BLYI_HANDLE_KIND_COUNT
};

typedef void (*blyi_handle_destroy)(void *object);

/* Makes a live handle for `object`. E_HOST_MEMORY; E_NO_MEMORY: 2^20 - 1 live handles. */
bly_status blyi_handle_create(enum blyi_handle_kind kind, void *object, blyi_handle_destroy destroy,
                              void **handle);

/* The object, pinned until blyi_handle_put(); NULL (and a sentence, E_HANDLE) when the value
 * is not a live handle of this kind. The sentence tells apart: destroyed, of another kind,
 * never a handle. */
void *blyi_handle_get(enum blyi_handle_kind kind, const void *handle);
void blyi_handle_put(const void *handle);

/* Makes the handle stale at once. The object's destructor runs when no pin is left (in this
 * call if there is none). E_HANDLE as above. */
bly_status blyi_handle_remove(enum blyi_handle_kind kind, const void *handle);

size_t blyi_handle_live(enum blyi_handle_kind kind);
const char *blyi_handle_kind_text(enum blyi_handle_kind kind);
bool blyi_handle_audit(void);

#endif
