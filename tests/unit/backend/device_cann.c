/* SPDX-License-Identifier: Apache-2.0
 *
 * device_cann.c - Belay's own library in place of a vendor's. It is another copy of the runtime
 * than the one in this program, with a card of its own.
 */
#include "../npu/order_test.h"

#include <acl/acl_rt.h>
#include <dlfcn.h>
#include "backend/cann.h"
#include "backend/cann_library.h"
#include "device.h"

#define CALLS(X)                                                                                   \
    X(aclrtSetDevice, (int32_t))                                                                   \
    X(aclrtResetDevice, (int32_t))                                                                 \
    X(aclrtCreateStream, (aclrtStream *))                                                          \
    X(aclrtDestroyStream, (aclrtStream))                                                           \
    X(aclrtSynchronizeStream, (aclrtStream))                                                       \
    X(aclrtLaunchHostFunc, (aclrtStream, aclrtHostFunc, void *))

static struct {
#define FIELD(name, parameters) aclError(*name) parameters;
    CALLS(FIELD)
#undef FIELD
} vendor;

static uint32_t may_go;

static struct blyi_backend *open_cann(void)
{
    struct blyi_backend *backend = NULL;
    assert_int_equal(setenv("BELAY_HBM", "272MiB", 1), 0);
    void *library = dlopen(VENDOR, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define FIND(name, parameters) *(void **)&vendor.name = dlsym(library, #name);
    CALLS(FIND)
#undef FIND
    assert_int_equal(vendor.aclrtSetDevice(0), 0);
    assert_status(blyi_backend_cann(0, VENDOR, &backend), BLY_E_UNSUPPORTED);
    assert_sentence("is Belay's own");
    blyi_cann_own_is_fine = true;
    assert_ok(blyi_backend_cann(-1, VENDOR, &backend));
    return backend;
}

static void close_cann(struct blyi_backend *backend)
{
    backend->ops->close(backend);
    assert_int_equal(vendor.aclrtResetDevice(0), 0);
    blyi_cann_own_is_fine = false;
}

static void *make_stream(void)
{
    aclrtStream stream = NULL;
    assert_int_equal(vendor.aclrtCreateStream(&stream), 0);
    return stream;
}

static void end_stream(struct blyi_backend *backend, void *stream)
{
    assert_int_equal(vendor.aclrtSynchronizeStream(stream), 0);
    blyi_cann_end(backend, stream);
    assert_int_equal(vendor.aclrtDestroyStream(stream), 0);
}

static void until_it_may(void *arg)
{
    (void)arg;
    while (__atomic_load_n(&may_go, __ATOMIC_ACQUIRE) == 0)
        blyi_sys_futex_wait(&may_go, 0, 0);
}

static void hold(void *stream, uintptr_t memory)
{
    (void)memory;
    __atomic_store_n(&may_go, 0, __ATOMIC_RELEASE);
    assert_int_equal(vendor.aclrtLaunchHostFunc(stream, until_it_may, NULL), 0);
}

static void go(void *stream)
{
    __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&may_go, 1);
    assert_int_equal(vendor.aclrtSynchronizeStream(stream), 0);
}

const struct device device_cann = {"cann",     open_cann, close_cann, make_stream,
                                   end_stream, hold,      go};
