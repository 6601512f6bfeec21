/* SPDX-License-Identifier: Apache-2.0 */
#include "npu/reach.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/probe.h"
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/queue.h"

#define DEREFERENCES 2

/* What is at an address, if anything is: by the kernel, as a load could be a signal. */
static uintptr_t word_at(uintptr_t at)
{
    uintptr_t word = 0;
    struct iovec to = {&word, sizeof(word)};
    struct iovec from = {(void *)at, sizeof(word)}; /* NOLINT: may be no address */
    long n = syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 0UL);
    return n == (long)sizeof(word) ? word : 0;
}

static uintptr_t block_around(uintptr_t at)
{
    const void *address = (const void *)at; /* NOLINT */
    struct blyi_pinned_block block;
    if (blyi_place_of(address, NULL) != BLYI_PLACE_PINNED || !blyi_pinned_find(address, &block))
        return 0;
    return block.address;
}

static void tell(const struct blyi_reach *reach, const struct blyi_stream *stream, bool ended)
{
    if (reach->block != 0)
        BLYI_PROBE(CALLBACK_REACH, .card = stream->card->id, .stream = stream->id,
                   .address = reach->block, .aux = ended);
}

void blyi_reach_begin(struct blyi_reach *reach, const struct blyi_stream *stream, const void *arg)
{
    uintptr_t at = (uintptr_t)arg;
    reach->block = 0;
    if (!blyi_probe_on(BLYI_PROBE_CALLBACK_REACH))
        return;
    reach->block = block_around(at);
    for (int i = 0; i < DEREFERENCES && reach->block == 0 && at != 0; i++) {
        at = word_at(at);
        reach->block = block_around(at);
    }
    tell(reach, stream, false);
}

void blyi_reach_end(const struct blyi_reach *reach, const struct blyi_stream *stream)
{
    tell(reach, stream, true);
}
