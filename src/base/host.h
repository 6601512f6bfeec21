/* SPDX-License-Identifier: Apache-2.0
 *
 * host.h - all host memory of the library goes through here, so that its use can
 * be counted, limited, and made to fail on purpose.
 *
 * Failure is NULL; the caller decides the error (usually E_HOST_MEMORY) and its
 * sentence. [any thread]
 */
#ifndef BLYI_HOST_H
#define BLYI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *blyi_host_alloc(size_t size);
void *blyi_host_calloc(size_t count, size_t size); /* zeroed; NULL on overflow */
/* The same for blocks that are filled from end to end at once: the kernel is asked for huge pages
 * where they are large, which spares a fault per 4 KiB. */
void *blyi_host_alloc_dense(size_t size);
void *blyi_host_calloc_dense(size_t count, size_t size);
/* old may be NULL; on failure old is untouched. */
void *blyi_host_realloc(void *old, size_t size);
char *blyi_host_strdup(const char *text);
void blyi_host_free(void *ptr); /* NULL is allowed */

struct blyi_host_stats {
    uint64_t live_bytes; /* usable bytes of live blocks */
    uint64_t live_blocks;
    uint64_t peak_bytes;
    uint64_t calls; /* allocations asked for, failed ones included */
};
void blyi_host_stats(struct blyi_host_stats *out);

/* Limit of live bytes; 0: none. */
void blyi_host_set_limit(uint64_t bytes);

/* The nth allocation from now (1 = the next one) fails once; 0 switches it off. */
void blyi_host_fail_nth(uint64_t n);
/* True once the failure armed by blyi_host_fail_nth() has happened. */
bool blyi_host_failed(void);

#endif
