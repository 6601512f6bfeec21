/* SPDX-License-Identifier: Apache-2.0
 *
 * value.c - words of card memory as signals.
 */
#include "npu/value.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/probe.h"
#include "base/site.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/fault.h"
#include "npu/gate.h"
#include "npu/guard.h"
#include "npu/memory.h"
#include "npu/queue.h"

static bly_status queue(void *address, const struct blyi_task *task, void *handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (((uintptr_t)address & 7) != 0)
        status = blyi_fail(BLY_E_ALIGN, "the word at %p is not aligned to 8 bytes", address);
    else if (blyi_place_of(address, NULL) != BLYI_PLACE_CARD)
        status = blyi_fail(BLY_E_INVALID, "the word at %p is no card memory", address);
    else if (task->kind == BLYI_TASK_VALUE_WAIT && blyi_block_need_timer() != 0)
        status = blyi_fail(BLY_E_SYSTEM, "the thread that looks at words cannot be made");
    if (status == BLY_OK)
        status = blyi_queue_submit(stream, task);
    blyi_stream_unpin(stream);
    return status;
}

bly_status blyi_value_write(void *address, uint64_t value, void *stream, uint32_t site)
{
    struct blyi_task task = {.kind = BLYI_TASK_VALUE_WRITE, .site = site};
    task.u.value.address = address;
    task.u.value.value = value;
    return queue(address, &task, stream);
}

bly_status blyi_value_wait(void *address, uint64_t value, enum blyi_value_condition condition,
                           void *stream, uint32_t site)
{
    struct blyi_task task = {
        .kind = BLYI_TASK_VALUE_WAIT, .value = (uint8_t)condition, .site = site};
    task.u.value.address = address;
    task.u.value.value = value;
    return queue(address, &task, stream);
}

/* A word that may be freed while we look at it. */
struct word {
    uint64_t *address;
    uint64_t value;
};

static void load(void *arg)
{
    struct word *word = arg;
    word->value = __atomic_load_n(word->address, __ATOMIC_ACQUIRE);
    blyi_order_acquire(word->address);
}

static void store(void *arg)
{
    struct word *word = arg;
    blyi_order_release(word->address);
    __atomic_store_n(word->address, word->value, __ATOMIC_RELEASE);
}

static bly_status touch(const struct blyi_stream *stream, const struct blyi_task *task,
                        struct word *word, bool writes)
{
    uintptr_t address = (uintptr_t)word->address;
    struct blyi_fault_range ranges[2] = {{address, sizeof(uint64_t)}, {0, 0}};
    uint32_t gate = blyi_gate_enter();
    bly_status status =
        blyi_mem_use(word->address, sizeof(uint64_t), writes ? BLYI_WRITE : BLYI_READ);
    if (status == BLY_OK && unlikely(blyi_guard.has_alias)) {
        void *way; /* a word does not lie across two granules */
        blyi_guard_way(word->address, sizeof(uint64_t), &way);
        word->address = way;
        ranges[0].start = (uintptr_t)way;
    }
    if (status == BLY_OK && !blyi_fault_try(writes ? store : load, word, ranges, &address))
        status = blyi_fail(BLY_E_FAULT, "the word at %p was freed", task->u.value.address);
    blyi_gate_leave(gate);
    if (status != BLY_OK) {
        char site[BLYI_SITE_TEXT];
        blyi_fail_append("; on stream %" PRIu32 ", queued at %s", stream->id,
                         blyi_site_text(task->site, site));
    }
    return status;
}

void blyi_value_run_write(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct word word = {task->u.value.address, task->u.value.value};
    *status = touch(stream, task, &word, true);
    blyi_block_look_again();
}

bool blyi_value_run_wait(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    uint64_t value = task->u.value.value;
    /* The turn first: a write behind our look moves it. */
    uint32_t turn = blyi_block_looks();
    struct word word = {task->u.value.address, 0};
    *status = touch(stream, task, &word, false);
    if (*status != BLY_OK)
        return true;
    switch ((enum blyi_value_condition)task->value) {
    case BLYI_VALUE_GREATER_EQUAL:
        if ((int64_t)(word.value - value) >= 0)
            return true;
        break;
    case BLYI_VALUE_EQUAL:
        if (word.value == value)
            return true;
        break;
    case BLYI_VALUE_AND:
        if ((word.value & value) != 0)
            return true;
        break;
    case BLYI_VALUE_NOR:
        if (~(word.value | value) != 0)
            return true;
        break;
    }
    return !blyi_block_to_look(stream, turn);
}
