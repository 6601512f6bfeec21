/* SPDX-License-Identifier: Apache-2.0 */
#include "../npu/order_test.h"

#include "backend/sim.h"
#include "device.h"

static struct blyi_sim *sim;
static uint32_t n_streams;

static struct blyi_backend *open_sim(void)
{
    n_streams = 0;
    assert_ok(blyi_sim_create(DEVICE_TOTAL, BLYI_SIM_HELD, &sim));
    return blyi_sim_backend(sim);
}

static void close_sim(struct blyi_backend *backend)
{
    backend->ops->close(backend);
}

static void *make_stream(void)
{
    return blyi_sim_stream(n_streams++);
}

static void end_stream(struct blyi_backend *backend, void *stream)
{
    (void)backend;
    blyi_sim_end(sim, stream);
}

static void hold(void *stream, uintptr_t memory)
{
    (void)blyi_sim_use(sim, stream, (void *)memory, 1);
    blyi_sim_stick(sim, stream, true);
}

static void go(void *stream)
{
    blyi_sim_stick(sim, stream, false);
    blyi_sim_complete(sim, stream);
}

const struct device device_sim = {"sim", open_sim, close_sim, make_stream, end_stream, hold, go};
