/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.c - see ring.h.
 */
#include "bench/ring.h"
#include "bench/bench.h"

#include <string.h>
#include "base/compiler.h"

static void *consume(void *arg)
{
    struct ring *ring = arg;
    uint64_t next = 0;
    bench_pin(ring->cpu);
    while (!__atomic_load_n(&ring->stop, __ATOMIC_RELAXED)) {
        struct ring_record *record = &ring->records[next % RING_RECORDS];
        if (__atomic_load_n(&record->turn, __ATOMIC_ACQUIRE) != next + 1) {
            blyi_spin_pause();
            continue;
        }
        for (int i = 0; i < 7; i++)
            ring->sum += record->payload[i];
        next++;
        __atomic_store_n(&ring->done, next, __ATOMIC_RELEASE);
    }
    return NULL;
}

bool ring_open(struct ring *ring, int cpu)
{
    memset(ring, 0, sizeof(*ring));
    ring->cpu = cpu;
    return pthread_create(&ring->consumer, NULL, consume, ring) == 0;
}

void ring_close(struct ring *ring)
{
    __atomic_store_n(&ring->stop, true, __ATOMIC_RELAXED);
    pthread_join(ring->consumer, NULL);
}

void ring_submit(struct ring *ring)
{
    while (ring->queued - __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) == RING_RECORDS)
        blyi_spin_pause();
    struct ring_record *record = &ring->records[ring->queued % RING_RECORDS];
    for (unsigned i = 0; i < 7; i++)
        record->payload[i] = ring->queued + i;
    ring->queued++;
    __atomic_store_n(&record->turn, ring->queued, __ATOMIC_RELEASE);
}

void ring_sync(struct ring *ring)
{
    while (__atomic_load_n(&ring->done, __ATOMIC_ACQUIRE) != ring->queued)
        blyi_spin_pause();
}
