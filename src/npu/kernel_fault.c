/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_fault.c - telling what a kernel died of.
 */
#include "npu/kernel_inside.h"

#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/site.h"
#include "base/symtab.h"
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/queue.h"

const char *blyi_kernel_name(struct blyi_launch *launch)
{
    uint64_t offset;
    char name[BLYI_SYMTAB_NAME];
    if (launch->name[0] == '\0') {
        const void *pc;
        memcpy(&pc, &launch->fn, sizeof(pc));
        if (blyi_symtab_find(pc, name, &offset))
            snprintf(launch->name, sizeof(launch->name), "%.63s", name);
        else
            snprintf(launch->name, sizeof(launch->name), "%p", pc);
    }
    return launch->name;
}

void blyi_kernel_tell_launch(const struct blyi_stream *stream, const struct blyi_task *task)
{
    char site[BLYI_SITE_TEXT];
    blyi_fail_append("; on stream %" PRIu32 " of card %d, launched at %s", stream->id,
                     stream->card->id, blyi_site_text(task->site, site));
}

static const char *name_of_signal(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    }
    return "SIGTRAP";
}

/* What the address is to the card: a sentence begun with "; " or nothing. */
static void describe(const struct blyi_fault_kernel *fault, char *text, size_t size)
{
    text[0] = '\0';
    if (!fault->has_address)
        return;
    switch (blyi_place_of((const void *)fault->address, NULL)) {
    case BLYI_PLACE_CARD:
        if (blyi_mem_use((const void *)fault->address, 1, BLYI_READ | BLYI_WRITE) != BLY_OK)
            snprintf(text, size, "; %s", blyi_fail_text());
        break;
    case BLYI_PLACE_PINNED:
        snprintf(text, size, "; no live pinned memory is there");
        break;
    case BLYI_PLACE_HOST:
        snprintf(text, size, "; the address is no memory of the card");
        break;
    }
}

bly_status blyi_kernel_failed(struct blyi_stream *stream, struct blyi_task *task)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    const struct blyi_fault_kernel *fault = &launch->fault;
    bly_status status = blyi_kernel_engine_status((bly_engine)launch->engine);
    if (fault->stopped && launch->expired)
        status = blyi_kernel_engine_timeout((bly_engine)launch->engine);
    else if (fault->stopped && (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0)
        status = BLY_E_CANCELLED;
    if (fault->stopped && launch->expired) {
        (void)blyi_fail(
            status,
            "kernel %s ran longer than %" PRIu64 " us on %s, in block %" PRIu32 " of %" PRIu32,
            blyi_kernel_name(launch), launch->timeout_us,
            blyi_kernel_engine_name((bly_engine)launch->engine), launch->block, launch->n_blocks);
    } else if (fault->stopped) {
        (void)blyi_fail(status, "kernel %s was stopped on %s in block %" PRIu32 " of %" PRIu32,
                        blyi_kernel_name(launch),
                        blyi_kernel_engine_name((bly_engine)launch->engine), launch->block,
                        launch->n_blocks);
    } else {
        char why[BLYI_FAIL_MAX], place[64] = "", function[BLYI_SYMTAB_NAME];
        uint64_t offset;
        describe(fault, why, sizeof(why));
        if (fault->has_address)
            snprintf(place, sizeof(place), " at 0x%" PRIxPTR, fault->address);
        if (!blyi_symtab_find((const void *)fault->instruction, function, &offset)) {
            snprintf(function, sizeof(function), "0x%" PRIxPTR, fault->instruction);
            offset = 0;
        }
        (void)blyi_fail(status,
                        "kernel %s faulted on %s in block %" PRIu32 " of %" PRIu32
                        ": %s%s by the code at %s+0x%" PRIx64 "%s",
                        blyi_kernel_name(launch),
                        blyi_kernel_engine_name((bly_engine)launch->engine), launch->block,
                        launch->n_blocks, name_of_signal(fault->signal), place, function, offset,
                        why);
    }
    blyi_kernel_tell_launch(stream, task);
    return status;
}
