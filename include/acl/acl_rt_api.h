/* SPDX-License-Identifier: Apache-2.0 */
/* acl/acl_rt_api.h - the C++ face of acl_rt.h: overloads and typed pointers.
 * Everything here is inline and calls the C function of the same or a near name,
 * so a library needs nothing more. Written by hand; in C it is acl_rt.h alone. */
#ifndef BLY_ACL_ACL_RT_API_H
#define BLY_ACL_ACL_RT_API_H

#include <acl/acl_rt.h>

#ifdef __cplusplus

namespace bly_acl {

/* A typed pointer, or pointer to one, as the C functions take it. */
template <typename T> inline void **erase(T **p)
{
    return reinterpret_cast<void **>(p);
}

template <typename T> inline const void **erase_const(const T **p)
{
    return reinterpret_cast<const void **>(p);
}

/* One attribute for a whole batch: the attribute and the index it starts at. */
template <typename Attr> struct for_all {
    Attr attr;
    size_t first;
    explicit for_all(const Attr &a) : attr(a), first(0)
    {
    }
};

} /* namespace bly_acl */

/* ---- the same name with more arguments ---- */

static inline aclError aclrtSynchronizeDevice(int32_t timeout)
{
    return aclrtSynchronizeDeviceWithTimeout(timeout);
}

static inline aclError aclrtSynchronizeStream(aclrtStream stream, int32_t timeout)
{
    return aclrtSynchronizeStreamWithTimeout(stream, timeout);
}

static inline aclError aclrtSynchronizeEvent(aclrtEvent event, int32_t timeout)
{
    return aclrtSynchronizeEventWithTimeout(event, timeout);
}

static inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
    return aclrtStreamWaitEventWithTimeout(stream, event, timeout);
}

static inline aclError aclrtCreateStream(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    return aclrtCreateStreamWithConfig(stream, priority, flag);
}

static inline aclError aclrtCreateEvent(aclrtEvent *event, uint32_t flag)
{
    return aclrtCreateEventExWithFlag(event, flag);
}

static inline aclError aclrtSetOpExecuteTimeOut(uint64_t timeout, uint64_t *actualTimeout)
{
    return aclrtSetOpExecuteTimeOutV2(timeout, actualTimeout);
}

/* ---- allocation; the typed forms add no padding, see aclrtMallocWithCfg ---- */

template <typename T>
static inline aclError aclrtMalloc(T **devPtr, size_t size, aclrtMemMallocPolicy policy,
                                   aclrtMallocConfig *cfg = nullptr)
{
    return aclrtMallocWithCfg(bly_acl::erase(devPtr), size, policy, cfg);
}

template <typename T>
static inline aclError aclrtMalloc(T **devPtr, size_t size, aclrtMallocConfig *cfg = nullptr)
{
    return aclrtMallocWithCfg(bly_acl::erase(devPtr), size, ACL_MEM_MALLOC_HUGE_FIRST, cfg);
}

template <typename T>
static inline aclError aclrtMallocHost(T **hostPtr, size_t size, aclrtMallocConfig *cfg = nullptr)
{
    return aclrtMallocHostWithCfg(bly_acl::erase(hostPtr), size, cfg);
}

template <typename T>
static inline aclError aclrtMemAllocManaged(T **devPtr, size_t size,
                                            uint32_t flags = ACL_RT_MEM_ATTACH_GLOBAL)
{
    return aclrtMemAllocManaged(bly_acl::erase(devPtr), size, flags);
}

/* ---- host memory the device can reach ---- */

template <typename T>
static inline aclError aclrtHostRegister(T *ptr, uint64_t size, aclrtHostRegisterType type,
                                         T **devPtr)
{
    return ::aclrtHostRegister(static_cast<void *>(ptr), size, type, bly_acl::erase(devPtr));
}

template <typename T>
static inline aclError aclrtHostRegister(T *ptr, uint64_t size, uint32_t flag)
{
    return aclrtHostRegisterV2(static_cast<void *>(ptr), size, flag);
}

template <typename T>
static inline aclError aclrtHostGetDevicePointer(T *pHost, T **pDevice, uint32_t flag)
{
    return ::aclrtHostGetDevicePointer(static_cast<void *>(pHost), bly_acl::erase(pDevice), flag);
}

template <typename T> static inline aclError aclrtHostUnregister(T *ptr)
{
    return ::aclrtHostUnregister(static_cast<void *>(ptr));
}

template <typename T>
static inline aclError aclrtPointerGetAttributes(const T *ptr, aclrtPtrAttributes *attributes)
{
    return ::aclrtPointerGetAttributes(static_cast<const void *>(ptr), attributes);
}

/* ---- copies ---- */

template <typename T, typename U>
static inline aclError aclrtMemcpy(T *dst, size_t destMax, const U *src, size_t count,
                                   aclrtMemcpyKind kind)
{
    return ::aclrtMemcpy(static_cast<void *>(dst), destMax, static_cast<const void *>(src), count,
                         kind);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyAsync(T *dst, size_t destMax, const U *src, size_t count,
                                        aclrtMemcpyKind kind, aclrtStream stream)
{
    return ::aclrtMemcpyAsync(static_cast<void *>(dst), destMax, static_cast<const void *>(src),
                              count, kind, stream);
}

template <typename T, typename U>
static inline aclError aclrtMemcpy2d(T *dst, size_t dpitch, const U *src, size_t spitch,
                                     size_t width, size_t height, aclrtMemcpyKind kind)
{
    return ::aclrtMemcpy2d(static_cast<void *>(dst), dpitch, static_cast<const void *>(src), spitch,
                           width, height, kind);
}

template <typename T, typename U>
static inline aclError aclrtMemcpy2dAsync(T *dst, size_t dpitch, const U *src, size_t spitch,
                                          size_t width, size_t height, aclrtMemcpyKind kind,
                                          aclrtStream stream)
{
    return ::aclrtMemcpy2dAsync(static_cast<void *>(dst), dpitch, static_cast<const void *>(src),
                                spitch, width, height, kind, stream);
}

/* Without a failIndex the second version runs, which reports none. The synchronous
 * forms accept one for old callers and leave it alone. */
template <typename T, typename U>
static inline aclError aclrtMemcpyBatch(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                        size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                        size_t *attrsIndexes, size_t numAttrs,
                                        size_t * /* failIndex */ = nullptr)
{
    return aclrtMemcpyBatchV2(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                              numBatches, attrs, attrsIndexes, numAttrs);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyBatch(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                        size_t numBatches, aclrtMemcpyBatchAttr attr,
                                        size_t * /* failIndex */ = nullptr)
{
    bly_acl::for_all<aclrtMemcpyBatchAttr> one(attr);
    return aclrtMemcpyBatchV2(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                              numBatches, &one.attr, &one.first, 1);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                             size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                             size_t *attrsIndexes, size_t numAttrs,
                                             aclrtStream stream)
{
    return aclrtMemcpyBatchAsyncV2(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                                   numBatches, attrs, attrsIndexes, numAttrs, stream);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                             size_t numBatches, aclrtMemcpyBatchAttr attr,
                                             aclrtStream stream)
{
    bly_acl::for_all<aclrtMemcpyBatchAttr> one(attr);
    return aclrtMemcpyBatchAsyncV2(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                                   numBatches, &one.attr, &one.first, 1, stream);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                             size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                             size_t *attrsIndexes, size_t numAttrs,
                                             size_t *failIndex, aclrtStream stream)
{
    return ::aclrtMemcpyBatchAsync(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                                   numBatches, attrs, attrsIndexes, numAttrs, failIndex, stream);
}

template <typename T, typename U>
static inline aclError aclrtMemcpyBatchAsync(T **dsts, size_t *destMaxs, U **srcs, size_t *sizes,
                                             size_t numBatches, aclrtMemcpyBatchAttr attr,
                                             size_t *failIndex, aclrtStream stream)
{
    bly_acl::for_all<aclrtMemcpyBatchAttr> one(attr);
    return ::aclrtMemcpyBatchAsync(bly_acl::erase(dsts), destMaxs, bly_acl::erase(srcs), sizes,
                                   numBatches, &one.attr, &one.first, 1, failIndex, stream);
}

/* ---- managed memory ---- */

template <typename T>
static inline aclError aclrtMemManagedPrefetchAsync(const T *ptr, size_t size,
                                                    aclrtMemManagedLocation location,
                                                    uint32_t flags, aclrtStream stream)
{
    return ::aclrtMemManagedPrefetchAsync(static_cast<const void *>(ptr), size, location, flags,
                                          stream);
}

template <typename T>
static inline aclError
aclrtMemManagedPrefetchBatchAsync(const T **ptrs, size_t *sizes, size_t count,
                                  aclrtMemManagedLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                  size_t numPrefetchLocs, uint64_t flags, aclrtStream stream)
{
    return ::aclrtMemManagedPrefetchBatchAsync(bly_acl::erase_const(ptrs), sizes, count,
                                               prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
                                               flags, stream);
}

template <typename T>
static inline aclError
aclrtMemManagedPrefetchBatchAsync(const T **ptrs, size_t *sizes, size_t count,
                                  aclrtMemManagedLocation prefetchLoc, uint64_t flags,
                                  aclrtStream stream)
{
    bly_acl::for_all<aclrtMemManagedLocation> one(prefetchLoc);
    return ::aclrtMemManagedPrefetchBatchAsync(bly_acl::erase_const(ptrs), sizes, count, &one.attr,
                                               &one.first, 1, flags, stream);
}

/* ---- variables of device code, named by reference ---- */

template <typename T> static inline aclError aclrtGetSymbolAddress(const T &symbol, void **devPtr)
{
    return ::aclrtGetSymbolAddress(static_cast<const void *>(&symbol), devPtr);
}

template <typename T> static inline aclError aclrtGetSymbolSize(const T &symbol, size_t *size)
{
    return ::aclrtGetSymbolSize(static_cast<const void *>(&symbol), size);
}

template <typename T>
static inline aclError aclrtMemcpyFromSymbol(void *dst, size_t dstMax, const T &symbol,
                                             size_t count, size_t offset, aclrtMemcpyKind kind)
{
    return ::aclrtMemcpyFromSymbol(dst, dstMax, static_cast<const void *>(&symbol), count, offset,
                                   kind);
}

template <typename T>
static inline aclError aclrtMemcpyFromSymbolAsync(void *dst, size_t dstMax, const T &symbol,
                                                  size_t count, size_t offset, aclrtMemcpyKind kind,
                                                  aclrtStream stream)
{
    return ::aclrtMemcpyFromSymbolAsync(dst, dstMax, static_cast<const void *>(&symbol), count,
                                        offset, kind, stream);
}

template <typename T>
static inline aclError aclrtMemcpyToSymbol(const T &symbol, const void *src, size_t count,
                                           size_t offset, aclrtMemcpyKind kind)
{
    return ::aclrtMemcpyToSymbol(static_cast<const void *>(&symbol), src, count, offset, kind);
}

template <typename T>
static inline aclError aclrtMemcpyToSymbolAsync(const T &symbol, const void *src, size_t count,
                                                size_t offset, aclrtMemcpyKind kind,
                                                aclrtStream stream)
{
    return ::aclrtMemcpyToSymbolAsync(static_cast<const void *>(&symbol), src, count, offset, kind,
                                      stream);
}

#endif /* __cplusplus */

#endif /* BLY_ACL_ACL_RT_API_H */
