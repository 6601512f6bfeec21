/* SPDX-License-Identifier: Apache-2.0
 *
 * twin.h - host memory that is backed as a card's frames are: a memfd, touched and collapsed to
 * huge pages. What a bound works on.
 */
#ifndef BENCH_TWIN_H
#define BENCH_TWIN_H

#include <stddef.h>
#include <stdint.h>

#define TWIN_FRAME ((size_t)2 << 20)

struct twin {
    int fd;
    char *base;    /* inside a larger reservation, as a card's window is */
    size_t size;   /* a multiple of the frame */
    uint64_t huge; /* bytes that huge pages map */
};

/* All of it is resident and mapped at `base`. Stops the program when the host refuses. */
void twin_open(struct twin *twin, size_t size);
/* The same in two steps: mapped but empty; then one frame at an offset gets its memory. */
void twin_open_empty(struct twin *twin, size_t size);
void twin_commit(struct twin *twin, size_t offset);
void twin_close(struct twin *twin);

/* The two halves of what an allocation must do at least. */
void twin_map(struct twin *twin, size_t size);
void twin_unmap(struct twin *twin, size_t size);

#endif
