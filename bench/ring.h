/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.h - the bound of a stream: a bare ring of 64-byte records between two threads that both
 * spin, without handles, order, errors or sleep. One producer.
 */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RING_RECORDS 1024u

struct ring_record {
    _Alignas(64) uint64_t turn; /* position + 1 once written */
    uint64_t payload[7];
};

struct ring {
    struct ring_record records[RING_RECORDS];
    _Alignas(64) uint64_t done; /* records consumed; written by the consumer alone */
    _Alignas(64) uint64_t queued;
    _Alignas(64) bool stop;
    uint64_t sum; /* of the payload, so that reading it cannot be left out */
    pthread_t consumer;
    int cpu;
};

/* Starts the consumer on the nth CPU; false when the thread cannot be made. */
bool ring_open(struct ring *ring, int cpu);
void ring_close(struct ring *ring);

void ring_submit(struct ring *ring);
void ring_sync(struct ring *ring);

#endif
