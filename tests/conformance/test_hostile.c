/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument of every exported function given NULL, zero, huge, misaligned, stale, foreign
 * and doubly freed values. A function runs in a child of its own with a time limit, so that a
 * crash or a hang is told with the function and the arguments. A call that fails must leave its
 * outputs alone. A function of the symbol list without a row here fails the test.
 *
 * The calls go through one integer signature: all arguments are integers or pointers and pass
 * in registers or words of the stack (the two half-precision functions are told apart). */
#include "acl_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include "face/acl/acl_symbols.h"

#define ARGS_MAX   10
#define VALUES_MAX 16
#define RANDOM     400
#define AREA       (4 * MIB)
#define FILL       0xa5
#define OUT_SIZE   ((size_t)16384)

/* Kinds of arguments:
 *   o  place for a result        v  readable input        c  aclrtMallocConfig
 *   m  address of memory         l  list of addresses     s  text, S format without directives
 *   h  stream  e  event  x  context  b  data buffer  a  allocator description  g  stream config
 *   z  size    i  int and enums  u  uint32  U  uint64     d  device
 *   p  physical handle  q  its properties  k  reserved address  w  location  y  access
 *   r  host memory to register
 *   f  function                  D  any pointer, never read    V  a va_list
 *   B  kernel binary   K  kernel function   A  argument list   R  64 KiB of readable memory
 *   Y  notify   Z  counting notify   W  a place that a failed call may write to
 *   j  count of a list
 *   n  a structure of zeros, or none        N  NULL, or a pointer
 * Behind ':' comes what is returned: e an aclError, - anything else. */
static const struct row {
    const char *name, *arguments;
} rows[] = {
    {"aclAppLog", "issuS:-"},
    {"aclCreateDataBuffer", "Dz:-"},
    {"aclDataTypeSize", "i:-"},
    {"aclDestroyDataBuffer", "b:e"},
    {"aclFinalize", ":e"},
    {"aclFinalizeCallbackRegister", "ifD:e"},
    {"aclFinalizeCallbackUnRegister", "if:e"},
    {"aclFinalizeReference", "o:e"},
    {"aclFloat16ToFloat", "u:-"},
    {"aclFloatToFloat16", "u:-"},
    {"aclGetCannAttribute", "io:e"},
    {"aclGetCannAttributeList", "oo:e"},
    {"aclGetDataBufferAddr", "b:-"},
    {"aclGetDataBufferSize", "b:-"},
    {"aclGetDataBufferSizeV2", "b:-"},
    {"aclGetDeviceCapability", "dio:e"},
    {"aclGetRecentErrMsg", ":-"},
    {"aclInit", "s:e"},
    {"aclInitCallbackRegister", "ifD:e"},
    {"aclInitCallbackUnRegister", "if:e"},
    {"aclUpdateDataBuffer", "bDz:e"},
    {"acllogCheckDebugLevel", "ii:-"},
    {"acllogRecord", "iiS:-"},
    {"acllogRegisterCallback", "fDuo:e"},
    {"acllogUnregisterCallback", "U:e"},
    {"acllogVaList", "iiSV:-"},
    {"aclrtAllocatorCreateDesc", ":-"},
    {"aclrtAllocatorDestroyDesc", "a:e"},
    {"aclrtAllocatorGetByStream", "hoooooo:e"},
    {"aclrtAllocatorRegister", "ha:e"},
    {"aclrtAllocatorSetAllocAdviseFuncToDesc", "af:e"},
    {"aclrtAllocatorSetAllocFuncToDesc", "af:e"},
    {"aclrtAllocatorSetFreeFuncToDesc", "af:e"},
    {"aclrtAllocatorSetGetAddrFromBlockFuncToDesc", "af:e"},
    {"aclrtAllocatorSetObjToDesc", "aD:e"},
    {"aclrtAllocatorUnregister", "h:e"},
    {"aclrtBinaryGetFunction", "Bso:e"},
    {"aclrtBinaryLoad", "Bo:e"},
    {"aclrtBinaryLoadFromData", "Rzno:e"},
    {"aclrtBinaryLoadFromFile", "sno:e"},
    {"aclrtBinarySetExceptionCallback", "BfD:e"},
    {"aclrtBinaryUnLoad", "B:e"},
    {"aclrtCheckMemType", "luuou:e"},
    {"aclrtCmoAsync", "mzih:e"},
    {"aclrtCntNotifyCreate", "oU:e"},
    {"aclrtCntNotifyDestroy", "Z:e"},
    {"aclrtCntNotifyGetId", "Zo:e"},
    {"aclrtCntNotifyRecord", "Zhv:e"},
    {"aclrtCntNotifyReset", "Zh:e"},
    {"aclrtCntNotifyWaitWithTimeout", "Zhv:e"},
    {"aclrtCreateBinary", "Dz:-"},
    {"aclrtCreateContext", "od:e"},
    {"aclrtCreateEvent", "o:e"},
    {"aclrtCreateEventExWithFlag", "ou:e"},
    {"aclrtCreateEventWithFlag", "ou:e"},
    {"aclrtCreateNotify", "oU:e"},
    {"aclrtCreateStream", "o:e"},
    {"aclrtCreateStreamConfigHandle", ":-"},
    {"aclrtCreateStreamV2", "og:e"},
    {"aclrtCreateStreamWithConfig", "ouu:e"},
    {"aclrtCtxGetCurrentDefaultStream", "o:e"},
    {"aclrtCtxGetSysParamOpt", "io:e"},
    {"aclrtCtxSetSysParamOpt", "iU:e"},
    {"aclrtDestroyBinary", "B:e"},
    {"aclrtDestroyContext", "x:e"},
    {"aclrtDestroyEvent", "e:e"},
    {"aclrtDestroyNotify", "Y:e"},
    {"aclrtDestroyStream", "h:e"},
    {"aclrtDestroyStreamConfigHandle", "g:e"},
    {"aclrtDestroyStreamForce", "h:e"},
    {"aclrtDeviceCanAccessPeer", "odd:e"},
    {"aclrtDeviceDisablePeerAccess", "d:e"},
    {"aclrtDeviceEnablePeerAccess", "du:e"},
    {"aclrtDeviceGetBareTgid", "o:e"},
    {"aclrtDeviceGetByPCIBusId", "so:e"},
    {"aclrtDeviceGetLimit", "io:e"},
    {"aclrtDeviceGetPCIBusId", "doi:e"},
    {"aclrtDeviceGetStreamPriorityRange", "oo:e"},
    {"aclrtDeviceGetUuid", "do:e"},
    {"aclrtDeviceL2CacheFlush", "N:e"},
    {"aclrtDevicePeerAccessStatus", "ddo:e"},
    {"aclrtDeviceSetLimit", "iz:e"},
    {"aclrtDeviceTaskAbort", "du:e"},
    {"aclrtEventElapsedTime", "oee:e"},
    {"aclrtEventGetTimestamp", "eo:e"},
    {"aclrtExceptionInfoCallbackRegister", "f:e"},
    {"aclrtExceptionInfoCallbackUnregister", "f:e"},
    {"aclrtFree", "m:e"},
    {"aclrtFreeHost", "m:e"},
    {"aclrtFreeHostWithDevSync", "m:e"},
    {"aclrtFreePhysical", "p:e"},
    {"aclrtFreeWithDevSync", "m:e"},
    {"aclrtFunctionGetBinary", "Ko:e"},
    {"aclrtGetArgsFromExceptionInfo", "voo:e"},
    {"aclrtGetCurrentContext", "o:e"},
    {"aclrtGetDevice", "o:e"},
    {"aclrtGetDeviceCapability", "dio:e"},
    {"aclrtGetDeviceCount", "o:e"},
    {"aclrtGetDeviceIdFromExceptionInfo", "v:-"},
    {"aclrtGetDeviceInfo", "dio:e"},
    {"aclrtGetDeviceResLimit", "dio:e"},
    {"aclrtGetDeviceSatMode", "o:e"},
    {"aclrtGetDeviceUtilizationRate", "do:e"},
    {"aclrtGetDevicesTopo", "ddo:e"},
    {"aclrtGetErrorCodeFromExceptionInfo", "v:-"},
    {"aclrtGetErrorVerbose", "do:e"},
    {"aclrtGetEventAvailNum", "o:e"},
    {"aclrtGetEventId", "eo:e"},
    {"aclrtGetFuncHandleFromExceptionInfo", "vo:e"},
    {"aclrtGetFunctionName", "Kuo:e"},
    {"aclrtGetLastError", "i:-"},
    {"aclrtGetLogicDevIdByPhyDevId", "do:e"},
    {"aclrtGetLogicDevIdByUserDevId", "do:e"},
    {"aclrtGetMemInfo", "ioo:e"},
    {"aclrtGetMemUceInfo", "dozo:e"},
    {"aclrtGetMemUsageInfo", "dozo:e"},
    {"aclrtGetNotifyId", "Yo:e"},
    {"aclrtGetOpExecuteTimeout", "o:e"},
    {"aclrtGetOpTimeOutInterval", "o:e"},
    {"aclrtGetOverflowStatus", "mzh:e"},
    {"aclrtGetPhyDevIdByLogicDevId", "do:e"},
    {"aclrtGetPhyDevIdByUserDevId", "do:e"},
    {"aclrtGetPrimaryCtxState", "doo:e"},
    {"aclrtGetResInCurrentThread", "io:e"},
    {"aclrtGetRunMode", "o:e"},
    {"aclrtGetSocName", ":-"},
    {"aclrtGetStreamAttribute", "hio:e"},
    {"aclrtGetStreamAvailableNum", "o:e"},
    {"aclrtGetStreamIdFromExceptionInfo", "v:-"},
    {"aclrtGetStreamOverflowSwitch", "ho:e"},
    {"aclrtGetStreamResLimit", "hio:e"},
    {"aclrtGetSysParamOpt", "io:e"},
    {"aclrtGetTaskIdFromExceptionInfo", "v:-"},
    {"aclrtGetThreadIdFromExceptionInfo", "v:-"},
    {"aclrtGetThreadLastTaskId", "o:e"},
    {"aclrtGetUserDevIdByLogicDevId", "do:e"},
    {"aclrtGetUserDevIdByPhyDevId", "do:e"},
    {"aclrtGetVersion", "ooo:e"},
    {"aclrtHostGetDevicePointer", "mou:e"},
    {"aclrtHostMemMapCapabilities", "dio:e"},
    {"aclrtHostRegister", "rzio:e"},
    {"aclrtHostRegisterV2", "rzu:e"},
    {"aclrtHostUnregister", "r:e"},
    {"aclrtKernelArgsAppend", "ARzo:e"},
    {"aclrtKernelArgsAppendPlaceHolder", "Ao:e"},
    {"aclrtKernelArgsFinalize", "A:e"},
    {"aclrtKernelArgsGetPlaceHolderBuffer", "Auzo:e"},
    {"aclrtKernelArgsInit", "Ko:e"},
    {"aclrtKernelArgsParaUpdate", "AuRz:e"},
    {"aclrtLaunchCallback", "fDih:e"},
    {"aclrtLaunchHostFunc", "hfD:e"},
    {"aclrtLaunchKernel", "Kumzh:e"},
    {"aclrtLaunchKernelV2", "Kumznh:e"},
    {"aclrtLaunchKernelWithConfig", "KuhnAN:e"},
    {"aclrtLaunchKernelWithHostArgs", "KuhnRznz:e"},
    {"aclrtMalloc", "ozi:e"},
    {"aclrtMallocAlign32", "ozi:e"},
    {"aclrtMallocCached", "ozi:e"},
    {"aclrtMallocForTaskScheduler", "ozic:e"},
    {"aclrtMallocHost", "oz:e"},
    {"aclrtMallocHostWithCfg", "ozc:e"},
    {"aclrtMallocPhysical", "ozqU:e"},
    {"aclrtMallocWithCfg", "ozic:e"},
    {"aclrtMapMem", "kzzpU:e"},
    {"aclrtMemFlush", "mz:e"},
    {"aclrtMemGetAccess", "kwo:e"},
    {"aclrtMemGetAddressRange", "moo:e"},
    {"aclrtMemGetAllocationGranularity", "qio:e"},
    {"aclrtMemGetAllocationPropertiesFromHandle", "po:e"},
    {"aclrtMemInvalidate", "mz:e"},
    {"aclrtMemMapNoAccess", "kzzpU:e"},
    {"aclrtMemMapSelectedLink", "kzku:e"},
    {"aclrtMemMapSetLink", "pi:e"},
    {"aclrtMemP2PMap", "mzdU:e"},
    {"aclrtMemRetainAllocationHandle", "ko:e"},
    {"aclrtMemSetAccess", "kzyz:e"},
    {"aclrtMemUceRepair", "dRz:e"},
    {"aclrtMemcpy", "mzmzi:e"},
    {"aclrtMemcpy2d", "mzmzzzi:e"},
    {"aclrtMemcpy2dAsync", "mzmzzzih:e"},
    {"aclrtMemcpyAsync", "mzmzih:e"},
    {"aclrtMemcpyAsyncWithCondition", "mzmzih:e"},
    {"aclrtMemcpyBatch", "lRlRjnnjW:e"},
    {"aclrtMemcpyBatchAsync", "lRlRjnnjWh:e"},
    {"aclrtMemcpyBatchAsyncV2", "lRlRjnnjh:e"},
    {"aclrtMemcpyBatchV2", "lRlRjnnj:e"},
    {"aclrtMemset", "mziz:e"},
    {"aclrtMemsetAsync", "mzizh:e"},
    {"aclrtMemsetD32", "mzuz:e"},
    {"aclrtMemsetD32Async", "mzuzh:e"},
    {"aclrtNotifyBatchReset", "Ru:e"},
    {"aclrtPeekAtLastError", "i:-"},
    {"aclrtPersistentTaskClean", "h:e"},
    {"aclrtPointerGetAttributes", "mo:e"},
    {"aclrtProcessReport", "i:e"},
    {"aclrtQueryDeviceStatus", "do:e"},
    {"aclrtQueryEvent", "eo:e"},
    {"aclrtQueryEventStatus", "eo:e"},
    {"aclrtQueryEventWaitStatus", "eo:e"},
    {"aclrtRecordEvent", "eh:e"},
    {"aclrtRecordEventWithFlag", "ehu:e"},
    {"aclrtRecordNotify", "Yh:e"},
    {"aclrtReduceAsync", "mmziihN:e"},
    {"aclrtRegDeviceStateCallback", "sfD:e"},
    {"aclrtRegStreamStateCallback", "sfD:e"},
    {"aclrtRegisterCpuFunc", "Bsso:e"},
    {"aclrtReleaseMemAddress", "k:e"},
    {"aclrtRepairError", "dR:e"},
    {"aclrtReserveMemAddress", "ozzkU:e"},
    {"aclrtReserveMemAddressNoUCMemory", "ozzkU:e"},
    {"aclrtResetDevice", "d:e"},
    {"aclrtResetDeviceForce", "d:e"},
    {"aclrtResetDeviceResLimit", "d:e"},
    {"aclrtResetEvent", "eh:e"},
    {"aclrtResetOverflowStatus", "h:e"},
    {"aclrtResetStreamResLimit", "h:e"},
    {"aclrtSetCurrentContext", "x:e"},
    {"aclrtSetDevice", "d:e"},
    {"aclrtSetDeviceResLimit", "diu:e"},
    {"aclrtSetDeviceSatMode", "i:e"},
    {"aclrtSetDeviceTaskAbortCallback", "sfD:e"},
    {"aclrtSetExceptionInfoCallback", "f:e"},
    {"aclrtSetOpExecuteTimeOut", "u:e"},
    {"aclrtSetOpExecuteTimeOutV2", "Uo:e"},
    {"aclrtSetOpExecuteTimeOutWithMs", "u:e"},
    {"aclrtSetOpWaitTimeout", "u:e"},
    {"aclrtSetStreamAttribute", "hiv:e"},
    {"aclrtSetStreamConfigOpt", "givz:e"},
    {"aclrtSetStreamFailureMode", "hU:e"},
    {"aclrtSetStreamOverflowSwitch", "hu:e"},
    {"aclrtSetStreamResLimit", "hiu:e"},
    {"aclrtSetSysParamOpt", "iU:e"},
    {"aclrtSetTsDevice", "i:e"},
    {"aclrtStreamAbort", "h:e"},
    {"aclrtStreamGetFlags", "ho:e"},
    {"aclrtStreamGetId", "ho:e"},
    {"aclrtStreamGetPriority", "ho:e"},
    {"aclrtStreamQuery", "ho:e"},
    {"aclrtStreamStop", "h:e"},
    {"aclrtStreamWaitEvent", "he:e"},
    {"aclrtStreamWaitEventWithFlag", "heuu:e"},
    {"aclrtStreamWaitEventWithTimeout", "hei:e"},
    {"aclrtSubscribeReport", "Uh:e"},
    {"aclrtSynchronizeDevice", ":e"},
    {"aclrtSynchronizeDeviceWithTimeout", "i:e"},
    {"aclrtSynchronizeEvent", "e:e"},
    {"aclrtSynchronizeEventWithTimeout", "ei:e"},
    {"aclrtSynchronizeStream", "h:e"},
    {"aclrtSynchronizeStreamWithTimeout", "hi:e"},
    {"aclrtUnSubscribeReport", "Uh:e"},
    {"aclrtUnmapMem", "k:e"},
    {"aclrtUnuseStreamResInCurrentThread", "h:e"},
    {"aclrtUseStreamResInCurrentThread", "h:e"},
    {"aclrtValueWait", "mUuh:e"},
    {"aclrtValueWrite", "mUuh:e"},
    {"aclrtWaitAndResetNotify", "Yhu:e"},
    {"aclsysGetCANNVersion", "io:e"},
    {"aclsysGetVersionNum", "so:e"},
    {"aclsysGetVersionStr", "so:e"},
};

static const char *const symbols[] = {
#define SYMBOL_NAME(name) #name,
    BLYI_ACL_SYMBOLS(SYMBOL_NAME)
#undef SYMBOL_NAME
};

/* The world of one child: a good value and bad ones of each kind. */
static struct {
    aclrtContext context, other_context, dead_context;
    aclrtStream stream, other_stream, dead_stream;
    aclrtEvent event, dead_event;
    aclDataBuffer *buffer, *dead_buffer;
    aclrtAllocatorDesc desc, dead_desc;
    aclrtStreamConfigHandle *config, *dead_config;
    char *card, *dead_card, *other_card, *pinned, *dead_pinned, *area;
    char *out[ARGS_MAX];
    void *list[512];
    void *range, *mapped, *phys, *dead_phys;
    char *host;
    aclrtPhysicalMemProp prop, prop_bad;
    aclrtMemLocation location, location_bad;
    aclrtMemAccessDesc access[2], access_bad;
    aclrtMallocAttribute attribute;
    aclrtMallocConfig malloc_config, malloc_config_bad;
    uint64_t input[8], zeros[8];
    aclrtBinHandle binary, dead_binary;
    aclrtFuncHandle function;
    aclrtArgsHandle args;
    aclrtNotify notify, dead_notify;
    aclrtCntNotify counting;
} world;

struct values {
    uint64_t list[VALUES_MAX]; /* the first is good */
    size_t n;
};

/* Shown by the parent when the child dies. */
static struct report {
    char call[512];
} * report;

static uint64_t seed = 20240607;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static int nothing(void)
{
    return 0;
}

/* Memory with nothing behind it, so that a copy that runs too far stops. */
static char *guarded(size_t size)
{
    char *base = mmap(NULL, size + 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    CHECK(mprotect(base + MIB, size, PROT_READ | PROT_WRITE) == 0);
    return base + MIB;
}

static void build_world(void)
{
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc((void **)&world.other_card, 4096, HUGE_FIRST));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&world.context));
    OK(aclrtCreateContext(&world.dead_context, 0));
    OK(aclrtDestroyContext(world.dead_context));
    OK(aclrtCreateContext(&world.other_context, 0));
    OK(aclrtCreateStream(&world.other_stream));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&world.dead_stream));
    OK(aclrtDestroyStream(world.dead_stream));
    OK(aclrtCreateStream(&world.stream));
    OK(aclrtCreateEvent(&world.dead_event));
    OK(aclrtDestroyEvent(world.dead_event));
    OK(aclrtCreateEvent(&world.event));
    OK(aclrtRecordEvent(world.event, world.stream));
    OK(aclrtSynchronizeStream(world.stream));
    OK(aclrtMalloc((void **)&world.card, 4096, HUGE_FIRST));
    OK(aclrtMalloc((void **)&world.dead_card, 4 * MIB, HUGE_FIRST));
    OK(aclrtFree(world.dead_card));
    OK(aclrtMallocHost((void **)&world.pinned, 4096));
    OK(aclrtMallocHost((void **)&world.dead_pinned, 4096));
    OK(aclrtFreeHost(world.dead_pinned));
    world.dead_buffer = aclCreateDataBuffer(NULL, 0);
    OK(aclDestroyDataBuffer(world.dead_buffer));
    world.buffer = aclCreateDataBuffer(&world, 1);
    world.dead_desc = aclrtAllocatorCreateDesc();
    OK(aclrtAllocatorDestroyDesc(world.dead_desc));
    world.desc = aclrtAllocatorCreateDesc();
    world.config = aclrtCreateStreamConfigHandle();
    world.dead_config = aclrtCreateStreamConfigHandle();
    OK(aclrtDestroyStreamConfigHandle(world.dead_config));
    CHECK(world.buffer != NULL && world.desc != NULL && world.config != NULL);
    world.prop = (aclrtPhysicalMemProp){.memAttr = ACL_HBM_MEM_HUGE,
                                        .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    world.prop_bad = world.prop;
    world.prop_bad.memAttr = (aclrtMemAttr)99;
    world.location = world.prop.location;
    world.location_bad = (aclrtMemLocation){77, (aclrtMemLocationType)9};
    world.access[0] = world.access[1] =
        (aclrtMemAccessDesc){ACL_RT_MEM_ACCESS_FLAGS_READWRITE, world.location, {0}};
    world.access_bad = (aclrtMemAccessDesc){ACL_RT_MEM_ACCESS_FLAGS_READ, world.location, {0}};
    OK(aclrtReserveMemAddress(&world.range, 8 * MIB, 0, NULL, 1));
    OK(aclrtReserveMemAddress(&world.mapped, 2 * MIB, 0, NULL, 1));
    OK(aclrtMallocPhysical(&world.dead_phys, 2 * MIB, &world.prop, 0));
    OK(aclrtFreePhysical(world.dead_phys));
    OK(aclrtMallocPhysical(&world.phys, 2 * MIB, &world.prop, 0));
    OK(aclrtMapMem(world.mapped, 2 * MIB, 0, world.phys, 0));
    if (world.host == NULL)
        world.host = guarded(2 * MIB);
    world.list[0] = world.card;
    world.list[1] = world.other_card;
    world.attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
    world.malloc_config = (aclrtMallocConfig){&world.attribute, 1};
    world.malloc_config_bad = (aclrtMallocConfig){NULL, 3};
    OK(aclrtCreateNotify(&world.dead_notify, 0));
    OK(aclrtDestroyNotify(world.dead_notify));
    OK(aclrtCreateNotify(&world.notify, 0));
    OK(aclrtCntNotifyCreate(&world.counting, 0));
    aclrtParamHandle param;
    OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &world.dead_binary));
    OK(aclrtBinaryUnLoad(world.dead_binary));
    OK(aclrtBinaryLoadFromFile(TEST_KERNELS, NULL, &world.binary));
    OK(aclrtBinaryGetFunction(world.binary, "add_one", &world.function));
    OK(aclrtKernelArgsInit(world.function, &world.args));
    OK(aclrtKernelArgsAppend(world.args, &world.card, sizeof(world.card), &param));
    OK(aclrtKernelArgsAppendPlaceHolder(world.args, &param));
}

/* What the last call destroyed is made again. */
static void mend_world(void)
{
    int32_t id;
    size_t size;
    aclrtContext now = NULL;
    if (aclrtGetCurrentContext(&now) != 0 || now != world.context) {
        if (aclrtSetCurrentContext(world.context) != 0) {
            build_world();
            return;
        }
    }
    char name[32];
    aclrtPhysicalMemProp prop;
    uint32_t is_range = 0;
    (void)aclrtUnmapMem(world.range);
    (void)aclrtCheckMemType(&world.range, 1, ACL_RT_MEM_TYPE_RSVD, &is_range, 0);
    if (is_range != 1 || aclrtMemGetAddressRange(world.mapped, NULL, &size) != 0 ||
        aclrtMemGetAllocationPropertiesFromHandle(world.phys, &prop) != 0 ||
        aclrtStreamGetId(world.stream, &id) != 0 ||
        aclrtGetFunctionName(world.function, sizeof(name), name) != 0 ||
        aclrtGetNotifyId(world.notify, (uint32_t *)&id) != 0 ||
        aclrtCntNotifyGetId(world.counting, (uint32_t *)&id) != 0 ||
        aclrtMemGetAddressRange(world.card, NULL, &size) != 0 ||
        aclrtMemGetAddressRange(world.pinned, NULL, &size) != 0 ||
        aclrtMemGetAddressRange(world.other_card, NULL, &size) != 0 ||
        aclrtSynchronizeEventWithTimeout(world.event, 100) != 0 ||
        aclUpdateDataBuffer(world.buffer, NULL, 0) != 0 ||
        aclrtAllocatorSetObjToDesc(world.desc, &world) != 0 ||
        aclrtStreamGetId(world.other_stream, &id) != 0)
        build_world();
}

#define P(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ADD(...)                                                                                   \
    do {                                                                                           \
        const uint64_t more_[] = {__VA_ARGS__};                                                    \
        for (size_t i_ = 0; i_ < sizeof(more_) / sizeof(more_[0]); i_++)                           \
            values->list[values->n++] = more_[i_];                                                 \
    } while (0)
#define ODD_HANDLES 0, 1, UINT64_MAX, P(&world), P(world.card), P(world.area)

static void values_of(char kind, size_t index, struct values *values)
{
    static char long_text[5000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    values->n = 0;
    switch (kind) {
    case 'o':
        ADD(P(world.out[index]), 0);
        break;
    case 'v':
        ADD(P(world.input), 0);
        break;
    case 'Y':
        ADD(P(world.notify), P(world.dead_notify), P(world.counting), P(world.stream), ODD_HANDLES);
        break;
    case 'Z':
        ADD(P(world.counting), P(world.dead_notify), P(world.notify), ODD_HANDLES);
        break;
    case 'j':
        ADD(1, 0, 2, 8, 255, 512);
        break;
    case 'W':
        ADD(P(world.out[index]), 0);
        break;
    case 'R':
        ADD(P(world.area), 0);
        break;
    case 'n':
        ADD(0, P(world.zeros));
        break;
    case 'N':
        ADD(0, P(&world));
        break;
    case 'B':
        ADD(P(world.binary), P(world.dead_binary), P(world.function), P(world.stream), ODD_HANDLES);
        break;
    case 'K':
        ADD(P(world.function), P(world.binary), P(world.stream), ODD_HANDLES);
        break;
    case 'A':
        ADD(P(world.args), P(world.function), P(world.stream), ODD_HANDLES);
        break;
    case 'V':
        ADD(P(world.input));
        break;
    case 'c':
        ADD(P(&world.malloc_config), 0, P(&world.malloc_config_bad));
        break;
    case 'p':
        ADD(P(world.phys), P(world.dead_phys), P(world.stream), P(world.mapped), ODD_HANDLES);
        break;
    case 'q':
        ADD(P(&world.prop), 0, P(&world.prop_bad));
        break;
    case 'w':
        ADD(P(&world.location), 0, P(&world.location_bad));
        break;
    case 'y':
        ADD(P(world.access), 0, P(&world.access_bad));
        break;
    case 'k':
        ADD(P(world.range), P(world.mapped), 0, 1, UINT64_MAX, P(world.card), P(world.pinned),
            P(world.mapped) + 4096, P(world.range) + 2 * MIB, P(world.range) + 4095, P(world.area),
            UINT64_C(16) << 40, UINT64_C(1) << 47, UINT64_MAX - 4095);
        break;
    case 'r':
        ADD(P(world.host), P(world.host) + 16, 0, 1, UINT64_MAX, P(world.card), P(world.pinned),
            P(world.mapped), P(world.host) - 4096, P(world.host) + 4096, UINT64_MAX - 4095);
        break;
    case 'l':
        ADD(P(world.list), 0);
        break;
    case 'm':
        ADD(P(world.card), 0, 1, UINT64_MAX, P(world.card + 1), P(world.card + 4), P(world.pinned),
            P(world.pinned + 32), P(world.area), P(world.area + 1), P(world.dead_card),
            P(world.dead_pinned), P(world.other_card), P(world.stream), UINT64_MAX - 4095);
        break;
    case 'h':
        ADD(P(world.stream), P(world.dead_stream), P(world.event), P(world.other_stream),
            P(world.context), ODD_HANDLES);
        break;
    case 'e':
        ADD(P(world.event), P(world.dead_event), P(world.stream), P(world.context), ODD_HANDLES);
        break;
    case 'x':
        ADD(P(world.context), P(world.dead_context), P(world.stream), P(world.other_context),
            ODD_HANDLES);
        break;
    case 'b':
        ADD(P(world.buffer), P(world.dead_buffer), P(world.desc), ODD_HANDLES);
        break;
    case 'a':
        ADD(P(world.desc), P(world.dead_desc), P(world.buffer), ODD_HANDLES);
        break;
    case 'g':
        ADD(P(world.config), P(world.dead_config), P(world.stream), ODD_HANDLES);
        break;
    case 's':
        ADD(P("runtime"), 0, P(""), P("/"), P("/nonexistent/x.json"), P(long_text), P("%n%s%n"),
            P("0000:01:00.0"));
        break;
    case 'S':
        ADD(P("text"), 0, P(""), P(long_text));
        break;
    case 'f':
        ADD(P((uintptr_t)nothing), 0);
        break;
    case 'z':
        ADD(4096, 0, 1, 3, 4095, 2 * MIB, 1 << 30, UINT64_C(1) << 40, UINT64_C(1) << 50,
            (UINT64_C(1) << 50) + 1, (uint64_t)SSIZE_MAX, UINT64_MAX, UINT64_MAX - 31,
            UINT64_MAX - 62);
        break;
    case 'i':
        ADD(1, 0, 2, 3, 4, 5, 6, 7, 18, 100, INT_MAX, UINT64_MAX, (uint64_t)INT_MIN, 0x100);
        break;
    case 'd':
        ADD(0, 1, 2, 63, 64, INT_MAX, UINT64_MAX, (uint64_t)INT_MIN);
        break;
    case 'u':
    case 'U':
        ADD(1, 0, 2, 8, 9, 16, 255, INT_MAX, UINT32_MAX, UINT64_MAX);
        break;
    case 'D':
        ADD(P(&world), 0, 1, UINT64_MAX);
        break;
    default:
        test_fail(__FILE__, __LINE__, "a kind of argument that is not known");
    }
}

static uint64_t call_with(void *function, const uint64_t a[ARGS_MAX])
{
    typedef uint64_t (*any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            uint64_t, uint64_t, uint64_t);
    any fn;
    memcpy(&fn, &function, sizeof(fn));
    return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
}

/* A failed call leaves no output behind. */
static void check_outputs(const struct row *row, const uint64_t a[ARGS_MAX], aclError code)
{
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        if (row->arguments[i] != 'o' || a[i] == 0)
            continue;
        for (size_t b = 0; b < OUT_SIZE; b++) {
            if ((unsigned char)world.out[i][b] != FILL) {
                fprintf(stderr, "%s failed with %d and wrote to argument %zu\n", report->call, code,
                        i);
                _exit(1);
            }
        }
    }
}

static void try_call(const struct row *row, void *function, const uint64_t a[ARGS_MAX])
{
    size_t used = (size_t)snprintf(report->call, sizeof(report->call), "%s(", row->name);
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        if (row->arguments[i] == 'o' && a[i] != 0)
            memset(world.out[i], FILL, OUT_SIZE);
        used += (size_t)snprintf(report->call + used, sizeof(report->call) - used, " %#llx",
                                 (unsigned long long)a[i]);
    }
    aclError code = (aclError)call_with(function, a);
    if (row->arguments[strlen(row->arguments) - 1] == 'e' && code != 0 && code != 100002)
        check_outputs(row, a, code);
    report->call[0] = '\0';
}

/* Good values, but for those that `pick` changes. */
static void good_arguments(const struct row *row, struct values values[ARGS_MAX],
                           uint64_t a[ARGS_MAX])
{
    memset(a, 0, ARGS_MAX * sizeof(a[0]));
    for (size_t i = 0; row->arguments[i] != ':'; i++) {
        values_of(row->arguments[i], i, &values[i]);
        a[i] = values[i].list[0];
    }
}

static void torture(const struct row *row)
{
    struct values values[ARGS_MAX];
    uint64_t a[ARGS_MAX];
    void *function = dlsym(RTLD_DEFAULT, row->name);
    CHECK(function != NULL);
    size_t n_args = strcspn(row->arguments, ":");
    good_arguments(row, values, a);
    try_call(row, function, a);
    for (size_t i = 0; i < n_args; i++) {
        for (size_t v = 0; v < values[i].n; v++) {
            mend_world();
            good_arguments(row, values, a);
            a[i] = values[i].list[v];
            try_call(row, function, a);
            try_call(row, function, a); /* what was freed is freed again */
        }
    }
    for (int round = 0; round < RANDOM; round++) {
        mend_world();
        good_arguments(row, values, a);
        for (size_t i = 0; i < n_args; i++)
            a[i] = values[i].list[next_random() % values[i].n];
        try_call(row, function, a);
    }
}

static void torture_in_child(const struct row *row)
{
    alarm(TEST_SECONDS);
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_PIN_LIMIT", "16MiB", 1);
    setenv("ASCEND_LOG_PRINT_TO_STDOUT", "1", 1);
    setenv("BELAY_LOG", "error", 1);
    world.area = guarded(AREA);
    for (size_t i = 0; i < ARGS_MAX; i++)
        world.out[i] = guarded(OUT_SIZE);
    build_world();
    torture(row);
    snprintf(report->call, sizeof(report->call), "%s, and then a working runtime", row->name);
    void *p = NULL;
    (void)aclrtResetDeviceForce(0);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtMemset(p, 4096, 0, 4096));
    OK(aclrtFree(p));
    report->call[0] = '\0';
}

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool survives(const struct row *row)
{
    report->call[0] = '\0';
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        default_signals();
        FILE *quiet = freopen("/dev/null", "w", stdout);
        (void)quiet;
        torture_in_child(row);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    print_error("%s: %s %d in %s\n", row->name,
                !WIFSIGNALED(status)          ? "exit"
                : WTERMSIG(status) == SIGALRM ? "no end within the time limit, signal"
                                              : "signal",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                report->call[0] != '\0' ? report->call : "(no call)");
    return false;
}

static void every_function_bears_every_value(void **state)
{
    (void)state;
    size_t n_failed = 0;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const struct row *row = find_row(symbols[i]);
        if (row == NULL)
            print_error("%s has no row in this test\n", symbols[i]);
        if (row == NULL || !survives(row))
            n_failed++;
    }
    assert_int_equal(n_failed, 0);
}

/* ── In the child of a fork ───────────────────────────────────────────────────────────────── */

#define FORK_SECONDS 20
#define BUSY_THREADS 3

/* What must refuse there, with the arguments called good: 507899, and two as the runtime has them.
 */
static const struct {
    const char *name;
    aclError code;
} refused_in_fork[] = {
    {"aclrtSetDevice", 507033},
    {"aclrtCreateContext", 507033},
    {"aclrtMalloc", 507899},
    {"aclrtFree", 507899},
    {"aclrtMallocHost", 507899},
    {"aclrtFreeHost", 507899},
    {"aclrtHostUnregister", 507899},
    {"aclrtReleaseMemAddress", 507899},
    {"aclrtFreePhysical", 507899},
    {"aclrtUnmapMem", 507899},
    {"aclrtMemSetAccess", 507899},
    {"aclrtMemGetAccess", 507899},
    {"aclrtMemRetainAllocationHandle", 507899},
    {"aclrtMemGetAllocationPropertiesFromHandle", 507899},
    {"aclrtMemGetAddressRange", 507899},
    {"aclrtPointerGetAttributes", 507899},
    {"aclrtGetMemInfo", 507899},
    {"aclrtGetMemUsageInfo", 507899},
    {"aclrtMemcpy", 507899},
    {"aclrtMemset", 507899},
};

static struct {
    char *card, *pinned, *mapped, *copy;
    atomic_bool stop;
} kept;

/* Holds the locks that a child must not wait for. */
static void *keep_busy(void *arg)
{
    (void)arg;
    OK(aclrtSetDevice(0));
    while (!atomic_load(&kept.stop)) {
        void *a = NULL, *b = NULL, *range = NULL;
        aclrtDrvMemHandle handle = NULL;
        OK(aclrtMalloc(&a, 4096, HUGE_FIRST));
        OK(aclrtMallocHost(&b, 4096));
        OK(aclrtReserveMemAddress(&range, 2 * MIB, 0, NULL, 1));
        OK(aclrtMallocPhysical(&handle, 2 * MIB, &world.prop, 0));
        OK(aclrtMapMem(range, 2 * MIB, 0, handle, 0));
        OK(aclrtUnmapMem(range));
        OK(aclrtFreePhysical(handle));
        OK(aclrtReleaseMemAddress(range));
        OK(aclrtFreeHost(b));
        OK(aclrtFree(a));
    }
    return NULL;
}

static void call_in_fork(const struct row *row)
{
    struct values values[ARGS_MAX];
    uint64_t a[ARGS_MAX];
    void *function = dlsym(RTLD_DEFAULT, row->name);
    alarm(FORK_SECONDS);
    good_arguments(row, values, a);
    snprintf(report->call, sizeof(report->call), "%s", row->name);
    aclError code = (aclError)call_with(function, a);
    for (size_t i = 0; i < sizeof(refused_in_fork) / sizeof(refused_in_fork[0]); i++) {
        if (strcmp(refused_in_fork[i].name, row->name) == 0 && code != refused_in_fork[i].code) {
            fprintf(stderr, "%s in the child of a fork returned %d\n", row->name, code);
            _exit(1);
        }
    }
    for (size_t i = 0; i < strcspn(row->arguments, ":"); i++) {
        for (size_t v = 0; v < values[i].n; v++) {
            good_arguments(row, values, a);
            a[i] = values[i].list[v];
            try_call(row, function, a);
        }
    }
    for (char **block = &kept.card; block <= &kept.mapped; block++) { /* the very blocks that are */
        good_arguments(row, values, a);                               /* looked at later */
        a[0] = P(*block);
        if (strchr("mkr", row->arguments[0]) != NULL)
            try_call(row, function, a);
    }
}

/* Those for which the first value of each kind is no good one. */
static void call_exactly_in_fork(void)
{
    void *out;
    aclrtDrvMemHandle handle;
    uint32_t is_all;
    CHECK_ACL(aclrtHostRegister(world.area, 4096, ACL_HOST_REGISTER_MAPPED, &out), 507899);
    CHECK_ACL(aclrtHostGetDevicePointer(world.host, &out, 0), 507899);
    CHECK_ACL(aclrtReserveMemAddress(&out, 2 * MIB, 0, NULL, 1), 507899);
    CHECK_ACL(aclrtMallocPhysical(&handle, 2 * MIB, &world.prop, 0), 507899);
    CHECK_ACL(aclrtMapMem(world.range, 2 * MIB, 0, world.phys, 0), 507899);
    CHECK_ACL(aclrtUnmapMem(kept.mapped), 507899);
    CHECK_ACL(aclrtFree(kept.card), 507899);
    CHECK_ACL(aclrtFreeHost(kept.pinned), 507899);
    CHECK_ACL(aclrtCheckMemType((void **)&kept.card, 1, ACL_RT_MEM_TYPE_DEV, &is_all, 0), 507899);
    CHECK_MESSAGE("was forked");
}

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

static bool bears_a_fork(const struct row *row)
{
    report->call[0] = '\0';
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        call_exactly_in_fork();
        call_in_fork(row);
        /* With the destructors once; not under ASan, whose search for leaks at exit cannot see what
         * threads held that the child does not have. */
        if (!UNDER_ASAN && strcmp(row->name, "aclrtFree") == 0)
            exit(0);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "child of a fork: %s %d in %s\n", WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), report->call);
    return false;
}

static void check_kept(const char *block, size_t size, char value)
{
    OK(aclrtMemcpy(kept.copy, size, block, size, ACL_MEMCPY_DEFAULT));
    for (size_t i = 0; i < size; i++)
        CHECK_EQ(kept.copy[i], value);
}

static void fork_body(void)
{
    pthread_t threads[BUSY_THREADS];
    size_t n_failed = 0;
    alarm(0);
    world.area = guarded(AREA);
    for (size_t i = 0; i < ARGS_MAX; i++)
        world.out[i] = guarded(OUT_SIZE);
    build_world();
    kept.copy = malloc(16 * MIB);
    OK(aclrtMalloc((void **)&kept.card, 16 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost((void **)&kept.pinned, MIB));
    kept.mapped = world.mapped;
    OK(aclrtMemset(kept.card, 16 * MIB, 0x5a, 16 * MIB));
    OK(aclrtMemset(kept.mapped, 2 * MIB, 0x77, 2 * MIB));
    memset(kept.pinned, 0x33, MIB);
    OK(aclrtHostRegister(world.host, 2 * MIB, 0, (void **)world.out[0]));
    for (size_t i = 0; i < BUSY_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const struct row *row = find_row(symbols[i]);
        n_failed += row == NULL || !bears_a_fork(row);
    }
    atomic_store(&kept.stop, true);
    for (size_t i = 0; i < BUSY_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_kept(kept.card, 16 * MIB, 0x5a);
    check_kept(kept.mapped, 2 * MIB, 0x77);
    check_kept(kept.pinned, MIB, 0x33);
    OK(aclrtFree(kept.card));
    OK(aclrtFreeHost(kept.pinned));
    OK(aclrtUnmapMem(kept.mapped));
    OK(aclrtHostUnregister(world.host));
    CHECK_EQ(n_failed, 0);
}

TEST(every_function_answers_in_a_forked_child)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    fork_body();
}

TEST(nor_does_a_forked_child_punch_what_is_shared)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_RESIDENT", "0", 1);
    fork_body();
}

/* With a name: only that function. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_answers_in_a_forked_child),
        cmocka_unit_test(nor_does_a_forked_child_punch_what_is_shared),
        cmocka_unit_test(every_function_bears_every_value),
    };
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return 1;
    if (argc > 1) {
        const struct row *row = find_row(argv[1]);
        return row != NULL && survives(row) ? 0 : 1;
    }
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
