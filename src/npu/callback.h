/* SPDX-License-Identifier: Apache-2.0
 *
 * callback.h - user code in stream order: host functions (a thread of the context's) and
 * callbacks (the thread that processes reports). A stream uses one of the two, for ever; but a
 * program's own thread that was subscribed for host functions runs them on any stream.
 */
#ifndef BLYI_CALLBACK_H
#define BLYI_CALLBACK_H

#include <belay/base.h>
#include <stdbool.h>

enum blyi_serves { BLYI_SERVES_CALLBACKS, BLYI_SERVES_HOST_FUNCS, BLYI_SERVES_COUNT };

/* The stream waits for `fn`. stream NULL: default. E_SUBSCRIBED: the stream has a report
 * thread, and none for host functions; E_SYSTEM: the context's thread could not be made. [any] */
bly_status blyi_callback_host_func(void *stream, void (*fn)(void *), void *arg, uint32_t site);

/* thread_id is a pthread_t value, as AscendCL wants it. E_SUBSCRIBED: the stream has another
 * thread for this, or (callbacks) uses host functions of the context's thread. stream must not be
 * NULL (E_HANDLE). What was not begun when a subscription ends is dropped. */
bly_status blyi_callback_subscribe(enum blyi_serves what, uint64_t thread_id, void *stream);
bly_status blyi_callback_unsubscribe(enum blyi_serves what, uint64_t thread_id, void *stream);
/* block: later tasks wait until fn has returned. E_NOT_SUBSCRIBED. stream NULL: default. */
bly_status blyi_callback_launch(void (*fn)(void *), void *arg, bool block, void *stream,
                                uint32_t site);
/* Runs one ready callback, or host function, of this thread. timeout_ns 0: no limit. E_TIMEOUT;
 * E_NOT_SUBSCRIBED: this thread serves no stream. */
bly_status blyi_callback_process(enum blyi_serves what, uint64_t timeout_ns);

#endif
