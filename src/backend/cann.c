/* SPDX-License-Identifier: Apache-2.0
 *
 * cann.c - a vendor's card as a backend, by the functions that its libascendcl.so offers.
 */
#include "backend/cann_inside.h"

#include <inttypes.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"

#define ERROR_NO_MEMORY 207001

bly_status blyi_cann_failed(struct blyi_cann *cann, const char *name, aclError error)
{
    const char *said = cann->acl.aclGetRecentErrMsg();
    bly_status status = error == ERROR_NO_MEMORY ? BLY_E_NO_MEMORY : BLY_E_SYSTEM;
    return blyi_fail(status, "%s on device %d: error %d%s%s", name, cann->device, (int)error,
                     said != NULL && said[0] != '\0' ? ": " : "", said != NULL ? said : "");
}

void blyi_cann_expect(struct blyi_cann *cann, const char *name, aclError error)
{
    if (error == ACL_SUCCESS)
        return;
    (void)blyi_cann_failed(cann, name, error);
    blyi_log(BLYI_LOG_ERROR, "%s", blyi_fail_text());
    blyi_fail_clear();
}

static void describe(struct blyi_backend *backend, struct blyi_backend_info *info)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    size_t free = 0, total = 0;
    blyi_cann_expect(cann, "aclrtGetMemInfo",
                     cann->acl.aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    *info = (struct blyi_backend_info){.name = "cann",
                                       .device = cann->device,
                                       .granule = cann->granule,
                                       .total = total,
                                       .free = free};
}

static void close_cann(struct blyi_backend *backend)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    bly_check(blyi_list_empty(&cann->lanes));
    blyi_cann_drop_records(cann, &cann->unused);
    blyi_cann_unload(&cann->acl);
    blyi_lock_fini(&cann->lock);
    blyi_host_free(cann);
}

static bly_status alive(struct blyi_backend *backend)
{
    (void)backend;
    return BLY_OK;
}

static bly_status create(struct blyi_backend *backend, uint64_t size, uint64_t *handle)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    aclrtDrvMemHandle made = NULL;
    aclError error = cann->acl.aclrtMallocPhysical(&made, size, &cann->prop, 0);
    if (error == ERROR_NO_MEMORY)
        return BLY_E_NO_MEMORY;
    if (error != ACL_SUCCESS)
        return blyi_cann_failed(cann, "aclrtMallocPhysical", error);
    *handle = (uintptr_t)made;
    return BLY_OK;
}

static void release(struct blyi_backend *backend, uint64_t handle)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    blyi_cann_expect(cann, "aclrtFreePhysical",
                     cann->acl.aclrtFreePhysical((aclrtDrvMemHandle)(uintptr_t)handle));
}

static uint64_t relieve(struct blyi_backend *backend, uint64_t bytes)
{
    (void)backend;
    (void)bytes;
    return 0;
}

static void shortage(struct blyi_backend *backend, uint64_t size)
{
    struct blyi_backend_info info;
    describe(backend, &info);
    (void)size;
    blyi_fail_append("; device %d: %" PRIu64 " B free of %" PRIu64 " B", info.device, info.free,
                     info.total);
}

static bly_status reserve(struct blyi_backend *backend, uint64_t size, uintptr_t *address)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    void *at = NULL;
    aclError error = cann->acl.aclrtReserveMemAddress(&at, size, 0, NULL, 1);
    if (error != ACL_SUCCESS) {
        (void)blyi_cann_failed(cann, "aclrtReserveMemAddress", error);
        return BLY_E_NO_MEMORY;
    }
    *address = (uintptr_t)at;
    return BLY_OK;
}

static void unreserve(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    (void)size;
    blyi_cann_expect(cann, "aclrtReleaseMemAddress",
                     cann->acl.aclrtReleaseMemAddress((void *)address));
}

static bly_status map(struct blyi_backend *backend, uintptr_t address, uint64_t size,
                      uint64_t handle)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    aclError error =
        cann->acl.aclrtMapMem((void *)address, size, 0, (aclrtDrvMemHandle)(uintptr_t)handle, 0);
    return error == ACL_SUCCESS       ? BLY_OK
           : error == ERROR_NO_MEMORY ? blyi_fail(BLY_E_SYSTEM, "aclrtMapMem: error 207001")
                                      : blyi_cann_failed(cann, "aclrtMapMem", error);
}

static void unmap(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    (void)size;
    blyi_cann_expect(cann, "aclrtUnmapMem", cann->acl.aclrtUnmapMem((void *)address));
}

static void cells(struct blyi_backend *backend, struct blyi_cells *out)
{
    (void)backend;
    *out = (struct blyi_cells){NULL, NULL, NULL};
}

static bly_status pin(struct blyi_backend *backend, uint64_t size, void **address)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    void *at = NULL;
    aclError error = cann->acl.aclrtMallocHost(&at, size);
    if (error != ACL_SUCCESS) {
        (void)blyi_cann_failed(cann, "aclrtMallocHost", error);
        return BLY_E_HOST_MEMORY;
    }
    *address = at;
    return BLY_OK;
}

static void unpin(struct blyi_backend *backend, void *address, uint64_t size)
{
    struct blyi_cann *cann = blyi_cann_of(backend);
    (void)size;
    blyi_cann_expect(cann, "aclrtFreeHost", cann->acl.aclrtFreeHost(address));
}

static const struct blyi_backend_ops cann_ops = {
    .describe = describe,
    .close = close_cann,
    .alive = alive,
    .create = create,
    .release = release,
    .relieve = relieve,
    .shortage = shortage,
    .reserve = reserve,
    .unreserve = unreserve,
    .map = map,
    .unmap = unmap,
    .hold = blyi_cann_hold,
    .let_go = blyi_cann_let_go,
    .marks = blyi_cann_marks,
    .passed = blyi_cann_passed,
    .wait = blyi_cann_wait,
    .order = blyi_cann_order,
    .knows = blyi_cann_knows,
    .awaited = blyi_cann_awaited,
    .number = blyi_cann_number,
    .ended = blyi_cann_has_ended,
    .cells = cells,
    .pin = pin,
    .unpin = unpin,
};

bly_status blyi_backend_cann(int device, const char *path, struct blyi_backend **out)
{
    struct blyi_cann *cann = blyi_host_calloc(1, sizeof *cann);
    if (cann == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a device");
    bly_status status = blyi_cann_load(path, &cann->acl);
    if (status != BLY_OK) {
        blyi_host_free(cann);
        return status;
    }
    cann->backend.ops = &cann_ops;
    blyi_lock_init(&cann->lock, BLYI_RANK_LANES);
    blyi_list_init(&cann->lanes);
    blyi_list_init(&cann->unused);
    int32_t current = device;
    aclError error = device < 0 ? cann->acl.aclrtGetDevice(&current) : ACL_SUCCESS;
    cann->device = current;
    cann->prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    cann->prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    cann->prop.memAttr = ACL_HBM_MEM_HUGE;
    cann->prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    cann->prop.location.id = (uint32_t)current;
    size_t granule = 0;
    if (error == ACL_SUCCESS)
        error = cann->acl.aclrtMemGetAllocationGranularity(
            &cann->prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule);
    if (error != ACL_SUCCESS || granule == 0) {
        status = blyi_cann_failed(cann, "aclrtMemGetAllocationGranularity", error);
        close_cann(&cann->backend);
        return status;
    }
    cann->granule = granule;
    *out = &cann->backend;
    return BLY_OK;
}
