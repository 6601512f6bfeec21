/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_plan.c - the reader of buffers takes any bytes; what it reads is planned, and the plan
 * passes the sweep or is refused with a sentence.
 */
#include <belay/plan.h>

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_plan_input input;
    bly_status status = bly_plan_parse((const char *)data, size, "input", &input);
    require(status == BLY_OK || status == BLY_E_PARSE);
    if (status != BLY_OK) {
        require(bly_last_error()[0] != '\0');
        return 0;
    }
    bly_plan_opts opts = bly_plan_opts_default();
    bly_plan_result result;
    bly_plan_period period;
    opts.node_budget = 300;
    opts.n_threads = 1;
    status = bly_plan(input.buffers, input.n, &opts, &result);
    if (status == BLY_OK) {
        require(result.lower_bound <= result.peak);
        bly_plan_release(&result);
    } else {
        require(status == BLY_E_INVALID && bly_last_error()[0] != '\0');
    }
    status = bly_plan_find_period(input.buffers, input.n, &period);
    require(status == BLY_OK || status == BLY_E_STATE || status == BLY_E_INVALID);
    bly_plan_input_release(&input);
    return 0;
}
