/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chain.c - the reader of chains takes any bytes; a chain that is read is in its contract,
 * and small ones are planned, too.
 */
#include <belay/checkpoint.h>

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond)
{
    if (!cond)
        abort();
}

static void plan(const bly_chain *chain)
{
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_front front;
    bly_ckpt_schedule schedule;
    opts.unpacked = 1;
    require(bly_checkpoint_front(chain, &opts, &front) == BLY_OK);
    require(front.n > 0);
    uint64_t budget = front.points[front.n / 2].budget;
    require(bly_checkpoint(chain, budget, &opts, &schedule) == BLY_OK);
    require(schedule.peak == budget);
    bly_ckpt_schedule_release(&schedule);
    bly_ckpt_front_release(&front);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_chain chain;
    bly_status status = bly_chain_parse((const char *)data, size, "input", &chain);
    require(status == BLY_OK || status == BLY_E_PARSE || status == BLY_E_INVALID);
    if (status != BLY_OK) {
        require(bly_last_error()[0] != '\0');
        return 0;
    }
    require(chain.n > 0 && chain.n <= BLY_CHAIN_STAGES_MAX);
    if (chain.n <= 12)
        plan(&chain);
    bly_chain_release(&chain);
    return 0;
}
