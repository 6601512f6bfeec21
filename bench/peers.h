/* SPDX-License-Identifier: Apache-2.0
 *
 * peers.h - allocators of host memory that may be installed, to measure beside the pool: they write
 * into what they hand out and thread their lists through it, which a pool of device memory cannot.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stddef.h>

struct peer {
    const char *name;
    void *(*alloc)(size_t size);
    void (*free)(void *block);
};

#define PEERS_MAX 8

/* Those that the loader finds, libc's first. */
size_t peers_find(struct peer peers[PEERS_MAX]);

#endif
