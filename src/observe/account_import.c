/* SPDX-License-Identifier: Apache-2.0
 *
 * account_import.c - memory of other processes: who made it counts it, here it can only be
 * forgotten.
 */
#include "base/host.h"
#include "observe/account_inside.h"

void blyi_account_imported(const struct blyi_probe *probe)
{
    struct blyi_account_block *block = blyi_host_alloc(sizeof(*block));
    if (block == NULL) {
        blyi_books.sum.untracked++;
        return;
    }
    *block = (struct blyi_account_block){.group = blyi_account_group_of(probe->card, probe->site),
                                         .size = {1, probe->size, probe->size, probe->backed}};
    if (blyi_map_put(&blyi_books.imports, probe->address, block) != BLY_OK) {
        blyi_host_free(block);
        blyi_books.sum.untracked++;
        return;
    }
    blyi_tally_add(&block->group->imports, &block->size);
}

void blyi_account_import_closed(const struct blyi_probe *probe)
{
    struct blyi_account_block *block = blyi_map_remove(&blyi_books.imports, probe->address);
    if (block == NULL)
        return;
    blyi_tally_sub(&block->group->imports, &block->size);
    if (probe->aux == 1)
        blyi_tally_add(&block->group->imports_reset, &block->size);
    blyi_host_free(block);
}
