/* SPDX-License-Identifier: Apache-2.0
 *
 * callback.h - user code in stream order: host functions (a thread of the context's) and
 * callbacks (the thread that processes reports). A stream uses one of the two, for ever.
 */
#ifndef BLYI_CALLBACK_H
#define BLYI_CALLBACK_H

#include <belay/base.h>
#include <stdbool.h>

/* The stream waits for `fn`. stream NULL: default. E_SUBSCRIBED: the stream has a report
 * thread; E_SYSTEM: the context's thread could not be made. [any] */
bly_status blyi_callback_host_func(void *stream, void (*fn)(void *), void *arg, uint32_t site);

/* thread_id is a pthread_t value, as AscendCL wants it. E_SUBSCRIBED: the stream has another
 * thread, or uses host functions. stream must not be NULL (E_HANDLE). */
bly_status blyi_callback_subscribe(uint64_t thread_id, void *stream);
bly_status blyi_callback_unsubscribe(uint64_t thread_id, void *stream);
/* block: later tasks wait until fn has returned. E_NOT_SUBSCRIBED. stream NULL: default. */
bly_status blyi_callback_launch(void (*fn)(void *), void *arg, bool block, void *stream,
                                uint32_t site);
/* Runs one ready callback of this thread. timeout_ns 0: no limit. E_TIMEOUT;
 * E_NOT_SUBSCRIBED: this thread serves no stream. */
bly_status blyi_callback_process(uint64_t timeout_ns);

#endif
