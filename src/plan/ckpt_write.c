/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_write.c - see ckpt_write.h. The table does not keep how its corners came about; the
 * ways of a part are gone through again and the one that takes the corner's time is written.
 */
#include "plan/ckpt_write.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"

struct writer {
    const struct blyi_ckpt_table *table;
    bly_ckpt_op *ops;
    size_t n, capacity;
    bool *ran;         /* n + 1 values: a stage has run forward */
    bly_status status; /* of the first step that failed; nothing is written from then on */
};

static void put(struct writer *writer, bly_ckpt_kind kind, uint32_t stage)
{
    if (writer->status != BLY_OK)
        return;
    if (writer->n == writer->capacity) {
        size_t capacity = writer->capacity * 2 + 64;
        bly_ckpt_op *ops = blyi_host_realloc(writer->ops, capacity * sizeof(*ops));
        if (ops == NULL) {
            writer->status = blyi_fail(BLY_E_HOST_MEMORY,
                                       "no host memory for a schedule of %zu steps", capacity);
            return;
        }
        writer->ops = ops;
        writer->capacity = capacity;
    }
    if (kind == BLY_CKPT_FORWARD && writer->ran[stage])
        kind = BLY_CKPT_RECOMPUTE;
    if (kind == BLY_CKPT_FORWARD || kind == BLY_CKPT_SAVE)
        writer->ran[stage] = true;
    writer->ops[writer->n++] = (bly_ckpt_op){kind, stage};
}

/* Forward first .. last, of which only the last output stays. */
static void put_forwards(struct writer *writer, uint32_t first, uint32_t last)
{
    for (uint32_t stage = first; stage <= last; stage++) {
        put(writer, BLY_CKPT_FORWARD, stage);
        if (stage > first)
            put(writer, BLY_CKPT_DROP, stage - 1);
    }
}

static void put_part(struct writer *writer, struct blyi_ckpt_part part, uint64_t memory);

static void put_save(struct writer *writer, const struct blyi_ckpt_part *part, uint64_t memory)
{
    bool alone = part->first == part->last;
    if (!alone || part->class != BLYI_CKPT_HELD)
        put(writer, BLY_CKPT_SAVE, part->first);
    if (!alone)
        put_part(writer, (struct blyi_ckpt_part){part->first + 1, part->last, part->class}, memory);
    put(writer, BLY_CKPT_BACKWARD, part->first);
}

static void put_checkpoint(struct writer *writer, const struct blyi_ckpt_part *part, uint32_t k,
                           uint64_t above, uint64_t below)
{
    enum blyi_ckpt_class class =
        part->class == BLYI_CKPT_PERSISTENT ? BLYI_CKPT_PERSISTENT : BLYI_CKPT_EARLY;
    put_forwards(writer, part->first, k);
    put_part(writer, (struct blyi_ckpt_part){k + 1, part->last, part->class}, above);
    put(writer, BLY_CKPT_DROP, k);
    put_part(writer, (struct blyi_ckpt_part){part->first, k, class}, below);
}

static void put_early(struct writer *writer, const struct blyi_ckpt_part *part, uint32_t k,
                      uint64_t above, uint64_t below)
{
    put_forwards(writer, part->first, k - 1);
    put(writer, BLY_CKPT_SAVE, k);
    put(writer, BLY_CKPT_DROP, k - 1);
    put_part(writer, (struct blyi_ckpt_part){k + 1, part->last, part->class}, above);
    put_part(writer, (struct blyi_ckpt_part){part->first, k, BLYI_CKPT_HELD}, below);
}

static void put_part(struct writer *writer, struct blyi_ckpt_part part, uint64_t memory)
{
    if (writer->status != BLY_OK)
        return;
    const struct blyi_ckpt_corner *corner =
        blyi_ckpt_curve_at(blyi_ckpt_table_curve(writer->table, &part), memory);
    bly_check_msg(corner != NULL, "part %u .. %u", part.first, part.last);
    memory = corner->memory;

    struct blyi_ckpt_ways ways;
    blyi_ckpt_ways_start(&ways, writer->table, &part);
    bool found = false;
    while (!found && blyi_ckpt_ways_next(&ways))
        found = blyi_ckpt_way_time(&ways.way, memory) == corner->time;
    bly_check_msg(found, "part %u .. %u", part.first, part.last);

    uint64_t above = memory - ways.way.held;
    if (ways.choice == BLYI_CKPT_AS_PERSISTENT)
        put_part(writer, (struct blyi_ckpt_part){part.first, part.last, BLYI_CKPT_PERSISTENT},
                 memory);
    else if (ways.choice == BLYI_CKPT_SAVE)
        put_save(writer, &part, above);
    else if (ways.choice == BLYI_CKPT_CHECKPOINT)
        put_checkpoint(writer, &part, ways.k, above, memory);
    else
        put_early(writer, &part, ways.k, above, memory);
}

bly_status blyi_ckpt_write(const struct blyi_ckpt_table *table, enum blyi_ckpt_class class,
                           uint64_t memory, bly_ckpt_op **ops, size_t *n_ops)
{
    uint32_t n = table->model->n;
    struct writer writer = {.table = table};
    writer.ran = blyi_host_calloc((size_t)n + 1, sizeof(*writer.ran));
    if (writer.ran == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a schedule of %u stages", n);
    put_part(&writer, (struct blyi_ckpt_part){1, n, class}, memory);
    blyi_host_free(writer.ran);
    if (writer.status != BLY_OK) {
        blyi_host_free(writer.ops);
        return writer.status;
    }
    *ops = writer.ops;
    *n_ops = writer.n;
    return BLY_OK;
}
