/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder_live.c - live blocks in an open-addressing table that lies in the file, because a ring
 * forgets who allocated what is still live, and a killed process cannot say it.
 *
 * The address is written last and cleared last: whoever reads the file of a dead process finds
 * whole entries, at worst one of them twice.
 */
#include "observe/recorder_inside.h"

static struct blyi_trace_block *entries(struct blyi_trace_chunk *table)
{
    return (struct blyi_trace_block *)(void *)(table + 1);
}

static uint64_t home_of(uint64_t address, int class_, uint64_t capacity)
{
    uint64_t key = blyi_trace_block_key(address, class_) * 0x9e3779b97f4a7c15u;
    return (key >> 20) & (capacity - 1);
}

static bool is(const struct blyi_trace_block *entry, uint64_t address, int class_)
{
    return entry->address == address && entry->class_ == class_;
}

/* All but the address, then the address. */
static void publish(struct blyi_trace_block *to, const struct blyi_trace_block *block)
{
    struct blyi_trace_block hidden = *block;
    hidden.address = 0;
    *to = hidden;
    __atomic_store_n(&to->address, block->address, __ATOMIC_RELEASE);
}

static void clear(struct blyi_trace_block *entry)
{
    __atomic_store_n(&entry->address, 0, __ATOMIC_RELEASE);
}

/* The entry of a block, or the empty one where it belongs. */
static struct blyi_trace_block *find(struct blyi_trace_chunk *table, uint64_t address, int class_)
{
    struct blyi_trace_block *all = entries(table);
    uint64_t mask = table->capacity - 1, i = home_of(address, class_, table->capacity);
    while (all[i].address != 0 && !is(&all[i], address, class_))
        i = (i + 1) & mask;
    return &all[i];
}

static bly_status new_table(uint64_t capacity, struct blyi_trace_chunk **table, uint64_t *at)
{
    uint64_t bytes = sizeof(**table) + capacity * sizeof(struct blyi_trace_block);
    uint32_t n = (uint32_t)((bytes + BLYI_TRACE_CHUNK - 1) / BLYI_TRACE_CHUNK);
    bly_status status = blyi_recfile_take(&blyi_rec.file, BLYI_TRACE_CHUNK_TABLE, n, table, at);
    if (status == BLY_OK) {
        (*table)->capacity = capacity;
        (*table)->used = (uint32_t)(bytes - sizeof(**table));
    }
    return status;
}

static void use_table(struct blyi_trace_chunk *table, uint64_t at)
{
    blyi_rec.table = table;
    __atomic_store_n(&blyi_rec.file.header->table_at, at, __ATOMIC_RELEASE);
}

bly_status blyi_rec_live_begin_locked(void)
{
    struct blyi_trace_chunk *table;
    uint64_t at;
    blyi_rec.n_live = 0;
    bly_status status = new_table(BLYI_TRACE_TABLE_MIN, &table, &at);
    if (status == BLY_OK)
        use_table(table, at);
    return status;
}

static bly_status grow(void)
{
    struct blyi_trace_chunk *old = blyi_rec.table, *table;
    uint64_t at;
    bly_status status = new_table(2 * old->capacity, &table, &at);
    if (status != BLY_OK)
        return status;
    for (uint64_t i = 0; i < old->capacity; i++) {
        const struct blyi_trace_block *entry = &entries(old)[i];
        if (entry->address != 0)
            publish(find(table, entry->address, entry->class_), entry);
    }
    use_table(table, at);
    return BLY_OK;
}

bly_status blyi_rec_live_add_locked(const struct blyi_trace_block *block)
{
    if (block->address == 0)
        return BLY_OK;
    if (2 * (blyi_rec.n_live + 1) > blyi_rec.table->capacity) {
        bly_status status = grow();
        if (status != BLY_OK)
            return status;
    }
    struct blyi_trace_block *entry = find(blyi_rec.table, block->address, block->class_);
    if (entry->address == 0)
        blyi_rec.n_live++;
    else
        clear(entry);
    publish(entry, block);
    return BLY_OK;
}

/* Closes the gap: what stands behind it in the same row moves up where it may. */
void blyi_rec_live_remove_locked(uint64_t address, int class_)
{
    struct blyi_trace_block *all = entries(blyi_rec.table);
    uint64_t capacity = blyi_rec.table->capacity, mask = capacity - 1;
    struct blyi_trace_block *entry = find(blyi_rec.table, address, class_);
    if (address == 0 || entry->address == 0)
        return;
    uint64_t gap = (uint64_t)(entry - all);
    for (uint64_t i = (gap + 1) & mask; all[i].address != 0; i = (i + 1) & mask) {
        uint64_t home = home_of(all[i].address, all[i].class_, capacity);
        if (((i - home) & mask) < ((i - gap) & mask))
            continue; /* it would stand before its home */
        struct blyi_trace_block moved = all[i];
        clear(&all[gap]);
        publish(&all[gap], &moved);
        gap = i;
    }
    clear(&all[gap]);
    blyi_rec.n_live--;
}

bool blyi_rec_live_audit_locked(void)
{
    struct blyi_trace_chunk *table = blyi_rec.table;
    uint64_t n = 0;
    if (table == NULL)
        return true;
    for (uint64_t i = 0; i < table->capacity; i++) {
        const struct blyi_trace_block *entry = &entries(table)[i];
        if (entry->address == 0)
            continue;
        n++;
        if (find(table, entry->address, entry->class_) != entry)
            return false;
    }
    return n == blyi_rec.n_live && 2 * n <= table->capacity;
}
