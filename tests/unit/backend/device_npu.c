/* SPDX-License-Identifier: Apache-2.0 */
#include "../npu/order_test.h"

#include "device.h"
#include "npu/vmm.h"

static struct blyi_backend *open_npu(void)
{
    struct blyi_backend *backend = NULL;
    assert_ok(blyi_option_set(BLYI_OPT_HBM, "272MiB")); /* 16 MiB are the runtime's */
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_backend_npu(-1, &backend));
    return backend;
}

static void close_npu(struct blyi_backend *backend)
{
    struct blyi_vmm_figures figures;
    backend->ops->close(backend);
    blyi_vmm_figures(0, &figures);
    assert_int_equal(figures.handles, 0);
    assert_int_equal(figures.reservations, 0);
    assert_true(blyi_vmm_audit());
    assert_ok(blyi_device_reset(0, true));
    blyi_runtime_finalise();
}

static void *make_stream(void)
{
    void *stream = NULL;
    assert_ok(blyi_stream_create(0, 0, 0, &stream));
    return stream;
}

static void end_stream(struct blyi_backend *backend, void *stream)
{
    (void)backend;
    assert_ok(blyi_stream_destroy(stream, false));
}

static void hold(void *stream, uintptr_t memory)
{
    (void)memory;
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_stream_nop(stream));
}

static void go(void *stream)
{
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
}

const struct device device_npu = {"npu", open_npu, close_npu, make_stream, end_stream, hold, go};
