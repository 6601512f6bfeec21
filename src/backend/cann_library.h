/* SPDX-License-Identifier: Apache-2.0
 *
 * cann_library.h - the functions of a vendor's libascendcl.so, found at run time.
 */
#ifndef BLYI_CANN_LIBRARY_H
#define BLYI_CANN_LIBRARY_H

#include <acl/acl_rt.h>
#include <belay/base.h>
#include <stdbool.h>

/* X(return type, name, parameters) */
#define BLYI_CANN_SYMBOLS(X)                                                                       \
    X(const char *, aclGetRecentErrMsg, (void))                                                    \
    X(aclError, aclrtGetDevice, (int32_t *))                                                       \
    X(aclError, aclrtGetMemInfo, (aclrtMemAttr, size_t *, size_t *))                               \
    X(aclError, aclrtMemGetAllocationGranularity,                                                  \
      (aclrtPhysicalMemProp *, aclrtMemGranularityOptions, size_t *))                              \
    X(aclError, aclrtReserveMemAddress, (void **, size_t, size_t, void *, uint64_t))               \
    X(aclError, aclrtReleaseMemAddress, (void *))                                                  \
    X(aclError, aclrtMallocPhysical,                                                               \
      (aclrtDrvMemHandle *, size_t, const aclrtPhysicalMemProp *, uint64_t))                       \
    X(aclError, aclrtFreePhysical, (aclrtDrvMemHandle))                                            \
    X(aclError, aclrtMapMem, (void *, size_t, size_t, aclrtDrvMemHandle, uint64_t))                \
    X(aclError, aclrtUnmapMem, (void *))                                                           \
    X(aclError, aclrtCreateEventExWithFlag, (aclrtEvent *, uint32_t))                              \
    X(aclError, aclrtDestroyEvent, (aclrtEvent))                                                   \
    X(aclError, aclrtRecordEvent, (aclrtEvent, aclrtStream))                                       \
    X(aclError, aclrtQueryEventStatus, (aclrtEvent, aclrtEventRecordedStatus *))                   \
    X(aclError, aclrtStreamWaitEvent, (aclrtStream, aclrtEvent))                                   \
    X(aclError, aclrtMallocHost, (void **, size_t))                                                \
    X(aclError, aclrtFreeHost, (void *))

struct blyi_cann_library {
    void *handle;
#define BLYI_CANN_FIELD(type, name, parameters) type(*name) parameters;
    BLYI_CANN_SYMBOLS(BLYI_CANN_FIELD)
#undef BLYI_CANN_FIELD
};

/* For tests: Belay's own library is as good as a vendor's. */
extern bool blyi_cann_own_is_fine;

/* Loads `path`, absolute, or what the loader finds by "libascendcl.so", into a scope of its own.
 * E_UNSUPPORTED: there is none (what the loader says), it is Belay's own, or it lacks a function.
 */
bly_status blyi_cann_load(const char *path, struct blyi_cann_library *library);
void blyi_cann_unload(struct blyi_cann_library *library);

#endif
