/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/base.h - status codes, error sentences and version, shared by all of Belay.
 *
 * Units    Sizes are bytes, times are nanoseconds, unless a name says otherwise.
 * Threads  [any]   safe from any thread at any time
 *          [excl]  nobody else may be using the same object
 * Errors   Functions return a bly_status: BLY_OK is 0, errors are negative.
 *          Out-parameters are written only on BLY_OK. bly_last_error() then
 *          holds one line of detail for the calling thread.
 */
#ifndef BLY_BASE_H
#define BLY_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BLY_API __attribute__((visibility("default")))

#define BLY_VERSION_MAJOR 0
#define BLY_VERSION_MINOR 1
#define BLY_VERSION_PATCH 0

/* X(name, value, text). Values never change once released. */
#define BLY_STATUS(X)                                                                              \
    X(OK, 0, "ok")                                                                                 \
    X(E_INVALID, -1, "an argument is outside its contract")                                        \
    X(E_NO_MEMORY, -2, "the card has no room for the request")                                     \
    X(E_CAP, -3, "the process's own cap was reached")                                              \
    X(E_HOST_MEMORY, -4, "the host is short of memory")                                            \
    X(E_DEVICE, -5, "no such card")                                                                \
    X(E_NO_CONTEXT, -6, "the thread has no current context")                                       \
    X(E_HANDLE, -7, "not a live handle of this kind")                                              \
    X(E_STREAM_CONTEXT, -8, "the stream belongs to another context")                               \
    X(E_NO_STREAM, -9, "all streams of the card are in use")                                       \
    X(E_NO_EVENT, -10, "all event ids of the card are in use")                                     \
    X(E_NO_NOTIFY, -11, "all notify ids of the card are in use")                                   \
    X(E_UNSUPPORTED, -12, "not supported by this card")                                            \
    X(E_TIMEOUT, -13, "the wait ended before the work did")                                        \
    X(E_STATE, -14, "not allowed in the present state")                                            \
    X(E_RELEASED, -15, "released more often than retained")                                        \
    X(E_ALIGN, -16, "an address or size is not aligned")                                           \
    X(E_REGISTERED, -17, "host memory is registered already")                                      \
    X(E_NOT_REGISTERED, -18, "host memory is not registered")                                      \
    X(E_SUBSCRIBED, -19, "the stream is served by another thread or mechanism")                    \
    X(E_NOT_SUBSCRIBED, -20, "no thread serves the stream")                                        \
    X(E_NOT_RECORDED, -21, "the event was never recorded")                                         \
    X(E_NOT_COMPLETE, -22, "the event is not complete")                                            \
    X(E_FAULT, -23, "memory that cannot be accessed")                                              \
    X(E_ABORTED, -24, "the work was aborted")                                                      \
    X(E_FORKED, -25, "the process was forked after the runtime was up")                            \
    X(E_IO, -26, "a file cannot be read or written")                                               \
    X(E_PARSE, -27, "a text is not in its format")                                                 \
    X(E_PIN_LIMIT, -28, "the limit of pinned host memory was reached")                             \
    X(E_SYSTEM, -29, "the operating system refused")                                               \
    X(E_CANCELLED, -30, "cancelled by the caller")                                                 \
    X(E_KERNEL_VECTOR, -31, "a kernel was stopped by a fault on a vector core")                    \
    X(E_KERNEL_CUBE, -32, "a kernel was stopped by a fault on a cube core")                        \
    X(E_KERNEL_AICPU, -33, "a kernel was stopped by a fault on an AI CPU")                         \
    X(E_NO_KERNEL, -34, "no such function in the kernel binary")                                   \
    X(E_CARD_ABORTED, -35, "the work of the whole card was aborted")                               \
    X(E_TIMEOUT_VECTOR, -36, "a kernel ran too long on a vector core")                             \
    X(E_TIMEOUT_CUBE, -37, "a kernel ran too long on a cube core")                                 \
    X(E_TIMEOUT_AICPU, -38, "a kernel ran too long on an AI CPU")                                  \
    X(E_QUEUE_FULL, -39, "the queue has no room for a message")                                    \
    X(E_QUEUE_EMPTY, -40, "the queue has no message")                                              \
    X(E_MEMORY_ERROR, -41, "memory with an error that cannot be corrected")                        \
    X(E_PERMISSION, -42, "the process may not import what another one shares")                     \
    X(E_PEER_ENDED, -43, "the process at the other side has ended")                                \
    X(E_CAPTURING, -44, "the stream is being captured")                                            \
    X(E_EVENT_CAPTURED, -45, "the event was recorded in a capture that goes on")                   \
    X(E_NOT_CAPTURING, -46, "the stream is not being captured")                                    \
    X(E_CAPTURE_MODE, -47, "a capture's mode forbids the call in this thread")                     \
    X(E_CAPTURE_DEFAULT, -48, "a default stream takes no part in a capture")                       \
    X(E_CAPTURE_CONFLICT, -49, "two captures depend on one another")                               \
    X(E_CAPTURE_ORDER, -50, "a capture depends on work outside of it")                             \
    X(E_UNJOINED, -51, "work of a capture was not joined to the stream where it began")            \
    X(E_CAPTURE_ORIGIN, -52, "the capture did not begin on this stream")                           \
    X(E_CAPTURE_THREAD, -53, "the capture was begun by another thread")                            \
    X(E_CAPTURE_INVALID, -54, "the capture became invalid by an earlier error")                    \
    X(E_CAPTURE_OPEN, -55, "a conditional body is not captured yet")                               \
    X(E_GRAPH_CAPTURING, -56, "the graph is being captured")                                       \
    X(E_GRAPH_CONTEXT, -57, "the graph belongs to another context")                                \
    X(E_GRAPH_STREAM, -58, "graph and stream do not belong together so")                           \
    X(E_GRAPH_RUNNING, -59, "the graph still runs")                                                \
    X(E_GRAPH_UPDATE, -60, "the graph cannot be updated")                                          \
    X(E_GRAPH_ABORTED, -61, "the run of the graph was aborted")                                    \
    X(E_GROUP_STATE, -62, "task groups begin and end in turn")                                     \
    X(E_GROUP_BROKEN, -63, "another stream's task came into a task group")                         \
    X(E_TASK_KIND, -64, "tasks of this kind are not allowed here")                                 \
    X(E_TOO_SHORT, -65, "the array has no room for all")

typedef enum bly_status {
#define BLY_STATUS_ENUM(name, value, text) BLY_##name = value,
    BLY_STATUS(BLY_STATUS_ENUM)
#undef BLY_STATUS_ENUM
} bly_status;

/* Name ("E_NO_MEMORY") and text of a status; "E_UNKNOWN" for other values. [any] */
BLY_API const char *bly_status_name(bly_status status);
BLY_API const char *bly_status_text(bly_status status);

/* The sentence of the last error that a bly_ call returned in this thread, or
 * "" when there was none. Valid until the thread's next bly_ call. [any] */
BLY_API const char *bly_last_error(void);

/* "0.1.0". [any] */
BLY_API const char *bly_version(void);

#ifdef __cplusplus
}
#endif
#endif
